"""The console as `agent-graph serve` puts it together, on a real port, stopped and started by a test."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_graph.console.serving import Served, beside
from agent_graph.mcp_server.http.access import Access
from agent_graph.mcp_server.http.app import http_app
from agent_graph.mcp_server.http.rates import Rates
from agent_graph.mcp_server.http.serving import _config, _Server, listening
from agent_graph.settings import load
from agent_graph.tools.deps import Deps
from tests.fakes.opened import Tools


class Site:
    """One server over one opened folder."""

    def __init__(self, deps: Deps) -> None:
        self.deps, self.tools = deps, Tools(deps)
        self.port = 0
        self._made: Served | None = None
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, *, keep: bool = False) -> None:
        """Serve, on the port it had before if there was one; with `keep` those stay logged in who were."""
        environ = {"AGENT_GRAPH_HTTP_RATE": "0"}
        settings = load({"data_dir": ":memory:", "http_port": str(self.port)}, environ=environ)
        listener, answering = listening(settings.http), asyncio.Event()
        self.port = listener.getsockname()[1]
        access, rates = Access(self.deps.store.tokens, settings.http, self.deps.clock), Rates(settings.http.rate)
        before = self._made
        self._made = beside(self.deps, settings.http, let_in=access.of_token, take=rates.take)
        if keep and before is not None:
            self._made.sessions._sessions = before.sessions._sessions
        app = http_app(self.deps, settings, access=access, rates=rates, mounts=self._made.routes)
        self._server = _Server(_config(settings, app))
        self._server.ready = answering.set

        async def serve() -> None:
            await self._server.serve(sockets=[listener])
            listener.close()

        self._serving = asyncio.create_task(serve())
        await answering.wait()

    async def stop(self) -> None:
        """As at a signal: pages that go on are ended, then nobody answers."""
        if self._serving is not None and self._made is not None:
            self._made.end()
            self._server.should_exit = True
            await self._serving
            self._serving = None
