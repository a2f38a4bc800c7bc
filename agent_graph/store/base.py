"""The store as protocols and rows: what the engine and the tools may ask of it; no SQL and no policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from agent_graph.core.events import Event
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue

RunStatus: TypeAlias = Literal["accepted", "running", "waiting", "interrupted", "completed", "failed", "cancelled"]
TERMINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled"})
ApprovalStatus: TypeAlias = Literal["pending", "approved", "rejected", "changes_requested", "expired", "withdrawn"]


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One immutable version of a graph. `spec` is the minimal form, `compiled` what `core.compile` wants kept."""

    graph_id: str
    graph_version: str
    description: str
    node_count: int
    edge_count: int
    updated_at_ms: int
    spec: JsonObject = field(default_factory=dict)
    compiled: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRow:
    """What lists and `graph_run_get` read without folding the log. `seq` = number of events stored."""

    run_id: str
    graph_id: str
    graph_version: str
    thread_id: str
    status: RunStatus
    seq: int
    created_at_ms: int
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    error: JsonObject | None = None
    final_state: tuple[JsonValue, ...] = ()
    """One element once the run has a result, else empty (null is a result)."""
    usage: JsonObject = field(default_factory=dict)
    budget: JsonObject = field(default_factory=dict)
    """What the run may use and has used, empty when nothing bounds it."""
    wake_at_ms: int | None = None
    """When it is to be driven again although nobody asks, should it only wait by then."""
    pinned: bool = False
    """Retention leaves it alone. Changed by `RunStore.pin` only; a commit does not look at it."""
    first_seq: int = 0
    """The first event that is kept; above 0 once the run's record was pruned. No commit looks at it either."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run whose record may go: it has ended and is not pinned. With `pruned` only its row is left."""

    run_id: str
    graph_id: str
    status: RunStatus
    finished_at_ms: int
    pruned: bool


@dataclass(frozen=True, slots=True)
class Space:
    """The database file: its size, and how much of it is in use."""

    file_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What looking at one thing a run needs gave. `level` "unsound" is said of the store alone."""

    name: str
    level: Literal["ok", "warning", "unsound"]
    said: str
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One approval as the contract shows it; `votes` as in `events.ApprovalVoted.vote` plus at_ms."""

    approval_id: str
    run_id: str
    graph_id: str
    graph_version: str
    node_id: str
    node_path: str
    round: int
    audience: tuple[str, ...]
    prompt: str
    subject: JsonValue
    subject_digest: str
    allowed_decisions: tuple[str, ...]
    quorum: int
    channels: tuple[str, ...]
    status: ApprovalStatus
    created_at_ms: int
    expires_at_ms: int
    votes: tuple[JsonObject, ...] = ()
    decision: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """An idempotency record: the first answer under `key`, kept as long as the run or graph it made."""

    key: str
    request_digest: str
    answer: JsonObject
    run_id: str = ""


class AlreadyAnswered(Exception):
    """A write found its idempotency key with the same request: nothing was written, `answered` is what it made then.

    A signal to the caller of the store, never an error a user sees: of two racing starts with one key, the one that
    loses answers what the winner answered.
    """

    def __init__(self, answered: Answered) -> None:
        super().__init__(answered.key)
        self.answered = answered


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one step of a run changes; one transaction, all or nothing.

    `expected_seq` is the number of events the writer believes are stored; another number raises `SequenceConflict`
    and changes nothing. `create` makes the run (expected_seq 0). `snapshot` is opaque bytes of the fold after the
    last of `events`. The stored `seq` is `expected_seq` plus the events, whatever `run.seq` says; of an existing run,
    graph, thread and creation time stay as they are.
    """

    run: RunRow
    expected_seq: int
    events: Sequence[Event]
    create: bool = False
    snapshot: bytes | None = None
    approvals: Sequence[ApprovalRow] = ()
    answered: Answered | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as read back: `body` is its JSON object with seq, at_ms, type and prev."""

    seq: int
    at_ms: int
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Page:
    """`cursor` is opaque and None on the last page."""

    rows: tuple[JsonValue, ...]
    cursor: str | None


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
    async def commit(self, commit: Commit) -> int:
        """Write it all in one transaction, durable when this returns; how many bytes the events took, 0 where they are
        written when somebody reads them. Concurrent commits share a transaction
        (group commit), none waits longer than one fsync for it. Raises `SequenceConflict`, `StoreFull`, `StoreBusy`;
        `RunNotFound` or, with `create`, `GraphVersionNotFound` when what it belongs to is not stored; for `answered`
        `IdempotencyConflict` (same key, another request) and `AlreadyAnswered` (same key, same request)."""
        ...

    async def get(self, run_id: str) -> RunRow:
        """Raises `RunNotFound`."""
        ...

    async def load(self, run_id: str) -> tuple[bytes | None, tuple[Event, ...]]:
        """The latest snapshot, if any, and the events after it. A snapshot that is not what was written is passed
        over: the events are the run. Raises `RunNotFound`, `RunPruned` when they are kept no longer, and
        `StoreCorrupt` when the events do not hold together."""
        ...

    async def events(self, run_id: str, *, first_seq: int = 0, limit: int = 100) -> tuple[StoredEvent, ...]:
        """Events in order from `first_seq`, or from the first that is kept. Raises `RunNotFound`."""
        ...

    async def verify_chain(self, run_id: str) -> int | None:
        """The seq of the first event that is missing or is not what was written, found by the hashes the events hold
        of one another; None when all hold. Raises `RunNotFound`."""
        ...

    async def list(
        self,
        *,
        statuses: Sequence[str] = (),
        graph_id: str = "",
        thread_id: str = "",
        limit: int = 50,
        cursor: str | None = None,
    ) -> tuple[tuple[RunRow, ...], str | None]:
        """Newest first."""
        ...

    async def next_wake(self, *, passing_over: Sequence[str] = ()) -> tuple[int, str] | None:
        """(at_ms, run_id) of the next moment at which a pending approval expires or a waiting run is to be driven
        again, those of some runs left out."""
        ...

    async def counts(self) -> dict[str, int]:
        """How many runs have each status."""
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


class ApprovalStore(Protocol):
    async def get(self, approval_id: str, *, now_ms: int | None = None) -> ApprovalRow:
        """With `now_ms`, an approval whose time is over reads ``expired`` even before the engine has expired it.
        Raises `ApprovalNotFound`."""
        ...

    async def list(
        self,
        *,
        run_id: str = "",
        statuses: Sequence[str] = (),
        audience: str = "",
        now_ms: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[tuple[ApprovalRow, ...], str | None]:
        """Oldest first; `audience` is one that an approval names; `now_ms` as in `get`, for `statuses` too."""
        ...


class RequestStore(Protocol):
    async def get(self, key: str) -> Answered | None:
        """What was answered under `key`."""
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

    async def space(self) -> Space: ...

    async def compact(self) -> None:
        """Give what is unused back to the file system, in steps that let commits pass."""
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
    def approvals(self) -> ApprovalStore: ...

    @property
    def requests(self) -> RequestStore: ...

    @property
    def retention(self) -> RetentionStore: ...

    def check(self) -> None:
        """Look whether its files are still those it was opened on: raises `StoreCorrupt` when the database was removed
        or replaced, `DataDirLocked` when its folder's lock was. Then no write goes well any more."""
        ...

    async def aclose(self) -> None: ...
