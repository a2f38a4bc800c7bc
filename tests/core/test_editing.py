"""An edit is a JSON Patch on the subject: all of it or nothing, bounded, and held to a schema."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.editing import STEPS, edited
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.patch import PatchFailed, applied
from agent_graph.errors import ApprovalEditInvalid


def edit(subject: Any, *steps: Any, schema: dict[str, Any] | None = None, limits: Limits = DEFAULTS) -> Any:
    return edited(subject, steps, subject_schema=schema or {}, limits=limits)


def refused(subject: Any, *steps: Any, **more: Any) -> ApprovalEditInvalid:
    with pytest.raises(ApprovalEditInvalid) as caught:
        edit(subject, *steps, **more)
    return caught.value


def test_the_steps_are_applied_in_order_and_what_was_given_stays_as_it_is() -> None:
    subject = {"to": ["bob"], "body": "hi"}
    steps = [
        {"op": "add", "path": "/to/-", "value": "eve"}, {"op": "move", "from": "/body", "path": "/text"},
        {"op": "test", "path": "/to/1", "value": "eve"},
    ]  # fmt: skip
    assert edit(subject, *steps) == {"to": ["bob", "eve"], "text": "hi"}
    assert subject == {"to": ["bob"], "body": "hi"}


def test_a_whole_subject_can_be_replaced_and_a_text_is_one() -> None:
    assert edit("old", {"op": "replace", "path": "", "value": "new"}) == "new"
    assert edit({"a": 1}, {"op": "add", "path": "", "value": None}) is None


@pytest.mark.parametrize(
    "step",
    [
        {"op": "replace", "path": "/c", "value": 1}, {"op": "remove", "path": ""}, {"op": "add", "path": "/b"},
        {"path": "/b", "value": 1}, {"op": "add", "value": 1}, {"op": "add", "path": 5, "value": 1},
        {"op": "copy", "path": "/b"}, {"op": "copy", "path": "/b", "from": 3}, {"op": "grow", "path": "/b"},
        {"op": "test", "path": "/a", "value": 2}, {"op": "add", "path": "b", "value": 1},
        {"op": ["add"], "path": "/b", "value": 1},
    ],
)  # fmt: skip
def test_a_step_that_does_not_fit_is_refused(step: dict[str, Any]) -> None:
    assert refused({"a": 1}, {"op": "add", "path": "/c/d", "value": 1}).code == "APPROVAL_EDIT_INVALID"
    assert "cannot be applied" in refused({"a": 1}, step).message


def test_a_patch_has_a_step_and_not_too_many() -> None:
    assert "1 to 100" in refused("a").message
    step = {"op": "replace", "path": "", "value": "b"}
    assert edit("a", *[step] * STEPS) == "b"
    refused("a", *[step] * (STEPS + 1))


def test_an_edit_that_changes_nothing_is_no_edit() -> None:
    assert "approve instead" in refused({"a": 1}, {"op": "replace", "path": "/a", "value": 1.0}).message


def test_copies_cannot_make_a_subject_larger_than_a_value_may_be() -> None:
    limits = Limits(value_bytes=2_000)
    double = {"op": "copy", "from": "", "path": "/a"}
    refused({"a": "x" * 900, "b": 1}, *[double] * 60, limits=limits)
    refused("a", {"op": "replace", "path": "", "value": "x" * 3_000}, limits=limits)
    assert edit({"a": "x"}, {"op": "copy", "from": "/a", "path": "/b"}, limits=limits) == {"a": "x", "b": "x"}


def test_a_subject_cannot_be_made_deeper_than_a_value_may_be() -> None:
    nest = {"op": "copy", "from": "", "path": "/a"}
    refused({"a": 1}, *[nest] * 40, limits=Limits(json_depth=20))
    deep: Any = 1
    for _ in range(2_000):
        deep = [deep]
    refused({"a": 1}, {"op": "add", "path": "/a", "value": deep})


def test_an_edited_subject_fits_its_schema() -> None:
    schema = {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}
    error = refused({"to": "bob"}, {"op": "remove", "path": "/to"}, schema=schema)
    assert error.details["violations"] == ["at the top: 'to' is a required property"]
    assert edit({"to": "bob"}, {"op": "replace", "path": "/to", "value": "eve"}, schema=schema) == {"to": "eve"}


def test_a_patch_without_a_bound_takes_copies_of_any_size() -> None:
    assert applied({"a": "x"}, [{"op": "copy", "from": "/a", "path": "/b"}]) == {"a": "x", "b": "x"}
    with pytest.raises(PatchFailed, match="leaves nothing"):
        applied(1, [{"op": "remove", "path": ""}])
