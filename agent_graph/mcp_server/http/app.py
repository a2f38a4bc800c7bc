"""Everything one server answers over HTTP, as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from agent_graph.mcp_server.http import metrics
from agent_graph.mcp_server.http.access import Access
from agent_graph.mcp_server.http.door import OPEN, Door, Guard
from agent_graph.mcp_server.http.endpoint import READING, Endpoint
from agent_graph.mcp_server.http.rates import Rates
from agent_graph.mcp_server.http.refusals import WELL_KNOWN
from agent_graph.mcp_server.server import build
from agent_graph.settings import Settings
from agent_graph.tools.deps import Deps

MCP: Final = "/mcp"


def http_app(
    deps: Deps, settings: Settings, *, access: Access | None = None, mounts: Sequence[BaseRoute] = (),
    server: Server[Any] | None = None, rates: Rates | None = None,
) -> Starlette:  # fmt: skip
    """``/mcp``, ``/healthz``, ``/metrics``, the metadata of OAuth, and `mounts` after them.

    `server` answers ``/mcp``; without it, one of the toolsets of the settings.

    What is mounted stands behind the door (hosts and origins), asks `access` itself who may come in, and counts what it
    is asked in `rates`.
    """
    http = settings.http
    access = access or Access(deps.store.tokens, http, deps.clock)
    requests, rates = metrics.Requests(), rates or Rates(http.rate)
    manager = StreamableHTTPSessionManager(
        server or build(deps, settings.toolsets, state_keys=http.state_keys),
        stateless=http.stateless, session_idle_timeout=http.idle_ms / 1000, max_sessions=http.sessions,
        max_request_body_size=http.body_bytes,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the door has looked
    )  # fmt: skip
    endpoint = Endpoint(manager, body_bytes=http.body_bytes, max_depth=settings.limits.json_depth)

    async def health(request: Request) -> Response:
        deps.store.check()
        return JSONResponse({"ok": True})

    async def counts(request: Request) -> Response:
        page = await metrics.text(deps, requests, sessions=len(manager._server_instances))
        return PlainTextResponse(page, media_type=metrics.MEDIA_TYPE)

    async def metadata(request: Request) -> Response:
        return JSONResponse(access.issuer.metadata if access.issuer is not None else {})

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    routes: list[BaseRoute] = [
        Route(OPEN, health, methods=["GET"]),
        Route("/metrics", Guard(Route("/metrics", counts).app, access, rates, scope=READING), methods=["GET"]),
        Route(MCP, Guard(endpoint, access, rates)),
    ]
    if access.issuer is not None:
        routes += [Route(path, metadata, methods=["GET"]) for path in (WELL_KNOWN, f"{WELL_KNOWN}{MCP}")]
    return Starlette(routes=[*routes, *mounts], lifespan=life, middleware=_around(settings, requests))


def _around(settings: Settings, requests: metrics.Requests) -> list[Middleware]:
    http = settings.http
    around = [Middleware(Door, http=http, requests=requests)]
    if http.allowed_origins:
        around.append(
            Middleware(
                CORSMiddleware, allow_origins=list(http.allowed_origins), allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["authorization", "content-type", "mcp-session-id", "mcp-protocol-version", "mcp-method",
                               "mcp-name", "last-event-id"],
                expose_headers=["mcp-session-id", "www-authenticate", "retry-after"],
            )
        )  # fmt: skip
    return around
