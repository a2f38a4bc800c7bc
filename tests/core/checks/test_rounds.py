"""core.checks.rounds: where tokens of two rounds could meet."""

from __future__ import annotations

from typing import Any

from agent_graph.core.checks import rounds
from agent_graph.core.compile import compile_graph
from agent_graph.core.issues import Issue
from tests.core.specs import gate, join, llm, loop, parallel, pass_, put, router, spec

CODES = ("LOOP_CROSSES_FORK", "JOIN_BESIDE_LOOP", "NODE_WAITS_FOR_DECISION", "LOOP_NOT_NESTED")


def found(raw: Any) -> list[Issue]:
    return [issue for issue in compile_graph(raw).issues if issue.code in CODES]


def one(raw: Any) -> Issue:
    (issue,) = found(raw)
    return issue


def reviewed(back: str, *, crossing: bool) -> dict[str, Any]:
    """draft > fan > two branches > join > router; one branch, or the router behind the join, goes back."""
    checks = router("ra", [back], default=["j"]) if crossing else put("ra")
    last = put("z") if crossing else router("z", [back], default=["END"])
    ways = ["draft>fan>a>ra", "fan>b>j", "j>z"] + (["z>END"] if crossing else ["ra>j"])
    return spec([llm("draft"), pass_("fan"), put("a"), checks, put("b"), join("j"), last], *ways)


def test_a_branch_that_goes_back_alone_crosses_its_fork() -> None:
    for back in ("fan", "draft"):
        issue = one(reviewed(back, crossing=True))
        assert (issue.code, issue.severity, issue.node_id) == ("LOOP_CROSSES_FORK", "warning", "ra")
        assert issue.message.startswith('"ra" leads back to "fan" or before it while the other branches')
        assert issue.related == ("/nodes/1",)
        assert found(reviewed(back, crossing=False)) == []


def test_two_gates_of_one_draft_that_each_send_it_back_are_refused() -> None:
    gates = [gate(name, on_request_changes=["draft"]) for name in ("legal", "security")]
    raw = spec(
        [llm("draft"), pass_("fan"), *gates, join("j"), put("z")], "draft>fan>legal>j", "fan>security>j", "j>z>END"
    )
    issue = one(raw)
    assert (issue.code, issue.severity) == ("LOOP_CROSSES_FORK", "error")
    assert 'an old answer of "legal" could meet a new draft' in issue.message
    assert '`on_request_changes: "continue"` lets the decision flow on' in issue.message
    for one_gate in gates:
        one_gate["config"]["on_request_changes"] = "continue"
    assert found(raw) == []


def test_a_branch_that_leads_straight_to_its_fork_crosses_it() -> None:
    raw = spec([pass_("f"), put("a"), router("r", ["f"], default=["END"])], "f>a>r", "f>r")
    assert [issue.code for issue in found(raw)] == []
    raw = spec([router("f", ["f", "a"], default=["END"]), put("a")], "a>END")
    assert one(raw).code == "LOOP_CROSSES_FORK"


def test_branches_that_never_meet_mix_no_rounds() -> None:
    raw = spec([llm("draft"), put("log"), router("r", ["draft"], default=["END"])], "draft>log>END", "draft>r")
    assert found(raw) == []


def test_a_fork_to_ways_that_all_leave_the_cycle_crosses_nothing() -> None:
    raw = spec([put("a"), router("r", ["x", "y"], default=["a"]), put("x"), put("y"), join("j")],
               "a>r", "x>j>END", "y>j")  # fmt: skip
    assert found(raw) == []


def test_a_node_inside_a_branch_may_loop_by_itself() -> None:
    raw = spec([pass_("f"), put("a"), router("ra", ["a"], default=["j"]), put("b"), join("j"), put("z"),
                router("again", ["f"], default=["END"])],
               "f>a>ra", "f>b>j", "j>z>again")  # fmt: skip
    assert found(raw) == []


