"""The page on scheduling says what the scheduler does: its graphs and tables are read from the page and run."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.events import ApprovalDecided
from agent_graph.core.graph import Graph
from agent_graph.core.outcome import final_state
from tests.docs.driving import FAILS, Drive, every_order, graph_of, lettered, numbered
from tests.docs.pages import ROOT, blocks, marked, table

PAGE = ROOT / "docs" / "explanation" / "scheduling.md"
GRAPHS = [block.mark.removeprefix("graph: ") for block in blocks(PAGE) if block.mark.startswith("graph: ")]
PLAIN = {
    "id": "meet", "type": "state_transform", "config": {"operations": [{"op": "set", "path": "met", "value": "PLAIN"}]},
}  # fmt: skip
"""A node that is no join, to stand in the place of one."""


def spec(name: str) -> Any:
    return json.loads(marked(PAGE, f"graph: {name}"))


def graph(name: str, **changes: Any) -> Graph:
    """The page's graph, with changes to the config of `meet`; ``type`` replaces the node."""
    body = spec(name)
    for node in body["nodes"]:
        if node["id"] == "meet" and changes:
            config = {**node["config"], **changes}
            node.update({"type": config.pop("type", "join"), "config": config})
    return graph_of(body)


def value(cell: str) -> Any:
    """The JSON value in a cell's backticks."""
    found = re.search(r"`([^`]*)`", cell)
    assert found is not None, cell
    return json.loads(found[1])


# -- two ways into one node ----------------------------------------------------------------------------------------


def two_ways(made: Graph, a: str, b: str) -> tuple[Drive, bool]:
    """The run of one cell, and whether `meet` waited with a token when all but the late ones were through."""
    ways = {"a": a, "b": b}
    said = {"late, then skipped": "no", "failed": FAILS}
    asked = [node for node, way in ways.items() if way != "skipped"]
    drive = Drive(made, {"ask": asked}, lambda firing: said.get(ways[firing[0]], lettered(firing)))
    drive.answer(*[firing for firing in list(drive.asked) if not ways[firing[0]].startswith("late")])
    waited = False
    while drive.asked:
        waited = waited or drive.holds_token("meet")
        assert drive.started("meet") == []
        drive.answer(min(drive.asked))
    return drive, waited


HEAD, ROWS = table(PAGE, "ways")
CELLS = [(row[0], way, cell) for row in ROWS for way, cell in zip(HEAD[1:], row[1:], strict=True)]


def test_the_table_of_ways_is_complete() -> None:
    assert HEAD[1:] == ["taken", "skipped", "late", "late, then skipped", "failed"]
    assert [row[0] for row in ROWS] == ["taken", "skipped", "late", "failed"]
    assert len(CELLS) == 20


@pytest.mark.parametrize(("a", "b", "cell"), CELLS, ids=[f"a {a}, b {b}" for a, b, _ in CELLS])
@pytest.mark.parametrize("kind", ["join", "plain"])
def test_a_cell_of_the_table_of_ways(a: str, b: str, cell: str, kind: str) -> None:
    body = spec("two_ways")
    if kind == "plain":
        body["nodes"][-1] = PLAIN
    made = graph_of(body)
    drive, waited = two_ways(made, a, b)
    if cell == "run fails":
        assert drive.run.status == "failed"
        assert drive.run.error is not None
        assert drive.run.error["code"] == "MODEL_BAD_REPLY"
        assert drive.started("meet") == []
        others = [f"{node}#1" for node, way in (("a", a), ("b", b)) if way not in ("failed", "skipped")]
        assert drive.cancelled == others
    elif cell == "never runs":
        assert drive.run.error is not None
        assert drive.run.error["code"] == "OUTPUT_KEY_NOT_WRITTEN"
        assert drive.started("meet") == []
    else:
        assert drive.run.status == "completed"
        assert drive.started("meet") == ["meet#1"]
        assert waited == cell.startswith("waits, ")
        assert final_state(drive.run) == (value(cell) if kind == "join" else "PLAIN",)


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_gate_in_the_place_of_b_is_late_until_somebody_decides(decision: str) -> None:
    body = spec("two_ways")
    body["nodes"][2] = {"id": "b", "type": "human_approval", "config": {"prompt": "b", "on_reject": ["END"]}}
    drive = Drive(graph_of(body), {"ask": ["a", "b"]})
    drive.answer("a#1")
    assert drive.run.status == "waiting"
    assert drive.holds_token("meet")
    assert drive.started("meet") == []
    (gate,) = drive.run.open_approvals
    drive.record(ApprovalDecided("b#1", gate.approval_id, decision, "", "Kim", "cli"))
    drive.settle()
    assert drive.run.status == "completed"
    a, b = drive.output("meet#1")
    assert a == "A"
    assert b is None if decision == "reject" else b["decision"] == "approve"


_, MISSING_ROWS = table(PAGE, "missing")


@pytest.mark.parametrize(("settings", "cell"), MISSING_ROWS, ids=[row[0] for row in MISSING_ROWS])
def test_a_row_of_the_table_of_a_missing_input(settings: str, cell: str) -> None:
    drive, _ = two_ways(graph("two_ways", **value(settings)), "taken", "skipped")
    if cell.startswith("fails"):
        assert drive.run.error is not None
        assert f"fails: `{drive.run.error['code']}`" == cell
    else:
        assert drive.output("meet#1") == value(cell)


# -- what a node sees ----------------------------------------------------------------------------------------------

_, CURRENT_ROWS = table(PAGE, "current")


