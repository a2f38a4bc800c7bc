"""The application over HTTP within the test's process: asked directly, or by the SDK's client through a real port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from starlette.types import ASGIApp

from agent_graph.mcp_server.http.app import http_app
from agent_graph.mcp_server.http.serving import _config, _Server, listening
from agent_graph.settings import load
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps

BASE = "http://127.0.0.1:8765"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def made(deps: Deps, server: Server[Any] | None = None, **environ: str) -> ASGIApp:
    """The application over `deps`, with settings as `serve` would find them."""
    variables = {f"AGENT_GRAPH_HTTP_{name.upper()}": value for name, value in environ.items()}
    return http_app(deps, load({"data_dir": ":memory:"}, environ=variables), server=server)


@asynccontextmanager
async def asked(app: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A plain HTTP client of an application that has been started."""
    started, enough = asyncio.Event(), asyncio.Event()

    async def live() -> None:  # a task of its own: fixtures begin and end in different ones
        async with app.router.lifespan_context(app):
            started.set()
            await enough.wait()

    living = asyncio.create_task(live())
    await started.wait()
    transport = httpx2.ASGITransport(app, client=("203.0.113.7", 4711))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE, headers=HEADERS) as client:
        yield client
    enough.set()
    await living


@asynccontextmanager
async def on_a_port(app: Any, **environ: str) -> AsyncIterator[str]:
    """The URL of its ``/mcp``, on a real loopback port."""
    settings = load({"data_dir": ":memory:", "http_port": "0"}, environ={})
    listener, started = listening(settings.http), asyncio.Event()
    server = _Server(_config(settings, app))
    server.ready = started.set
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await started.wait()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task
        listener.close()


@asynccontextmanager
async def client_of(url: str, token: str = "", *, era: str = "auto", **options: Any) -> AsyncIterator[Client]:
    """The SDK's client, with a token."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    http = httpx2.AsyncClient(headers=headers, timeout=30)
    async with http, Client(streamable_http_client(url, http_client=http), mode=era, **options) as client:
        yield client


async def token_for(deps: Deps, name: str, *scopes: str, days: int = 0) -> str:
    """A token of this server."""
    given = {"name": name, "scopes": list(scopes), "days": days}
    envelope: Any = await registry.call(deps, "graph_token_create", given, caller=Caller("cli"))
    assert envelope["ok"], envelope
    return str(envelope["data"]["token"])


async def call(
    client: httpx2.AsyncClient, tool: str, arguments: Mapping[str, Any] | None = None, *, token: str = "", **more: Any
) -> httpx2.Response:
    """``tools/call`` as one request of the revision 2026-07-28."""
    return await method(client, "tools/call", {"name": tool, "arguments": dict(arguments or {})}, token=token, **more)


async def method(
    client: httpx2.AsyncClient, name: str, params: Mapping[str, Any], *, token: str = "", **headers: str
) -> httpx2.Response:
    about = {"mcp-protocol-version": MODERN, "mcp-method": name}
    for key in ("name", "uri"):
        if key in params:
            about["mcp-name"] = str(params[key])
    if token:
        about["authorization"] = f"Bearer {token}"
    body = {"jsonrpc": "2.0", "id": 1, "method": name, "params": {**params, "_meta": META}}
    return await client.post("/mcp", content=json.dumps(body), headers=about | headers)


def envelope(response: httpx2.Response) -> Any:
    """The tool's envelope in a response, streamed or not."""
    assert response.status_code == 200, response.text
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = next(line[6:] for line in text.splitlines() if line.startswith("data: {"))
    return json.loads(text)["result"]["structuredContent"]
