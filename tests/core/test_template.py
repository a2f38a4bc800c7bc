"""A template and its parameters make a spec; what a parameter says is never read as anything but text."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core.ops import prompt
from agent_graph.core.template import Template, from_json, instantiate, params_from_text
from agent_graph.errors import InputInvalid, TemplateParamsInvalid

BODY: dict[str, Any] = {
    "id": "echo",
    "version": "3",
    "title": "Echo",
    "params": {
        "type": "object",
        "additionalProperties": False,
        "required": ["topic"],
        "properties": {
            "topic": {"type": "string", "minLength": 1},
            "words": {"type": "integer", "minimum": 1, "default": 50},
            "people": {"type": "array", "items": {"type": "string"}, "default": []},
            "strict": {"type": ["boolean", "null"], "default": None},
        },
    },
    "spec": {
        "name": "echo",
        "description": "About {$topic}",
        "metadata": {"kind": "test"},
        "entry": "a",
        "nodes": [
            {
                "id": "a", "type": "llm", "label": "{$topic}",
                "config": {
                    "prompt": "On {$topic} in {$words} words, strict {$strict}: {run_input} {{literal}} {\"a\": 1}",
                    "max_tokens": {"$param": "words"}, "output_key": "x",
                },
            },
            {"id": "b", "type": "human_approval", "config": {"audience": {"$param": "people"}}},
        ],
        "edges": [{"from": "a", "to": "b"}],
    },
    "sample": {"input": "x", "params": {"topic": "bees"}},
}  # fmt: skip


def changed(change: dict[str, Any]) -> dict[str, Any]:
    return {**copy.deepcopy(BODY), **change}


def template() -> Template:
    return from_json(copy.deepcopy(BODY))


def prompt_of(spec: Any) -> str:
    return str(spec["nodes"][0]["config"]["prompt"])


def test_values_keep_their_type_and_texts_are_put_in() -> None:
    params: Any = {"topic": "bees", "words": 7, "people": ["ann"], "strict": True}
    spec: Any = instantiate(template(), "my_echo", params=params)
    config = spec["nodes"][0]["config"]
    assert config["prompt"] == 'On bees in 7 words, strict true: {run_input} {{literal}} {"a": 1}'
    assert config["max_tokens"] == 7
    assert spec["nodes"][1]["config"]["audience"] == ["ann"]
    assert spec["name"] == "my_echo"
    assert spec["description"] == "About bees"
    assert spec["metadata"] == {"template": "echo", "template_version": "3", "kind": "test"}


def test_defaults_are_filled_in_and_the_template_stays_as_it_was() -> None:
    made = template()
    spec: Any = instantiate(made, "e", params={"topic": "bees"})
    assert prompt_of(spec).startswith("On bees in 50 words, strict null")
    assert spec["nodes"][1]["config"]["audience"] == []
    assert made == template()
    assert made.to_json() == {**BODY, "description": "About {$topic}"}
    assert made.description == "About {$topic}"


@pytest.mark.parametrize("text", [
    "{run_input}", "{{run_input}}", "{{{run_input}}}", "{{run_input}", "{run_input}}", "{run_input?}",
    "{x|json}", "{/a/b}",
    "{$topic}", "{$words}", "{not a placeholder}", '{"$param": "words"}', "{a}{b}", "{", "}", "{}", "{{}}", "{a|b}",
    "{\u00e9}", "$topic ${topic}",
])  # fmt: skip
def test_a_parameter_is_seen_by_the_model_as_it_was_given(text: str) -> None:
    spec: Any = instantiate(template(), "e", params={"topic": text})
    parsed = prompt.parse(prompt_of(spec))
    assert [place.path for place in parsed.placeholders] == ["run_input"]
    assert (
        parsed.render(lambda _: "IN", max_bytes=100_000)
        == f'On {text} in 50 words, strict null: IN {{literal}} {{"a": 1}}'
    )
    assert spec["nodes"][0]["label"] == text, "a label is no prompt"


@given(
    st.lists(st.sampled_from(["{", "}", "{{", "}}", "a", "x.0", "/p", "?", "|json", " ", "$words", "run_input"])).map(
        "".join
    )
)
def test_no_text_can_become_a_placeholder(text: str) -> None:
    made = from_json(changed({"spec": {"p": "{$topic} and {$topic} of {x}, then {$topic}"}, "params": {
        "type": "object", "additionalProperties": False, "required": ["topic"], "properties": {"topic": {}},
    }}))  # fmt: skip
    parsed = prompt.parse(str(instantiate(made, "e", params={"topic": text})["p"]))
    assert [place.path for place in parsed.placeholders] == ["x"]
    assert parsed.render(lambda _: "X", max_bytes=100_000) == f"{text} and {text} of X, then {text}"


@pytest.mark.parametrize(("params", "says"), [
    ({}, "topic"),
    ({"topic": ""}, "topic"),
    ({"topic": 3}, "topic"),
    ({"topic": "x", "words": "7"}, "words"),
    ({"topic": "x", "words": 0}, "words"),
    ({"topic": "x", "colour": "red"}, "colour"),
])  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(params: dict[str, Any], says: str) -> None:
    before = copy.deepcopy(params)
    with pytest.raises(TemplateParamsInvalid) as refusal:
        instantiate(template(), "e", params=params)
    assert refusal.value.code == "TEMPLATE_PARAMS_INVALID"
    assert says in refusal.value.message
    assert refusal.value.details["template_id"] == "echo"
    assert params == before


def test_all_that_does_not_fit_is_said_at_once() -> None:
    with pytest.raises(TemplateParamsInvalid) as refusal:
        instantiate(template(), "e", params={"words": 0, "colour": "red"})
    assert len(refusal.value.details["problems"]) == 3


def test_a_parameter_that_is_no_json_is_refused() -> None:
    with pytest.raises(InputInvalid):
        instantiate(template(), "e", params={"topic": "\ud800"})
    with pytest.raises(InputInvalid):
        instantiate(template(), "e", params={"topic": "x", "words": float("nan")})


def test_typed_parameters_are_read_by_their_schema() -> None:
    texts = {"topic": "7", "words": "7", "people": '["ann"]', "strict": "true", "colour": "red"}
    assert params_from_text(template(), texts) == {
        "topic": "7", "words": 7, "people": ["ann"], "strict": True, "colour": "red",
    }  # fmt: skip
    assert params_from_text(template(), {"words": "seven", "people": "[1,"}) == {"words": "seven", "people": "[1,"}


def with_params(**change: Any) -> dict[str, Any]:
    return changed({"params": {**BODY["params"], **change}})


@pytest.mark.parametrize(("body", "says"), [
    ([], "a template is an object"),
    ({}, "a template is an object"),
    (changed({"more": 1}), "a template is an object"),
    (changed({"id": 3}), "are texts"),
    (changed({"title": ""}), "are texts"),
    (changed({"spec": []}), "are objects"),
    (changed({"id": "No Id"}), "no template id"),
    (with_params(type="thing"), "/params/type"),
    (with_params(additionalProperties=True), "additionalProperties false"),
    (with_params(required=[]), "topic has no default"),
    (with_params(properties={**BODY["params"]["properties"], "extra": {"default": 1}}), "extra is used nowhere"),
    (with_params(properties={**BODY["params"]["properties"], "words": {"type": "null", "default": 1}}), "default of"),
    (changed({"spec": {**BODY["spec"], "output_key": "{$nothing}"}}), "unknown parameter nothing"),
    (changed({"spec": {**BODY["spec"], "output_key": {"$param": "nothing"}}}), "/output_key names the unknown"),
    (changed({"spec": {**BODY["spec"], "output_key": {"$param": 3}}}), "unknown parameter 3"),
    (changed({"spec": {**BODY["spec"], "output_key": "{{$topic}}"}}), "a brace right beside"),
    (changed({"spec": {**BODY["spec"], "output_key": "{$topic}{$words}"}}), "a brace right beside"),
    (changed({"sample": {"input": 1}}), "sample is"),
    (changed({"sample": {"input": 1, "params": {}}}), "sample is"),
])  # fmt: skip
def test_what_is_no_template_is_said(body: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        from_json(body)
