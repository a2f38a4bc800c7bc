"""What recorded runs say of the next one."""

from __future__ import annotations

from agent_graph.core.forecast import Taken, recorded, worst_case


def test_without_a_run_there_is_nothing_to_say() -> None:
    assert recorded([]) is None


def test_half_and_nearly_all_of_the_runs_took_no_more_than_is_said() -> None:
    said = recorded([Taken(n, 2 * n, 100 * n, n) for n in range(1, 101)])
    assert said is not None
    assert said["runs"] == 100
    assert said["llm_calls"] == {"p50": 50, "p95": 95, "runs": 100}
    assert said["nodes"] == {"p50": 100, "p95": 190, "runs": 100}
    one = {"p50": 7, "p95": 7, "runs": 1}
    alone = recorded([Taken(7, 7, 7, 7)])
    assert alone == {"runs": 1, "llm_calls": one, "nodes": one, "tokens": one, "wall_clock_ms": one}


def test_runs_of_which_something_is_not_known_do_not_count_for_it() -> None:
    said = recorded([Taken(1, 1, None, 5), Taken(2, 1, 40, None)])
    assert said is not None
    assert said["tokens"] == {"p50": 40, "p95": 40, "runs": 1}
    assert said["wall_clock_ms"] == {"p50": 5, "p95": 5, "runs": 1}
    unknown = recorded([Taken(1, 1, None, None)])
    assert unknown is not None
    assert unknown["tokens"] is None


def test_the_worst_case_is_what_the_graph_and_the_budgets_bound() -> None:
    calls = {"worst": None, "likely": 4, "least": 1}
    assert worst_case(calls, {}) == {"llm_calls": calls, "tokens": None, "nodes": None, "wall_clock_ms": None}
    said = worst_case(calls, {"max_llm_calls": 3, "max_tokens": 900, "max_nodes": 8, "max_wall_clock_ms": 5})
    assert said["llm_calls"] == {"worst": 3, "likely": 3, "least": 1}
    assert (said["tokens"], said["nodes"], said["wall_clock_ms"]) == (900, 8, 5)
