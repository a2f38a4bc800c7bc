"""LOOP_WITHOUT_EXIT: a cycle that no run can leave."""

from __future__ import annotations

from typing import Any

from tests.core.specs import gate, issues, join, llm, loop, pass_, put, router, spec

CODE = "LOOP_WITHOUT_EXIT"


def cycles(raw: Any) -> list[str]:
    return [issue.message.split(":")[0].removeprefix("a run can never leave the cycle ") for issue in issues(raw, CODE)]


def test_a_cycle_without_any_choice_is_refused() -> None:
    raw = spec([pass_("x"), pass_("y")], "x>y>x")
    assert cycles(raw) == ["x > y > x"]
    (issue,) = issues(raw, CODE)
    assert (issue.severity, issue.pointer, issue.node_id, issue.related) == ("error", "/nodes/0", "x", ("/nodes/1",))


def test_an_edge_out_beside_the_way_round_is_no_way_out() -> None:
    assert cycles(spec([pass_("x"), pass_("y"), pass_("z")], "x>y>x", "y>z>END")) == ["x > y > x"]


def test_a_node_that_leads_to_itself_is_a_cycle() -> None:
    assert cycles(spec([pass_("x")], "x>x")) == ["x > x"]


def test_a_router_can_leave_by_a_rule_its_default_or_by_ending() -> None:
    for leave in (router("r", ["END"], default=["x"]), router("r", ["x"], default=["END"]),
                  router("r", ["x"], default=[]), router("r", ["x"], ["z"], default=["x"])):  # fmt: skip
        assert cycles(spec([pass_("x"), leave, pass_("z")], "x>r", "z>END")) == []


def test_a_router_whose_every_way_leads_back_cannot_leave() -> None:
    assert cycles(spec([pass_("x"), router("r", ["x"], default=["x"])], "x>r")) == ["x > r > x"]
    beside = router("r", ["x", "END"], default=["x", "z"])
    assert cycles(spec([pass_("x"), beside, pass_("z")], "x>r", "z>END")) == ["x > r > x"]


def test_a_loop_leaves_by_its_exit_unless_that_leads_back_into_it() -> None:
    assert cycles(spec([loop("l", "a", "END"), put("a")], "a>l")) == []
    assert cycles(spec([loop("l", "a", "b"), put("a"), put("b")], "a>l", "b>l")) == ["l > a > l"]
    assert cycles(spec([loop("l", "a", "b", on_limit=["END"]), put("a"), put("b")], "a>l", "b>l")) == []


def test_a_gate_leaves_only_by_a_decision_it_allows() -> None:
    nodes = [llm("draft"), gate("g", on_reject=["END"])]
    assert cycles(spec(nodes, "draft>g>draft")) == []
    assert cycles(spec([llm("draft"), gate("g")], "draft>g>draft")) == ["draft > g > draft"]
    only = gate("g", on_reject=["END"], allowed_decisions=["approve", "request_changes"])
    assert cycles(spec([llm("draft"), only], "draft>g>draft")) == ["draft > g > draft"]
    goes_on = gate("g", on_request_changes=["draft"], on_reject="continue")
    assert cycles(spec([llm("draft"), goes_on, llm("z")], "draft>g>z>END")) == []


def test_a_gate_that_can_only_fail_ends_the_run() -> None:
    assert cycles(spec([gate("g", allowed_decisions=["reject"])], "g>g")) == []


def test_a_cycle_a_run_can_enter_by_choice_is_refused_too() -> None:
    nodes = [router("r", ["x"], default=["END"]), pass_("x"), pass_("y")]
    assert cycles(spec(nodes, "x>y>x")) == ["x > y > x"]


def test_two_of_them_are_two_issues_even_when_one_leads_to_the_other() -> None:
    assert cycles(spec([pass_(n) for n in "xyuv"], "x>y>x", "y>u>v>u")) == ["u > v > u", "x > y > x"]


def test_what_cannot_be_reached_runs_for_ever_nowhere() -> None:
    assert cycles(spec([pass_("a"), pass_("x"), pass_("y")], "a>END", "x>y>x")) == []


def test_a_long_cycle_is_shown_in_short() -> None:
    names = [f"n{i}" for i in range(4_000)]
    raw = spec([pass_(name) for name in names], ">".join([*names, names[0]]))
    assert cycles(raw) == ["n0 > n1 > n2 > n3 > ... > n3997 > n3998 > n3999 > n0"]
    assert len(issues(raw, CODE)[0].related) == 50


def test_many_layers_of_cycles_are_not_followed_for_ever() -> None:
    names = [f"n{i}" for i in range(100)]
    ways = [f"n{i}>n{i + 1}>n{i}" for i in range(0, 100, 2)] + [f"n{i}>n{i + 1}" for i in range(1, 99, 2)]
    assert len(cycles(spec([pass_(name) for name in names], *ways))) == 20


def test_a_review_loop_entered_forward_is_fine() -> None:
    nodes = [llm("gen"), llm("rev", "review"), router("r", ["done"], default=["gen"]), llm("done", "out")]
    assert cycles(spec(nodes, "gen>rev>r", "done>END")) == []
    joined = [join("pre"), pass_("s"), router("r", ["pre"], default=["END"])]
    assert cycles(spec([pass_("a"), *joined], "a>s>pre>r", "a>pre")) == []
