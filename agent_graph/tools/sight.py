"""What a caller sees of an open folder: its own runs and their approvals; another's are as if they were not there.

This is the one place where that is decided. A tool gets its store and its supervisor through here (`registry`), so it
cannot forget to ask; the store itself refuses another's run, with the words it has for one that does not exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Final, Literal

from agent_graph.core.events import Event
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.run import Run
from agent_graph.engine.commands import Command, Decide
from agent_graph.engine.shell import Shell
from agent_graph.errors import InsufficientScope, StoreCorrupt
from agent_graph.store.base import (
    TERMINAL,
    Answered,
    AnswerStore,
    ApprovalRow,
    ApprovalStore,
    CheckpointStore,
    Commit,
    GraphStore,
    OutboxStore,
    OutcomeStore,
    RequestStore,
    RetentionStore,
    RunRow,
    RunStore,
    SealedLog,
    SealStore,
    Snapshot,
    Store,
    StoredEvent,
    TokenStore,
    WitnessRow,
    WitnessStore,
)
from agent_graph.tools.deps import ADMIN, Caller, Deps, Supervising

OPERATORS: Final = "this is done by the engine and by the operator alone"


def seen_by(deps: Deps, caller: Caller) -> Deps:
    """`deps` as far as `caller` sees it."""
    if caller.sees_all:
        return deps
    store = SeenStore(deps.store, caller)
    return replace(deps, store=store, supervisor=SeenSupervisor(deps.supervisor, store, caller))


class SeenStore:
    """`store.base.Store` as one principal sees it. Graphs are everybody's."""

    def __init__(self, store: Store, caller: Caller) -> None:
        self._store = store
        self.runs: Final[RunStore] = SeenRuns(store.runs, caller.principal)
        self.checkpoints: Final[CheckpointStore] = SeenCheckpoints(store.checkpoints, self.runs)
        self.seals: Final[SealStore] = SeenSeals(store.seals, self.runs)
        whose = "" if caller.sees_approvals else caller.principal
        self.approvals: Final[ApprovalStore] = SeenApprovals(store.approvals, whose)
        self.witnesses: Final[WitnessStore] = SeenWitnesses(store.witnesses, caller.principal)

    @property
    def storage(self) -> Literal["durable", "volatile"]:
        return self._store.storage

    @property
    def graphs(self) -> GraphStore:
        return self._store.graphs

    @property
    def requests(self) -> RequestStore:
        return self._store.requests

    @property
    def answers(self) -> AnswerStore:
        raise _operators()

    @property
    def outcomes(self) -> OutcomeStore:
        raise _operators()  # they count everybody's runs

    @property
    def retention(self) -> RetentionStore:
        raise _operators()

    @property
    def tokens(self) -> TokenStore:
        raise _operators()

    @property
    def outbox(self) -> OutboxStore:
        raise _operators()

    def check(self) -> None:
        self._store.check()

    def damaged_rows(self) -> AsyncIterator[StoreCorrupt]:
        raise _operators()

    async def aclose(self) -> None:
        raise _operators()


class SeenRuns:
    """`store.base.RunStore` of what one principal has started."""

    def __init__(self, runs: RunStore, principal: str) -> None:
        self._runs = runs
        self._principal = principal

    async def get(self, run_id: str, *, principal: str = "") -> RunRow:
        return await self._runs.get(run_id, principal=self._principal)

    async def load(self, run_id: str) -> tuple[bytes | None, tuple[Event, ...], RunRow]:
        await self.get(run_id)
        return await self._runs.load(run_id)

    async def events(self, run_id: str, *, first_seq: int = 0, limit: int = 100) -> tuple[StoredEvent, ...]:
        await self.get(run_id)
        return await self._runs.events(run_id, first_seq=first_seq, limit=limit)

    async def verify_chain(self, run_id: str) -> int | None:
        await self.get(run_id)
        return await self._runs.verify_chain(run_id)

    async def list(
        self, *, statuses: Sequence[str] = (), graph_id: str = "", thread_id: str = "",
        principal: str = "",
        limit: int = 50, cursor: str | None = None,
    ) -> tuple[tuple[RunRow, ...], str | None]:  # fmt: skip
        return await self._runs.list(
            statuses=statuses, graph_id=graph_id, thread_id=thread_id, principal=self._principal, limit=limit,
            cursor=cursor,
        )  # fmt: skip

    async def counts(self, *, principal: str = "") -> dict[str, int]:
        return await self._runs.counts(principal=self._principal)

    async def pin(self, run_id: str, *, pinned: bool) -> bool:
        await self.get(run_id)
        return await self._runs.pin(run_id, pinned=pinned)

    @property
    def shares(self) -> bool:
        raise _operators()

    async def commit(self, commit: Commit) -> int:
        raise _operators()

    async def next_wake(self, *, passing_over: Sequence[str] = ()) -> tuple[int, str] | None:
        raise _operators()

    async def set_aside(self, run_id: str, error: JsonObject) -> None:
        raise _operators()


class SeenCheckpoints:
    """`store.base.CheckpointStore` of the runs that are seen."""

    def __init__(self, checkpoints: CheckpointStore, runs: RunStore) -> None:
        self._checkpoints = checkpoints
        self._runs = runs

    async def latest(self, run_id: str) -> Snapshot:
        await self._runs.get(run_id)
        return await self._checkpoints.latest(run_id)


