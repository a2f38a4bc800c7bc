"""graph_run_state and graph_run_events: any value, at any point, and the events in order and live."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fakes.opened import Tools
from tests.tools.specs import echo, gated


async def _ran(tools: Tools) -> str:
    await tools.ok("graph_create", spec=echo(prompt="{question}"))
    return str((await tools.ended("echo", {"question": "why?", "a/b": {"~x": [1, 2]}}))["run_id"])


@pytest.mark.parametrize(
    ("path", "value"),
    [("/said", "Looks sound."), ("/question", "why?"), ("/a~1b/~0x/1", 2)],
)
async def test_one_value_by_pointer(tools: Tools, path: str, value: Any) -> None:
    run_id = await _ran(tools)
    data = await tools.ok("graph_run_state", run_id=run_id, path=path)
    assert set(data) == {"run_id", "state_version", "path", "value"}
    assert (data["path"], data["value"]) == (path, value)


async def test_the_state_as_it_was_before_the_answer(tools: Tools) -> None:
    run_id = await _ran(tools)
    events = (await tools.ok("graph_run_events", run_id=run_id))["events"]
    answered = next(event["seq"] for event in events if event["type"] == "model_answered")
    before = await tools.ok("graph_run_state", run_id=run_id, at=answered - 1, include_history=True)
    after = await tools.ok("graph_run_state", run_id=run_id, include_history=True)
    assert "said" not in before["value"]
    assert (before["state_version"], before["history"]) == (answered - 1, [])
    assert after["value"]["said"] == "Looks sound."
    (line,) = after["history"]
    assert set(line) == {"seq", "at_ms", "node", "keys"}
    assert line["keys"] == ["said"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "/nothing"}, "STATE_PATH_NOT_FOUND"),
        ({"path": "said"}, "STATE_PATH_INVALID"),
        ({"path": "/a~2"}, "STATE_PATH_INVALID"),
        ({"at": 10_000}, "INVALID_ARGUMENT"),
        ({"at": -2}, "INVALID_ARGUMENT"),
        ({"path": 7}, "INVALID_ARGUMENT"),
    ],
)
async def test_state_refuses(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    run_id = await _ran(tools)
    assert (await tools.refused("graph_run_state", run_id=run_id, **arguments))["error_code"] == code


async def test_events_come_in_order_and_in_pages(tools: Tools) -> None:
    run_id = await _ran(tools)
    whole = await tools.ok("graph_run_events", run_id=run_id)
    assert set(whole) == {"run_id", "events", "next_cursor", "gap", "truncated", "dropped"}
    assert [event["seq"] for event in whole["events"]] == list(range(len(whole["events"])))
    assert [event["type"] for event in whole["events"]][:2] == ["run_accepted", "run_started"]
    assert whole["events"][-1]["type"] == "run_completed"
    assert {"seq", "at_ms", "type", "prev"} <= set(whole["events"][1])
    started = next(event for event in whole["events"] if event["type"] == "node_started")
    assert (started["node_id"], started["node_path"]) == ("say", "say#1")
    paged: list[Any] = []
    cursor, more = 0, True
    while more:
        page = await tools.ok("graph_run_events", run_id=run_id, cursor=cursor, limit=2)
        paged += page["events"]
        cursor, more = page["next_cursor"], page["truncated"]
    assert paged == whole["events"]


async def test_events_wait_for_the_next_one(tools: Tools) -> None:
    await tools.ok("graph_create", spec=gated())
    run_id = await tools.run("gated", {"draft": "x"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    known = (await tools.ok("graph_run_events", run_id=run_id))["next_cursor"]
    nothing = await tools.ok("graph_run_events", run_id=run_id, cursor=known, wait_ms=10)
    assert (nothing["events"], nothing["next_cursor"]) == ([], known)
    waiting = asyncio.create_task(tools.ok("graph_run_events", run_id=run_id, cursor=known, wait_ms=40_000))
    await asyncio.sleep(0)
    await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
    assert (await waiting)["events"][0]["seq"] == known


@pytest.mark.parametrize("arguments", [{"cursor": -1}, {"limit": 0}, {"limit": 201}, {"wait_ms": -1}, {"cursor": "0"}])
async def test_events_refuse(tools: Tools, arguments: dict[str, Any]) -> None:
    run_id = await _ran(tools)
    assert (await tools.refused("graph_run_events", run_id=run_id, **arguments))["error_code"] == "INVALID_ARGUMENT"
