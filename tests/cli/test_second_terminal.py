"""Several processes on one data folder: the owner serves the others, and when it goes another takes its place."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_graph.store.lock import lock_folder
from tests.cli.terminal import GATED, TWO_STEPS, Done, Terminal, asks, gate, spec
from tests.fakes.ollama_server import Gate, OllamaServer, answer, encoded, last_line, line, stream

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

Beside = Callable[..., Awaitable[Done]]
BRANCHES = [{"id": "a", "entry": "slow"}, {"id": "b", "entry": "gate"}]
BESIDE_A_GATE = spec(
    "beside", {"id": "both", "type": "parallel", "config": {"join": "end", "branches": BRANCHES}},
    asks("slow", "SLOW {input}"), gate(), asks("after", "AFTER {input}"),
    {"id": "end", "type": "join", "config": {"mode": "all_success"}},
    edges=[("gate", "after"), ("slow", "end"), ("after", "end"), ("end", "END")], output_key="after",
)  # fmt: skip


def held(text: str) -> tuple[Gate, Any]:
    """An answer that comes when its gate is opened."""
    holding = Gate()
    return holding, stream(holding, *encoded([line(text), last_line()]))


def file(tmp_path: Path, body: Any) -> str:
    path = tmp_path / f"{body['name']}.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    return str(path)


def run_id_in(said: str) -> str:
    return next(word for word in said.split() if word.startswith("run-"))


async def test_ctrl_c_leaves_a_run_that_resume_finishes_without_asking_again(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path
) -> None:
    _, never = held("never")
    ollama.on("DRAFT", answer("one"))
    ollama.on("REVIEW", never, times=1)
    ollama.on("REVIEW", answer("two"))
    running = await terminal.start("run", file(tmp_path, TWO_STEPS), "hello")
    await ollama.arrived("REVIEW one")
    running.process.send_signal(signal.SIGINT)
    done = await running.done()
    run_id = run_id_in(done.err)
    assert (done.code, done.out) == (130, b"")
    assert f"agent-graph resume {run_id}" in done.err
    assert "Traceback" not in done.err

    resumed = await terminal.run("resume", run_id)
    assert (resumed.code, resumed.out) == (0, b"two\n")
    assert (ollama.count("DRAFT"), ollama.count("REVIEW")) == (1, 2)


async def test_every_command_works_from_a_second_terminal(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path, beside: Beside
) -> None:
    holding, slow = held("one")
    ollama.on("DRAFT", slow)
    ollama.on("REVIEW", answer("two"))
    first = await terminal.start("run", file(tmp_path, TWO_STEPS), "hello")
    await ollama.arrived("DRAFT")
    run_id = run_id_in(await first.says("draft  started"))

    listed = (await beside("runs", "--json")).json["data"]["runs"]
    assert [(run["run_id"], run["status"]) for run in listed] == [(run_id, "running")]
    assert b"another process, through its socket" in (await beside("status")).out
    assert (await beside("graphs", "--json")).json["data"]["graphs"][0]["graph_id"] == "two_steps"
    assert (await beside("render", "two_steps")).out.startswith(b"flowchart")
    assert (await beside("runs", "show", "run-x")).err.startswith("RUN_NOT_FOUND: ")
    following = await terminal.start("events", run_id, "--follow", "--json")
    watching = await terminal.start("resume", run_id)
    await watching.says("draft  started")

    holding.open()
    for done in (await first.done(), await watching.done()):
        assert (done.code, done.out) == (0, b"two\n")
    events = [json.loads(each) for each in (await following.done()).out.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "run_completed"
    assert (ollama.count("DRAFT"), ollama.count("REVIEW")) == (1, 1)


async def test_a_decision_in_a_second_terminal_lets_the_owner_go_on_at_once(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path, beside: Beside
) -> None:
    holding, slow = held("slow at last")
    ollama.on("SLOW", slow)
    ollama.on("AFTER", answer("afterwards"))
    first = await terminal.start("run", file(tmp_path, BESIDE_A_GATE), "hello")
    await first.says("waits for a decision")
    (pending,) = (await beside("approvals", "list", "--json")).json["data"]["approvals"]
    decided = await beside("approvals", "decide", pending["approval_id"], "approve", "--by", "Ada")
    assert decided.code == 0
    assert "goes on in the process that owns the data folder" in decided.err
    await first.says("decided: approve by Ada (cli)")
    await ollama.arrived("AFTER")
    holding.open()
    done = await first.done()
    assert (done.code, done.out) == (0, b"afterwards\n")


async def test_a_run_started_through_an_owner_survives_it(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path, beside: Beside
) -> None:
    _, never = held("never")
    ollama.on("DRAFT mine", never)
    ollama.on("DRAFT yours", answer("one"))
    holding, slow = held("two")
    ollama.on("REVIEW one", never, times=1)
    ollama.on("REVIEW one", slow)
    owner = await terminal.start("run", file(tmp_path, TWO_STEPS), "mine")
    await ollama.arrived("DRAFT mine")
    guest = asyncio.create_task(beside("run", "two_steps", "yours"))
    await ollama.arrived("REVIEW one")
    owner.process.kill()
    await ollama.arrived("REVIEW one", count=2)
    holding.open()
    done = await guest
    assert (done.code, done.out) == (0, b"two\n")
    assert ollama.count("DRAFT yours") == 1


async def test_an_owner_that_is_done_stays_for_the_runs_of_others(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path
) -> None:
    first_hold, first = held("one")
    second_hold, second = held("two")
    ollama.on("DRAFT mine", first)
    ollama.on("DRAFT yours", second)
    ollama.on("REVIEW", answer("reviewed"))
    owner = await terminal.start("run", file(tmp_path, TWO_STEPS), "mine")
    await ollama.arrived("DRAFT mine")
    guest = await terminal.start("run", "two_steps", "yours")
    await ollama.arrived("DRAFT yours")
    first_hold.open()
    await owner.says("1 run(s) of this folder still go on in this process")
    second_hold.open()
    for done in (await owner.done(), await guest.done()):
        assert (done.code, done.out) == (0, b"reviewed\n")
    assert ollama.count("DRAFT yours") == 1


async def test_ctrl_c_in_the_second_terminal_only_stops_watching(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path
) -> None:
    holding, slow = held("one")
    ollama.on("DRAFT", slow)
    ollama.on("REVIEW", answer("two"))
    owner = await terminal.start("run", file(tmp_path, TWO_STEPS), "hello")
    await ollama.arrived("DRAFT")
    guest = await terminal.start("resume", run_id_in(await owner.says("draft  started")))
    await guest.says("draft  started")
    guest.process.send_signal(signal.SIGINT)
    stopped = await guest.done()
    assert stopped.code == 130
    assert "the process that owns the data folder goes on" in stopped.err
    holding.open()
    assert (await owner.done()).out == b"two\n"


async def test_a_run_cancelled_from_a_second_terminal_ends_the_first_with_1(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path, beside: Beside
) -> None:
    _, never = held("never")
    ollama.on("DRAFT", never)
    owner = await terminal.start("run", file(tmp_path, TWO_STEPS), "hello")
    request = await ollama.arrived("DRAFT")
    cancelled = await beside("cancel", run_id_in(await owner.says("draft  started")), "--reason", "enough")
    assert cancelled.code == 0
    done = await owner.done()
    assert (done.code, done.out) == (1, b"")
    assert "to be cancelled: enough" in done.err
    await request.closed.wait()


async def test_two_at_once_share_a_fresh_folder(terminal: Terminal, ollama: OllamaServer, tmp_path: Path) -> None:
    ollama.on("DRAFT", answer("one"))
    ollama.on("REVIEW", answer("two"))
    path = file(tmp_path, TWO_STEPS)
    both = [await terminal.start("run", path, text) for text in ("a", "b")]
    for started in both:
        done = await started.done()
        assert (done.code, done.out) == (0, b"two\n")


async def test_a_gate_outlives_the_process_and_the_next_goes_on(
    beside: Beside, ollama: OllamaServer, tmp_path: Path, data_dir: Path
) -> None:
    ollama.on("DRAFT", answer("one"))
    ollama.on("ACT", answer("acted"))
    assert (await beside("run", file(tmp_path, GATED), "hello")).code == 3
    assert not await asyncio.to_thread((data_dir / "owner.sock").exists)
    (pending,) = (await beside("approvals", "list", "--json")).json["data"]["approvals"]
    done = await beside("approvals", "decide", pending["approval_id"], "approve")
    assert (done.code, done.out) == (0, b"acted\n")
    assert ollama.count("DRAFT") == 1


async def test_an_mcp_server_owns_the_folder_and_the_commands_go_through_it(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    ollama.on("DRAFT", answer("one"))
    ollama.on("REVIEW", answer("two"))
    server = await terminal.start("mcp", "--in-process", stdin=asyncio.subprocess.PIPE)
    assert server.process.stdin is not None
    assert server.process.stdout is not None
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    server.process.stdin.write(json.dumps(asked).encode() + b"\n")
    assert json.loads(await server.process.stdout.readline())["id"] == 1

    refused = await beside("run", file(tmp_path, TWO_STEPS), "hello", "--provider", "ollama")
    assert (refused.code, refused.out, ollama.requests) == (2, b"", [])
    assert refused.err.startswith(f"OWNER_SETTINGS_DIFFER: process {server.process.pid} owns the data folder")
    assert "provider is 'auto' there and 'ollama' here (--provider)" in refused.err
    assert (await beside("runs", "--json")).json["data"]["runs"] == []
    monkeypatch.setenv("AGENT_GRAPH_PROVIDER", "ollama")
    done = await beside(
        "run", file(tmp_path, TWO_STEPS), "hello", "--model", "fake:latest", "--ollama-host", ollama.url
    )
    assert (done.code, done.out) == (0, b"two\n")
    assert {request.body["model"] for request in ollama.chats} == {"fake:latest"}, "the request itself holds it"
    assert f"process {server.process.pid} owns the data folder, and its settings hold: provider is 'auto'" in done.err
    assert "owns the data folder" not in (await beside("status")).err, "who only looks is told nothing"
    second = await terminal.run("mcp", "--in-process")
    assert (second.code, second.err.split(": ")[1]) == (5, "DATA_DIR_LOCKED")
    standing = (await beside("status")).out
    assert b"through its socket" in standing
    assert b"load         0 of 64 runs under way, 0 in the queue" in standing
    server.process.stdin.close()
    assert (await server.done()).code == 0


async def test_an_owner_that_neither_answers_nor_goes_is_told_of(
    beside: Beside, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_graph.cli.desk.PATIENCE_S", 0.2)
    async with await lock_folder(data_dir, now_ms=0):
        done = await beside("runs")
    assert (done.code, done.err.split(":")[0]) == (5, "DATA_DIR_LOCKED")
    assert str(os.getpid()) in done.err


@pytest.mark.timeout(90)
async def test_an_owner_that_was_stopped_is_told_of_and_goes_on_when_it_is_let(
    beside: Beside, terminal: Terminal, data_dir: Path, tmp_path: Path, ollama: OllamaServer
) -> None:
    ollama.on("", answer("fine"))
    owner = await terminal.start("mcp", "--in-process", stdin=asyncio.subprocess.PIPE)
    async with asyncio.timeout(15):
        while not (data_dir / "owner.sock").exists():  # noqa: ASYNC110  (it is another process)
            await asyncio.sleep(0.02)
    waiting = await beside("run", file(tmp_path, GATED), "hello")
    assert waiting.code == 3
    watching = await terminal.start("events", run_id_in(waiting.err), "--follow")
    assert watching.process.stdout is not None
    while b"approval_opened" not in await watching.process.stdout.readline():
        pass
    owner.process.send_signal(signal.SIGSTOP)
    lock = data_dir / "owner.lock"
    os.utime(lock, (lock.stat().st_atime, lock.stat().st_mtime - 60))
    try:
        for command in (("runs",), ("run", file(tmp_path, TWO_STEPS), "hello")):
            stopped = await beside(*command)
            assert (stopped.code, stopped.err.split(":")[0]) == (5, "DATA_DIR_LOCKED")
            assert "it is stopped or stuck" in stopped.err
            assert f"kill -CONT {owner.process.pid}" in stopped.err
        left = await watching.done()
        assert (left.code, "it is stopped or stuck" in left.err) == (5, True), left
        doctor = await beside("doctor")
        assert b"it is stopped or stuck" in doctor.out
    finally:
        owner.process.send_signal(signal.SIGCONT)
    assert (await beside("runs")).code == 0
    assert owner.process.stdin is not None
    owner.process.stdin.close()
    assert (await owner.done()).code == 0
