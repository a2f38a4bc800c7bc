"""What a step may answer, and the stored forms of writes and of a model's answer."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import MISSING, ModelAnswer, Write, answer_from_json, answer_to_json


def test_nothing_is_false_and_says_what_it_is() -> None:
    assert not MISSING
    assert repr(MISSING) == "MISSING"


@pytest.mark.parametrize(
    ("write", "body"),
    [
        (Write("set", ("a", "b.c"), None), ["set", ["a", "b.c"], None]),
        (Write("operand", ("a",), [1]), ["operand", ["a"], [1]]),
        (Write("replace", ("a",), {}), ["replace", ["a"], {}]),
        (Write("delete", ("a", "b")), ["delete", ["a", "b"]]),
    ],
)
def test_a_write_is_stored_with_its_segments_and_a_value_unless_it_deletes(write: Write, body: list[object]) -> None:
    assert write.to_json() == body
    assert Write.from_json(body) == write


def test_a_model_answer_is_stored_without_what_nobody_said() -> None:
    assert answer_to_json(ModelAnswer("")) == {"text": ""}
    assert answer_from_json({"text": ""}) == ModelAnswer("")


def test_a_model_answer_is_read_back_as_it_was() -> None:
    answer = ModelAnswer(
        "hi", thinking="hm", done_reason="length", model="m", prompt_tokens=0, warnings=({"code": "X", "message": "y"},)
    )
    body = answer_to_json(answer)
    assert body["warnings"] == [{"code": "X", "message": "y"}]
    assert answer_from_json(body) == answer
