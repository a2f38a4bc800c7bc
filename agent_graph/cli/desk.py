"""Where a command's requests go: to the data folder itself, or through the process that owns it already."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import AgentGraphError, DataDirLocked, OwnerSettingsDiffer, StoreBusy
from agent_graph.mcp_server.hello import COMPARED
from agent_graph.tools.socket_client import Owner

if TYPE_CHECKING:
    from agent_graph.engine.approvers import Proof
    from agent_graph.settings import Settings
    from agent_graph.tools.deps import Deps

T = TypeVar("T")
PATIENCE_S: Final = 10.0
"""Seconds a command waits for an owner that neither answers nor goes: short commands own the folder for a moment."""
BETWEEN_LOOKS_S: Final = 0.05
LOOKS_S: Final = 3.0
"""Seconds between two looks at an owner that has not answered yet."""
UNREMARKED_S: Final = 0.5
"""Seconds a command that is done may stay for a run without saying why."""
CLIENT: Final = "agent-graph"


class Desk:
    """An open data folder, whoever owns it; when its owner goes away this process takes its place.

    Use it as an async context manager. With `drives` this process may set runs going: then it lets others in while it
    owns the folder, and stays until everything it set going rests. A desk that only reads moves no run.

    Who performs a run is asked as the owner is set up. `sends` names the settings that the command's own requests hold,
    so that they are in force whoever the owner is.
    """

    def __init__(
        self, settings: Settings, *, drives: bool, remark: Callable[[str], None], sends: Collection[str] = ()
    ) -> None:
        self.settings = settings
        self._drives = drives
        self._sends = sends
        self._remark = remark
        self._stack = AsyncExitStack()
        self._deps: Deps | None = None
        self._owner: Owner | None = None

    @property
    def owns(self) -> bool:
        """This process owns the folder."""
        return self._deps is not None

    async def __aenter__(self) -> Desk:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._deps is not None and kind is None:
                await self._rest(self._deps)
        finally:
            await self._stack.__aexit__(kind, error, trace)

    async def _rest(self, deps: Deps) -> None:
        """Stay until everything that was set going here, by this command or through its socket, rests."""
        if not self._drives:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNREMARKED_S):
                await deps.supervisor.rest()
                return
        others = deps.supervisor.load()["active"]
        self._remark(f"{others} run(s) of this folder still go on in this process; Ctrl-C leaves them resumable")
        await deps.supervisor.rest()

    async def open(self) -> None:
        """Find the owner, or become it. Raises `DataDirLocked` when neither works, the ``Store*`` errors, and
        `OwnerSettingsDiffer` for a flag that the owner is not set up with."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        folder = self.settings.data_dir
        while True:
            if folder is not None and await (owner := Owner(folder, CLIENT)).answers():
                with contextlib.suppress(ConnectionError):  # it left meanwhile
                    await self._compare(owner)
                    self._owner = owner
                    return
            try:
                self._deps = await self._own()
                self._owner = None
                return
            except DataDirLocked:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(BETWEEN_LOOKS_S)  # another process's lock: there is nothing to be woken by

    async def _compare(self, owner: Owner) -> None:
        """Say what was asked for and is not in force at `owner`; a flag was meant, and is refused."""
        sources = ("flag ", "environment ") if self._drives else ("flag ",)
        asked = [name for name in COMPARED if self.settings.sources[name].startswith(sources)]
        names = [name for name in asked if name not in self._sends]
        if not names:
            return
        from agent_graph.settings.asked import unlike

        answer: Any = await self._answered(owner.settings(names))
        if not answer["ok"]:
            return  # an owner of a version before this one
        differ = unlike(self.settings, answer["data"]["settings"], names=names)
        clauses, pid = "; ".join(map(str, differ)), answer["data"]["pid"]
        if any(one.by_flag for one in differ):
            raise OwnerSettingsDiffer(
                f"process {pid} owns the data folder, and runs with other settings: {clauses}. Leave the option out, "
                "use another data folder, or end that process (a daemon: `agent-graph daemon --stop`)",
                pid=pid,
            )
        if differ:
            self._remark(f"process {pid} owns the data folder, and its settings hold: {clauses}")

    async def _own(self) -> Deps:
        from agent_graph.app import open_app

        opened = open_app(self.settings, serve=self._drives, remark=self._remark)
        return await self._stack.enter_async_context(opened)

    async def call(
        self, tool: str, arguments: JsonObject, *, again: bool = True, proof: Proof | None = None
    ) -> JsonObject:
        """The envelope of a tool. `again` says that asking twice does no harm: then an owner that goes away in the
        middle is not noticed; otherwise that raises `StoreBusy`."""
        while True:
            try:
                if self._deps is not None:
                    return await _call(self._deps, tool, arguments, proof)
                assert self._owner is not None
                return await self._answered(self._owner.call(tool, arguments, proof=proof))
            except ConnectionError as gone:
                await self.open()
                if not again:
                    message = (
                        "the process that owned the data folder went away before it answered; look, then ask again"
                    )
                    raise StoreBusy(message) from gone

    async def resume(self, run_id: str) -> JsonObject:
        """Have the run driven on, here or by the owner; the envelope of that."""
        return await self.call("graph_run_resume", {"run_id": run_id})

    async def watch(self, run_id: str, *, cursor: int = 0) -> AsyncIterator[JsonObject]:
        """What `tools.live.follow` gives. Raises ConnectionError when the owner goes away, `RunNotFound` never: ask
        for the run first."""
        from agent_graph.tools.live import follow

        items = follow(self._deps, run_id, cursor=cursor) if self._deps else self._theirs(run_id, cursor)
        async with aclosing(items) as each:  # type: ignore[type-var]  # both are generators
            async for item in each:
                yield item

    async def _theirs(self, run_id: str, cursor: int) -> AsyncIterator[JsonObject]:
        assert self._owner is not None
        async with aclosing(self._owner.watch(run_id, cursor=cursor)) as items:  # type: ignore[type-var]  # as above
            with contextlib.suppress(StopAsyncIteration):
                while True:
                    item = await self._answered(anext(items))
                    if "ok" not in item:
                        yield item

    async def _answered(self, work: Awaitable[T]) -> T:
        """What the owner answers. An owner that is stopped takes what is sent and never answers: then this raises
        `DataDirLocked`."""
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=LOOKS_S))[0]:
                from agent_graph.app import check_owner

                await check_owner(self.settings)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)  # it lets go of the connection


def key() -> str:
    """A new idempotency key: the same request may be sent again."""
    return f"cli-{secrets.token_hex(12)}"


async def _call(deps: Deps, tool: str, arguments: JsonObject, proof: Proof | None) -> JsonObject:
    from agent_graph.tools.deps import Caller
    from agent_graph.tools.registry import call, failure

    importlib.import_module("agent_graph.tools.toolsets")  # fills the registry
    approver = ""
    if proof is not None:
        try:
            approver = await deps.approvers.prove(proof, now_ms=deps.clock.now_ms())
        except AgentGraphError as refusal:
            return failure(refusal)
    return await call(deps, tool, arguments, caller=Caller("cli", CLIENT, approver=approver))
