"""MC03: however the client goes, the server is gone within five seconds and what was running can go on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import open_app
from agent_graph.settings import load
from tests.fakes.council import write_ready_answer
from tests.mcp_server.process import GONE_S, SERVER, Lines, environment, initialize, started
from tests.tools.specs import echo, gated

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


async def _running(server: Lines) -> str:
    """A run whose model call takes half a minute."""
    await server.ready()
    await server.tool(1, "graph_create", spec=echo())
    run_id = str((await server.tool(2, "graph_run_start", graph_id="echo", input="slow"))["run_id"])
    cursor = 0
    while True:
        page = await server.tool(3, "graph_run_events", run_id=run_id, cursor=cursor, wait_ms=5_000)
        cursor = page["data"]["next_cursor"]
        if any(event["type"] == "node_started" for event in page["data"]["events"]):
            return run_id


async def _left(folder: Path, script: Path, run_id: str) -> Any:
    """(status, types of the last events) as the next start finds them, before it drives anything on."""
    settings = load({"data_dir": str(folder)}, environ={"AGENT_GRAPH_SCRIPT": str(script)})
    async with open_app(settings, serve=False) as deps:
        row = await deps.store.runs.get(run_id)
        events = await deps.store.runs.events(run_id, limit=200)
        assert await deps.store.runs.verify_chain(run_id) is None
        return row.status, [event.body["type"] for event in events]


async def test_a_without_input_there_is_nothing_to_do(script: Path) -> None:
    async with started(script, stdin=asyncio.subprocess.DEVNULL) as server:
        assert await asyncio.wait_for(server.process.wait(), 3 * GONE_S) == 0
        assert "Traceback" not in await server.errors()


async def test_b_the_end_of_input_interrupts_a_run_which_the_next_start_goes_on_with(
    script: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    async with started(script, folder) as server:
        run_id = await _running(server)
        assert await server.end_of_input() == 0
        assert "Traceback" not in await server.errors()
    assert not (folder / "agent-graph.db-wal").exists()
    status, types = await _left(folder, script, run_id)
    assert (status, types[-1]) == ("interrupted", "run_interrupted")

    said = write_ready_answer(script)
    async with started(script, folder) as server:
        await server.ready()
        assert (await server.tool(1, "graph_run_wait", run_id=run_id))["data"]["status"] == "completed"
        run = await server.tool(2, "graph_run_get", run_id=run_id)
        assert run["data"]["final_state"] == said


async def test_c_a_server_whose_parent_is_killed_goes_too(script: Path, tmp_path: Path) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in initialize())
    parent = (
        "import subprocess, sys\n"
        "server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"server.stdin.write({lines!r}.encode()); server.stdin.flush()\n"
        "server.stdout.readline()\n"
        "print(server.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent, *SERVER, "--data-dir", str(tmp_path / "data"), stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, env=environment(script),
    )  # fmt: skip
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    handle, gone = os.pidfd_open(pid), asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, gone.set)
    assert not gone.is_set()
    process.kill()
    await process.wait()
    await asyncio.wait_for(gone.wait(), GONE_S)
    asyncio.get_running_loop().remove_reader(handle)
    os.close(handle)
    getattr(process, "_transport").close()  # noqa: B009  (asyncio closes it late, and a warning fails a test)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
async def test_d_a_signal_stops_in_order(script: Path, tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "data"
    async with started(script, folder) as server:
        run_id = await _running(server)
        server.process.send_signal(number)
        assert await server.gone() == 0
        assert "Traceback" not in await server.errors()
    status, types = await _left(folder, script, run_id)
    assert (status, types[-1]) == ("interrupted", "run_interrupted")


async def test_e_a_client_that_closes_our_output_first_is_gone(script: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    async with started(script, tmp_path / "data", stdout=writing) as server:
        os.close(writing)
        await server.send(*initialize())
        answered = await asyncio.to_thread(os.read, reading, 65_536)
        assert b"protocolVersion" in answered
        os.close(reading)
        assert await server.gone() == 0
        assert "Traceback" not in await server.errors()


async def test_a_client_that_reads_nothing_cannot_keep_the_process(script: Path) -> None:
    reading, writing = os.pipe()
    async with started(script, stdout=writing) as server:
        os.close(writing)
        await server.send(*initialize())
        await asyncio.to_thread(os.read, reading, 65_536)
        for number in range(40):
            await server.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
        assert await server.end_of_input() == 0
        assert "Traceback" not in await server.errors()
    os.close(reading)


async def test_a_call_that_never_lets_go_cannot_keep_the_process(script: Path) -> None:
    command = (sys.executable, "-m", "tests.mcp_server.odd_server", "clings", "-")
    async with started(script, command=command) as server:
        await _running(server)
        assert await server.end_of_input() == 0


async def test_MC12_after_a_kill_nothing_reads_as_running_that_is_not(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with started(script, folder) as server:
        run_id = await _running(server)
        server.process.kill()
        await server.process.wait()
    write_ready_answer(script)
    async with started(script, folder) as server:
        await server.ready()
        assert (await server.tool(1, "graph_run_wait", run_id=run_id))["data"]["status"] == "completed"
        again = await server.tool(2, "graph_run_start", graph_id="echo", input="x")
        assert (await server.tool(3, "graph_run_wait", run_id=again["run_id"]))["data"]["status"] == "completed"


async def test_MC12_a_running_a_queued_and_a_waiting_run_tell_the_truth_after_a_kill(
    script: Path, tmp_path: Path
) -> None:
    folder, one_place = tmp_path / "data", {"AGENT_GRAPH_LIMITS__ACTIVE_RUNS": "1"}
    async with started(script, folder, env=one_place) as server:
        await server.ready()
        await server.tool(1, "graph_create", spec=gated())
        waiting = str((await server.tool(2, "graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"])
        assert (await server.tool(3, "graph_run_wait", run_id=waiting, until="waiting"))["data"]["status"] == "waiting"
        await server.tool(4, "graph_create", spec=echo())
        running = str((await server.tool(5, "graph_run_start", graph_id="echo", input="slow"))["run_id"])
        await server.tool(6, "graph_run_wait", run_id=running, until="event", cursor=2)
        queued = str((await server.tool(7, "graph_run_start", graph_id="echo", input="slow"))["run_id"])
        known = {each: await server.tool(8, "graph_run_events", run_id=each) for each in (waiting, running, queued)}
        server.process.kill()
        await server.process.wait()

    settings = load({"data_dir": str(folder)}, environ={"AGENT_GRAPH_SCRIPT": str(script)})
    async with open_app(settings, serve=False) as deps:  # one that drives nothing on
        rows = {each: await deps.store.runs.get(each) for each in known}
        assert {each: row.status for each, row in rows.items()} == {
            waiting: "waiting", running: "interrupted", queued: "accepted",
        }  # fmt: skip
        assert rows[running].error == {"code": "INTERRUPTED", "message": "the process that drove the run ended"}

    async with started(script, folder, env=one_place) as server:
        await server.ready()
        listed = {each["run_id"]: each["status"] for each in (await server.tool(1, "graph_run_list"))["data"]["runs"]}
        assert listed.keys() == known.keys()
        for each, before in known.items():
            cursor = before["data"]["next_cursor"]
            later = await server.tool(2, "graph_run_events", run_id=each, cursor=cursor)
            assert later["data"]["gap"] is False
            assert [event["seq"] for event in later["data"]["events"]][:1] in ([], [cursor])
            assert (await server.tool(3, "graph_run_get", run_id=each))["ok"]
        early = await server.tool(3, "graph_run_receipt", run_id=waiting)
        assert early["error_code"] == "RECEIPT_NOT_READY"
        (gate,) = (await server.tool(4, "graph_approval_list"))["data"]["approvals"]
        assert gate["run_id"] == waiting
        for each in known:
            await server.tool(5, "graph_run_cancel", run_id=each, reason="no use any more")
            waited = await server.tool(6, "graph_run_wait", run_id=each, timeout_ms=5_000)
            assert (waited["data"]["status"], waited["data"]["terminal"]) == ("cancelled", True)
            told = (await server.tool(9, "graph_run_receipt", run_id=each))["data"]
            assert (told["receipt"]["status"], told["integrity"]["verified"]) == ("cancelled", True)
            assert told["receipt"]["sealed"]["late"] is False
        again = await server.tool(7, "graph_run_start", graph_id="gated", input={"draft": "y"})
        assert (await server.tool(8, "graph_run_wait", run_id=again["run_id"], until="waiting"))["data"][
            "status"
        ] == "waiting", "the one place is free"
