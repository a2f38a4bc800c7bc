"""`parallel` starts every branch, each with its own input."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import Done
from agent_graph.core.nodes import parallel
from agent_graph.core.nodes.base import Read, Target
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

FIRST = {"id": "a", "entry": "analyst_a", "input": "plan.streams.0"}
SECOND = {"id": "b", "entry": "analyst_b"}


def test_every_branch_is_chosen_and_a_named_input_becomes_its_current_value() -> None:
    of = node("parallel", branches=[FIRST, SECOND], join="meet")
    made = step(of, Seen({"plan": {"streams": ["scope", "risk"]}}))
    assert made == Done(targets=("analyst_a", "analyst_b"), inputs={"analyst_a": "scope"})


def test_null_is_an_input_like_any_other() -> None:
    of = node("parallel", branches=[{**FIRST, "input": "x"}], join="meet")
    assert step(of, Seen({"x": None})).inputs == {"analyst_a": None}


def test_a_branch_with_nothing_at_its_input_fails_the_node() -> None:
    with pytest.raises(NodeFailure) as failed:
        step(node("parallel", branches=[SECOND, FIRST], join="meet"), Seen({"plan": {"streams": []}}))
    assert failed.value.code == "PROMPT_VALUE_MISSING"
    assert failed.value.details == {"path": "plan.streams.0", "branch": "a"}


def test_it_says_what_it_chooses_reads_and_writes() -> None:
    config = parallel.Config(branches=[FIRST, SECOND, {}], join="meet")
    assert parallel.CHOOSES
    assert parallel.targets(config) == [
        Target("analyst_a", "/branches/0/entry"), Target("analyst_b", "/branches/1/entry"),
    ]  # fmt: skip
    assert parallel.reads(config) == [Read("plan.streams.0", "/branches/0/input")]
    assert list(parallel.writes("n", config)) == []
    assert parallel.writes_current(config)
    assert not parallel.writes_current(parallel.Config(branches=[SECOND]))


@pytest.mark.parametrize(
    ("config", "issues"),
    [
        ({}, [("FIELD_REQUIRED", ""), ("FIELD_REQUIRED", "")]),
        ({"branches": [FIRST]}, [("FIELD_REQUIRED", "")]),
        ({"join": "m", "branches": [{}]}, [("FIELD_REQUIRED", "/branches/0")] * 2),
        ({"join": "m", "branches": [{**FIRST, "id": 3}]}, [("FIELD_INVALID", "/branches/0/id")]),
        ({"join": "m", "branches": [{**FIRST, "entry": ""}]}, [("FIELD_INVALID", "/branches/0/entry")]),
        ({"join": "m", "branches": [{**FIRST, "entry": "END"}]}, [("FIELD_INVALID", "/branches/0/entry")]),
        ({"join": "m", "branches": [{**FIRST, "entry": [1]}]}, [("FIELD_INVALID", "/branches/0/entry")]),
        ({"join": "m", "branches": [{**FIRST, "input": {"a": 1}}]}, [("FIELD_INVALID", "/branches/0/input")]),
        ({"join": "m", "branches": [{**FIRST, "input": "a..b"}]}, [("STATE_PATH_INVALID", "/branches/0/input")]),
        ({"join": "m", "branches": [{**FIRST, "inputs": "a"}]}, [("UNKNOWN_FIELD", "/branches/0/inputs")]),
        ({"join": "m", "branches": [FIRST, {**SECOND, "id": "a"}]}, [("DUPLICATE_ID", "/branches/1/id")]),
        (
            {"join": "m", "branches": [FIRST, {**SECOND, "entry": "analyst_a"}]},
            [("DUPLICATE_TARGET", "/branches/1/entry")],
        ),
        ({"join": "analyst_a", "branches": [FIRST]}, [("FIELD_INVALID", "/join")]),
        ({"for_each": {"path": "xs"}, "entry": "a", "join": "b"}, []),
        ({"graph_name": "other", "for_each": {}, "output_key": "k"}, []),
        ({"for_each": {"path": "xs"}, "entry": "a"}, [("FIELD_REQUIRED", "")]),
        ({"for_each": {}, "entry": "END", "join": "b"}, [("FIELD_INVALID", "/entry")]),
        ({"for_each": {"paht": "x"}, "graph_name": "g"}, [("UNKNOWN_FIELD", "/for_each/paht")]),
        ({"for_each": {"path": "a..b"}, "graph_name": "g"}, [("STATE_PATH_INVALID", "/for_each/path")]),
        ({"for_each": {"path": 5}, "graph_name": "g"}, [("FIELD_INVALID", "/for_each/path")]),
        ({"for_each": {"as": "a.b"}, "graph_name": "g"}, [("FIELD_INVALID", "/for_each/as")]),
        ({"for_each": {"as": "outputs"}, "graph_name": "g"}, [("RESERVED_KEY", "/for_each/as")]),
        ({"for_each": {"as": "x", "index_as": "x"}, "graph_name": "g"}, [("FIELD_INVALID", "/for_each/index_as")]),
        ({"for_each": {"wait": {"count": 0}}, "graph_name": "g"}, [("FIELD_INVALID", "/for_each/wait")]),
        ({"for_each": {"wait": "any"}, "graph_name": "g"}, [("FIELD_INVALID", "/for_each/wait")]),
        ({"for_each": {"wait": {"count": 2}}, "graph_name": "g"}, []),
        ({"for_each": {}, "graph_name": "g", "entry": "a"}, [("FIELD_CONFLICT", "/entry")]),
        ({"for_each": {}, "graph_name": "g", "branches": [FIRST]}, [("FIELD_CONFLICT", "/branches")]),
        ({"for_each": {}, "graph_version": "v", "entry": "a", "join": "b"}, [("FIELD_CONFLICT", "/graph_version")]),
        ({"join": "m", "branches": [FIRST], "entry": "a"}, [("FIELD_CONFLICT", "/entry")]),
        ({"join": "m", "branches": [FIRST], "max_parallelism": 2, "timeout_ms": 5}, []),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_at_its_place(config: dict[str, object], issues: list[tuple[str, str]]) -> None:
    assert found("parallel", **config) == issues


def test_an_unknown_field_of_a_branch_is_answered_with_the_likely_one() -> None:
    config = parallel.Config(join="m", branches=[{**FIRST, "entyr": "x"}])
    assert 'did you mean "entry"?' in parallel.check("n", config)[0].message
