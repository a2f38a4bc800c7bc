"""`agent-graph mcp` as its users start it: a front on a pipe, and the daemon behind it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from agent_graph.mcp_server import hello
from agent_graph.store.lock import lock_folder
from tests.fakes.council import write_ready_answer, write_script
from tests.mcp_server.conftest import ERAS, Assistant
from tests.mcp_server.fronts import Fronts, daemon, end, fronts, gone, owner
from tests.mcp_server.process import FRONT, GONE_S, ROOT, Lines, call, environment, initialize, message_in
from tests.mcp_server.whole_path import CORE, walk
from tests.sizes import size
from tests.tools.specs import echo, gated, keep

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """(script, folder) of a daemon that is up: a front costs a twentieth of a second there. Graphs are shared."""
    home = tmp_path_factory.mktemp("warm")
    script, folder = write_script(home / "script.json"), home / "data"
    with daemon(script, folder, {"AGENT_GRAPH_LIMITS__RESULT_BYTES": "1000000"}):
        yield script, folder


@pytest.fixture
def front(warm: tuple[Path, Path]) -> Fronts:
    return Fronts(*warm, {})


@pytest.fixture
async def cold(script: Path, tmp_path: Path) -> AsyncIterator[Fronts]:
    """Clients of a folder that has no daemon yet."""
    async with fronts(script, tmp_path / "data") as made:
        yield made


async def _slow_run(client: Lines) -> str:
    """A run whose model call takes half a minute, when the call is under way."""
    await client.tool("c", "graph_create", spec=echo())
    run_id = str((await client.tool("s", "graph_run_start", graph_id="echo", input="slow"))["run_id"])
    await _begun(client, run_id)
    return run_id


async def _begun(client: Lines, run_id: str) -> None:
    cursor = 0
    while True:
        page = await client.tool("e", "graph_run_events", run_id=run_id, cursor=cursor, wait_ms=5_000)
        cursor = page["data"]["next_cursor"]
        if any(event["type"] == "node_started" for event in page["data"]["events"]):
            return


async def _gated_run(client: Lines) -> str:
    await client.tool("c", "graph_create", spec=gated())
    run_id = (await client.tool("s", "graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
    await client.tool("w", "graph_run_wait", run_id=run_id, until="waiting")
    return str(run_id)


# -- one client ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
async def test_the_sdks_client_walks_the_whole_path(era: str, cold: Fronts) -> None:
    command, *arguments = FRONT
    parameters = StdioServerParameters(
        command=command, args=[*arguments, "--data-dir", str(cold.folder)], env=environment(cold.script, cold.env)
    )
    async with Client(stdio_client(parameters), mode=era) as client:
        assert await walk(Assistant(client)) == set(CORE)


async def test_three_lines_and_the_end_of_input_give_two_answers(front: Fronts) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in (*initialize(), LIST)).encode()
    for _ in range(size(5, 50)):
        async with front() as client:
            out, _ = await client.process.communicate(lines)
            first, second = map(message_in, out.splitlines(keepends=True))
            assert (first["id"], second["id"]) == (0, 1)
            assert [tool["name"] for tool in second["result"]["tools"]] == list(CORE)
            assert client.process.returncode == 0


async def test_three_lines_are_enough_to_start_a_daemon_that_outlives_them(cold: Fronts) -> None:
    async with cold() as client:
        lines = "".join(json.dumps(line) + "\n" for line in (*initialize(), LIST)).encode()
        out, errors = await client.process.communicate(lines.removesuffix(b"\n"))
        assert [message_in(line)["id"] for line in out.splitlines(keepends=True)] == [0, 1]
        assert (client.process.returncode, errors) == (0, b"")
    pid = cold.pid
    async with cold() as client:
        await client.ready()
        assert await client.end_of_input() == 0
    assert cold.pid == pid
    assert cold.log.count("serving") == 1


async def test_a_daemon_without_clients_and_work_goes_by_itself(cold: Fronts) -> None:
    cold.env["AGENT_GRAPH_DAEMON_IDLE_MS"] = "200"
    async with cold() as client:
        await client.ready()
        await client.tool(1, "graph_list")
        handle = os.pidfd_open(cold.pid)
        assert await client.end_of_input() == 0
    await asyncio.to_thread(gone, handle)
    assert "nothing to do" in cold.log
    assert not (cold.folder / hello.SOCKET_NAME).exists()
    assert owner(cold.folder) == 0


async def test_a_front_that_runs_from_a_checkout_starts_a_daemon_from_there(script: Path, tmp_path: Path) -> None:
    async with fronts(script, tmp_path / "data", {"PYTHONPATH": "", "PYTHONSAFEPATH": ""}) as here:
        from_there = (
            f"import os; os.chdir({str(ROOT)!r}); os.execv({sys.executable!r}, {list(FRONT)} + os.sys.argv[1:])"
        )
        async with here(command=(sys.executable, "-c", from_there)) as client:
            await client.ready()
            assert (await client.tool(1, "graph_list"))["ok"] is True
            assert await client.end_of_input() == 0


async def test_two_fronts_at_once_start_one_daemon(cold: Fronts) -> None:
    async with cold() as one, cold() as two, cold() as three:
        await asyncio.gather(*(client.ready() for client in (one, two, three)))
        for client in (one, two, three):
            assert (await client.tool(1, "graph_list"))["ok"] is True
            assert await client.end_of_input() == 0
    assert cold.log.count("serving") == 1


async def test_MC04_a_cancel_passes_during_a_wait(front: Fronts) -> None:
    async with front() as client:
        await client.ready()
        run_id = await _gated_run(client)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        await client.send(call(7, "graph_run_wait", run_id=run_id, timeout_ms=20_000))
        await client.tool(8, "graph_run_get", run_id=run_id)
        await client.send(cancelled, {**cancelled, "params": {"requestId": "nobody"}}, {**LIST, "id": 9})
        assert len((await client.answer(9))["result"]["tools"]) == len(CORE)
        (approval,) = (await client.tool(10, "graph_approval_list", run_id=run_id))["data"]["approvals"]
        decision = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "Ada"}
        await client.tool(11, "graph_approval_decide", **decision)
        assert (await client.tool(12, "graph_run_wait", run_id=run_id))["data"]["status"] == "completed"
        assert await client.end_of_input() == 0
        assert 7 not in [message.get("id") for message in client.seen]


async def test_MC04_a_cancel_at_the_moment_of_the_answer_hurts_nobody(front: Fronts) -> None:
    async with front() as client:
        await client.ready()
        run_id = await _gated_run(client)
        for number in range(size(20, 200)):
            await client.send(call(f"w{number}", "graph_run_wait", run_id=run_id, timeout_ms=number % 6))
            await client.send(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": f"w{number}"}}
            )
            assert (await client.tool(f"g{number}", "graph_run_get", run_id=run_id))["data"]["status"] == "waiting"
        ids = [message.get("id") for message in client.seen]
        assert len(ids) == len(set(ids)), "no request was answered twice"
        await client.tool("end", "graph_run_cancel", run_id=run_id, reason="enough")


async def test_large_lines_pass_in_both_directions(front: Fronts) -> None:
    async with front() as client:
        await client.ready()
        await client.tool(1, "graph_create", spec=keep())
        text = "Größe → 中文 \U0001f642 " * 40_000
        run_id = (await client.tool(2, "graph_run_start", graph_id="keep", input={"text": text}))["run_id"]
        await client.tool(3, "graph_run_wait", run_id=run_id)
        got = (await client.tool(4, "graph_run_state", run_id=run_id, path="/text"))["data"]
        assert len(json.dumps(client.seen[-1])) > 1_048_576, "more than the ancestor's frames held"
        assert text.startswith(got["value"][:100_000])
        await client.send(json.dumps(call(5, "graph_run_start", graph_id="keep", input="x" * 10_000_000)).encode())
        assert (await client.answer(5))["result"]["structuredContent"]["error_code"] == "INPUT_TOO_LARGE"


async def test_a_line_longer_than_any_is_refused_and_the_session_lives(
    front: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with front() as client:
        await client.ready()
        assert client.process.stdin is not None
        for _ in range(97):
            client.process.stdin.write(b"x" * 1024 * 1024)
            await client.process.stdin.drain()
        await client.send(b"")
        assert (await client.next())["error"]["data"]["error_code"] == "INPUT_TOO_LARGE"
        assert (await client.tool(1, "graph_list"))["ok"] is True


async def test_MC10_text_is_the_same_in_and_out_whatever_the_locale(front: Fronts) -> None:
    locale = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252", "PYTHONCOERCECLOCALE": "0"}
    text = "Größe → 中文 \U0001f642"
    request = call("ä", "graph_create", spec=echo("locale", prompt=text))
    async with front(env=locale) as client:
        await client.ready()
        versions = set()
        for ascii_only in (False, True):
            await client.send(json.dumps(request, ensure_ascii=ascii_only).encode())
            answer = (await client.answer("ä"))["result"]["structuredContent"]
            versions.add(answer["data"]["graph_version"])
        assert len(versions) == 1
        await client.send(json.dumps(call(5, "graph_list", query="\ud83d")).encode())
        assert (await client.answer(5))["result"]["structuredContent"]["error_code"] == "INPUT_INVALID"
        assert (await client.tool(6, "graph_render", graph_id="locale", include_details=True))["ok"]


async def test_MC07_a_whole_session_writes_only_messages(cold: Fronts) -> None:
    noisy = {"PYTHONWARNINGS": "default", "AGENT_GRAPH_LOG": "debug"}
    async with cold(command=(sys.executable, "-W", "always", *FRONT[1:]), env=noisy) as client:
        await client.ready()
        await client.tool(1, "graph_create", spec=keep())
        run_id = (await client.tool(2, "graph_run_start", graph_id="keep", input="x"))["run_id"]
        await client.tool(3, "graph_run_wait", run_id=run_id)
        for request_id, tool in enumerate(("graph_nothing", "graph_run_get", "graph_render"), 4):
            assert (await client.tool(request_id, tool))["ok"] is False
        await client.send(b"{no json", b"[]")
        assert (await client.next())["error"]["code"] == -32700
        assert (await client.next())["error"]["code"] == -32600
        assert await client.end_of_input() == 0
        assert client.process.stdout is not None
        assert await client.process.stdout.read() == b""


async def test_each_client_is_shown_the_toolsets_it_asks_for(front: Fronts) -> None:
    async with front("--toolsets", "author") as client, front("--toolsets", "nonsense") as wrong:
        await client.ready()
        await client.send(LIST)
        assert len((await client.answer(1))["result"]["tools"]) != len(CORE)
        await wrong.send(*initialize())
        assert (await wrong.answer(0))["error"]["data"]["error_code"] == "SETTING_INVALID"
        assert await wrong.gone() == 2


async def test_a_client_that_asks_for_another_model_is_told_so(front: Fronts) -> None:
    async with front() as friend, front("--model", "another") as client:
        await friend.ready()
        for request in (initialize()[0], {**LIST, "id": 0}):
            await client.send(request)
            error = (await client.answer(0))["error"]
            assert error["data"] == {"error_code": "DAEMON_SETTINGS_DIFFER", "retryable": False}
            assert "model is '' there and 'another' here (--model)" in error["message"]
        assert await client.end_of_input() == 2
        assert "DAEMON_SETTINGS_DIFFER" in await client.errors()
        assert (await friend.tool(1, "graph_list"))["ok"] is True


# -- MC03: however a client goes -------------------------------------------------------------------------------------


async def test_MC03_a_without_input_there_is_nothing_to_do_and_no_daemon(cold: Fronts) -> None:
    async with cold(stdin=asyncio.subprocess.DEVNULL) as client:
        assert await client.gone() == 0
    assert not cold.folder.exists()


async def test_MC03_b_d_the_end_of_input_or_a_signal_ends_the_front_and_not_its_run(front: Fronts) -> None:
    async with front() as watcher:
        await watcher.ready()
        for number in (None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            async with front() as client:
                await client.ready()
                run_id = await _slow_run(client)
                await client.send(call(3, "graph_run_wait", run_id=run_id))
                if number is not None:
                    client.process.send_signal(number)
                code = await client.gone() if number is not None else await client.end_of_input()
                assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
                assert "Traceback" not in await client.errors()
            run = await watcher.tool(1, "graph_run_get", run_id=run_id)
            assert run["data"]["status"] == "running"
            await watcher.tool(2, "graph_run_cancel", run_id=run_id, reason="no use any more")


@pytest.mark.parametrize("held", [False, True], ids=["its pipe closes", "another process holds its pipe"])
async def test_MC03_c_a_front_whose_parent_is_killed_goes_too(front: Fronts, held: bool) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in initialize())
    parent = (
        "import subprocess, sys\n"
        "server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"server.stdin.write({lines!r}.encode()); server.stdin.flush()\n"
        "server.stdout.readline()\n"
        f"held = (server.stdin.fileno(), server.stdout.fileno()) if {held} else ()\n"
        "other = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL, pass_fds=held)\n"
        "print(server.pid, other.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent, *FRONT, "--data-dir", str(front.folder), stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, env=environment(front.script),
    )  # fmt: skip
    assert process.stdout is not None
    pid, other = map(int, (await process.stdout.readline()).split())
    handle = os.pidfd_open(pid)
    process.kill()
    await process.wait()
    await asyncio.to_thread(gone, handle)
    os.kill(other, signal.SIGKILL)
    getattr(process, "_transport").close()  # noqa: B009  (asyncio closes it late, and a warning fails a test)


async def test_MC03_e_a_client_that_closes_our_output_first_is_gone(front: Fronts) -> None:
    reading, writing = os.pipe()
    async with front(stdout=writing) as client:
        os.close(writing)
        await client.send(*initialize())
        assert b"protocolVersion" in await asyncio.to_thread(os.read, reading, 65_536)
        os.close(reading)
        assert await client.gone() == 0
        assert "Traceback" not in await client.errors()


async def test_a_client_that_reads_nothing_keeps_neither_its_front_nor_others(front: Fronts) -> None:
    reading, writing = os.pipe()
    async with front(stdout=writing) as client, front() as other:
        os.close(writing)
        await client.send(*initialize())
        await asyncio.to_thread(os.read, reading, 65_536)
        for number in range(1, 60):
            await client.send({**LIST, "id": number})
        await other.ready()
        assert (await other.tool(1, "graph_list"))["ok"] is True
        assert await client.end_of_input() == 0
    os.close(reading)


# -- several clients, and daemons that go ----------------------------------------------------------------------------


async def test_one_client_starts_a_run_and_another_decides_after_the_first_was_killed(front: Fronts) -> None:
    async with front() as first, front() as second:
        await asyncio.gather(first.ready(), second.ready())
        run_id = await _gated_run(first)  # registered after the second had connected, which sees it all the same
        running = await _slow_run(first)
        async with front() as late:
            await late.ready()
            assert (await late.tool(1, "graph_run_get", run_id=running))["data"]["status"] == "running"
            events = (await late.tool(2, "graph_run_events", run_id=running))["data"]["events"]
            assert "run_interrupted" not in [event["type"] for event in events]
        await second.send(call(3, "graph_run_wait", run_id=run_id))
        first.process.kill()
        await first.process.wait()
        async with front() as third:
            await third.ready()
            (approval,) = (await third.tool(1, "graph_approval_list", run_id=run_id))["data"]["approvals"]
            await third.tool(
                2, "graph_approval_decide", approval_id=approval["approval_id"], decision="approve", decided_by="Ada"
            )
        waited = (await second.answer(3))["result"]["structuredContent"]
        assert waited["data"]["status"] == "completed"
        executed = await second.tool(4, "graph_run_start", graph_id="gated", input={"draft": "y"})
        assert executed["ok"] is True
        for each in (running, executed["run_id"]):
            await second.tool(5, "graph_run_cancel", run_id=each, reason="no use any more")


async def test_a_killed_daemon_is_replaced_and_the_session_and_the_runs_go_on(cold: Fronts) -> None:
    async with cold() as client:
        await client.ready()
        run_id = await _slow_run(client)
        await client.send(call("lost", "graph_run_wait", run_id=run_id))
        await client.tool("after", "graph_list")
        said, killed = write_ready_answer(cold.script), cold.pid
        os.kill(killed, signal.SIGKILL)
        error = (await client.answer("lost"))["error"]
        assert error["data"] == {"error_code": "DAEMON_LOST", "retryable": True}
        assert f"process {killed}" in error["message"]
        waited = await client.tool("again", "graph_run_wait", run_id=run_id)
        assert waited["data"]["status"] == "completed", waited
        assert (await client.tool("get", "graph_run_get", run_id=run_id))["data"]["final_state"] == said
        assert cold.pid != killed
        assert await client.end_of_input() == 0
        assert [message.get("id") for message in client.seen if "agent-graph-front" in str(message.get("id"))] == []


async def test_a_daemon_killed_under_load_is_replaced_once_and_every_run_is_driven_to_its_end(cold: Fronts) -> None:
    clients = size(3, 8)
    async with AsyncExitStack() as stack:
        fronts = [await stack.enter_async_context(cold()) for _ in range(clients)]
        await asyncio.gather(*(client.ready() for client in fronts))
        await fronts[0].tool("c", "graph_create", spec=echo())
        started = {"graph_id": "echo", "input": "slow"}
        runs = [
            str((await client.tool(number, "graph_run_start", **started))["run_id"])
            for client in fronts
            for number in range(5)
        ]
        await _begun(fronts[0], runs[-1])
        for client in fronts:
            await client.send(call("wait", "graph_run_wait", run_id=runs[-1]))
            await client.tool("there", "graph_run_list")
        write_ready_answer(cold.script)
        os.kill(cold.pid, signal.SIGKILL)
        for client in fronts:
            assert (await client.answer("wait"))["error"]["data"]["error_code"] == "DAEMON_LOST"
        for number, run_id in enumerate(runs):
            waited = await fronts[number % clients].tool(f"w{number}", "graph_run_wait", run_id=run_id)
            assert waited["data"]["status"] == "completed", waited
        assert cold.log.count("serving") == 2, "the first daemon and one more"


async def test_a_daemon_that_is_stopped_says_so_and_the_next_request_starts_another(cold: Fronts) -> None:
    async with cold() as client:
        await client.ready()
        run_id = await _gated_run(client)
        first = cold.pid
        await client.send(call("lost", "graph_run_wait", run_id=run_id))
        await client.tool("after", "graph_list")
        await asyncio.to_thread(end, cold.folder)
        error = (await client.answer("lost"))["error"]
        assert error["data"]["error_code"] == "DAEMON_LOST"
        assert "signal SIGTERM" in error["message"]
        assert owner(cold.folder) == 0, "nobody starts what was just stopped"
        assert (await client.tool("again", "graph_run_get", run_id=run_id))["data"]["status"] == "waiting"
        assert cold.pid not in (0, first)
        assert await client.end_of_input() == 0


async def test_a_folder_that_a_command_owns_for_a_while_is_waited_for(cold: Fronts) -> None:
    async with cold() as client:
        async with await lock_folder(cold.folder, now_ms=0):
            await client.send(*initialize(), LIST)
            assert (await client.answer(0))["result"]["serverInfo"]["name"] == "agent-graph"
        assert len((await client.answer(1))["result"]["tools"]) == len(CORE)
        assert await client.end_of_input() == 0


@pytest.mark.parametrize("early", [True, False], ids=["early", "with the end of input"])
async def test_settings_that_cannot_be_used_are_an_error_and_exit_2(cold: Fronts, early: bool) -> None:
    async with cold("--provider", "nobody") as client:
        await client.send(*initialize(), LIST)
        if not early:
            assert client.process.stdin is not None
            client.process.stdin.close()
        error = (await client.answer(1))["error"]
        assert error["data"] == {"error_code": "SETTING_INVALID", "retryable": False}
        assert "--provider is 'nobody'" in error["message"]
        assert await client.gone() == 2
        assert "SETTING_INVALID" in await client.errors()
    assert not cold.folder.exists()


async def test_a_daemon_that_says_another_version_is_an_error_the_client_shows(
    script: Path, tmp_path: Path
) -> None:  # fmt: skip
    """A daemon of another release, as it would answer."""
    folder = tmp_path / "data"
    folder.mkdir()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first: Any = json.loads(await reader.readline())
        assert (first[hello.KEY], first["toolsets"]) == (hello.PROTOCOL, "")
        body = {"ok": False, "error_code": "DAEMON_VERSION_MISMATCH", "error": "stop it", "exit": 5}
        writer.write(hello.line(body))
        writer.close()

    served = await asyncio.start_unix_server(refuse, folder / hello.SOCKET_NAME)
    async with served, Fronts(script, folder, {})() as client:
        await client.send(*initialize())
        error = (await client.answer(0))["error"]
        assert error["message"] == "DAEMON_VERSION_MISMATCH: stop it"
        assert await client.end_of_input() == 5


async def test_a_closed_standard_output_is_said(script: Path, tmp_path: Path) -> None:
    command = ("sh", "-c", f"exec {' '.join(FRONT)} >&-", "-")
    async with Fronts(script, tmp_path / "data", {})(command=command) as client:
        assert await asyncio.wait_for(client.process.wait(), GONE_S) == 2
        assert "standard input and output are needed" in await client.errors()


async def test_a_front_finds_its_daemon_through_loopback_and_finds_the_next_one_too(cold: Fronts) -> None:
    cold.env["AGENT_GRAPH_DOOR"] = "loopback"
    async with cold() as client, cold() as other:
        await client.ready()
        run_id = await _gated_run(client)
        first, door = cold.pid, cold.folder / "mcp.door"
        before = door.read_bytes()
        os.kill(first, signal.SIGKILL)
        await other.ready()
        waited = await other.tool(1, "graph_run_get", run_id=run_id)
        assert waited["data"]["status"] == "waiting"
        assert (await client.tool(2, "graph_list"))["ok"]
        assert cold.pid != first
        assert door.read_bytes() != before
        assert not list(cold.folder.glob("*.sock"))
