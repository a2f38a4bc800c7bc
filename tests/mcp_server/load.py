"""Many clients at once over HTTP, beside a bare server of the SDK with a tool that does nothing: ratios of one run.

``python -m tests.mcp_server.load`` prints them. Each server is a process of its own; the three kinds of calls are
made turn by turn, so that whatever else the machine does falls on all of them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client

from tests.fakes.council import write_script
from tests.mcp_server.process import initialize
from tests.mcp_server.served import HEADERS, META, MODERN, client_of
from tests.tools.specs import echo

CLIENTS, CALLS, TURNS = 50, 2_000, 8
GOALS = {"p50": 2.0, "p99": 4.0}
BARE = """
import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")

@server.tool()
async def nothing() -> str:
    return "ok"

import asyncio, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
app = server.streamable_http_app()
asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).serve(sockets=[listener]))
"""
Call = Callable[[str, dict[str, Any]], Awaitable[None]]


@contextmanager
def server(*arguments: str, environ: dict[str, str] | None = None) -> Iterator[str]:
    """The URL of a server in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, *arguments], env=os.environ | (environ or {}), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    rest = threading.Thread(target=process.stderr.read, daemon=True)  # nobody is to wait for a reader of its log
    try:
        while "listening on" not in (line := process.stderr.readline()):
            assert line, "the server ended"
        rest.start()
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait()
        if rest.ident is not None:
            rest.join()
        process.stderr.close()


def made_token(environ: dict[str, str]) -> str:
    """One for the clients of our server."""
    command = [sys.executable, "-m", "agent_graph", "tokens", "create", "load"]
    return subprocess.check_output(command, env=os.environ | environ, text=True).strip()


@asynccontextmanager
async def lean(url: str, token: str) -> AsyncIterator[Call]:
    """A client that does as little as can be, so that the time is the server's."""
    about = {**HEADERS, "mcp-protocol-version": MODERN, "authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=about, timeout=60) as http:

        async def call(tool: str, arguments: dict[str, Any]) -> None:
            params = {"name": tool, "arguments": arguments, "_meta": META}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            answer = await http.post(url, content=body, headers={"mcp-method": "tools/call", "mcp-name": tool})
            assert answer.status_code == 200, answer.text
            assert '"isError":true' not in answer.text, answer.text

        yield call


@asynccontextmanager
async def front(environ: dict[str, str]) -> AsyncIterator[Call]:
    """A client that writes a line to its front and reads one; the front is a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent_graph", "mcp", env=os.environ | environ,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1024 * 1024,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    writing, reading, numbers = process.stdin, process.stdout, itertools.count(1)

    async def ask(body: dict[str, Any]) -> None:
        writing.write(json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n")
        if "id" in body:
            answer = json.loads(await reading.readline())
            assert "result" in answer, answer
            assert not answer["result"].get("isError"), answer

    async def call(tool: str, arguments: dict[str, Any]) -> None:
        params = {"name": tool, "arguments": arguments}
        await ask({"id": next(numbers), "method": "tools/call", "params": params})

    for message in initialize():
        await ask({name: value for name, value in message.items() if name != "jsonrpc"})
    yield call
    writing.close()
    await process.communicate()


@asynccontextmanager
async def sdks(url: str, token: str, *, era: str = "auto") -> AsyncIterator[Call]:
    """The SDK's own client."""
    async with client_of(url, token, era=era) as client:
        yield calling(client)


def calling(client: Client) -> Call:
    async def call(tool: str, arguments: dict[str, Any]) -> None:
        assert not (await client.call_tool(tool, arguments)).is_error

    return call


async def measured(calls: dict[str, list[tuple[Call, dict[str, Any]]]], count: int) -> dict[str, list[float]]:
    """Milliseconds of `count` calls of each kind, all clients at once, the kinds turn by turn."""
    took: dict[str, list[float]] = {name: [] for name in calls}

    async def one(name: str, call: Call, arguments: dict[str, Any], times: int) -> None:
        for _ in range(times):
            began = time.perf_counter()
            await call(name, arguments)
            took[name].append((time.perf_counter() - began) * 1000)

    for _ in range(TURNS):
        for name, clients in calls.items():
            times = max(1, count // len(clients) // TURNS)
            await asyncio.gather(*(one(name, call, arguments, times) for call, arguments in clients))
    return took


def quantiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100)
    return {"p50": cuts[49], "p99": cuts[98]}


async def compared(
    connect: Any, *, clients: int, count: int, bare: str, ours: str, token: str,
    other: Callable[[], AbstractAsyncContextManager[Call]] | None = None,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """By tool: its quantiles in milliseconds. `other` is how to come to our server, where that is another way."""
    async with AsyncExitStack() as opened:
        run_id = await prepared(ours, token)
        plain = [await opened.enter_async_context(connect(bare, token)) for _ in range(clients)]
        full = [await opened.enter_async_context(other() if other else connect(ours, token)) for _ in range(clients)]
        calls = {
            "nothing": [(call, {}) for call in plain],
            "graph_run_get": [(call, {"run_id": run_id}) for call in full],
            "graph_list": [(call, {}) for call in full],
        }
        await measured(calls, clients * 2)  # each connection is open, and everything is imported
        return {name: quantiles(values) for name, values in (await measured(calls, count)).items()}


async def prepared(url: str, token: str) -> str:
    """A dozen graphs, and a run that has ended."""
    async with client_of(url, token) as client:
        for number in range(12):
            await client.call_tool("graph_create", {"spec": echo(f"graph_{number}")})
        started: Any = await client.call_tool("graph_run_start", {"graph_id": "graph_0", "input": "hello"})
        run_id = str(started.structured_content["run_id"])
        await client.call_tool("graph_run_wait", {"run_id": run_id})
        return run_id


async def main(clients: int = CLIENTS, count: int = CALLS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = str(write_script(Path(folder) / "script.json"))
        environ = {
            "AGENT_GRAPH_SCRIPT": script, "AGENT_GRAPH_HTTP_RATE": "0", "AGENT_GRAPH_DATA_DIR": f"{folder}/data",
        }  # fmt: skip
        arguments = ["-m", "agent_graph", "serve", "--port", "0"]
        token = made_token(environ)
        with server("-c", BARE) as bare, server(*arguments, environ=environ) as ours:
            through = partial(front, environ)
            for name, connect, other in (
                ("lean client", lean, None), ("client of the SDK", sdks, None), ("a front each", lean, through),
            ):  # fmt: skip
                found = await compared(
                    connect, clients=clients, count=count, bare=bare, ours=ours, token=token, other=other
                )
                print(f"{name}: {clients} clients, {count} calls of each tool")
                for tool, values in found.items():
                    ratios = {q: values[q] / found["nothing"][q] for q in GOALS}
                    said = "  ".join(f"{q} {values[q]:8.1f} ms  {ratios[q]:5.2f} x" for q in GOALS)
                    print(f"  {tool:<16} {said}")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