def test_a_join_fed_in_every_round_and_at_the_end_is_told() -> None:
    nodes = [pass_("fan"), put("a"), put("b"), join("j"), router("r", ["fan"], default=["n"]), put("log"), join("n")]
    ways = ["fan>a>j>r", "fan>b>j", "fan>log>n>END"]
    issue = one(spec(nodes, *ways))
    assert (issue.code, issue.severity, issue.node_id) == ("JOIN_BESIDE_LOOP", "warning", "n")
    assert issue.related == ("/nodes/0",)
    nodes[4] = router("r", ["fan"], default=["END"])
    assert found(spec(nodes, *ways)) == [], "then nothing else comes to it"
    raw = spec([put("a"), router("r", ["a"], default=["n"]), join("n")], "a>r", "a>n>END")
    assert one(raw).code == "LOOP_CROSSES_FORK", "one of the two is enough"


def test_ways_out_of_a_cycle_that_exclude_each_other_may_meet() -> None:
    raw = spec([put("a"), router("r", ["a"], ["x"], default=["y"]), put("x"), put("y"), put("n")],
               "a>r", "x>n>END", "y>n")  # fmt: skip
    assert found(raw) == []
    raw = spec([put("a"), router("r", ["a"], default=["x"]), put("x"), put("log")], "a>r", "a>log>END", "x>END")
    assert found(raw) == []
    fork = [put("a"), router("r", ["a"], default=["END"]), pass_("f"), put("x"), put("y"), join("n")]
    assert found(spec(fork, "a>r", "a>f>x>n>END", "f>y>n")) == []


def test_a_node_that_waits_for_a_gate_beside_it_is_told() -> None:
    raw = spec([pass_("f"), put("a"), gate("g", on_reject=["a"]), put("z")], "f>a>END", "f>g>z>END")
    issue = one(raw)
    assert (issue.code, issue.severity, issue.node_id) == ("NODE_WAITS_FOR_DECISION", "warning", "a")
    assert issue.related == ("/nodes/2",)
    assert issue.message.startswith('"a" does not start before somebody has decided at "g"')


def test_who_waits_for_a_gate_in_its_own_line_is_told_nothing() -> None:
    assert found(spec([llm("a"), gate("g", on_request_changes=["a"])], "a>g>END")) == []
    both = spec([pass_("f"), put("a"), gate("g", on_reject=["j"]), join("j")], "f>a>j", "f>g>j", "j>END")
    assert found(both) == []
    choice = [router("r", ["a"], default=["g"]), put("a"), gate("g", on_reject=["a"])]
    assert found(spec(choice, "a>END", "g>END")) == []
    unreached = [put("a"), pass_("f"), put("b"), gate("g", on_reject=["b"])]
    assert found(spec(unreached, "a>END", "f>b>END", "f>g>END")) == []
    around = [pass_("f"), gate("g", on_reject=["c"], on_request_changes=["g"]), put("c"), put("b"), pass_("x")]
    assert found(spec(around, "f>g>END", "f>b>END", "c>END", "x>c")) == []


def test_a_loop_whose_body_is_entered_from_elsewhere_does_not_count() -> None:
    raw = spec([router("r", ["b"], default=["l"]), loop("l", "b", "END"), put("b")], "b>l")
    issue = one(raw)
    assert (issue.code, issue.severity, issue.node_id) == ("LOOP_NOT_NESTED", "warning", "l")
    assert "can be entered without passing it" in issue.message


def test_a_loop_nothing_leads_back_to_is_told() -> None:
    issue = one(spec([loop("l", "b", "END"), put("b")], "b>END"))
    assert issue.message.startswith('nothing leads from "b" back to the loop "l"')


def test_loops_inside_one_another_are_fine() -> None:
    raw = spec([loop("outer", "inner", "END"), loop("inner", "b", "x"), put("b"), put("x")], "b>inner", "x>outer")
    assert found(raw) == []
    assert found(spec([put("a"), loop("l", "l", "END")], "a>END"))[:0] == []
    assert found(spec([put("a"), loop("l", "b", "END"), put("b")], "a>END")) == []


def test_a_parallel_in_a_loop_is_fine() -> None:
    raw = spec([loop("l", "p", "END"), parallel("p", "j", "a", "b"), put("a"), put("b"), join("j")], "j>l")
    assert found(raw) == []


def test_a_search_that_takes_too_long_is_given_up_and_nothing_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(rounds, "_STEPS", 3)
    assert found(reviewed("draft", crossing=True)) == []
