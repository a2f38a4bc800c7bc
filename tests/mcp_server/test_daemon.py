"""The daemon within the test's process: who is let in, what a session is told at the end, and when it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_graph import __version__
from agent_graph.mcp_server import daemon_process, hello, proxy_link
from agent_graph.mcp_server.daemon import Daemon
from agent_graph.mcp_server.proxy_arguments import Arguments
from agent_graph.settings import SETTINGS, Settings, load
from agent_graph.settings.asked import differences
from agent_graph.store.lock import lock_folder
from agent_graph.tools.deps import Deps
from agent_graph.tools.socket_door import door, own_users
from tests.fakes.opened import Tools, opened
from tests.mcp_server.process import call, initialize
from tests.tools.specs import gated

ANSWER_S = 10.0


class Peer:
    """A client of a daemon on a socket pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.writer.write(json.dumps(message).encode() + b"\n")
        await self.writer.drain()

    async def hello(self, **more: Any) -> Any:
        await self.say({hello.KEY: hello.PROTOCOL, "version": __version__, **more})
        return await self.next()

    async def next(self) -> Any:
        line = await asyncio.wait_for(self.reader.readline(), ANSWER_S)
        return json.loads(line) if line else None

    async def answer(self, request_id: Any) -> Any:
        while (message := await self.next()).get("id") != request_id:
            pass
        return message

    async def tool(self, request_id: int, name: str, /, **arguments: Any) -> Any:
        await self.say(call(request_id, name, **arguments))
        return (await self.answer(request_id))["result"]["structuredContent"]


class Served:
    """A daemon and its clients."""

    def __init__(self, deps: Deps, settings: Settings) -> None:
        self.deps = deps
        self.daemon = Daemon(deps, settings)
        self.peers: list[Peer] = []

    async def peer(self) -> Peer:
        ours, theirs = socket.socketpair()
        accepted = asyncio.StreamReader(limit=hello.MOST_BYTES)
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(
            lambda: asyncio.StreamReaderProtocol(accepted, own_users(self.daemon.connected)), sock=theirs
        )
        peer = Peer(*await asyncio.open_connection(sock=ours))
        self.peers.append(peer)
        return peer


@asynccontextmanager
async def served(flags: dict[str, str] | None = None) -> AsyncIterator[Served]:
    async with opened() as deps:
        made = Served(deps, load({"data_dir": ":memory:", **(flags or {})}, environ={}))
        try:
            yield made
        finally:
            await made.daemon.aclose()
            for peer in made.peers:
                peer.writer.close()


async def test_two_clients_share_runs_and_graphs_whenever_they_came() -> None:
    async with served() as here:
        one, two = await here.peer(), await here.peer()
        for peer in (one, two):
            assert (await peer.hello())["ok"] is True
            await peer.say(*initialize())
            assert (await peer.answer(0))["result"]["serverInfo"]["name"] == "agent-graph"
        assert (await one.tool(1, "graph_create", spec=gated()))["ok"]
        run_id = (await two.tool(1, "graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        waited = await one.tool(2, "graph_run_wait", run_id=run_id, until="waiting")
        assert waited["data"]["status"] == "waiting"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ({hello.KEY: 1, "version": "0.0.9"}, "DAEMON_VERSION_MISMATCH"),
        ({hello.KEY: 99, "version": __version__}, "DAEMON_VERSION_MISMATCH"),
        ({hello.KEY: 1, "version": __version__, "toolsets": "nonsense"}, "SETTING_INVALID"),
        ({hello.KEY: 1, "version": __version__, "asked": {"model": ["other", "flag"]}}, "DAEMON_SETTINGS_DIFFER"),
        ({hello.KEY: 1, "version": __version__, "asked": {"provider": ["nobody", "flag"]}}, "SETTING_INVALID"),
    ],
    ids=["older", "another protocol", "no such toolset", "another model", "no such provider"],
)
async def test_who_does_not_fit_is_told_why_while_others_are_served(first: dict[str, Any], code: str) -> None:
    async with served({"model": "mine"}) as here:
        friend, other = await here.peer(), await here.peer()
        assert (await friend.hello())["ok"] is True
        await other.say(first)
        refusal = await other.next()
        assert (refusal["ok"], refusal["error_code"], refusal["again"]) == (False, code, False)
        assert await other.next() is None, "and the connection ends"
        if code != "SETTING_INVALID":
            assert "agent-graph daemon --stop" in refusal["error"]
        await friend.say(*initialize())
        assert (await friend.answer(0))["result"]