class SeenSeals:
    """`store.base.SealStore` of the runs that are seen."""

    def __init__(self, seals: SealStore, runs: RunStore) -> None:
        self._seals = seals
        self._runs = runs

    async def of(self, run_id: str) -> SealedLog:
        await self._runs.get(run_id)
        return await self._seals.of(run_id)

    async def put_late(self, run_id: str, seal: JsonObject) -> bool:
        await self._runs.get(run_id)
        return await self._seals.put_late(run_id, seal)


class SeenApprovals:
    """`store.base.ApprovalStore` of the runs one principal has started, of all runs for ""."""

    def __init__(self, approvals: ApprovalStore, principal: str) -> None:
        self._approvals = approvals
        self._principal = principal

    async def get(self, approval_id: str, *, principal: str = "", now_ms: int | None = None) -> ApprovalRow:
        return await self._approvals.get(approval_id, principal=self._principal, now_ms=now_ms)

    async def list(
        self, *, run_id: str = "", graph_id: str = "", statuses: Sequence[str] = (), audience: str = "",
        principal: str = "",
        now_ms: int | None = None, limit: int = 100, cursor: str | None = None,
    ) -> tuple[tuple[ApprovalRow, ...], str | None]:  # fmt: skip
        return await self._approvals.list(
            run_id=run_id, graph_id=graph_id, statuses=statuses, audience=audience, principal=self._principal,
            now_ms=now_ms, limit=limit, cursor=cursor,
        )  # fmt: skip


class SeenWitnesses:
    """`store.base.WitnessStore` of what one principal has captured."""

    def __init__(self, witnesses: WitnessStore, principal: str) -> None:
        self._witnesses = witnesses
        self._principal = principal

    async def add(self, row: WitnessRow, *, answered: Answered | None = None) -> bool:
        return await self._witnesses.add(row, answered=answered)

    async def get(self, witness_id: str, *, principal: str = "") -> WitnessRow:
        return await self._witnesses.get(witness_id, principal=self._principal)

    async def cite(self, witness_ids: Sequence[str], *, run_id: str, principal: str = "") -> tuple[WitnessRow, ...]:
        raise _operators()

    async def idle(self, *, before_ms: int, going: Sequence[str] = ()) -> tuple[tuple[tuple[str, int], ...], int]:
        raise _operators()

    async def prune(self, witness_ids: Sequence[str]) -> tuple[str, ...]:
        raise _operators()


class SeenSupervisor:
    """`deps.Supervising` of the runs that one principal has started."""

    def __init__(self, supervisor: Supervising, store: SeenStore, caller: Caller) -> None:
        self._supervisor = supervisor
        self._store = store
        self._caller = caller

    @property
    def shell(self) -> Shell:
        return replace(self._supervisor.shell, store=self._store)

    async def start(
        self, graph: Graph, value: JsonValue, *, thread_id: str = "", model: str = "", started_by: str = "",
        principal: str = "", started_as: str = "",
        budgets: JsonObject | None = None, policy: JsonObject | None = None,
        answer: Callable[[RunRow], Answered] | None = None, key: str = "",
    ) -> RunRow:  # fmt: skip
        return await self._supervisor.start(
            graph, value, thread_id=thread_id, model=model, started_by=started_by, principal=self._caller.principal,
            started_as=started_as, budgets=budgets, policy=policy, answer=answer, key=key,
        )  # fmt: skip

    async def begin(
        self, graph: Graph, run: Run, log: Sequence[Event], *, answer: Callable[[RunRow], Answered] | None = None,
        key: str = "",
    ) -> RunRow:  # fmt: skip
        if run.principal != self._caller.principal:
            raise _operators()
        return await self._supervisor.begin(graph, run, log, answer=answer, key=key)

    def check(self, graph: Graph, value: JsonValue, *, budgets: JsonObject | None) -> JsonObject:
        return self._supervisor.check(graph, value, budgets=budgets)

    def check_capacity(self) -> None:
        self._supervisor.check_capacity()

    async def fold(self, run_id: str) -> tuple[Graph, Run]:
        await self._store.runs.get(run_id)
        return await self._supervisor.fold(run_id)

    async def ask(self, run_id: str, command: Command) -> Run:
        if isinstance(command, Decide) and self._caller.sees_approvals:
            await self._store.approvals.get(command.approval_id)
        else:
            await self._store.runs.get(run_id)
        return await self._supervisor.ask(run_id, command)

    async def write_off(self, run_id: str, damage: StoreCorrupt, reason: str, answered: Answered | None) -> None:
        await self._store.runs.get(run_id)
        await self._supervisor.write_off(run_id, damage, reason, answered)

    async def wait(
        self, run_id: str, *, timeout_ms: int, until: Callable[[RunRow], bool] = lambda row: row.status in TERMINAL
    ) -> RunRow:
        await self._store.runs.get(run_id)
        return await self._supervisor.wait(run_id, timeout_ms=timeout_ms, until=until)

    def load(self) -> dict[str, int]:
        return self._supervisor.load()

    def drives(self, run_id: str) -> bool:
        return self._supervisor.drives(run_id)

    async def rest(self) -> None:
        raise _operators()


def _operators() -> InsufficientScope:
    return InsufficientScope(OPERATORS, scope=ADMIN)
