"""`llm` with tools: the conversation goes on with their results, and what a tool says stays data."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.effects import CallModel, CallTool, Done, ModelAnswer, ToolAnswer
from agent_graph.core.limits import Limits
from agent_graph.core.nodes import llm
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

OFFERED = ({"name": "forecast", "connection": "weather", "tool": "forecast"},)


def wants(*calls: tuple[str, str, Any], text: str = "") -> ModelAnswer:
    """An answer that calls tools, each (id, name, arguments)."""
    return ModelAnswer(text, tool_calls=tuple({"id": i, "name": n, "arguments": a} for i, n, a in calls))


OSLO = wants(("t1", "forecast", {"city": "Oslo"}))


def failure(of: Any, *answers: Any, values: Seen | None = None) -> NodeFailure:
    with pytest.raises(NodeFailure) as failed:
        step(of, values or Seen(), answers)
    return failed.value


def test_the_tools_are_offered_under_names_that_hosts_take() -> None:
    call = step(node("llm", tools=["weather/forecast", "files/read.text", "a/x", "b/x"]), Seen())
    assert call.tools == (
        *OFFERED, {"name": "read_text", "connection": "files", "tool": "read.text"},
        {"name": "a_x", "connection": "a", "tool": "x"}, {"name": "b_x", "connection": "b", "tool": "x"},
    )  # fmt: skip


def test_names_that_are_one_after_all_are_told_apart() -> None:
    names = [
        tool["name"]
        for tool in step(node("llm", tools=["a/b_c", "a_b/c", "a.b/c", "a_b/x y".replace(" ", "-")]), Seen()).tools
    ]
    assert len(set(names)) == 4
    long = [tool["name"] for tool in step(node("llm", tools=[f"c/{'n' * 70}1", f"c/{'n' * 70}2"]), Seen()).tools]
    assert len(set(long)) == 2
    assert all(len(name) <= 64 for name in long)


def test_a_call_is_made_and_its_result_goes_back_with_its_id() -> None:
    of = node("llm", tools=["weather/forecast"], timeout_ms=5_000)
    first = step(of, Seen())
    assert step(of, Seen(), [OSLO]) == CallTool(
        "t1", "forecast", {"city": "Oslo"}, "weather", "forecast", offered=("forecast",), timeout_ms=5_000
    )
    again = step(of, Seen(), [OSLO, ToolAnswer("t1", "rain")])
    assert again.messages == (
        *first.messages,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "t1", "name": "forecast", "arguments": {"city": "Oslo"}}],
        },
        {"role": "tool", "content": "rain", "call_id": "t1", "name": "forecast"},
    )
    assert again.tools == first.tools
    made = step(of, Seen(), [OSLO, ToolAnswer("t1", "rain"), ModelAnswer("Take an umbrella.")])
    assert made == Done(output="Take an umbrella.", current="Take an umbrella.")


def test_several_calls_of_one_answer_are_made_one_after_the_other() -> None:
    of = node("llm", tools=["weather/forecast"])
    both = wants(("a", "forecast", {"city": "Oslo"}), ("b", "forecast", {"city": "Rome"}))
    assert step(of, Seen(), [both]).call_id == "a"
    assert step(of, Seen(), [both, ToolAnswer("a", "rain")]).call_id == "b"
    call = step(of, Seen(), [both, ToolAnswer("a", "rain"), ToolAnswer("b", "sun")])
    assert [message["content"] for message in call.messages[-2:]] == ["rain", "sun"]


def test_calls_without_an_id_or_with_one_that_was_used_get_their_own() -> None:
    of = node("llm", tools=["weather/forecast"])
    twice = wants(("", "forecast", {}), ("t", "forecast", {}), ("t", "forecast", {}))
    answers: list[Any] = [twice]
    ids = []
    for _ in range(3):
        ids.append(step(of, Seen(), answers).call_id)
        answers.append(ToolAnswer(ids[-1], "x"))
    assert ids == ["call_1_0", "t", "call_1_2"]


def test_what_a_tool_says_is_never_a_template() -> None:
    of = node("llm", tools=["weather/forecast"])
    call = step(of, Seen({"secret": "s3"}), [OSLO, ToolAnswer("t1", "{secret} {input}")])
    assert call.messages[-1]["content"] == "{secret} {input}"


def test_a_name_that_is_not_offered_is_called_all_the_same_and_leads_nowhere() -> None:
    call = step(node("llm", tools=["weather/forecast"]), Seen(), [wants(("t1", "rm", {"path": "/"}))])
    assert (call.name, call.connection, call.tool, call.offered) == ("rm", "", "", ("forecast",))


def test_rounds_are_bounded() -> None:
    of = node("llm", tools=["weather/forecast"], max_tool_rounds=2)
    answers = []
    for round_ in range(2):
        answers += [wants((f"t{round_}", "forecast", {})), ToolAnswer(f"t{round_}", "rain")]
    assert isinstance(step(of, Seen(), answers), CallModel)
    error = failure(of, *answers, wants(("t9", "forecast", {})))
    assert (error.code, error.failure_class) == ("MAX_TOOL_ROUNDS_EXCEEDED", "invalid")
    assert error.details == {"limit": 2, "wanted": ["forecast"]}


def test_one_answer_calls_so_many_tools_at_most() -> None:
    error = failure(node("llm", tools=["weather/forecast"]), wants(*((str(n), "forecast", {}) for n in range(17))))
    assert (error.code, error.failure_class, error.details["reason"]) == ("MODEL_BAD_REPLY", "bad_reply", "tools")


def test_the_conversation_with_its_results_is_within_the_limit_of_a_prompt() -> None:
    of, few = node("llm", tools=["weather/forecast"]), Seen(limits=Limits(prompt_bytes=200))
    error = failure(of, OSLO, ToolAnswer("t1", "x" * 200), values=few)
    assert (error.code, error.details) == ("VALUE_TOO_LARGE", {"limit": 200})


def test_a_form_is_asked_for_only_when_no_more_tools_are_to_be_called() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    of = node("llm", tools=["weather/forecast"], output_schema=schema)
    rain = ToolAnswer("t1", "rain")
    assert step(of, Seen()).format is None
    assert step(of, Seen(), [OSLO, rain]).format is None
    assert step(of, Seen(), [OSLO, rain, ModelAnswer('{"a": 1}')]).output == {"a": 1}
    mending = step(of, Seen(), [OSLO, rain, ModelAnswer("it rains")])
    assert (mending.format, mending.tools) == (schema, ())
    assert [message["role"] for message in mending.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert step(of, Seen(), [OSLO, rain, ModelAnswer("it rains"), ModelAnswer('{"a": 2}')]).output == {"a": 2}


def test_a_model_that_calls_tools_nobody_offered_has_answered_nothing() -> None:
    assert failure(node("llm"), OSLO).details["reason"] == "empty"
    assert step(node("llm"), Seen(), [wants(("t1", "x", {}), text="fine")]).output == "fine"


def test_a_result_nobody_waits_for_changes_nothing() -> None:
    of = node("llm", tools=["weather/forecast"])
    assert step(of, Seen(), [ToolAnswer("t9", "late")]) == step(of, Seen())


@pytest.mark.parametrize("tool", ["forecast", "weather/", "/forecast", "weather/a b", "http://x/y", "we ather/x"])
def test_a_tool_is_named_by_its_connection(tool: str) -> None:
    assert found("llm", tools=[tool]) == [("FIELD_INVALID", "/tools/0")]


def test_rounds_without_tools_are_never_gone() -> None:
    assert found("llm", max_tool_rounds=3) == [("FIELD_UNUSED", "/max_tool_rounds")]
    assert found("llm", max_tool_rounds=3, tools=["a/b"]) == []


def test_a_tool_is_named_once() -> None:
    assert found("llm", tools=["a/b", "a/b"]) == [("FIELD_INVALID", "/tools/1")]
    assert "tools" not in llm.UNAVAILABLE