async def test_a_daemon_that_nobody_uses_makes_room_for_one_that_fits() -> None:
    async with served() as here:
        running = asyncio.create_task(here.daemon.run())
        newer = await here.peer()
        refusal = await newer.hello(version="99.0")
        assert (refusal["error_code"], refusal["again"]) == ("DAEMON_VERSION_MISMATCH", True)
        assert "99.0" in refusal["error"]
        assert __version__ in refusal["error"]
        assert "wants another" in await asyncio.wait_for(running, ANSWER_S)


async def test_one_that_somebody_started_stays_whoever_comes() -> None:
    async with served() as here:
        here.daemon = Daemon(here.deps, load({"data_dir": ":memory:"}, environ={}), stays=True)
        refusal = await (await here.peer()).hello(version="99.0")
        assert (refusal["error_code"], refusal["again"]) == ("DAEMON_VERSION_MISMATCH", False)


async def test_nonsense_and_silence_cost_their_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_graph.mcp_server.daemon.HELLO_S", 0.05)
    async with served() as here:
        for line in (b"[]\n", b"{no json\n"):
            peer = await here.peer()
            peer.writer.write(line)
            assert (await peer.next())["ok"] is False
        long = await here.peer()
        long.writer.write(b"x" * (3 * hello.MOST_BYTES))
        silent, gone = await here.peer(), await here.peer()
        gone.writer.close()
        assert await silent.next() is None
        friend = await here.peer()
        assert (await friend.hello())["ok"] is True


async def test_another_users_process_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as here:
        monkeypatch.setattr("os.geteuid", lambda: 4_242)
        stranger = await here.peer()
        with pytest.raises((ConnectionError, TypeError, AttributeError)):
            (await stranger.hello()).get("ok")
        monkeypatch.undo()
        assert (await (await here.peer()).hello())["ok"] is True


async def test_no_more_clients_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_graph.mcp_server.daemon.SESSIONS", 1)
    async with served() as here:
        assert (await (await here.peer()).hello())["ok"] is True
        refusal = await (await here.peer()).hello()
        assert (refusal["error_code"], refusal["retryable"]) == ("STORE_BUSY", True)


