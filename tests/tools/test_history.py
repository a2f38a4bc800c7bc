"""graph_run_state and graph_run_events: any value, at any point, and the events in order and live."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates
from tests.fakes.opened import Tools, opened
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


async def test_what_a_node_asked_is_derived_from_the_log(tools: Tools) -> None:
    run_id = await _ran(tools)
    events = (await tools.ok("graph_run_events", run_id=run_id))["events"]
    answered = next(event for event in events if event["type"] == "model_answered")
    (call,) = (await tools.ok("graph_run_state", run_id=run_id, node=answered["node_id"]))["calls"]
    assert (call["seq"], call["node_path"]) == (answered["seq"], answered["firing"])
    assert call["messages"] == [{"role": "user", "content": "why?"}]
    assert (await tools.ok("graph_run_state", run_id=run_id, node="nobody"))["calls"] == []


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


async def test_events_say_which_attempt_how_long_and_what_it_cost() -> None:
    busy = {"code": "MODEL_OVERLOADED", "message": "too much to do"}
    model = ScriptedModel([Reply(error=busy, times=1), Reply(text="two words", delay_ms=20, prompt_tokens=7)])
    async with opened(model) as deps:
        tools = Tools(deps)
        graph = echo()
        graph["nodes"][0]["config"]["retry"] = {"initial_delay_ms": 1}
        await tools.ok("graph_create", spec=graph)
        run = await tools.ended("echo", "why?")
        events = (await tools.ok("graph_run_events", run_id=run["run_id"]))["events"]
        assert all({"seq", "at_ms", "type", "prev"} <= set(event) for event in events[1:])
        assert [event["at_ms"] for event in events] == sorted(event["at_ms"] for event in events)
        by_type = {event["type"]: event for event in events}
        starts = [event["attempt"] for event in events if event["type"] == "node_started"]
        assert starts == [1, 2]
        retried = by_type["node_retried"]
        assert (retried["attempt"], retried["error"]["code"], retried["error"]["message"]) == (
            1, "MODEL_OVERLOADED", "too much to do",
        )  # fmt: skip
        answer = by_type["model_answered"]["answer"]
        assert (answer["prompt_tokens"], answer["completion_tokens"], answer["total_ms"]) == (7, 2, 20)
        finished, began = by_type["node_finished"], [e for e in events if e["type"] == "node_started"][-1]
        assert finished["duration_ms"] == finished["at_ms"] - began["at_ms"] >= 19
        ended = by_type["run_completed"]
        assert ended["duration_ms"] == ended["at_ms"] - by_type["run_started"]["at_ms"]
        for event in events:  # each looked at alone says the same as among the others
            page = await tools.ok("graph_run_events", run_id=run["run_id"], cursor=event["seq"], limit=1)
            assert page["events"] == [event]
            assert page["next_cursor"] == event["seq"] + 1


async def test_a_beginning_that_lies_very_far_back_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_graph.tools.timings.LOOKED_BACK", 1)
    async with opened() as deps:
        tools = Tools(deps)
        run_id = await _ran(tools)
        events = (await tools.ok("graph_run_events", run_id=run_id))["events"]
        finished = next(event for event in events if event["type"] == "node_finished")
        (alone,) = (await tools.ok("graph_run_events", run_id=run_id, cursor=finished["seq"], limit=1))["events"]
        assert "duration_ms" in finished
        assert "duration_ms" not in alone


async def test_a_cursor_is_the_end_of_the_page_and_not_of_the_log(tools: Tools) -> None:
    run_id = await _ran(tools)
    page = await tools.ok("graph_run_events", run_id=run_id, limit=3)
    assert (page["next_cursor"], page["truncated"], page["gap"], page["dropped"]) == (3, True, False, 0)
    rest = await tools.ok("graph_run_events", run_id=run_id, cursor=3)
    assert rest["events"][0]["seq"] == 3
    end = rest["next_cursor"]
    assert (end, rest["truncated"]) == (rest["events"][-1]["seq"] + 1, False)
    over = await tools.ok("graph_run_events", run_id=run_id, cursor=end, wait_ms=40_000)
    assert (over["events"], over["next_cursor"], over["truncated"]) == ([], end, False), "it has ended: no use waiting"


async def test_events_are_told_while_the_run_is_under_way() -> None:
    gates = Gates("why?")
    async with opened(ScriptedModel(gates)) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo", "why?")
        await gates.reached("why?")
        seen = await tools.ok("graph_run_events", run_id=run_id)
        assert seen["events"][-1]["type"] == "node_started"
        waiting = asyncio.create_task(
            tools.ok("graph_run_events", run_id=run_id, cursor=seen["next_cursor"], wait_ms=40_000)
        )
        await asyncio.sleep(0)
        gates.open("why?")
        assert (await waiting)["events"][0]["type"] == "model_answered"
