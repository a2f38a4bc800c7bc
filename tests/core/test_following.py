"""A recorded run is followed through a graph: what `decide` makes of the answers must be what the log holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.compile import compile_graph
from agent_graph.core.following import asked_otherwise, follow
from agent_graph.core.graph import Graph
from tests.properties.driver import Drive, orders, start
from tests.properties.world import World
from tests.specs import gate, llm, passthrough, router, rule, spec


def graph_of(document: dict[str, Any]) -> Graph:
    compiled = compile_graph(document)
    assert compiled.graph is not None, compiled.issues
    return compiled.graph


def routed(threshold: int = 3, prompt: str = "a") -> Graph:
    """`a` is asked, a router looks at the input's number, `low` or `high` is asked."""
    return graph_of(spec(
        llm("a", prompt), router("r", rule("n", "lt", threshold, "low"), default=["high"]),
        llm("low", output_key="said"), llm("high", output_key="said"),
        edges="a>r low>END high>END", output_key="said", name="routed",
    ))  # fmt: skip


def drive(graph: Graph, value: Any = None, world: World | None = None) -> Drive:
    run_input = {"n": 2, "topic": "moss"} if value is None else value
    return start(graph, run_input, world or World(1), orders(0)["fifo"]).go()


def test_a_log_follows_from_its_own_answers() -> None:
    graph = routed()
    done = follow(graph, drive(graph).log)
    assert done.divergence is None
    assert done.follower.run.lifecycle == "completed"
    assert [path for path, _ in done.calls.values()] == ["a#1", "low#1"]


def test_a_changed_rule_diverges_where_the_router_goes_another_way() -> None:
    graph, other = routed(), routed(threshold=1)
    log = drive(graph).log
    broke = follow(other, log, like=follow(graph, log)).divergence
    assert broke is not None
    assert broke.firing == "r#1"
    assert isinstance(broke.recorded, e.RouteTaken)
    assert isinstance(broke.instead, e.RouteTaken)
    assert (broke.recorded.targets, broke.instead.targets) == (("low",), ("high",))


def test_a_changed_prompt_goes_the_same_way_and_is_told() -> None:
    graph, other = routed(), routed(prompt="a, asked in other words")
    log = drive(graph).log
    own = follow(graph, log)
    done = follow(other, log, like=own)
    assert done.divergence is None
    assert asked_otherwise(own, done) == ["a#1"]
    assert asked_otherwise(own, own) == []


def test_a_node_more_is_found_where_it_would_have_begun() -> None:
    def forked(*more: str) -> Graph:
        nodes = [passthrough("s"), llm("a", output_key="said"), *(llm(name) for name in more)]
        edges = " ".join(["s>a", "a>END", *(f"s>{name} {name}>END" for name in more)])
        return graph_of(spec(*nodes, edges=edges, output_key="said"))

    graph = forked()
    log = drive(graph).log
    broke = follow(forked("b"), log, like=follow(graph, log)).divergence
    assert broke is not None
    assert broke.instead == e.NodeStarted("b#1")


def test_a_node_more_at_the_end_of_a_log_that_is_not_at_its_end_is_found_too() -> None:
    waiting = graph_of(spec(passthrough("s"), gate("g"), passthrough("x"), edges="s>g g>END x>END s>x", output_key="g"))
    same = drive(waiting, world=World(1, silent=1.0))
    cut = [event for event in same.log if getattr(event.fact, "firing", "") != "x#1"]
    cut = [replace(event, seq=place) for place, event in enumerate(cut)]
    short = graph_of(spec(passthrough("s"), gate("g"), edges="s>g g>END", output_key="g"))
    own = follow(short, cut)
    assert own.divergence is None
    late = follow(waiting, cut, like=own).divergence
    assert late is not None
    assert (late.seq, late.recorded, late.firing) == (len(cut), None, "x#1")


@pytest.mark.parametrize("seed", range(4))
def test_failed_attempts_and_fallbacks_follow_too(seed: int) -> None:
    graph = graph_of(spec(
        llm("a", fallback_models=["b"], on_error="continue"), llm("z", output_key="said"), edges="a>z z>END",
        output_key="said",
    ))  # fmt: skip
    log = drive(graph, world=World(seed, stumbling=0.9, failing=0.3)).log
    assert follow(graph, log).divergence is None


def test_a_changed_event_is_found() -> None:
    graph = routed()
    log = drive(graph).log
    for place, event in enumerate(log):
        fact = event.fact
        changed: e.Fact | None = None
        if isinstance(fact, e.ModelAnswered | e.NodeFinished):
            changed = replace(fact, firing="q#1")
        elif isinstance(fact, e.NodeStarted):
            changed = replace(fact, attempt=2)
        elif isinstance(fact, e.RunCompleted):
            changed = e.TimerFired("a#1")
        if changed is not None:
            broke = follow(graph, [*log[:place], replace(event, fact=changed), *log[place + 1 :]]).divergence
            assert broke is not None, changed
            assert broke.seq == place


@pytest.mark.parametrize(
    "fact",
    [
        e.ApprovalDecided("g#1", "apr-none", "approve", "", "ann", "cli"),
        e.TimerFired("g#1"),
        e.SignalReceived("paid", 1, "g#1"),
        e.NodeRetried("g#1", {"code": "X", "message": "", "class": "timeout"}, 5, 7),
        e.NodeRetried("g#1", {"code": "X", "message": "", "class": "timeout"}, 5, 1, "m"),
        e.BudgetRefused("max_nodes", 1, 1, firing="g#1"),
        e.ToolAnswered("g#1", "1", "", attempt=1),
        e.ModelAnswered("g#1", {"text": "x"}),
        e.EvidenceChecked("g#1"),
        e.RunFailed({"code": "X", "message": ""}),
    ],
    ids=lambda fact: str(fact.type),
)
def test_what_a_run_does_not_wait_for_does_not_come(fact: e.Fact) -> None:
    graph = graph_of(spec(gate("g"), edges="g>END"))
    log = drive(graph, world=World(1, silent=1.0)).log
    broke = follow(graph, [*log, e.Event(len(log), 9, fact)]).divergence
    assert broke is not None
    assert broke.seq == len(log)


@pytest.mark.parametrize("fact", [e.SignalReceived("paid", 1), e.BudgetRefused("max_wall_clock_ms", 1, 2)])
def test_a_message_and_the_end_of_the_time_may_come_at_any_moment(fact: e.Fact) -> None:
    graph = graph_of(spec(gate("g"), edges="g>END"))
    log = drive(graph, world=World(1, silent=1.0)).log
    assert follow(graph, [*log, e.Event(len(log), 9, fact)]).divergence is None


def test_a_divergence_about_the_run_itself_names_no_firing() -> None:
    graph = routed()
    log = drive(graph).log
    broke = follow(graph, [*log[:-1], replace(log[-1], fact=e.RunCancelled("x"))]).divergence
    assert broke is not None
    assert broke.firing == ""


def test_answers_may_be_heard_together_before_anything_follows_from_the_first() -> None:
    graph = graph_of(spec(
        passthrough("s"), llm("a", output_key="x"), llm("b", output_key="said"), edges="s>a s>b a>END b>END",
        output_key="said",
    ))  # fmt: skip
    one = start(graph, {"topic": "moss"}, World(1), orders(0)["fifo"])
    one.do_all()
    one.answer("a#1")
    one.answer("b#1")
    log = one.go().log
    own = follow(graph, log)
    assert (own.divergence, len(own.late)) == (None, 1)
    assert follow(graph, log, like=own).divergence is None
