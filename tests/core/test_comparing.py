"""Two runs side by side: where they part, what each took, and what only one of their graphs has."""

from __future__ import annotations

from typing import Any

from agent_graph.core import events as e
from agent_graph.core import forking
from agent_graph.core.comparing import compare, course
from agent_graph.core.fork_changes import Changes
from agent_graph.core.graph import Graph
from tests.core.test_following import drive, graph_of, routed
from tests.properties.driver import Drive, orders, start
from tests.properties.world import World
from tests.specs import gate, llm, passthrough, spec


def side(drive_: Drive) -> Any:
    return course(drive_.graph, drive_.log)


def compared(one: Drive, other: Drive, most: int = 50) -> Any:
    return compare(side(one), side(other), most=most)


def test_two_runs_with_the_same_answers_are_the_same() -> None:
    graph = routed()
    found = compared(drive(graph), drive(graph))
    assert (found["same"], found["first_divergence"], found["state_patch"]) == (True, None, [])
    assert found["counts"] == {"firings": 3, "differ": 0}
    assert found["nodes"][0]["a"]["llm_calls"] == 1
    assert found["nodes"][0]["a"]["tokens"] == "unknown"


def test_the_first_firing_that_differs_is_named_and_stands_first() -> None:
    found = compared(drive(routed()), drive(routed(threshold=1)))
    assert found["first_divergence"] == {"node_path": "r#1", "node_id": "r", "differs": ["route"]}
    assert [row["node_path"] for row in found["nodes"]] == ["r#1", "low#1", "high#1", "a#1"]
    assert [row["differs"] for row in found["nodes"][1:3]] == [["only_a"], ["only_b"]]
    assert found["same_graph"]
    assert not found["same_version"]
    assert len(compared(drive(routed()), drive(routed(threshold=1)), most=2)["nodes"]) == 2


def test_what_only_one_of_the_graphs_has_is_said_to_be_that() -> None:
    def lined(name: str) -> Graph:
        return graph_of(spec(llm("a"), llm(name, output_key="said"), edges=f"a>{name} {name}>END", output_key="said"))

    found = compared(drive(lined("b")), drive(lined("c")))
    rows = {row["node_path"]: row.get("no_such_node") for row in found["nodes"]}
    assert rows == {"a#1": None, "b#1": "b", "c#1": "a"}


def test_outcomes_attempts_and_models_are_told() -> None:
    graph = graph_of(spec(
        passthrough("s"), llm("a", output_key="said"), llm("b"), edges="s>a s>b a>END b>END", output_key="said",
    ))  # fmt: skip
    failed = start(graph, {}, World(1), orders(0)["fifo"])
    failed.do_all()
    failed.record(e.NodeFailed("b#1", {"code": "MODEL_NOT_FOUND", "message": "", "class": "not_found"}, 1))
    failed.go()
    counted = start(graph, {}, World(1), orders(0)["fifo"])
    counted.do_all()
    answer = {"text": "x", "model": "m", "prompt_tokens": 2, "completion_tokens": 3}
    counted.record(e.ModelAnswered("b#1", answer, 1))
    counted.record(e.CacheHit("a#1", answer, "k", "run-x", 1))
    counted.calls.clear()
    counted.go()
    found = compared(failed, counted)
    rows = {row["node_path"]: row for row in found["nodes"]}
    assert rows["a#1"]["a"]["status"] == "cancelled"
    assert rows["b#1"]["a"]["error_code"] == "MODEL_NOT_FOUND"
    assert (rows["b#1"]["b"]["models"], rows["b#1"]["b"]["tokens"]) == (["m"], 5)
    assert (rows["a#1"]["b"]["llm_calls"], rows["a#1"]["b"]["tokens"]) == (0, 0)


def test_where_no_firing_differs_it_is_said_what_does() -> None:
    graph = graph_of(spec(gate("g"), edges="g>END"))
    waiting = drive(graph, world=World(1, silent=1.0))
    cancelled = drive(graph, world=World(1, silent=1.0))
    cancelled.record(e.RunCancelRequested("x"))
    cancelled.go()
    found = compare(side(waiting), side(cancelled), most=5)
    assert found["nodes"][0]["differs"] == ["status"]
    started = start(graph, {"x": 1}, World(1, silent=1.0), orders(0)["fifo"]).go()
    found = compared(waiting, started)
    assert found["first_divergence"] == {"node_path": "", "node_id": "", "differs": ["state"]}
    assert found["state_patch"]


def test_a_fork_says_what_it_has_taken_over() -> None:
    graph = routed()
    origin = drive(graph)
    point = forking.before(origin.log, "low")
    made = forking.fork(
        graph, origin.log, point, origin=graph, forker=forking.Forker("f", "cli"),
        changes=Changes(outputs={"low": "given"}), now_ms=9,
    )  # fmt: skip
    fork = Drive(graph, origin.world, orders(0)["fifo"], run=made.run, log=[*made.log], sealed=[""] * len(made.log))
    found = compared(origin, fork.go())
    assert found["first_divergence"]["node_path"] == "low#1"
    rows = {row["node_path"]: row["b"] for row in found["nodes"]}
    assert rows["a#1"]["taken_over"]
    assert "taken_over" not in rows["low#1"]
    assert rows["low#1"]["models"] == ["given:fork"]
