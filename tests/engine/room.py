"""An engine over a scripted model, in memory or in a folder, opened and closed like a program's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_graph.core import events as e
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.record import canonical_record
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import Clock, SystemClock
from agent_graph.engine.connections import Connection, Connections
from agent_graph.engine.keys import KeyRing, open_keys
from agent_graph.engine.limiter import Limiter
from agent_graph.engine.models import Chosen, Models
from agent_graph.engine.notify import Notify
from agent_graph.engine.shell import Shell
from agent_graph.engine.supervisor import Supervisor
from agent_graph.llm.base import ModelClient
from agent_graph.store.base import RunRow, Store
from agent_graph.store.sqlite import open_store
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import call

for _family in ("graphs", "runs", "history", "approvals", "templates", "status", "waiting", "witnesses"):
    import_module(f"agent_graph.tools.{_family}")  # each puts its tools into the table

TIMEOUT_MS = 15_000
Json = dict[str, Any]


@dataclass(frozen=True)
class Room:
    """One open engine and the door its users have."""

    deps: Deps
    shell: Shell

    @property
    def supervisor(self) -> Supervisor:
        return self.deps.supervisor

    @property
    def store(self) -> Store:
        return self.deps.store

    async def call(self, name: str, /, **arguments: Any) -> Json:
        """The envelope of a tool call."""
        return await call(self.deps, name, arguments, caller=Caller("assistant", "test"))

    async def data(self, name: str, /, **arguments: Any) -> Json:
        """What a call gives that must go well."""
        envelope = await self.call(name, **arguments)
        assert envelope["ok"], envelope
        return envelope["data"]  # type: ignore[no-any-return]  # an object

    async def create(self, spec: Json) -> Json:
        return await self.data("graph_create", spec=spec, overwrite=True)

    async def start(self, spec: Json, value: JsonValue = "a question") -> str:
        """Store the graph, start a run, give its id."""
        await self.create(spec)
        return str((await self.data("graph_run_start", graph_id=spec["name"], input=value))["run_id"])

    async def ended(self, run_id: str) -> RunRow:
        """The run's row once it has ended."""
        row = await self.supervisor.wait(run_id, timeout_ms=TIMEOUT_MS)
        assert row.status in ("completed", "failed", "cancelled"), row
        return row

    async def reaches(self, run_id: str, status: str) -> RunRow:
        """The run's row once it has that status."""
        row = await self.supervisor.wait(run_id, timeout_ms=TIMEOUT_MS, until=lambda row: row.status == status)
        assert row.status == status, row
        return row

    async def run(self, spec: Json, value: JsonValue = "a question") -> RunRow:
        """Start and wait for the end."""
        return await self.ended(await self.start(spec, value))

    async def at_rest(self) -> None:
        """Until every driver has gone home: a run's last event is stored a moment earlier."""
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            while any(self.supervisor.load().values()):  # noqa: ASYNC110  (no event tells of it)
                await asyncio.sleep(0)

    async def state(self, run_id: str) -> Json:
        return (await self.data("graph_run_get", run_id=run_id, include_state=True))["state"]  # type: ignore[no-any-return]  # an object

    async def pending(self, run_id: str) -> list[Json]:
        """The run's pending approvals, oldest first."""
        return (await self.data("graph_approval_list", run_id=run_id))["approvals"]  # type: ignore[no-any-return]  # a list

    async def decide(self, approval_id: str, decision: str = "approve", **more: Any) -> Json:
        """The envelope of a decision."""
        more.setdefault("decided_by", "Ada")
        return await self.call("graph_approval_decide", approval_id=approval_id, decision=decision, **more)

    async def log(self, run_id: str) -> list[e.Event]:
        """Every event of the run."""
        stored = await self.store.runs.events(run_id, limit=100_000)
        return [e.Event(each.seq, each.at_ms, e.from_json(each.body)) for each in stored]

    async def facts(self, run_id: str, *kinds: type[e.Fact]) -> list[Any]:
        """The facts of these kinds, in order."""
        return [event.fact for event in await self.log(run_id) if isinstance(event.fact, kinds)]

    async def started(self, run_id: str) -> list[tuple[str, int]]:
        """(firing, attempt) of every start, in order."""
        return [(fact.firing, fact.attempt) for fact in await self.facts(run_id, e.NodeStarted)]

    async def record(self, run_id: str) -> JsonObject:
        """The canonical record."""
        row = await self.store.runs.get(run_id)
        graph: Graph = await self.deps.catalog.get(row.graph_id, row.graph_version)
        return canonical_record(graph, await self.log(run_id))

    async def counts(self) -> tuple[int, int, int]:
        """How many graphs, runs and approvals are stored: equal before and after what must change nothing."""
        graphs, _ = await self.store.graphs.list(limit=200)
        gates, _ = await self.store.approvals.list(limit=200)
        return len(graphs), sum((await self.store.runs.counts()).values()), len(gates)


@asynccontextmanager
async def opened(
    model: ModelClient, path: Path | None = None, *, clock: Clock | None = None, recover: bool = True,
    connections: Iterable[Connection] = (), keys: KeyRing | None = None, **limits: int,
) -> AsyncIterator[Room]:  # fmt: skip
    """An engine over `path` (None: in memory), shut down in an orderly way at the end of the block."""
    keys = keys or open_keys(None, now_ms=0)

    async def choose() -> Chosen:
        return Chosen(model, "fake")

    time, bounds = clock or SystemClock(), replace(DEFAULTS, **limits)
    store = await open_store(":memory:" if path is None else path / "agent-graph.db")
    models = Models(choose)
    catalog = Catalog(store, clock=time, limits=bounds)
    shell = Shell(store, time, Notify(), models, Limiter(), Connections(connections), keys=keys)
    supervisor = Supervisor(shell, catalog=catalog, limits=bounds)
    try:
        await supervisor.recover(resume=recover)
        deps = Deps(bounds, store, time, catalog, supervisor, models, str(path or ":memory:"), dict, keys=keys)
        yield Room(deps, shell)
    finally:
        await supervisor.shutdown("the test ended")
        await store.aclose()


class Gates:
    """A model's answering function that holds every call until its prompt is let go.

    ``await gates.reached("draft")`` waits until such a call is under way, ``gates.open("draft")`` lets it go on.
    """

    def __init__(self, *held: str, answer: str = "fine") -> None:
        self.opened = {name: asyncio.Event() for name in held}
        self.came = {name: asyncio.Event() for name in held}
        self.cancelled: list[str] = []
        self.answer = answer

    async def __call__(self, call: Any) -> str:
        prompt = str(call.messages[-1]["content"])
        for name, opened_event in self.opened.items():
            if name in prompt:
                self.came[name].set()
                try:
                    await opened_event.wait()
                except asyncio.CancelledError:
                    self.cancelled.append(name)
                    raise
        return f"{self.answer}: {prompt}"

    async def reached(self, name: str) -> None:
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            await self.came[name].wait()

    def open(self, name: str) -> None:
        self.opened[name].set()


def asked(model: Any, *beginnings: str) -> list[int]:
    """How often the scripted model was asked each prompt, told by how it begins."""
    prompts = [str(call.messages[-1]["content"]) for call in model.calls]
    return [sum(prompt.startswith(beginning) for prompt in prompts) for beginning in beginnings]
