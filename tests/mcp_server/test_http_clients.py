"""The SDK's own client over a real port, in both eras: the whole way, waits that are left, replicas, the program."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from agent_graph.mcp_server.http.access import Access
from agent_graph.mcp_server.http.app import http_app
from agent_graph.mcp_server.http.door import Guard
from agent_graph.mcp_server.http.endpoint import Endpoint
from agent_graph.mcp_server.http.rates import Rates
from agent_graph.mcp_server.server import NAME, _sealing
from agent_graph.settings import load
from tests.fakes.council import write_script
from tests.fakes.opened import opened
from tests.mcp_server.conftest import ERAS, Assistant
from tests.mcp_server.served import asked, client_of, made, method, on_a_port, token_for
from tests.mcp_server.test_http_door import INITIALIZE
from tests.mcp_server.whole_path import CORE, walk
from tests.tools.specs import gated

OTHERS = ("runs:read", "runs:write", "approvals:decide")


@pytest.mark.parametrize("era", ERAS)
async def test_a_council_and_two_decisions_over_http(era: str) -> None:
    async with opened() as deps, on_a_port(made(deps, sharing="all")) as url:  # two tools count everybody's runs
        async with client_of(url, await token_for(deps, "ann", *OTHERS), era=era) as client:
            assert await walk(Assistant(client)) == set(CORE)
        runs, _ = await deps.store.runs.list()
        assert {run.principal for run in runs} == {"ann"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_wait_that_is_left_touches_nothing(era: str) -> None:
    async with opened() as deps, on_a_port(made(deps, auth="none")) as url, client_of(url, era=era) as client:
        assistant = Assistant(client)
        await assistant.ok("graph_create", spec=gated())
        run_id = (await assistant.ok("graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
        before = await deps.store.runs.get(run_id)
        waiting = asyncio.create_task(client.call_tool("graph_run_wait", {"run_id": run_id}))
        while not deps.supervisor.shell.notify._expected.get(run_id):  # noqa: ASYNC110  (another task has to run)
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        while deps.supervisor.shell.notify._expected.get(run_id):  # noqa: ASYNC110  (the server hears of it)
            await asyncio.sleep(0)
        assert await deps.store.runs.get(run_id) == before
        assert (await assistant.ok("graph_run_get", run_id=run_id))["status"] == "waiting"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_vanishes_while_it_waits_touches_nothing(era: str) -> None:
    async with opened() as deps, on_a_port(made(deps, auth="none")) as url:
        async with client_of(url, era=era) as client:
            assistant = Assistant(client)
            await assistant.ok("graph_create", spec=gated())
            run_id = (await assistant.ok("graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
            await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
            pending = (await assistant.ok("graph_approval_list"))["approvals"][0]
            waiting = asyncio.create_task(client.call_tool("graph_run_wait", {"run_id": run_id}))
            while not deps.supervisor.shell.notify._expected.get(run_id):  # noqa: ASYNC110  (as above)
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
        async with client_of(url, era=era) as client:
            other = Assistant(client)
            given = {"approval_id": pending["approval_id"], "decision": "approve", "decided_by": "Ada"}
            await other.ok("graph_approval_decide", **given)
            assert (await other.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


@pytest.mark.parametrize("era", ERAS)
async def test_who_waits_is_told_that_it_goes_on(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_graph.tools import waiting

    monkeypatch.setattr(waiting, "PROGRESS_MS", waiting.PAUSE_MS + 20)
    told: list[str] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(str(message))

    async with opened() as deps, on_a_port(made(deps, auth="none")) as url, client_of(url, era=era) as client:
        assistant = Assistant(client)
        await assistant.ok("graph_create", spec=gated())
        run_id = (await assistant.ok("graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        given = {"run_id": run_id, "timeout_ms": 600}
        result = await client.call_tool("graph_run_wait", given, progress_callback=tell)
        assert result.structured_content is not None
        assert result.structured_content["data"]["timed_out"] is True
    assert told
    assert "run waiting" in told[-1]


# -- replicas ------------------------------------------------------------------------------------------------------

ASK = types.InputRequiredResult(
    input_requests={
        "name": types.ElicitRequest(
            params=types.ElicitRequestFormParams(message="Who?", requested_schema={"type": "object", "properties": {}})
        )
    },
    request_state="what the server wants to know again",
)


def _replica(deps: Any, keys: tuple[str, ...]) -> Any:
    """An application whose one tool asks something and takes what it gave along from the answer."""

    async def call_tool(context: Any, params: Any) -> Any:
        if params.request_state is None:
            return ASK
        return types.CallToolResult(content=[types.TextContent(text=params.request_state)])

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="graph_list", input_schema={"type": "object"})])

    server: Server[Any] = Server(NAME, on_call_tool=call_tool, on_list_tools=list_tools)
    server.middleware.append(RequestStateBoundary(_sealing(keys), default_audience=NAME))
    settings = load({"data_dir": ":memory:"}, environ={"AGENT_GRAPH_HTTP_STATELESS": "yes"})
    app = http_app(deps, settings)
    manager = StreamableHTTPSessionManager(server, stateless=True)
    endpoint = Endpoint(manager, body_bytes=100_000, max_depth=100)
    route = next(route for route in app.routes if getattr(route, "path", "") == "/mcp")
    route.app = Guard(endpoint, Access(deps.store.tokens, settings.http, deps.clock), Rates(0))  # type: ignore[attr-defined]
    app.router.lifespan_context = lambda _: manager.run()
    return app


async def _state(client: httpx2.AsyncClient, token: str) -> str:
    answer = await method(client, "tools/call", {"name": "graph_list", "arguments": {}}, token=token)
    return str(_result(answer)["requestState"])


def _result(answer: httpx2.Response) -> Any:
    text = answer.text
    if "data: {" in text:
        text = next(line[6:] for line in text.splitlines() if line.startswith("data: {"))
    body = json.loads(text)
    return body.get("result", body.get("error"))


async def test_what_one_replica_sealed_another_with_its_key_opens_and_no_other_does() -> None:
    keys = ("k" * 32,)
    async with opened() as deps, asked(_replica(deps, keys)) as one, asked(_replica(deps, ("n" * 32, *keys))) as two:
        ann, bob = await token_for(deps, "ann", "runs:read"), await token_for(deps, "bob", "runs:read")
        given = {"name": "graph_list", "arguments": {}, "inputResponses": {}, "requestState": await _state(one, ann)}
        assert "what the server wants" not in given["requestState"]
        opened_ = _result(await method(two, "tools/call", given, token=ann))
        assert opened_["content"][0]["text"] == "what the server wants to know again"
        assert _result(await method(two, "tools/call", given, token=bob))["code"] == -32602
        async with asked(_replica(deps, ("z" * 32,))) as three:
            assert _result(await method(three, "tools/call", given, token=ann))["code"] == -32602


# -- the program ---------------------------------------------------------------------------------------------------


def _started(folder: Path, *more: str) -> subprocess.Popen[str]:
    environ = os.environ | {"AGENT_GRAPH_SCRIPT": str(write_script(folder / "script.json")), "PYTHONUNBUFFERED": "1"}
    arguments = ["serve", "--port", "0", "--data-dir", str(folder / "data"), *more]
    return subprocess.Popen(
        [sys.executable, "-m", "agent_graph", *arguments], env=environ, stderr=subprocess.PIPE, text=True
    )


async def test_the_program_serves_names_its_owner_and_stops_when_told(tmp_path: Path) -> None:
    process = _started(tmp_path, "--auth", "none")
    try:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(2)]
        assert "auth is none" in said[0]
        url = said[1].split()[-1]
        async with client_of(url) as client:
            assert (await Assistant(client).ok("graph_status"))["storage"] == "durable"
        root = url.removesuffix("/mcp")
        assert process.stderr.readline().endswith(f"console at {root}/ (log in with a token)\n")
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            assert "Log in" in (await browser.get(root)).text
        front = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", "agent_graph", "mcp", "--data-dir", str(tmp_path / "data")],
            input=json.dumps(INITIALIZE) + "\n", capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
        assert json.loads(front.stdout)["result"]["serverInfo"]["name"] == NAME
        second = _started(tmp_path, "--auth", "none")
        _, told = second.communicate(timeout=20)
        assert second.returncode == 5
        assert "DATA_DIR_LOCKED" in told
        assert str(process.pid) in told
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
        assert process.returncode == 0
        assert not (tmp_path / "data" / "daemon.log").exists(), "no daemon was started beside it"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