async def test_a_session_is_told_why_it_ends_and_its_wait_does_not_keep_the_daemon() -> None:
    async with served() as here:
        running = asyncio.create_task(here.daemon.run())
        peer = await here.peer()
        await peer.hello()
        await peer.say(*initialize())
        await peer.answer(0)
        await peer.tool(1, "graph_create", spec=gated())
        run_id = (await peer.tool(2, "graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        await peer.say(call(3, "graph_run_wait", run_id=run_id))
        assert (await (await here.peer()).hello(stop=True))["ok"] is True
        assert await asyncio.wait_for(running, ANSWER_S) == "it was asked to stop"
        await here.daemon.aclose()
        line = await asyncio.wait_for(peer.reader.readline(), ANSWER_S)
        assert line == hello.bye("it was asked to stop")


async def test_it_leaves_when_there_is_nothing_to_do_and_not_before() -> None:
    async with served() as here:
        tools = Tools(here.deps)
        running = asyncio.create_task(here.daemon.run(idle_ms=40))
        peer = await here.peer()
        await peer.hello()
        await peer.say(*initialize())
        await peer.answer(0)
        done, _ = await asyncio.wait((running,), timeout=0.15)
        assert not done, "a client is here"
        await tools.ok("graph_create", spec=gated())
        run_id = await tools.run("gated", {"draft": "x"})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        peer.writer.close()
        assert "nothing to do" in await asyncio.wait_for(running, ANSWER_S), "a gate without a deadline keeps nobody"


@pytest.mark.parametrize(("expiry_ms", "stays"), [(3_600_000, True), (30 * 24 * 3_600_000, False)])
async def test_a_deadline_that_ends_before_long_keeps_it(expiry_ms: int, stays: bool) -> None:
    async with served() as here:
        tools = Tools(here.deps)
        await tools.ok("graph_create", spec=gated(expiry_ms=expiry_ms))
        run_id = await tools.run("gated", {"draft": "x"})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        running = asyncio.create_task(here.daemon.run(idle_ms=20))
        done, _ = await asyncio.wait((running,), timeout=0.15 if stays else ANSWER_S)
        assert bool(done) is not stays
        here.daemon.leave("the test is over")
        await running


def test_settings_are_compared_by_what_they_mean(tmp_path: Path) -> None:
    settings = load(
        {"data_dir": str(tmp_path), "ollama_host": "http://127.0.0.1:11434"}, environ={"OLLAMA_HOST": "gpu"}
    )
    assert differences(settings, {}) == ()
    assert differences(settings, {"ollama_host": ("127.0.0.1", "environment")}) == ()
    (clause,) = differences(settings, {"ollama_host": ("gpu:1", "flag"), "unheard_of": ("x", "flag")})
    assert clause == "ollama_host is 'http://127.0.0.1:11434' there and 'gpu:1' here (--ollama-host)"
    (clause,) = differences(settings, {"model": ("m", "environment")})
    assert clause == "model is '' there and 'm' here (AGENT_GRAPH_MODEL)"


def test_what_makes_the_provider_scripted_is_no_difference(tmp_path: Path, script: Path) -> None:
    environ = {"AGENT_GRAPH_SCRIPT": str(script), "AGENT_GRAPH_PROVIDER": "auto"}
    settings = load({"data_dir": str(tmp_path)}, environ=environ)
    assert differences(settings, {k: (v[0], v[1]) for k, v in hello.asked({}, environ).items()}) == ()


def test_the_front_knows_the_settings_by_the_same_names() -> None:
    table = {setting.name: (setting.flag, setting.env) for setting in SETTINGS}
    assert {name: table[name] for name in hello.COMPARED} == hello.COMPARED


async def test_a_front_comes_in_through_loopback(tmp_path: Path) -> None:
    async with served() as here:
        made = door(tmp_path / hello.SOCKET_NAME, loopback=True)
        await made.open(here.daemon.connected, limit=hello.MOST_BYTES)
        arguments = Arguments({"data_dir": str(tmp_path)})
        found = await asyncio.to_thread(proxy_link.find, arguments)
        assert found is not None
        link = await asyncio.to_thread(proxy_link.introduce, found, arguments)
        assert link is not None
        assert link.pid == os.getpid()
        link.close()
        made.close()
        assert await asyncio.to_thread(proxy_link.find, arguments) is None, "the door went with it"


async def test_a_folder_that_stays_in_use_is_said_with_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(daemon_process, "PATIENCE_S", 0.1)
    async with await lock_folder(tmp_path, now_ms=0):
        flags = {"data_dir": str(tmp_path)}
        assert await asyncio.to_thread(daemon_process.start, flags, detached=True) == 5
        report = json.loads(capfd.readouterr().out.strip())
        assert (report["error_code"], report["retryable"], report["exit"]) == ("DATA_DIR_LOCKED", True, 5)
        assert str(os.getpid()) in report["error"]
        assert await asyncio.to_thread(daemon_process.start, flags, detached=False) == 5
        assert "DATA_DIR_LOCKED" in capfd.readouterr().err
    assert not (tmp_path / "agent-graph.db").exists()


def test_a_daemon_needs_a_folder(capfd: pytest.CaptureFixture[str]) -> None:
    assert daemon_process.start({"data_dir": ":memory:"}, detached=False) == 2
    assert capfd.readouterr().err.startswith("agent-graph: SETTING_INVALID: ")
    assert daemon_process.stop(load({"data_dir": ":memory:"}, environ={})) == 2


def test_to_stop_what_does_not_run_is_no_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert daemon_process.stop(load({"data_dir": str(tmp_path)}, environ={})) == 0
    assert "no daemon" in capfd.readouterr().err


LOGS = """
import logging, os, pathlib, subprocess, sys
from agent_graph.mcp_server import daemon_log
daemon_log.MOST_BYTES = 2_000
folder = pathlib.Path(sys.argv[1])
daemon_log.log_to_file(folder, level="info")
for number in range(200):
    logging.info("line %d", number)
print("printed", flush=True)
subprocess.run(["echo", "by a child"], check=True)
"""


def test_the_log_is_private_and_begun_anew_with_all_that_is_printed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOGS, str(tmp_path)], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    newest = (tmp_path / "daemon.log").read_text(encoding="utf-8")
    assert newest.endswith("printed\nby a child\n")
