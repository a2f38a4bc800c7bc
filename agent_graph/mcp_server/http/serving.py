"""`agent-graph serve`: owns the data folder and answers over HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import uvicorn

from agent_graph.errors import AddressInUse, AddressNotAllowed, AgentGraphError, DataDirLocked
from agent_graph.mcp_server.serve import end_soon, say
from agent_graph.settings import Settings
from agent_graph.settings.http import HttpSettings
from agent_graph.system.event_loop import on_signal
from agent_graph.tools.deps import Deps

CLOSING_S: Final = 2
"""Seconds that answers under way have when it is told to stop; runs go on at the next start."""
BACKLOG: Final = 512
IDLE_S: Final = 65
"""Seconds a connection nobody uses is kept: longer than the longest call waits."""


class Beside(Protocol):
    """What is served beside ``/mcp``, on the same address."""

    @property
    def routes(self) -> Sequence[Any]:
        """Of Starlette."""
        ...

    def remarks(self, root: str) -> Sequence[str]:
        """What a person should know once requests are answered; `root` is the address."""
        ...

    def end(self) -> None:
        """The server is to stop: end what goes on by itself."""
        ...


class Besides(Protocol):
    """Makes it: `let_in` says whom a token lets in, `take` counts a request of somebody."""

    def __call__(
        self, deps: Deps, http: HttpSettings, *, let_in: Callable[[str], Awaitable[Any]], take: Callable[[str], None]
    ) -> Beside: ...


def main(
    settings: Settings, *, ready: Callable[[str], None] = lambda url: say(f"listening on {url}"),
    beside: Besides | None = None,
) -> int:  # fmt: skip
    """Serve; returns the exit code: 0 when a signal asked to stop, 2 for an address that is not allowed, 5 when the
    data folder or the address cannot be had. `ready` hears the URL once requests are answered."""
    logging.basicConfig(
        level=settings.log.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        return asyncio.run(_serve(settings, ready, beside))
    except AgentGraphError as refusal:
        say(f"{refusal.code}: {refusal.message}")
        return 5 if isinstance(refusal, DataDirLocked) else refusal.exit_code


async def _serve(settings: Settings, ready: Callable[[str], None], beside: Besides | None) -> int:
    from agent_graph.app import open_app

    check_address(settings.http)
    listener = listening(settings.http)
    with contextlib.closing(listener):
        async with open_app(settings, recover=True, remark=say) as deps:
            from agent_graph.mcp_server.daemon_process import fronts
            from agent_graph.mcp_server.http.access import Access
            from agent_graph.mcp_server.http.app import http_app
            from agent_graph.mcp_server.http.rates import Rates

            access, rates = Access(deps.store.tokens, settings.http, deps.clock), Rates(settings.http.rate)
            url, more = url_of(settings.http, listener), None
            if beside is not None:
                deps = replace(deps, console=url.removesuffix("/mcp"))
                if deps.outbox is not None:
                    deps.outbox.console = deps.console
                more = beside(deps, settings.http, let_in=access.of_token, take=rates.take)
            for remark in await _remarks(settings, deps.store.tokens.list):
                say(remark)
            app = http_app(deps, settings, access=access, rates=rates, mounts=more.routes if more else ())
            server = _Server(_config(settings, app))

            def answering() -> None:
                ready(url)
                for remark in more.remarks(deps.console) if more else ():
                    say(remark)

            server.ready = answering
            server.ending = more.end if more else lambda: None
            async with fronts(deps, settings, on_stop=server.end):
                await server.serve(sockets=[listener])
    return 0


def check_address(http: HttpSettings) -> None:
    """Raises `AddressNotAllowed` for one that others reach, where nobody is asked who they are."""
    if http.auth == "none" and not http.loopback:
        raise AddressNotAllowed(
            f"{http.host} can be reached from other machines, and with auth none whoever does may do everything. "
            "Leave auth at required and make a token (agent-graph tokens create NAME), or listen on 127.0.0.1.",
            host=http.host,
        )


def listening(http: HttpSettings) -> socket.socket:
    """The socket, bound. Raises `AddressInUse`."""
    host = http.host.strip("[]")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, http.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        message = f"{http.host}:{http.port} cannot be listened on: {error.strerror}; --host and --port name another"
        raise AddressInUse(message, host=http.host, port=http.port) from None


def url_of(http: HttpSettings, listener: socket.socket) -> str:
    """Where ``/mcp`` is, as a client on this machine writes it."""
    host = f"[{http.host.strip('[]')}]" if ":" in http.host else http.host
    return f"http://{host}:{listener.getsockname()[1]}/mcp"


async def _remarks(settings: Settings, tokens: Callable[[], object]) -> list[str]:
    """What the operator should know of who may come in."""
    http = settings.http
    if http.auth == "none":
        return ["auth is none: every program and every user of this machine may do everything here"]
    found = await tokens()  # type: ignore[misc]  # it is the store's
    return [] if found or http.oauth_issuer else ["nobody can come in yet: agent-graph tokens create NAME"]


def _config(settings: Settings, app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # an ASGI application
        lifespan="on", log_config=None, access_log=False, server_header=False, proxy_headers=False, ws="none",
        timeout_keep_alive=IDLE_S, timeout_graceful_shutdown=CLOSING_S,
    )  # fmt: skip


class _Server(uvicorn.Server):
    """Stops at a signal without raising it again afterwards: the data folder is still to be closed in order."""

    ready: Callable[[], None]
    ending: Callable[[], None] = staticmethod(lambda: None)
    """Called once when it is to stop."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with on_signal(lambda _: self.end()):
            yield

    def end(self) -> None:
        """Stop in order, and soon."""
        if not self.should_exit:
            self.should_exit = True
            self.ending()
            end_soon()
