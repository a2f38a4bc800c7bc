"""A gate closed to models, from the client's side: over real pipes, through the front and the daemon behind it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.mcp_server.conftest import ERAS, Assistant
from tests.mcp_server.fronts import fronts
from tests.mcp_server.process import FRONT, ROOT, SERVER, environment
from tests.mcp_server.test_elicitation import HUMAN, YES, Human
from tests.sizes import size
from tests.tools.specs import gated

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]


@asynccontextmanager
async def client_of(
    program: tuple[str, ...], folder: Path, script: Path, era: str, **options: Any
) -> AsyncIterator[Assistant]:
    command, *arguments = program
    parameters = StdioServerParameters(
        command=command, args=[*arguments, "--data-dir", str(folder)], env=environment(script)
    )
    async with Client(stdio_client(parameters), mode=era, **options) as client:
        yield Assistant(client)


async def at_the_gate(assistant: Assistant) -> tuple[str, str]:
    """A run that waits at a gate closed to models, and its approval."""
    await assistant.ok("graph_create", spec=gated(channels=HUMAN), overwrite=True)
    run_id = (await assistant.ok("graph_run_start", graph_id="gated", input={"draft": "Dear Bob"}))["run_id"]
    found = []
    cursor = 0
    while not found:  # by events: a wait for a person would ask
        seen = await assistant.ok("graph_run_wait", run_id=run_id, until="event", cursor=cursor)
        cursor = seen["next_cursor"]
        found = [event["approval_id"] for event in seen["events"] if event["type"] == "approval_opened"]
    return run_id, found[0]


@pytest.mark.parametrize("era", ERAS)
async def test_the_human_behind_a_front_is_asked_by_the_daemon_and_what_they_say_counts(
    era: str, script: Path, tmp_path: Path
) -> None:
    human = Human({"action": "accept", "content": {"decision": "reject", "decided_by": "Ada"}})
    async with (
        fronts(script, tmp_path / "data") as made,
        client_of(FRONT, made.folder, script, era, elicitation_callback=human) as assistant,
    ):
        _, approval_id = await at_the_gate(assistant)
        given = {"approval_id": approval_id, "decision": "approve", "decided_by": "a model"}
        decided = (await assistant.ok("graph_approval_decide", **given))["approval"]
        (vote,) = decided["votes"]
        assert (decided["status"], vote["decided_by"], vote["via"]) == ("rejected", "Ada", "elicitation")
        assert [shown.message.split("\n\n")[1] for shown in human.shown] == ["Dear Bob"]
        human.answer = YES
        run_id, _ = await at_the_gate(assistant)
        assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


@pytest.mark.parametrize("era", ERAS[: size(1, 2)])
async def test_a_client_that_cannot_ask_passes_no_such_gate_and_is_told_what_to_do_which_works(
    era: str, script: Path, tmp_path: Path
) -> None:
    """The assistant tries what it can; then its human types the line that it was told."""
    async with client_of(SERVER, tmp_path, script, era) as assistant:
        run_id, approval_id = await at_the_gate(assistant)
        given = {"approval_id": approval_id, "decision": "approve", "decided_by": "Ada"}
        envelope = await assistant.envelope("graph_approval_decide", **given)
        assert (envelope["error_code"], envelope["retryable"]) == ("APPROVAL_CHANNEL_NOT_ALLOWED", False)
        assert await assistant.refused("graph_approval_decide", **given, via="cli") == "UNKNOWN_ARGUMENT"
        await assistant.ok("graph_run_resume", run_id=run_id)
        seen = await assistant.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=2_000)
        assert seen["status"] == "waiting"
        (waits,) = seen["run"]["waiting_for"]
        assert waits["how_to_decide"] == envelope["details"]["how_to_decide"]
        line = waits["how_to_decide"].partition("on a terminal: ")[2].partition(";")[0]
        assert line.startswith(f"agent-graph approvals decide {approval_id} approve|")
        words = line.partition("|")[0].split()[1:]
        decided = await shell(*words, "--by", "Ada", "--json", "--data-dir", str(tmp_path))
        assert [vote["via"] for vote in decided["data"]["approval"]["votes"]] == ["cli"]
        assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


async def shell(*words: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent_graph", *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    printed, _ = await process.communicate()
    return json.loads(printed)
