"""Everything over an in-memory store and a model that says what a test wants, and the tools called on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agent_graph.tools.toolsets  # noqa: F401  (fills the registry)
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import Clock, SystemClock
from agent_graph.engine.keys import KeyRing, open_keys
from agent_graph.engine.limiter import Limiter
from agent_graph.engine.models import Chosen, Models
from agent_graph.engine.notify import Notify
from agent_graph.engine.runner import Shell
from agent_graph.engine.supervisor import Supervisor
from agent_graph.engine.templates import Library
from agent_graph.llm.base import ModelClient
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.store.sqlite import open_store
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps
from tests.fakes.council import DEFAULT, REPLIES

ASSISTANT = Caller("assistant", "a test")


def council() -> ScriptedModel:
    """The model of `tests.fakes.council`."""
    return ScriptedModel([Reply(**reply) for reply in REPLIES], default=Reply(**DEFAULT))


@asynccontextmanager
async def opened(
    model: ModelClient | None = None, *, limits: Limits = DEFAULTS, clock: Clock | None = None,
    folder: Path | None = None, keys: KeyRing | None = None,
) -> AsyncIterator[Deps]:  # fmt: skip
    """As `agent_graph.app.open_app` puts it together, over ``:memory:`` or a file in `folder`."""
    model, clock, keys = model or council(), clock or SystemClock(), keys or open_keys(None, now_ms=0)

    async def choose() -> Chosen:
        return Chosen(model, "scripted")

    store = await open_store(":memory:" if folder is None else folder / "agent-graph.db")
    models = Models(choose)
    catalog = Catalog(store, clock=clock, limits=limits, templates=Library(folder))
    supervisor = Supervisor(Shell(store, clock, Notify(), models, Limiter(), keys=keys), catalog=catalog, limits=limits)
    supervisor.watch_gates()
    try:
        yield Deps(
            limits, store, clock, catalog, supervisor, models, str(folder or ":memory:"), dict, clock.now_ms(),
            keys=keys,
        )  # fmt: skip
    finally:
        await supervisor.shutdown("the test is over")
        await models.aclose()
        await store.aclose()


class Tools:
    """The tools of an opened folder, called as an assistant does."""

    def __init__(self, deps: Deps, caller: Caller = ASSISTANT) -> None:
        self.deps = deps
        self.caller = caller

    async def envelope(self, name: str, /, **arguments: Any) -> JsonObject:
        return await registry.call(self.deps, name, arguments, caller=self.caller)

    async def ok(self, name: str, /, **arguments: Any) -> Any:
        """The ``data`` of an answer."""
        envelope = await self.envelope(name, **arguments)
        assert envelope["ok"], envelope
        return envelope["data"]

    async def refused(self, name: str, /, **arguments: Any) -> Any:
        """The envelope of a refusal, when nothing was created or changed by it."""
        before = await self.everything()
        envelope = await self.envelope(name, **arguments)
        assert not envelope["ok"], envelope
        assert await self.everything() == before
        return envelope

    async def everything(self) -> Any:
        """All graphs, runs, approvals: what a refusal must leave alone."""
        store = self.deps.store
        runs, _ = await store.runs.list(limit=200)
        return (await store.graphs.list(limit=200), runs, await store.approvals.list(limit=200))

    async def run(self, graph_id: str, value: Any = "", **more: Any) -> str:
        """Start a run; returns its id."""
        return str((await self.ok("graph_run_start", graph_id=graph_id, input=value, **more))["run_id"])

    async def ended(self, graph_id: str, value: Any = "") -> Any:
        """Start a run and wait for its end; returns ``graph_run_get``."""
        run_id = await self.run(graph_id, value)
        waited = await self.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
        assert waited["terminal"], waited
        return await self.ok("graph_run_get", run_id=run_id)
