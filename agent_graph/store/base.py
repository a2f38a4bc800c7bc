"""The store as protocols over its rows: what the engine and the tools may ask of it; no SQL and no policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

from agent_graph.core.events import Event
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import StoreCorrupt
from agent_graph.store.rows import (  # told from here too
    TERMINAL,
    AlreadyAnswered,
    Answered,
    ApprovalRow,
    ApprovalStatus,
    Commit,
    Ended,
    Finding,
    GraphRow,
    Notice,
    Outcome,
    Pending,
    RunRow,
    RunStatus,
    SealedLog,
    Snapshot,
    Space,
    StoredEvent,
    Telling,
    TokenRow,
    WitnessRow,
)  # fmt: skip

__all__ = [
    "GraphStore", "RunStore", "CheckpointStore", "OutcomeStore", "ApprovalStore", "RequestStore", "AnswerStore",
    "RetentionStore", "SealStore", "TokenStore", "WitnessStore", "OutboxStore", "Store", "TERMINAL", "AlreadyAnswered",
    "Answered", "ApprovalRow", "ApprovalStatus", "Commit", "Ended", "Finding", "GraphRow", "Notice", "Outcome",
    "Pending", "RunRow", "RunStatus", "SealedLog", "Snapshot", "Space", "StoredEvent", "Telling", "TokenRow",
    "WitnessRow",
]  # fmt: skip


class GraphStore(Protocol):
    async def put(
        self, row: GraphRow, *, overwrite: bool, expected_version: str | None, answered: Answered | None = None
    ) -> bool:
        """Make `row` the current version of its id; False when it already was.

        Raises `GraphVersionConflict` when the id holds another version and neither `overwrite` nor a matching
        `expected_version` is given, and whenever an `expected_version` is not the one the id holds (a deleted graph
        holds none). Old versions stay readable. Un-hides a deleted graph. Raises `IdempotencyConflict` and
        `AlreadyAnswered` for `answered`.
        """
        ...

    async def get(self, graph_id: str, graph_version: str | None = None) -> GraphRow:
        """The current or the named version, whole. Raises `GraphNotFound` (also for a deleted one, unless the version
        is named) or `GraphVersionNotFound`."""
        ...

    async def versions(self, graph_id: str) -> tuple[GraphRow, ...]:
        """All versions, newest first, without spec and compiled."""
        ...

    async def list(
        self, *, query: str = "", limit: int = 50, cursor: str | None = None
    ) -> tuple[tuple[GraphRow, ...], str | None]:
        """Current versions by id, without spec and compiled; `query` is a substring of id or description."""
        ...

    async def delete(self, graph_id: str, answered: Answered | None = None) -> None:
        """Hide the graph. Raises `GraphNotFound`, or `GraphInUse` while runs of it have not ended, and as `put` does
        for `answered`."""
        ...


class RunStore(Protocol):
    @property
    def shares(self) -> bool:
        """A commit would wait for others', or keeps nothing: a run that goes on by itself may make one of several."""
        ...

    async def commit(self, commit: Commit) -> int:
        """Write it all in one transaction, durable when this returns; the bytes of the events, 0 where they are written
        when read. Concurrent commits share a transaction, none waits longer than one fsync for it. Raises `StoreFull`,
        `SequenceConflict`, `StoreBusy`; `RunNotFound`, or `GraphVersionNotFound` with `create`, for what is not stored;
        for `answered` `IdempotencyConflict` and `AlreadyAnswered` (same key and request)."""
        ...

    async def get(self, run_id: str, *, principal: str = "") -> RunRow:
        """Raises `RunNotFound`, with `principal` also for a run that another has started."""
        ...

    async def load(self, run_id: str) -> tuple[bytes | None, tuple[Event, ...], RunRow]:
        """The latest snapshot, if any, the events after it, and the run's row. A snapshot that is not what was written
        is passed over: the events are the run. Raises `RunNotFound`, `RunPruned` when they are kept no longer, and
        `StoreCorrupt` when the events do not hold together."""
        ...

    async def events(self, run_id: str, *, first_seq: int = 0, limit: int = 100) -> tuple[StoredEvent, ...]:
        """Events in order from `first_seq`, or from the first that is kept. Raises `RunNotFound`."""
        ...

    async def verify_chain(self, run_id: str) -> int | None:
        """The seq of the first event that is missing or changed; None when all hold. Raises `RunNotFound`."""
        ...

    async def list(
        self,
        *,
        statuses: Sequence[str] = (),
        graph_id: str = "",
        thread_id: str = "",
        principal: str = "",
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[tuple[RunRow, ...], str | None]:
        """Newest first; what is "" or () filters nothing."""
        ...

    async def next_wake(self, *, passing_over: Sequence[str] = ()) -> tuple[int, str] | None:
        """(at_ms, run_id) of the next moment at which a pending approval expires or a waiting run is to be driven
        again, those of some runs left out."""
        ...

    async def counts(self, *, principal: str = "") -> dict[str, int]:
        """How many runs have each status, with `principal` of those it has started."""
        ...

    async def pin(self, run_id: str, *, pinned: bool) -> bool:
        """Keep the run's record whatever the policy says, or no longer; False when that was so already. Raises
        `RunNotFound`."""
        ...

    async def set_aside(self, run_id: str, error: JsonObject) -> None:
        """Have the run read ``interrupted`` with `error` until a commit of it goes well; a run that has ended stays
        as it is.

        For a run whose commits are refused. It is written down where that is possible, and remembered where it is
        not; raises nothing.
        """
        ...


class CheckpointStore(Protocol):
    async def latest(self, run_id: str) -> Snapshot:
        """The snapshot that is kept of a run. Raises `RunNotFound`, `CheckpointNotFound`, and
        `CheckpointIntegrityFailure` when it is not what was written."""
        ...


class SealStore(Protocol):
    async def of(self, run_id: str) -> SealedLog:
        """The log of a run and its seal, in one consistent state. Raises `RunNotFound`, and `RunPruned` when the log is
        kept no longer."""
        ...

    async def put_late(self, run_id: str, seal: JsonObject) -> bool:
        """Keep a seal made after the run had ended; False, and nothing is changed, where there is one already."""
        ...


class OutcomeStore(Protocol):
    async def of_template(self, template_id: str) -> tuple[Outcome, ...]:
        """What runs of the graphs made of a template came to, by its version and theirs."""

    async def of_own_graphs(self) -> tuple[Outcome, ...]:
        """What runs of the current versions came to, of graphs that were made of no template; by graph."""


class ApprovalStore(Protocol):
    async def get(self, approval_id: str, *, principal: str = "", now_ms: int | None = None) -> ApprovalRow:
        """With `now_ms`, an approval whose time is over reads ``expired`` even before the engine has expired it.
        Raises `ApprovalNotFound`, with `principal` also for one of a run that another has started."""
        ...

    async def list(
        self,
        *,
        run_id: str = "",
        graph_id: str = "",
        statuses: Sequence[str] = (),
        audience: str = "",
        principal: str = "",
        now_ms: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[tuple[ApprovalRow, ...], str | None]:
        """Oldest first; `audience` is one that an approval names, `principal` who started its run; `now_ms` as in
        `get`, for `statuses` too."""
        ...


class RequestStore(Protocol):
    async def get(self, key: str) -> Answered | None:
        """What was answered under `key`."""
        ...


class AnswerStore(Protocol):
    async def find(self, key: str) -> tuple[str, int] | None:
        """(run_id, seq) of a model's answer that was recorded under `key`, while the record of that run is kept."""
        ...

    async def remember(self, key: str, run_id: str, seq: int) -> None:
        """Have it found there from now on, in place of an older one; beyond a bound the oldest are forgotten."""
        ...


class TokenStore(Protocol):
    async def add(self, row: TokenRow) -> None: ...

    async def find(self, token_id: str) -> TokenRow | None:
        """Also one that is revoked or whose time is over: what that means is the caller's to say."""

    async def list(self) -> tuple[TokenRow, ...]:
        """All of them, oldest first."""

    async def revoke(self, name: str, *, at_ms: int) -> tuple[TokenRow, ...]:
        """Take back the token with that id, or all of that principal; those that were not revoked before."""


class WitnessStore(Protocol):
    async def add(self, row: WitnessRow, *, answered: Answered | None = None) -> bool:
        """Keep it; False, and nothing is changed, where one of that id is there. Raises `IdempotencyConflict` and
        `AlreadyAnswered` for `answered`."""
        ...

    async def get(self, witness_id: str, *, principal: str = "") -> WitnessRow:
        """Raises `WitnessNotFound`, with `principal` also for one that another has captured."""
        ...

    async def cite(self, witness_ids: Sequence[str], *, run_id: str, principal: str = "") -> tuple[WitnessRow, ...]:
        """Those of them that there are (with `principal`, that it has captured); from now on the run holds them."""
        ...

    async def idle(self, *, before_ms: int, going: Sequence[str] = ()) -> tuple[tuple[tuple[str, int], ...], int]:
        """Of those captured before then: (witness_id, bytes) of each that no run holds whose record is kept, those of
        the runs `going` aside, and how many are held."""
        ...

    async def prune(self, witness_ids: Sequence[str]) -> tuple[str, ...]:
        """Delete those of them that no run holds; returns these."""
        ...


class RetentionStore(Protocol):
    async def ended(self) -> tuple[Ended, ...]:
        """Every run that has ended and is not pinned; the one that ended first comes first."""
        ...

    async def weigh(self, run_id: str) -> int:
        """Bytes of the run's record: events, snapshot, approvals. 0 when there is none."""
        ...

    async def prune(self, run_ids: Sequence[str], *, forget: bool = False) -> tuple[str, ...]:
        """Delete the records of these runs, in one transaction; returns those it was done to.

        A run that has not ended or is pinned is passed over. What stays is the row with the result, and the answers
        under idempotency keys, so that a key given again starts nothing anew; with `forget` these go too.
        """
        ...

    async def write_off(
        self, run_id: str, error: JsonObject, *, at_ms: int, answered: Answered | None, notices: Sequence[Notice] = ()
    ) -> bool:
        """Have a run whose log cannot be read be cancelled, and its approvals withdrawn: by its row, since nothing can
        follow its events. False when it has ended."""
        ...

    async def space(self) -> Space: ...

    async def compact(self) -> None:
        """Give what is unused back to the file system, in steps that let commits pass."""
        ...


class OutboxStore(Protocol):
    """What is written with `Commit.notices`, until it was told."""

    async def due(self, target: str, *, now_ms: int) -> Pending | int | None:
        """The oldest notice for `target` that may be tried now, else the moment of the next, else None."""
        ...

    async def delivered(self, target: str, number: int, *, at_ms: int) -> None:
        """It was taken: it goes from the list. Harmless when it has gone."""
        ...

    async def failed(
        self, target: str, number: int, *, at_ms: int, why: str, next_at_ms: int | None, most: int
    ) -> None:
        """A try more; with `next_at_ms` None it is given up. So are all but the `most` newest of `target`."""
        ...

    async def states(self) -> tuple[Telling, ...]:
        """How each target stands that was ever to be told anything, by name."""
        ...


class Store(Protocol):
    """One data folder. `storage` is "durable" or "volatile" (``:memory:``)."""

    @property
    def storage(self) -> Literal["durable", "volatile"]: ...

    @property
    def graphs(self) -> GraphStore: ...

    @property
    def runs(self) -> RunStore: ...

    @property
    def checkpoints(self) -> CheckpointStore: ...

    @property
    def seals(self) -> SealStore: ...

    @property
    def outcomes(self) -> OutcomeStore: ...

    @property
    def approvals(self) -> ApprovalStore: ...

    @property
    def requests(self) -> RequestStore: ...

    @property
    def answers(self) -> AnswerStore: ...

    @property
    def retention(self) -> RetentionStore: ...

    @property
    def tokens(self) -> TokenStore: ...

    @property
    def witnesses(self) -> WitnessStore: ...

    @property
    def outbox(self) -> OutboxStore: ...

    def check(self) -> None:
        """Look whether its files are still those it was opened on: raises `StoreCorrupt` when the database was removed
        or replaced, `DataDirLocked` when its folder's lock was. Then no write goes well any more."""

    def damaged_rows(self) -> AsyncIterator[StoreCorrupt]:
        """Look over every row, in steps that let others read; a refusal for each that is not what was written."""

    async def aclose(self) -> None: ...
