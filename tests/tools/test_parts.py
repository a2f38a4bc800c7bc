"""MC08: a result longer than an answer is read whole over the protocol, in exact parts."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.jsonvalue import size
from agent_graph.core.limits import DEFAULTS
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools
from tests.tools.specs import keep

LONG = 'A "quoted" line, \u00fc and \U0001f600.\n' * 7_000


async def parts(tools: Tools, tool: str, name: str, **arguments: Any) -> list[str]:
    """All parts in order, each in an answer that fits."""
    found: list[str] = []
    offset = 0
    while True:
        envelope: Any = await tools.envelope(tool, **arguments, offset=offset)
        assert envelope["ok"], envelope
        assert size(envelope) <= DEFAULTS.result_bytes
        data = envelope["data"]
        assert (data["truncated"], data["offset"], data["characters"]) == (True, offset, len(LONG))
        found.append(data[name])
        if data["next_offset"] is None:
            return found
        offset = data["next_offset"]


async def test_MC08_a_long_text_in_the_state_is_read_whole(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run = await tools.ended("keep", {"report": LONG, "short": "x"})
    read = await parts(tools, "graph_run_state", "value", run_id=run["run_id"], path="/report")
    assert "".join(read) == LONG
    assert len(read) > 5
    short = await tools.ok("graph_run_state", run_id=run["run_id"], path="/short")
    assert short["value"] == "x"
    assert "offset" not in short


@pytest.mark.parametrize("first", ["graph_run_get", "graph_execute"])
async def test_MC08_a_long_result_is_read_whole(tools: Tools, first: str) -> None:
    await tools.ok("graph_create", spec=keep())
    answer = await tools.ok("graph_execute", graph_id="keep", input=LONG)
    if first == "graph_run_get":
        answer = await tools.ok("graph_run_get", run_id=answer["run_id"])
    assert answer["final_state"] == LONG[: answer["next_offset"]]
    assert "".join(await parts(tools, "graph_run_get", "final_state", run_id=answer["run_id"])) == LONG


async def test_on_the_command_line_a_text_is_whole(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run_id = await tools.run("keep", LONG)
    operator = Tools(tools.deps, Caller("cli", "a test"))
    await tools.ok("graph_run_wait", run_id=run_id)
    assert (await operator.ok("graph_run_get", run_id=run_id))["final_state"] == LONG


async def test_an_offset_is_for_texts_and_within_them(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run = await tools.ended("keep", {"report": "four", "list": [1]})
    for arguments in (
        {"path": "/report", "offset": 5}, {"path": "/list", "offset": 1}, {"path": "", "offset": 1}, {"offset": -1},
    ):  # fmt: skip
        refusal = await tools.refused("graph_run_state", run_id=run["run_id"], **arguments)
        assert refusal["error_code"] == "INVALID_ARGUMENT"
    end = await tools.ok("graph_run_state", run_id=run["run_id"], path="/report", offset=4)
    assert (end["value"], end["next_offset"]) == ("", None)
    assert (await tools.refused("graph_run_get", run_id=run["run_id"], offset=1))["error_code"] == "INVALID_ARGUMENT"
