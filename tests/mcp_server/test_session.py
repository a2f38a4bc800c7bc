"""One client's session, from its first line to its end, over pipes within the test's own process."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_graph.mcp_server.lines import StdioLines
from agent_graph.mcp_server.server import build
from agent_graph.mcp_server.session import Session
from agent_graph.system.event_loop import on_signal
from agent_graph.tools.deps import Deps
from tests.fakes.opened import opened
from tests.mcp_server.process import call, initialize, message_in
from tests.tools.specs import gated


class Pipes:
    """The client's ends."""

    def __init__(self, deps: Deps) -> None:
        self.server_reads, self.feeding = os.pipe()
        self.reading, self.server_writes = os.pipe()
        fcntl.fcntl(self.server_writes, fcntl.F_SETPIPE_SZ, 4096)  # what a system short of pipes gives
        self.left = 0
        self.session = Session(
            build(deps), StdioLines((self.server_reads, self.server_writes)), max_depth=deps.limits.json_depth,
            on_end=self._leave,
        )  # fmt: skip
        self.running = asyncio.create_task(self._run())
        self.rest = b""

    async def _run(self) -> str:
        with on_signal(self.session.end):
            return await self.session.run()

    def _leave(self) -> None:
        self.left += 1

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        for message in messages:
            os.write(self.feeding, (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")

    async def next(self) -> Any:
        while b"\n" not in self.rest:
            self.rest += await asyncio.to_thread(os.read, self.reading, 65_536)
        line, _, self.rest = self.rest.partition(b"\n")
        return message_in(line + b"\n")

    async def answer(self, request_id: Any) -> Any:
        while (message := await self.next()).get("id") != request_id:
            pass
        return message

    def close(self, *descriptors: int) -> None:
        for descriptor in descriptors:
            os.close(descriptor)


@asynccontextmanager
async def session() -> AsyncIterator[Pipes]:
    async with opened() as deps:
        pipes = Pipes(deps)
        pipes.send(*initialize())
        assert (await pipes.answer(0))["result"]["serverInfo"]["name"] == "agent-graph"
        yield pipes
        assert pipes.left == 1
        pipes.close(pipes.server_reads, pipes.server_writes)


async def test_what_was_asked_before_the_end_of_input_is_answered() -> None:
    async with session() as pipes:
        pipes.send(call(1, "graph_template_list"), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, b"{no json")
        pipes.close(pipes.feeding)
        seen = [await pipes.next() for _ in range(3)]  # read first: a pipe need not hold them all
        assert await pipes.running == "end of input"
        assert {message["id"] for message in seen} == {1, 2, None}
        assert "error" not in str([message for message in seen if message["id"] is not None and "error" in message])
        pipes.close(pipes.reading)


async def test_a_wait_that_is_under_way_at_the_end_of_input_is_ended() -> None:
    async with session() as pipes:
        pipes.send(call(1, "graph_create", spec=gated()))
        await pipes.answer(1)
        pipes.send(call(2, "graph_run_start", graph_id="gated", input={"draft": "x"}))
        run_id = (await pipes.answer(2))["result"]["structuredContent"]["run_id"]
        pipes.send(call(3, "graph_run_wait", run_id=run_id))
        pipes.close(pipes.feeding)
        assert await pipes.running == "end of input"
        assert (await pipes.answer(3))["error"]["message"] == "Connection closed"
        pipes.close(pipes.reading)


async def test_a_cancelled_request_is_not_waited_for_at_the_end() -> None:
    async with session() as pipes:
        pipes.send(call(1, "graph_create", spec=gated()))
        await pipes.answer(1)
        pipes.send(call(2, "graph_run_start", graph_id="gated", input={"draft": "x"}))
        run_id = (await pipes.answer(2))["result"]["structuredContent"]["run_id"]
        pipes.send(call(3, "graph_run_wait", run_id=run_id))
        pipes.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
        pipes.close(pipes.feeding)
        begun = asyncio.get_running_loop().time()
        assert await pipes.running == "end of input"
        assert asyncio.get_running_loop().time() - begun < 1.4
        pipes.close(pipes.reading)


async def test_a_client_that_stops_reading_has_left() -> None:
    async with session() as pipes:
        pipes.close(pipes.reading)
        pipes.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert await pipes.running == "nobody reads"
        pipes.close(pipes.feeding)


async def test_a_signal_ends_it() -> None:
    async with session() as pipes:
        signal.raise_signal(signal.SIGTERM)
        assert await pipes.running == "signal SIGTERM"
        pipes.close(pipes.feeding, pipes.reading)


async def test_an_open_stream_keeps_nobody_from_ending() -> None:
    async with opened() as deps:
        pipes = Pipes(deps)
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        wanted = {"resourcesListChanged": True}
        pipes.send({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
                    "params": {"notifications": wanted, "_meta": meta}})  # fmt: skip
        assert (await pipes.next())["params"]["notifications"] == wanted
        pipes.close(pipes.feeding)
        begun = asyncio.get_running_loop().time()
        assert await pipes.running == "end of input"
        assert asyncio.get_running_loop().time() - begun < 1.4
        assert deps.supervisor.shell.notify.listeners == ()
        pipes.close(pipes.reading, pipes.server_reads, pipes.server_writes)


@pytest.mark.parametrize("when", ["while it is taken", "after the loop was closed"])
def test_a_thread_that_outlives_its_loop_ends_quietly(when: str) -> None:
    """pytest makes an exception in a thread a failure."""
    server_reads, feeding = os.pipe()
    reading, server_writes = os.pipe()

    async def main() -> threading.Thread:
        before, taken = set(threading.enumerate()), asyncio.Event()

        async def take(line: bytes) -> None:
            taken.set()
            await asyncio.Event().wait()

        StdioLines((server_reads, server_writes)).start(on_line=take, on_end=lambda why: None)
        (thread,) = (new for new in set(threading.enumerate()) - before if new.name == "stdin")
        if when == "while it is taken":
            os.write(feeding, b"{}\n")
            await taken.wait()
        return thread

    thread = asyncio.run(main())
    with contextlib.suppress(BrokenPipeError):
        os.write(feeding, b"{}\n")
    os.close(feeding)
    thread.join(5.0)
    assert not thread.is_alive()
    for descriptor in (server_reads, reading, server_writes):
        os.close(descriptor)
