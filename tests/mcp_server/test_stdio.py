"""The server as its users start it: a process on a pipe, whose standard output is the protocol and nothing else."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.mcp_server.conftest import ERAS, Assistant
from tests.mcp_server.process import ROOT, SERVER, call, environment, initialize, message_in, started
from tests.mcp_server.whole_path import CORE, walk
from tests.sizes import size
from tests.tools.specs import echo, gated, keep

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@pytest.mark.parametrize("era", ERAS)
async def test_the_sdks_client_walks_the_whole_path(era: str, script: Path, tmp_path: Path) -> None:
    command, *arguments = SERVER
    parameters = StdioServerParameters(
        command=command, args=[*arguments, "--data-dir", str(tmp_path / "data")], env=environment(script)
    )
    async with Client(stdio_client(parameters), mode=era) as client:
        assert await walk(Assistant(client)) == set(CORE)


async def test_three_lines_and_the_end_of_input_give_two_answers(script: Path) -> None:
    async def once(number: int) -> None:
        version = VERSIONS[number % len(VERSIONS)]
        lines = [*initialize(version), {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]
        async with started(script) as server:
            out, _ = await server.process.communicate("".join(json.dumps(line) + "\n" for line in lines).encode())
            first, second = map(message_in, out.splitlines(keepends=True))
            assert (first["id"], first["result"]["protocolVersion"]) == (0, version)
            assert [tool["name"] for tool in second["result"]["tools"]] == list(CORE)
            assert server.process.returncode == 0

    for number in range(size(4, 50)):
        await once(number)


async def test_the_last_line_needs_no_end(script: Path) -> None:
    async with started(script) as server:
        out, _ = await server.process.communicate(json.dumps(initialize()[0]).encode())
        assert message_in(out)["id"] == 0


async def test_MC04_a_cancelled_wait_is_not_answered_and_the_run_goes_on(script: Path) -> None:
    async with started(script) as server:
        await server.ready()
        await server.tool(1, "graph_create", spec=gated())
        run_id = (await server.tool(2, "graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        await server.tool(3, "graph_run_wait", run_id=run_id, until="waiting")
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        unknown = {**cancelled, "params": {"requestId": "nobody"}}
        await server.send(call(7, "graph_run_wait", run_id=run_id, timeout_ms=20_000))
        await server.tool(8, "graph_run_get", run_id=run_id)
        await server.send(cancelled, unknown, {"jsonrpc": "2.0", "id": 9, "method": "tools/list"})
        assert len((await server.answer(9))["result"]["tools"]) == len(CORE)
        (approval,) = (await server.tool(10, "graph_approval_list"))["data"]["approvals"]
        await server.tool(
            11, "graph_approval_decide", approval_id=approval["approval_id"], decision="approve", decided_by="Ada"
        )
        assert (await server.tool(12, "graph_run_wait", run_id=run_id))["data"]["status"] == "completed"
        assert await server.end_of_input() == 0
        assert 7 not in [message.get("id") for message in server.seen]


async def test_MC05_progress_flows_on_the_wire_and_stops_with_the_answer(script: Path) -> None:
    async with started(script) as server:
        await server.ready()
        await server.tool(1, "graph_create", spec=gated())
        run_id = (await server.tool(2, "graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        waiting = call(3, "graph_run_wait", run_id=run_id, timeout_ms=600)
        waiting["params"]["_meta"] = {"progressToken": "p1"}
        await server.send(waiting)
        assert (await server.answer(3))["result"]["structuredContent"]["data"]["status"] == "timeout"
        told = [one["params"] for one in server.seen if one.get("method") == "notifications/progress"]
        values = [one["progress"] for one in told]
        assert values == sorted(set(values))
        assert {one["progressToken"] for one in told} == {"p1"}
        await server.tool(4, "graph_run_list")
        assert server.seen[-1]["id"] == 4


@pytest.mark.parametrize(
    ("line", "request_id", "code"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"graph_list","arguments":{"query":"\\ud83d"}}}',
         5, "INPUT_INVALID"),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"graph_list","arguments":{"query":"\xff"}}}',
         5, "INPUT_INVALID"),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":{"a":NaN}}}',
         5, "INPUT_INVALID"),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":2}}}',
         5, "INPUT_INVALID"),
        (b'{"jsonrpc":"2.0","id":"five","method":"tools/call","params":{"arguments":'
         + b"[" * 10_000 + b"]" * 10_000 + b"}}", "five", "INPUT_TOO_DEEP"),
        (json.dumps(call(5, "graph_run_start", graph_id="keep", input="x" * 10_000_000)).encode(),
         5, "INPUT_TOO_LARGE"),
        (json.dumps(call(5, "graph_run_start", graph_id="keep", inputs="x")).encode(), 5, "UNKNOWN_ARGUMENT"),
    ],
    ids=["lone surrogate", "not UTF-8", "NaN", "key given twice", "10,000 levels", "10 MB", "unknown argument"],
)  # fmt: skip
async def test_bad_arguments_are_a_tools_refusal_and_the_session_lives(
    script: Path, line: bytes, request_id: Any, code: str
) -> None:
    async with started(script) as server:
        await server.ready()
        await server.tool(1, "graph_create", spec=keep())
        await server.send(line)
        result = (await server.answer(request_id))["result"]
        assert (result["isError"], result["structuredContent"]["error_code"]) == (True, code)
        assert result["content"][0]["text"].startswith(f'{{"error_code":"{code}"')
        assert (await server.tool(6, "graph_run_list"))["data"]["runs"] == []
        assert await server.end_of_input() == 0


async def test_what_is_no_message_is_answered_as_json_rpc_says(script: Path) -> None:
    async with started(script) as server:
        await server.ready()
        for line, request_id, code in (
            (b"{not json", None, -32700),
            (b"[]", None, -32600),
            (b'{"jsonrpc":"2.0","id":4}', 4, -32600),
            (b'{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"cursor":NaN}}', 4, -32700),
            (b'{"jsonrpc":"2.0","id":4,"method":"no/such"}', 4, -32601),
            (b"[" * 100_000, None, -32700),
        ):
            await server.send(line)
            error = await server.next()
            assert (error["id"], error["error"]["code"]) == (request_id, code)
        await server.send(b"", b"   ")
        assert (await server.tool(5, "graph_list"))["ok"] is True


@pytest.mark.parametrize("flags", [(), ("-W", "always")], ids=["plain", "-W always"])
async def test_MC07_whatever_prints_the_wire_is_the_protocols(script: Path, flags: tuple[str, ...]) -> None:
    command = (sys.executable, *flags, "-m", "tests.mcp_server.odd_server", "prints", "-")
    async with started(script, command=command, env={"PYTHONWARNINGS": "default"}) as server:
        await server.ready()
        await server.tool(1, "graph_create", spec=echo())
        run_id = (await server.tool(2, "graph_run_start", graph_id="echo", input="x"))["run_id"]
        assert (await server.tool(3, "graph_run_wait", run_id=run_id))["data"]["status"] == "completed"
        run = await server.tool(4, "graph_run_get", run_id=run_id)
        assert run["data"]["final_state"] == "read: ''", "standard input is the protocol's too"
        assert await server.end_of_input() == 0
        said = await server.errors()
        for word in ("a node that prints", "without the end", "past everything", "a child that prints", "Deprecation"):
            assert word in said


async def test_MC07_a_whole_session_with_a_new_store_and_refusals_writes_only_messages(
    script: Path, tmp_path: Path
) -> None:
    command = (sys.executable, "-W", "always", *SERVER[1:])
    async with started(
        script, tmp_path / "data", command=command, env={"PYTHONWARNINGS": "default", "AGENT_GRAPH_LOG": "debug"}
    ) as server:
        await server.ready()
        await server.tool(1, "graph_create", spec=keep())
        run_id = (await server.tool(2, "graph_run_start", graph_id="keep", input="x"))["run_id"]
        await server.tool(3, "graph_run_wait", run_id=run_id)
        for request_id, tool in enumerate(("graph_nothing", "graph_run_get", "graph_render"), 4):
            assert (await server.tool(request_id, tool))["ok"] is False
        assert await server.end_of_input() == 0
        assert server.process.stdout is not None
        assert await server.process.stdout.read() == b""


TEXT = "Größe → 中文 \U0001f642"


async def test_MC10_text_is_the_same_in_and_out_whatever_the_locale(script: Path, tmp_path: Path) -> None:
    locale = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252", "PYTHONCOERCECLOCALE": "0"}
    spec = echo(prompt=f"{TEXT} {{input}}")
    request = call(1, "graph_create", spec=spec)
    async with started(script, tmp_path / "data", env=locale) as server:
        await server.ready()
        await server.send(json.dumps(request, ensure_ascii=False).encode())
        raw = (await server.answer(1))["result"]["structuredContent"]["data"]
        await server.send(json.dumps({**request, "id": 2}, ensure_ascii=True).encode())
        escaped = (await server.answer(2))["result"]["structuredContent"]["data"]
        assert raw["graph_version"] == escaped["graph_version"]
        assert (raw["created"], escaped["created"]) == (True, False)
        run_id = (await server.tool(3, "graph_run_start", graph_id="echo", input={"topic": TEXT}))["run_id"]
        await server.tool(4, "graph_run_wait", run_id=run_id)
        assert await server.end_of_input() == 0
    async with started(script, tmp_path / "data", env=locale) as server:
        await server.ready()
        state = await server.tool(1, "graph_run_state", run_id=run_id)
        assert state["data"]["value"]["topic"] == TEXT
        drawn = await server.tool(2, "graph_render", graph_id="echo", include_details=True)
        assert "中文" in drawn["data"]["text"]


async def test_a_folder_in_use_is_said_in_a_sentence_and_the_server_stays_away(script: Path, tmp_path: Path) -> None:
    async with started(script, tmp_path / "data") as owner:
        await owner.ready()
        async with started(script, tmp_path / "data") as second:
            assert await second.gone() == 5
            said = await second.errors()
            assert "DATA_DIR_LOCKED" in said
            assert "Traceback" not in said
            assert second.process.stdout is not None
            assert await second.process.stdout.read() == b""
        assert (await owner.tool(1, "graph_list"))["ok"] is True


async def test_a_folder_of_another_program_is_refused(script: Path, tmp_path: Path) -> None:
    import sqlite3

    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    with sqlite3.connect(folder / "agent-graph.db") as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    async with started(script, folder) as server:
        assert await server.gone() == 5
        assert "STORE_FOREIGN" in await server.errors()


async def test_two_servers_in_memory_do_not_know_each_other(script: Path) -> None:
    async with started(script) as one, started(script) as other:
        await asyncio.gather(one.ready(), other.ready())
        await one.tool(1, "graph_create", spec=keep())
        assert (await other.tool(1, "graph_list"))["data"]["graphs"] == []


def test_the_tests_speak_to_this_checkout() -> None:
    assert (ROOT / "agent_graph").is_dir()