@pytest.mark.parametrize(("taken", "cells"), [(r[0], r[1:]) for r in CURRENT_ROWS], ids=[r[0] for r in CURRENT_ROWS])
def test_a_row_of_the_table_of_the_current_value(taken: str, cells: list[str]) -> None:
    asked = taken.split(" and ")
    seen = []
    for meet in (
        PLAIN,
        spec("two_ways")["nodes"][-1],
        {"id": "meet", "type": "join", "config": {"inputs": ["a", "b"]}},
    ):
        body = spec("two_ways")
        body["nodes"][-1] = meet
        body["nodes"].append({"id": "behind", "type": "llm", "config": {"prompt": "{input}", "output_key": "met"}})
        body["edges"][-1] = {"from": "meet", "to": "behind"}
        for drive in every_order(lambda body=body: Drive(graph_of(body), {"ask": asked})):
            assert drive.run.status == "completed"
            seen.append(drive.current["behind#1"])
            assert seen[-1] == drive.current["meet#1"] or meet["type"] == "join"
    expected = [{"ask": asked} if cell == "the run's input" else value(cell) for cell in cells]
    assert [each for n, each in enumerate(seen) if n == 0 or each != seen[n - 1]] == [
        each for n, each in enumerate(expected) if n == 0 or each != expected[n - 1]
    ]


# -- rounds --------------------------------------------------------------------------------------------------------

_, ROUNDS = table(PAGE, "rounds")


def outputs_of_rounds(made: Graph) -> list[Any]:
    """What each firing of `meet` gave, the same in every order of answers."""
    found = []
    for drive in every_order(lambda: Drive(made, "question", numbered)):
        assert drive.run.status == "completed"
        firings = drive.started("meet")
        assert firings == [row[0].strip("`") for row in ROUNDS]
        found.append([drive.written(firing) for firing in firings])
    assert len(found) > 1
    assert all(each == found[0] for each in found)
    return found[0]


def test_the_joins_of_the_table_of_rounds() -> None:
    assert outputs_of_rounds(graph("rounds")) == [value(row[2]) for row in ROUNDS]
    assert outputs_of_rounds(graph("rounds", allow_stale=True)) == [value(row[3]) for row in ROUNDS]


def test_the_plain_node_of_the_table_of_rounds() -> None:
    body = spec("rounds")
    read = {"op": "select", "path": "met", "values": ["outputs.a", "outputs.b", "outputs.plan"]}
    body["nodes"][-1] = {"id": "meet", "type": "state_transform", "config": {"operations": [read]}}
    seen = [list(each.values()) for each in outputs_of_rounds(graph_of(body))]
    assert seen == [value(row[4]) for row in ROUNDS]


def test_b_is_taken_in_the_rounds_the_table_says() -> None:
    (drive, *_) = every_order(lambda: Drive(graph("rounds"), "question", numbered))
    assert [row[1] for row in ROUNDS] == ["taken", "skipped"]
    assert drive.started("a") == ["a#1", "a#2"]
    assert drive.started("b") == ["b#1"]


_, QUEUE = table(PAGE, "queue")


def test_the_table_of_two_tokens_on_one_edge() -> None:
    drive = Drive(graph("queue"), "question", numbered)
    drive.answer("a#1")
    drive.answer("a#2")
    assert drive.started("meet") == []
    assert list(drive.asked) == ["slow#1"]
    drive.answer("slow#1")
    assert drive.started("meet") == [row[0].strip("`") for row in QUEUE]
    assert [drive.output(firing) for firing in drive.started("meet")] == [value(row[2]) for row in QUEUE]
    assert [row[1] for row in QUEUE] == ["a, slow", "a"]


# -- circles, supersteps, every order --------------------------------------------------------------------------------


def test_the_firings_of_a_circle() -> None:
    drive = Drive(graph("circle"))
    assert drive.run.status == "completed"
    assert drive.finished == marked(PAGE, "firings: circle").split()


def test_a_chain_runs_to_its_end_beside_a_slow_sibling() -> None:
    drive = Drive(graph("chain"))
    while list(drive.asked) != ["slow#1"]:
        drive.answer(next(firing for firing in drive.asked if firing != "slow#1"))
    assert drive.finished == marked(PAGE, "before slow: chain").split()
    drive.answer("slow#1")
    assert drive.started("meet") == ["meet#1"]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_of_the_page_gives_one_record_in_every_order_of_answers(name: str) -> None:
    made = graph(name)
    records = [drive.record_of_run for drive in every_order(lambda: Drive(made, {"ask": ["a", "b"]}, numbered))]
    assert all(record == records[0] for record in records)
    assert records[0]["status"] == "completed"


def test_what_the_page_says_needs_a_part_of_its_own_is_refused_where_there_is_none() -> None:
    for change in ({"wait": "any"}, {"wait": {"count": 1}}):
        body = spec("two_ways")
        body["nodes"][-1]["config"].update(change)
        assert {issue.code for issue in compile_graph(body).issues if issue.severity == "error"} == {
            "REGION_NOT_CLOSED"
        }
    body = spec("two_ways")
    branches = [{"id": node, "entry": node} for node in "ab"]
    split = {"branches": branches, "join": "meet", "fail_policy": "ignore"}
    body["nodes"][0] = {"id": "choose", "type": "parallel", "config": split}
    assert "REGION_NOT_CLOSED" in {issue.code for issue in compile_graph(body).issues}
    body = spec("two_ways")
    body["edges"][-1]["to"] = "END_RUN"
    assert compile_graph(body).graph is not None
    body = spec("chain")
    body["edges"][-1] = {"from": "meet", "to": "fork"}
    assert "LOOP_WITHOUT_EXIT" in {issue.code for issue in compile_graph(body).issues}
