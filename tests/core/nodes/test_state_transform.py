"""`state_transform` hands its operations to core.ops.transforms, all or none."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import Done, Write
from agent_graph.core.nodes import state_transform
from agent_graph.core.nodes.base import Read
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

OPERATIONS = [
    {"op": "set", "path": "status", "value": "new"},
    {"op": "copy", "path": "kept.title", "from": "draft.title"},
]


def test_operations_become_writes_in_their_order() -> None:
    made = step(node("state_transform", operations=OPERATIONS), Seen({"draft": {"title": "A"}}))
    assert made == Done(writes=(Write("set", ("status",), "new"), Write("set", ("kept", "title"), "A")))


def test_one_impossible_operation_undoes_them_all() -> None:
    state = {"status": "old"}
    with pytest.raises(NodeFailure) as failed:
        step(node("state_transform", operations=OPERATIONS), Seen(state))
    assert failed.value.code == "TRANSFORM_INVALID"
    assert state == {"status": "old"}


def test_a_wrong_operation_is_found_at_its_place() -> None:
    issues = found("state_transform", operations=[*OPERATIONS, {"op": "sett", "path": "a"}])
    assert [at for _, at in issues] == ["/operations/2/op"]


def test_it_says_what_it_reads_and_writes_and_chooses_nothing() -> None:
    config = state_transform.Config(operations=[*OPERATIONS, OPERATIONS[0]])
    assert state_transform.writes("n", config) == ["status", "kept.title"]
    assert state_transform.reads(config) == [Read("draft.title", "/operations/1")]
    compared = state_transform.Config(operations=[{"op": "compare", "path": "a", "value": 1, "into": "b"}])
    assert state_transform.reads(compared) == [Read("a", "/operations/0", optional=True)]
    assert not state_transform.CHOOSES
    assert list(state_transform.targets(config)) == []
    assert not state_transform.writes_current(config)
