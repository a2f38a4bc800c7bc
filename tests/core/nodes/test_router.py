"""`router` chooses by rules, and says so when it cannot."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import Done
from agent_graph.core.nodes import router
from agent_graph.core.nodes.base import Read, Target
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

DEEP = {"path": "result", "op": "contains", "value": "deep", "targets": ["research", "log"], "label": "dig"}
LONG = {"path": "count", "op": "gte", "value": 3, "targets": ["log", "END"]}


def test_the_first_rule_that_holds_wins() -> None:
    of = node("router", rules=[DEEP, LONG], default=["sum"])
    both = Seen({"result": "deep sea", "count": 3})
    assert step(of, both) == Done(targets=("research", "log"), transition="rules/0")
    assert step(of, Seen({"result": "flat", "count": 3.0})) == Done(targets=("log", "END"), transition="rules/1")


def test_mode_all_takes_every_rule_that_holds_and_each_target_once() -> None:
    of = node("router", mode="all", rules=[DEEP, {**LONG, "value": 9}, LONG], default=["sum"])
    taken = step(of, Seen({"result": "deep", "count": 3}))
    assert taken == Done(targets=("research", "log", "END"), transition="rules/0+rules/2")


@pytest.mark.parametrize("mode", ["first", "all"])
def test_the_default_is_taken_when_no_rule_holds(mode: str) -> None:
    of = node("router", mode=mode, rules=[DEEP], default=["sum", "sum"])
    assert step(of, Seen()) == Done(targets=("sum",), transition="default")


def test_an_empty_default_ends_the_branch() -> None:
    assert step(node("router", rules=[DEEP], default=[]), Seen()) == Done(targets=("END",), transition="default")


def test_without_a_default_nothing_chosen_is_the_nodes_failure() -> None:
    with pytest.raises(NodeFailure, match='router "n"') as failed:
        step(node("router", rules=[DEEP, LONG]), Seen())
    assert (failed.value.code, failed.value.failure_class) == ("NO_DEFAULT_ROUTE", "invalid")
    assert failed.value.details == {"rules": 2}


def test_a_list_where_an_object_was_expected_is_no_match_and_no_crash() -> None:
    of = node("router", rules=[{"path": "plan.a", "op": "eq", "value": 1, "targets": ["x"]}], default=["y"])
    for plan in ([1, 2], "text", None, 7):
        assert step(of, Seen({"plan": plan})).transition == "default"


def test_a_rule_may_ask_the_current_value_by_its_older_name() -> None:
    of = node("router", rules=[{"path": "__input__", "op": "eq", "value": "go", "targets": ["x"]}], default=[])
    assert step(of, Seen(current="go")).targets == ("x",)
    deeper = node("router", rules=[{"path": "__input__.a", "op": "eq", "value": 1, "targets": ["x"]}], default=[])
    assert step(deeper, Seen(current={"a": 1})).targets == ("x",)
    assert router.reads(deeper.config) == []
    assert router.reads(of.config) == []


ROUTES = {"refund": "money", "bug": ["fix", "log"]}


@pytest.mark.parametrize("routes", [ROUTES, [list(pair) for pair in ROUTES.items()]])
def test_the_older_routes_look_for_their_text_in_the_input_in_order(routes: object) -> None:
    of = node("router", routes=routes, default=["sum"])
    assert step(of, Seen(current="a bug and a refund")) == Done(targets=("money",), transition="routes/0")
    assert step(of, Seen(current={"kind": "bug"})) == Done(targets=("fix", "log"), transition="routes/1")
    assert step(of, Seen(current="hello")) == Done(targets=("sum",), transition="default")


def test_the_older_routes_read_the_input_key() -> None:
    of = node("router", routes=ROUTES, input_key="kind", default=["sum"])
    assert step(of, Seen({"kind": "bug"}, current="refund")).transition == "routes/1"
    assert step(of, Seen(current="refund")).transition == "default"
    assert router.reads(of.config) == [Read("kind", "/input_key", optional=True)]


def test_targets_are_named_in_order_with_their_pointers() -> None:
    config = router.Config(rules=[LONG], routes=ROUTES, default=["sum"])
    assert router.targets(config) == [
        Target("log", "/rules/0/targets/0"),
        Target("END", "/rules/0/targets/1"),
        Target("money", "/routes/refund"),
        Target("fix", "/routes/bug/0"),
        Target("log", "/routes/bug/1"),
        Target("sum", "/default/0"),
    ]
    assert router.targets(router.Config(routes=[("a/b", "x")])) == [Target("x", "/routes/0/1")]
    assert router.targets(router.Config(rules=[{}, {"targets": "x"}])) == []


def test_reads_name_every_path_of_the_rules() -> None:
    config = router.Config(rules=[{"any": [DEEP, {"path": "a", "op": "eq", "value_path": "b"}], "targets": ["x"]}])
    assert {read.path for read in router.reads(config)} == {"result", "a", "b"}
    assert {read.pointer for read in router.reads(config)} == {"/rules/0"}


def test_it_writes_nothing() -> None:
    assert router.CHOOSES
    assert list(router.writes("n", router.Config())) == []
    assert not router.writes_current(router.Config())


@pytest.mark.parametrize(
    ("config", "issues"),
    [
        ({}, [("FIELD_REQUIRED", "")]),
        ({"rules": [{"path": "a", "op": "exists"}]}, [("FIELD_REQUIRED", "/rules/0")]),
        ({"rules": [{**LONG, "targets": []}]}, [("FIELD_INVALID", "/rules/0/targets")]),
        ({"rules": [{**LONG, "targets": "log"}]}, [("FIELD_INVALID", "/rules/0/targets")]),
        ({"rules": [{**LONG, "targets": ["log", 3]}]}, [("FIELD_INVALID", "/rules/0/targets")]),
        ({"rules": [{**LONG, "label": 3}]}, [("FIELD_INVALID", "/rules/0/label")]),
        ({"rules": [LONG], "routes": {}}, [("FIELD_CONFLICT", "/routes")]),
        ({"rules": [LONG], "input_key": "a..b"}, [("STATE_PATH_INVALID", "/input_key")]),
        ({"rules": [{**LONG, "vale": 3}]}, [("UNKNOWN_FIELD", "/rules/0/vale")]),
        ({"rules": [{**LONG, "op": "regex", "value": "(?=a)"}]}, [("REGEX_INVALID", "/rules/0/value")]),
    ],
)
def test_what_is_wrong_is_found_at_its_place(config: dict[str, object], issues: list[tuple[str, str]]) -> None:
    assert found("router", **config) == issues
