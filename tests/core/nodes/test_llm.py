"""`llm` calls a model once, reads what it says, and never takes half an answer for a whole one."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.effects import CallModel, Done, ModelAnswer, Warning_, Write
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.nodes import llm
from agent_graph.core.nodes.base import Read
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

PLAN = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


def said(text: str, **fields: Any) -> ModelAnswer:
    return ModelAnswer(text, **fields)


def failure(of: Any, *answers: ModelAnswer, values: Seen | None = None) -> NodeFailure:
    with pytest.raises(NodeFailure) as failed:
        step(of, values or Seen(), answers)
    return failed.value


# The call


def test_the_prompt_is_the_input_where_nothing_else_is_said() -> None:
    assert step(node("llm"), Seen(current="hi")) == CallModel(messages=({"role": "user", "content": "hi"},))


def test_system_and_prompt_are_templates_over_the_state() -> None:
    of = node("llm", system="You know {topic.name}.", prompt="{input.q} / {run_input} / {note?}|{topic|json}")
    call = step(of, Seen({"topic": {"name": "fish"}}, current={"q": "why"}, run_input="first"))
    assert call.messages == (
        {"role": "system", "content": "You know fish."},
        {"role": "user", "content": 'why / first / |{"name":"fish"}'},
    )


def test_the_input_is_at_the_input_key() -> None:
    of = node("llm", input_key="findings", prompt="Sum: {input}")
    assert step(of, Seen({"findings": [1]})).messages[0]["content"] == "Sum: [1]"


def test_text_put_in_is_never_expanded_again() -> None:
    call = step(node("llm", prompt="{a}"), Seen({"a": "see {b}", "b": "no"}))
    assert call.messages[0]["content"] == "see {b}"


@pytest.mark.parametrize("prompt", ["{nothing}", "{input.nothing}", "{input}"])
def test_a_missing_value_fails_before_any_call(prompt: str) -> None:
    error = failure(node("llm", prompt=prompt, input_key="gone"))
    assert (error.code, error.failure_class) == ("PROMPT_VALUE_MISSING", "invalid")


def test_a_prompt_beyond_the_limit_fails_before_any_call() -> None:
    error = failure(node("llm"), values=Seen(current="x" * (DEFAULTS.prompt_bytes + 1)))
    assert (error.code, error.details) == ("VALUE_TOO_LARGE", {"limit": DEFAULTS.prompt_bytes})


def test_every_setting_reaches_the_call() -> None:
    of = node(
        "llm", model="llama3.2:3b", options={"num_ctx": 8192, "seed": 3}, seed=3, temperature=0, max_tokens=16,
        think="low", keep_alive="5m", timeout_ms=1500, idle_timeout_ms=700, json_mode=True,
    )  # fmt: skip
    assert step(of, Seen()) == CallModel(
        messages=({"role": "user", "content": "the question"},), model="llama3.2:3b", format="json", think="low",
        options={"num_ctx": 8192, "seed": 3, "temperature": 0, "num_predict": 16}, keep_alive="5m", timeout_ms=1500,
        idle_timeout_ms=700,
    )  # fmt: skip


def test_a_schema_is_the_format_of_the_call() -> None:
    assert step(node("llm", output_schema=PLAN, json_mode=True), Seen()).format == PLAN


# Text answers


def test_a_text_is_the_output_and_the_new_current_value() -> None:
    assert step(node("llm"), Seen(), [said(" as it came\n")]) == Done(output=" as it came\n", current=" as it came\n")


def test_with_an_output_key_it_is_written_there_and_the_current_value_stays() -> None:
    made = step(node("llm", output_key="report.text"), Seen(), [said("x")])
    assert made == Done((Write("set", ("report", "text"), "x"),), output="x")


def test_on_a_key_with_a_reducer_it_is_an_operand() -> None:
    made = step(node("llm", output_key="log"), Seen(reducers={"log": "append"}), [said("x")])
    assert made.writes == (Write("operand", ("log",), "x"),)


def test_beneath_a_key_that_is_merged_it_is_an_object_that_leads_there() -> None:
    made = step(node("llm", output_key="log.last"), Seen(reducers={"log": "merge"}), [said("x")])
    assert made.writes == (Write("operand", ("log",), {"last": "x"}),)


def test_an_operand_of_the_wrong_kind_is_the_nodes_failure() -> None:
    error = failure(node("llm", output_key="n"), said("three"), values=Seen(reducers={"n": "add"}))
    assert error.code == "TRANSFORM_INVALID"


def test_think_blocks_are_kept_out_of_the_content() -> None:
    assert step(node("llm"), Seen(), [said("<think>hm</think>\n\nYes <think>or</think>no")]).output == "Yes no"


@pytest.mark.parametrize(
    "answer",
    [
        said("", thinking="so the plan is"),
        said(" \n", thinking="so the plan is"),
        said("<think>so the plan is", done_reason="length"),
        said("<think>so the plan is</think>  "),
    ],
)
@pytest.mark.parametrize("json_mode", [False, True])
def test_an_answer_that_is_all_thinking_is_an_error_that_counts_it(answer: ModelAnswer, json_mode: bool) -> None:
    error = failure(node("llm", output_key="plan", json_mode=json_mode), answer)
    assert (error.code, error.failure_class, error.details["reason"]) == ("MODEL_BAD_REPLY", "bad_reply", "empty")
    assert error.details["thinking_chars"] == 14
    assert "14 characters" in error.message


def test_a_text_cut_by_its_limit_is_kept_with_a_warning() -> None:
    made = step(node("llm"), Seen(), [said("The plan is to fir", done_reason="length", completion_tokens=16)])
    assert made.output == "The plan is to fir"
    assert [(w.code, w.details) for w in made.warnings] == [("MODEL_OUTPUT_TRUNCATED", {"completion_tokens": 16})]


def test_a_text_cut_by_its_limit_can_be_an_error() -> None:
    error = failure(node("llm", on_length="error"), said("The plan is to fir", done_reason="length"))
    assert error.details["reason"] == "length"
    assert error.details["text"] == "The plan is to fir"


def test_what_the_host_noticed_becomes_a_warning() -> None:
    made = step(node("llm"), Seen(), [said("x", warnings=({"code": "OPTION_UNKNOWN", "message": "m"}, {}))])
    assert made.warnings == (Warning_("OPTION_UNKNOWN", "m"), Warning_("MODEL_WARNING", ""))


def test_a_prompt_that_was_cut_is_a_warning_or_an_error_as_the_node_says() -> None:
    cut = {"code": "PROMPT_TRUNCATED", "message": "it was cut", "details": {"prompt_tokens": 7}}
    made = step(node("llm"), Seen(), [said("x", warnings=(cut,))])
    assert made.warnings == (Warning_("PROMPT_TRUNCATED", "it was cut", {"prompt_tokens": 7}),)
    error = failure(node("llm", on_length="error"), said("x", warnings=({"code": "OPTION_UNKNOWN"}, cut)))
    assert (error.code, error.failure_class, error.details) == ("PROMPT_TRUNCATED", "refused", {"prompt_tokens": 7})
    assert step(node("llm", on_length="error"), Seen(), [said("x")]).output == "x"


# JSON answers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        ('{"a":1}' + "\n" * 50, {"a": 1}),
        ('<think>{"b":2}</think>\n{"a":1}', {"a": 1}),
        ('{"a":"<think>not one</think>"}', {"a": "<think>not one</think>"}),
        ('```json\n{"a":1}\n```', {"a": 1}),
        ('json\n```json\n{"a":1}\n```', {"a": 1}),
        ('Run:\n```bash\nls\n```\n{"a":1}', {"a": 1}),
        ("[1,2]", [1, 2]),
        ('"text"', "text"),
        ("null", None),
    ],
)
def test_one_json_value_is_taken_as_it_is_or_out_of_its_wrapping(text: str, value: object) -> None:
    assert step(node("llm", json_mode=True), Seen(), [said(text)]) == Done(output=value, current=value)


@pytest.mark.parametrize(
    "text",
    ['{\n\n{\n"a":1}', '{"a":1} {"a":2}', "Sure!", '{"a":1,}', "NaN", '{"a":1,"a":2}', "{'a': 1}", "see [1]: {}"],
)
def test_nothing_is_guessed_and_the_raw_text_is_kept(text: str) -> None:
    of = node("llm", json_mode=True)
    again = step(of, Seen(), [said(text)])
    assert isinstance(again, CallModel)
    error = failure(of, said(text), said(text))
    assert (error.code, error.details["reason"], error.details["text"]) == ("MODEL_BAD_REPLY", "json", text)


def test_without_repair_the_answer_is_taken_literally() -> None:
    of = node("llm", json_mode=True, repair=0)
    assert failure(of, said('```json\n{"a":1}\n```')).details["reason"] == "json"
    assert step(of, Seen(), [said(' {"a":1} ')]).output == {"a": 1}


def test_the_text_kept_in_an_error_is_bounded() -> None:
    error = failure(node("llm", json_mode=True, repair=0), said("x" * 5_000))
    assert len(str(error.details["text"])) == 2_000


def test_json_cut_by_its_limit_says_length_and_not_json() -> None:
    error = failure(node("llm", json_mode=True), said('{"a": [1,2', done_reason="length"))
    assert (error.details["reason"], error.details["text"]) == ("length", '{"a": [1,2')
    assert error.details["done_reason"] == "length"


def test_a_number_cut_by_its_limit_may_be_half_a_number() -> None:
    assert failure(node("llm", json_mode=True), said("12", done_reason="length")).details["reason"] == "length"


def test_a_whole_object_followed_by_blanks_up_to_the_limit_is_taken_with_a_warning() -> None:
    made = step(node("llm", json_mode=True), Seen(), [said('{"a":1}' + "\n" * 400, done_reason="length")])
    assert made.output == {"a": 1}
    assert [warning.code for warning in made.warnings] == ["MODEL_OUTPUT_TRUNCATED"]


# Schemas and repair


def test_a_value_that_fits_the_schema_is_the_output() -> None:
    assert step(node("llm", output_schema=PLAN), Seen(), [said('{"a":1}')]).output == {"a": 1}


def test_a_value_that_does_not_fit_is_shown_to_the_model_once() -> None:
    of = node("llm", output_schema=PLAN, system="S", temperature=0.5)
    first = step(of, Seen())
    again = step(of, Seen(), [said('<think>hm</think>{"a":"x"}')])
    assert again.messages[:2] == first.messages
    assert again.messages[2] == {"role": "assistant", "content": '{"a":"x"}'}
    assert again.messages[3]["role"] == "user"
    assert "at /a: 'x' is not of type 'integer'" in again.messages[3]["content"]
    assert (again.format, again.options) == (first.format, first.options)
    made = step(of, Seen(), [said('{"a":"x"}'), said('{"a":2}')])
    assert (made.output, made.current) == ({"a": 2}, {"a": 2})
    (warning,) = made.warnings
    assert (warning.code, warning.details) == (
        "MODEL_ANSWER_MENDED",
        {"reason": "schema", "problems": ["at /a: 'x' is not of type 'integer'"], "text": '{"a":"x"}'},
    )
    twice = failure(of, said('{"a":"x"}'), said('{"a":"y"}'))
    assert "(it was asked to mend 1 before)" in twice.message
    assert (twice.details["text"], twice.details["refused_before"][0]["text"]) == ('{"a":"y"}', '{"a":"x"}')


def test_after_the_last_round_the_violations_are_the_error() -> None:
    error = failure(node("llm", output_schema=PLAN), said('{"a":"x"}'), said('{"b":1}'))
    assert (error.code, error.details["reason"]) == ("MODEL_BAD_REPLY", "schema")
    assert sorted(error.details["problems"]) == [
        "at the top: 'a' is a required property", "at the top: there is no property 'b' here",
    ]  # fmt: skip


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_repair_is_the_number_of_further_calls(rounds: int) -> None:
    of = node("llm", output_schema=PLAN, repair=rounds)
    answers = [said("{}")] * rounds
    assert isinstance(step(of, Seen(), answers), CallModel)
    assert len(step(of, Seen(), answers).messages) == 1 + 2 * rounds
    assert failure(of, *answers, said("{}")).details["reason"] == "schema"


def test_a_conversation_beyond_the_prompt_limit_is_not_mended() -> None:
    half = "x" * (DEFAULTS.prompt_bytes // 2 + 1)
    error = failure(node("llm", json_mode=True), said(half), values=Seen(current=half))
    assert error.details["reason"] == "json"


def test_a_pattern_cannot_freeze_the_server() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$", "maxLength": 90_000}
    error = failure(node("llm", output_schema=schema, repair=0), said('"' + "a" * 80_000 + 'b"'))
    assert error.details["reason"] == "schema"


# What the compiler asks


def test_it_says_what_it_reads_and_writes_and_chooses_nothing() -> None:
    config = llm.Config(system="{topic}", prompt="{input} {topic} {outputs.a?} {run_input}", input_key="x")
    assert llm.reads(config) == [
        Read("topic", "/system"), Read("x", "/input_key"), Read("topic", "/prompt"),
        Read("outputs.a", "/prompt", optional=True),
    ]  # fmt: skip
    assert llm.reads(llm.Config()) == []
    assert llm.writes("n", config) == []
    assert llm.writes_current(config)
    assert llm.writes("n", llm.Config(output_key="r")) == ["r"]
    assert not llm.writes_current(llm.Config(output_key="r"))
    assert not llm.CHOOSES
    assert list(llm.targets(config)) == []


@pytest.mark.parametrize(
    ("config", "issues"),
    [
        ({}, []),
        ({"options": {"temprature": 1}}, [("OPTION_UNKNOWN", "/options/temprature")]),
        ({"options": {"min_p": 0.1, "num_ctx": 4096}}, []),
        ({"options": {"seed": 1}, "seed": 2}, [("FIELD_CONFLICT", "/options/seed")]),
        ({"options": {"num_predict": 1}, "max_tokens": 2}, [("FIELD_CONFLICT", "/options/num_predict")]),
        ({"model": "http://elsewhere/x"}, [("FIELD_INVALID", "/model")]),
        ({"model": "/etc/passwd"}, [("FIELD_INVALID", "/model")]),
        ({"model": "a b"}, [("FIELD_INVALID", "/model")]),
        ({"model": "hf.co/some-one/Some-1B_GGUF:Q4_K_M"}, []),
        ({"keep_alive": "soon"}, [("FIELD_INVALID", "/keep_alive")]),
        ({"keep_alive": "1h30m"}, []),
        ({"keep_alive": -1}, []),
        ({"output_key": "a..b"}, [("STATE_PATH_INVALID", "/output_key")]),
        ({"output_schema": {"type": "strin"}}, [("SCHEMA_INVALID", "/output_schema/type")]),
        ({"output_schema": {"type": "string", "pattern": "(?=a)"}}, [("REGEX_INVALID", "/output_schema/pattern")]),
        ({"output_schema": {"type": "string"}}, [("SCHEMA_UNBOUNDED", "/output_schema")]),
    ],
)
def test_what_is_wrong_is_found_at_its_place(config: dict[str, object], issues: list[tuple[str, str]]) -> None:
    assert found("llm", **config) == issues


def test_an_unknown_option_is_a_warning_with_the_likely_one() -> None:
    (issue,) = llm.check("n", llm.Config(options={"temprature": 1}))
    assert issue.severity == "warning"
    assert 'did you mean "temperature"?' in issue.message
