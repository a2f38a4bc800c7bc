"""A model's tool calls, through the engine: each an event, none made twice, and what a tool says is only text."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.engine.connections import Connections, Tool, ToolResult
from agent_graph.engine.tool_calls import MOST_RESULT
from agent_graph.errors import ConnectionToolNotFound, StoreBusy
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Room, opened
from tests.fakes.connection import CITY, ScriptedConnection
from tests.specs import Json, llm, spec

WANTS = Reply(when="weather", tool_calls=({"name": "forecast", "arguments": {"city": "Oslo"}},), times=1)
SAYS = Reply(result="rain", text="Take an umbrella.")
ASKING = spec(llm("a", "the weather?", tools=["weather/forecast"]), edges="a>END")


def asking(**config: Any) -> Json:
    return spec(llm("a", "the weather?", tools=["weather/forecast"], **config), edges="a>END")


async def called(room: Room, run_id: str) -> list[e.ToolCalled]:
    return await room.facts(run_id, e.ToolCalled)


async def answered(room: Room, run_id: str) -> e.ToolAnswered:
    (fact,) = await room.facts(run_id, e.ToolAnswered)
    assert isinstance(fact, e.ToolAnswered)
    return fact


async def test_a_model_calls_a_tool_and_goes_on_with_what_it_said() -> None:
    model, weather = ScriptedModel([WANTS, SAYS]), ScriptedConnection()
    async with opened(model, connections=[weather]) as room:
        row = await room.run(ASKING)
        assert row.final_state == ("Take an umbrella.",)
        assert weather.calls == [("forecast", {"city": "Oslo"})]
        assert (row.usage["llm_calls"], len(model.calls)) == (2, 2)
        assert await called(room, row.run_id) == [
            e.ToolCalled("a#1", "call_1_0", "forecast", {"city": "Oslo"}, "weather", "forecast")
        ]  # fmt: skip
        assert await answered(room, row.run_id) == e.ToolAnswered("a#1", "call_1_0", "rain")
        events = (await room.data("graph_run_events", run_id=row.run_id))["events"]
        assert [event["type"] for event in events if "tool" in event["type"]] == ["tool_called", "tool_answered"]
    assert model.calls[0].tools == (
        {"name": "forecast", "connection": "weather", "tool": "forecast", "description": "Tells the weather of a city.",
         "parameters": CITY},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "says", "code", "text"),
    [
        ({"name": "rm", "arguments": {}}, "x", "TOOL_NOT_OFFERED", 'There is no tool "rm". There are: forecast.'),
        ({"name": "forecast", "arguments": {"town": "Oslo"}}, "x", "TOOL_ARGUMENTS_INVALID", "'city' is a required"),
        ({"name": "forecast", "arguments": {"city": 7}}, "x", "TOOL_ARGUMENTS_INVALID", "at /city"),
        ({"name": "forecast", "arguments": "Oslo"}, "x", "TOOL_ARGUMENTS_INVALID", "no JSON object"),
        ({"name": "forecast", "arguments": {"city": "Oslo"}}, ToolResult("no such city", failed=True), "TOOL_FAILED",
         "no such city"),
        ({"name": "forecast", "arguments": {"city": "Oslo"}}, StoreBusy("try later"), "STORE_BUSY",
         "The call failed: try later"),
    ],
)  # fmt: skip
async def test_what_goes_wrong_is_told_to_the_model_as_an_error(
    wanted: dict[str, Any], says: Any, code: str, text: str
) -> None:
    model = ScriptedModel([Reply(tool_calls=(wanted,), times=1), Reply(text="well")])
    weather = ScriptedConnection(says=lambda *_: says)
    async with opened(model, connections=[weather]) as room:
        row = await room.run(ASKING)
        assert row.final_state == ("well",)
        fact = await answered(room, row.run_id)
        assert (fact.failed, fact.code) == (True, code)
        assert text in fact.text
        assert model.calls[1].messages[-1]["content"] == fact.text
        made = code in ("TOOL_FAILED", "STORE_BUSY")
        assert len(weather.calls) == made


async def test_a_tool_that_does_not_answer_in_time_is_given_up_and_said() -> None:
    weather = ScriptedConnection(says=lambda *_: None)
    async with opened(ScriptedModel([WANTS, Reply(text="well")]), connections=[weather]) as room:
        row = await room.run(asking(timeout_ms=50))
        assert (await answered(room, row.run_id)).code == "TOOL_TIMEOUT"
        assert weather.given_up == 1


async def test_a_connection_that_never_tells_of_its_tools_ends_the_attempt() -> None:
    class Silent(ScriptedConnection):
        async def tools(self) -> tuple[Tool, ...]:
            await asyncio.Event().wait()
            raise AssertionError("nobody wakes it")

    model = ScriptedModel([WANTS, SAYS])
    async with opened(model, connections=[Silent()]) as room:
        row = await room.run(asking(timeout_ms=20, retry={"max_attempts": 1}))
        error = row.error or {}
        assert (row.status, error["code"], error["class"]) == ("failed", "MODEL_TIMEOUT", "timeout")
        assert '"weather"' in str(error["message"])
        assert model.calls == []


async def test_a_result_is_bounded_and_is_text_and_nothing_else() -> None:
    said = "{secret} \ud800" + "x" * MOST_RESULT
    model = ScriptedModel([WANTS, Reply(text="well")])
    async with opened(model, connections=[ScriptedConnection(says=lambda *_: said)]) as room:
        row = await room.run(ASKING, {"secret": "s3cret"})
        fact = await answered(room, row.run_id)
        assert fact.characters == len(said)
        assert fact.text.startswith("{secret} ?xxx")
        assert fact.text.endswith(f"[cut: {MOST_RESULT} of {len(said)} characters]")
        assert model.calls[1].messages[-1]["content"] == fact.text


async def test_the_round_limit_is_an_error_that_names_it() -> None:
    model = ScriptedModel([Reply(tool_calls=({"name": "forecast", "arguments": {"city": "Oslo"}},))])
    weather = ScriptedConnection()
    async with opened(model, connections=[weather]) as room:
        row = await room.run(asking(max_tool_rounds=2))
        assert row.error is not None
        assert (row.status, row.error["code"]) == ("failed", "MAX_TOOL_ROUNDS_EXCEEDED")
        assert (len(weather.calls), len(model.calls)) == (2, 3)


# Connections


@pytest.mark.parametrize("there", [[], [ScriptedConnection(name="files")]])
async def test_a_run_whose_connection_is_not_configured_is_refused_and_nothing_is_created(there: list[Any]) -> None:
    model = ScriptedModel([WANTS, SAYS])
    async with opened(model, connections=there) as room:
        await room.create(ASKING)
        before = await room.counts()
        refusal = await room.call("graph_run_start", graph_id="case", input="x")
        assert (refusal["ok"], refusal["error_code"]) == (False, "CONNECTION_NOT_FOUND")
        assert 'node "a" lets its model call "weather/forecast"' in refusal["error"]
        assert ("there are: files" if there else "none is configured") in refusal["error"]
        assert await room.counts() == before
        assert model.calls == []


async def test_an_inner_graph_needs_its_connections_too() -> None:
    async with opened(ScriptedModel([WANTS, SAYS])) as room:
        await room.create({**ASKING, "name": "inner"})
        outer = spec({"id": "s", "type": "subgraph", "config": {"graph_name": "inner"}}, edges="s>END", name="outer")
        await room.create(outer)
        refusal = await room.call("graph_run_start", graph_id="outer", input="x")
        assert refusal["error_code"] == "CONNECTION_NOT_FOUND"


async def test_a_connection_without_that_tool_fails_the_node_before_the_model_is_asked() -> None:
    model = ScriptedModel([WANTS, SAYS])
    async with opened(model, connections=[ScriptedConnection(Tool("tides"))]) as room:
        row = await room.run(ASKING)
        assert row.error is not None
        assert (row.status, row.error["code"]) == ("failed", "CONNECTION_TOOL_NOT_FOUND")
        assert "it has: tides" in row.error["message"]
        assert model.calls == []


async def test_connections_are_closed_and_named() -> None:
    weather = ScriptedConnection()
    there = Connections([weather])
    assert there.names == ("weather",)
    with pytest.raises(ConnectionToolNotFound):
        await there.tool("weather", "tides")
    await there.aclose()
    assert weather.closed


async def test_a_schema_this_program_cannot_apply_lets_any_object_through() -> None:
    odd = Tool("forecast", parameters={"type": "strange"})
    weather = ScriptedConnection(odd)
    async with opened(ScriptedModel([WANTS, SAYS]), connections=[weather]) as room:
        assert (await room.run(ASKING)).status == "completed"
    assert weather.calls == [("forecast", {"city": "Oslo"})]


# Crashes


async def left(path: Path, weather: ScriptedConnection) -> str:
    """A run whose program ended while its tool was called."""
    async with opened(ScriptedModel([WANTS]), path, connections=[weather]) as room:
        run_id = await room.start(ASKING)
        await weather.reached.wait()
    assert weather.given_up == 1
    return run_id


async def test_a_call_under_way_at_a_crash_is_not_silently_made_again(tmp_path: Path) -> None:
    run_id = await left(tmp_path, ScriptedConnection(says=lambda *_: None))
    model, weather = ScriptedModel([SAYS]), ScriptedConnection()
    async with opened(model, tmp_path, connections=[weather]) as room:
        row = await room.ended(run_id)
        assert row.error is not None
        assert (row.status, row.error["code"]) == ("failed", "TOOL_OUTCOME_UNKNOWN")
        assert row.error["details"]["arguments"] == {"city": "Oslo"}
        assert [fact.attempt for fact in await called(room, run_id)] == [1, 2]
    assert (weather.calls, model.calls) == ([], [])


async def test_a_call_that_may_be_repeated_is_repeated_and_seen(tmp_path: Path) -> None:
    run_id = await left(tmp_path, ScriptedConnection(says=lambda *_: None, idempotent=True))
    model, weather = ScriptedModel([SAYS]), ScriptedConnection(idempotent=True)
    async with opened(model, tmp_path, connections=[weather]) as room:
        row = await room.ended(run_id)
        assert row.final_state == ("Take an umbrella.",)
        assert await room.started(run_id) == [("a#1", 1), ("a#1", 2)]
        assert row.usage["llm_calls"] == 2  # one before and one after: the first answer was not paid for again
    assert len(weather.calls) == 1


async def test_what_a_tool_said_survives_a_crash_and_a_failing_host(tmp_path: Path) -> None:
    async def dies(call: CallModel) -> Any:
        if call.messages[-1]["role"] == "tool":
            return Reply(error={"code": "MODEL_UNREACHABLE", "message": "gone"})
        return Reply(tool_calls=({"name": "forecast", "arguments": {"city": "Oslo"}},))

    first, second = ScriptedConnection(), ScriptedConnection()
    async with opened(ScriptedModel(dies), tmp_path, connections=[first]) as room:
        graph = asking(retry={"max_attempts": 2, "initial_delay_ms": 1})
        run_id = await room.start(graph)
        await room.reaches(run_id, "interrupted")
    async with opened(ScriptedModel([SAYS]), tmp_path, connections=[second]) as room:
        assert (await room.ended(run_id)).final_state == ("Take an umbrella.",)
    assert (len(first.calls), second.calls) == (1, [])


async def test_cancelling_a_run_gives_the_call_up() -> None:
    weather = ScriptedConnection(says=lambda *_: None)
    async with opened(ScriptedModel([WANTS]), connections=[weather]) as room:
        run_id = await room.start(ASKING)
        await weather.reached.wait()
        await room.data("graph_run_cancel", run_id=run_id, reason="enough")
        assert (await room.ended(run_id)).status == "cancelled"
        await room.at_rest()
    assert weather.given_up == 1


async def test_a_tool_of_ours_with_a_bug_is_that_nodes_failure() -> None:
    weather = ScriptedConnection(says=lambda *_: ZeroDivisionError("oops"))
    async with opened(ScriptedModel([WANTS]), connections=[weather]) as room:
        row = await room.run(ASKING)
        assert row.error is not None
        assert (row.status, row.error["code"], row.error["class"]) == ("failed", "INTERNAL", "bug")


@pytest.mark.parametrize("most", [1, 2])
async def test_every_round_is_a_call_of_the_runs_budget(most: int) -> None:
    weather = ScriptedConnection()
    async with opened(ScriptedModel([WANTS, SAYS]), connections=[weather]) as room:
        row = await room.run({**ASKING, "budgets": {"max_llm_calls": most}})
        assert row.usage["llm_calls"] == most
        assert len(weather.calls) == 1
        if most == 2:
            assert row.status == "completed"
        else:
            assert row.error is not None
            assert (row.status, row.error["code"]) == ("failed", "BUDGET_EXHAUSTED")


async def test_an_item_of_a_fan_out_calls_tools_of_its_own() -> None:
    async def answers(call: CallModel) -> Any:
        city = str(call.messages[0]["content"])
        if call.messages[-1]["role"] == "tool":
            return f"{city}: {call.messages[-1]['content']}"
        return Reply(tool_calls=({"name": "forecast", "arguments": {"city": city}},))

    graph = spec(
        {"id": "each", "type": "parallel",
         "config": {"for_each": {"path": "cities"}, "entry": "a", "join": "j", "output_key": "all"}},
        llm("a", "{item}", tools=["weather/forecast"], output_key="said"),
        {"id": "j", "type": "join", "config": {"inputs": ["said"], "mode": "first_non_null"}},
        edges="j>END", output_key="all",
    )  # fmt: skip
    weather = ScriptedConnection(says=lambda _, arguments: f"sun in {arguments['city']}")
    async with opened(ScriptedModel(answers), connections=[weather]) as room:
        row = await room.run(graph, {"cities": ["Oslo", "Rome"]})
        assert row.final_state == (["Oslo: sun in Oslo", "Rome: sun in Rome"],)
        assert sorted(fact.firing for fact in await called(room, row.run_id)) == ["each#1[0]/a#1", "each#1[1]/a#1"]
