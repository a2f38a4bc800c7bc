"""`llm`: a whole conversation in `messages`, and pictures by data URL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_graph.core import spec_schema
from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.effects import ModelAnswer
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.limits import Limits
from agent_graph.core.nodes import llm
from agent_graph.core.nodes.base import Read
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step
from tests.fakes.pictures import GIF, PNG, data_url
from tests.specs import llm as asking
from tests.specs import spec

TALK = [
    {"role": "system", "content": "You know {topic}."},
    {"role": "user", "content": "Is it {input}?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Look.", "images": ["{photo}"]},
]


def failure(of: Any, values: Seen) -> NodeFailure:
    with pytest.raises(NodeFailure) as failed:
        step(of, values)
    return failed.value


def test_messages_are_templates_in_their_order() -> None:
    call = step(node("llm", messages=TALK), Seen({"topic": "fish", "photo": PNG}, current="wet"))
    assert call.messages == (
        {"role": "system", "content": "You know fish."},
        {"role": "user", "content": "Is it wet?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Look.", "images": [PNG]},
    )


def test_a_conversation_goes_on_where_an_answer_is_to_be_mended() -> None:
    of = node("llm", messages=TALK, json_mode=True)
    again = step(of, Seen({"topic": "fish", "photo": PNG}), [ModelAnswer("no")])
    assert [message["role"] for message in again.messages] == [*(one["role"] for one in TALK), "assistant", "user"]


def test_what_messages_read_is_said_at_its_place() -> None:
    assert llm.reads(llm.Config(messages=TALK, input_key="x")) == [  # type: ignore[arg-type]  # as a stored spec has them
        Read("topic", "/messages/0/content"), Read("x", "/input_key"), Read("photo", "/messages/3/images/0"),
    ]  # fmt: skip
    assert llm.reads(llm.Config(images=["{photo?}"])) == [Read("photo", "/images/0", optional=True)]


def test_the_conversation_together_is_within_the_limit_of_a_prompt() -> None:
    half = {"role": "user", "content": "{input}"}
    error = failure(node("llm", messages=[half, half]), Seen(current="x" * 60, limits=Limits(prompt_bytes=100)))
    assert (error.code, error.details) == ("VALUE_TOO_LARGE", {"limit": 100})
    error = failure(node("llm", messages=[half, half]), Seen(current="\u00e9" * 30, limits=Limits(prompt_bytes=100)))
    assert error.code == "VALUE_TOO_LARGE"


@pytest.mark.parametrize("beside", [{"prompt": "p"}, {"system": "s"}, {"images": [PNG]}])
def test_messages_are_the_whole_conversation(beside: dict[str, Any]) -> None:
    assert found("llm", messages=TALK, **beside) == [("FIELD_CONFLICT", f"/{next(iter(beside))}")]


# Pictures


def test_pictures_go_with_the_prompt() -> None:
    (system, user) = step(node("llm", system="S", images=[PNG, "{photo}"]), Seen({"photo": GIF})).messages
    assert "images" not in system
    assert user == {"role": "user", "content": "the question", "images": [PNG, GIF]}


def test_a_list_of_pictures_is_shown_as_so_many_and_an_absent_one_not_at_all() -> None:
    of = node("llm", images=["{photos}", "{other?}"])
    assert step(of, Seen({"photos": [PNG, GIF]})).messages[0]["images"] == [PNG, GIF]
    assert "images" not in step(of, Seen({"photos": []})).messages[0]


@pytest.mark.parametrize("value", ["/etc/passwd", "https://example.org/a.png", "[", 7, {"a": 1}, [["x"]], ["x"]])
def test_a_value_that_is_no_picture_fails_before_any_call(value: JsonValue) -> None:
    error = failure(node("llm", images=["{photo}"]), Seen({"photo": value}))
    assert (error.code, error.failure_class, error.details) == ("IMAGE_INVALID", "invalid", {"pointer": "/images/0"})
    assert "passwd" not in error.message


def test_a_picture_that_is_missing_is_a_missing_value() -> None:
    assert failure(node("llm", images=["{photo}"]), Seen()).code == "PROMPT_VALUE_MISSING"


def test_pictures_are_bounded_in_number_and_size() -> None:
    error = failure(node("llm", images=["{photos}"]), Seen({"photos": [PNG] * 17}))
    assert (error.code, error.details["pictures"]) == ("VALUE_TOO_LARGE", 17)
    big = data_url("image/gif", b"GIF89a" + b"x" * 900)
    error = failure(node("llm", images=["{a}", "{a}"]), Seen({"a": big}, limits=Limits(value_bytes=2_000)))
    assert error.code == "VALUE_TOO_LARGE"
    error = failure(node("llm", images=["{a}"]), Seen({"a": big}, limits=Limits(value_bytes=500)))
    assert error.code == "VALUE_TOO_LARGE"


@pytest.mark.parametrize("text", ["/etc/passwd", "http://127.0.0.1/a.png", "data:image/png;base64,AAAA"])
def test_a_picture_written_out_is_checked_before_anything_runs(text: str) -> None:
    assert found("llm", images=[text]) == [("IMAGE_INVALID", "/images/0")]
    message = {"role": "user", "content": "x", "images": [PNG, text]}
    assert found("llm", messages=[message]) == [("IMAGE_INVALID", "/messages/0/images/1")]


# In a spec


def test_messages_in_a_spec_are_stored_without_defaults_and_read_back() -> None:
    body = asking("a", messages=[{"role": "user", "content": "hi {input}", "images": []}])
    del body["config"]["prompt"]
    compiled = compile_graph(spec(body, edges="a>END"))
    assert compiled.graph is not None
    (stored,) = compiled.graph.spec["nodes"]  # type: ignore[misc]  # a list
    assert stored["config"] == {"messages": [{"role": "user", "content": "hi {input}"}]}  # type: ignore[index,call-overload]
    again = load_graph(compiled.graph.spec, compiled.graph.version, compiled.compiled)
    assert again.nodes[0].config == compiled.graph.nodes[0].config


@pytest.mark.parametrize(
    ("message", "code", "at"),
    [
        ({"role": "robot", "content": "x"}, "FIELD_INVALID", "role"),
        ({"role": "user"}, "FIELD_REQUIRED", "content"),
        ({"role": "user", "content": "x", "imges": []}, "UNKNOWN_FIELD", "imges"),
        ({"role": "user", "content": 7}, "FIELD_INVALID", "content"),
    ],
)
def test_a_wrong_message_is_named_at_its_place(message: dict[str, Any], code: str, at: str) -> None:
    compiled = compile_graph(spec({"id": "a", "type": "llm", "config": {"messages": [message]}}, edges="a>END"))
    (issue,) = compiled.issues
    assert (issue.code, issue.pointer) == (code, f"/nodes/0/config/messages/0/{at}")
    if code == "UNKNOWN_FIELD":
        assert '"images"' in issue.message


def test_the_published_schema_tells_what_a_message_is() -> None:
    text = json.dumps(spec_schema.json_schema())
    assert "Pictures as data URLs" in text
    assert "$ref" not in text
