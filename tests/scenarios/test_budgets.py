"""Budgets through the public door: what earlier programs counted and did not enforce, or enforced wrongly."""

from __future__ import annotations

import pytest

from agent_graph.core import events as e
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import Gates, opened
from tests.specs import join, llm, node, passthrough, put, router, rule, spec

STILL = frozenset({"waiting", "completed", "failed"})


def fine() -> ScriptedModel:
    return ScriptedModel(Gates())


async def test_reproduction_7_a_router_with_more_than_enough_nodes_completes() -> None:
    graph = spec(
        llm("classify", "{input}", output_key="kind"),
        router("r", rule("kind", "contains", "question", "answer"), default=["other"]),
        llm("answer", output_key="said"), llm("other", output_key="said"),
        edges="classify>r answer>END other>END", output_key="said", budgets={"max_nodes": 10},
    )  # fmt: skip
    async with opened(fine()) as room:
        row = await room.run(graph, "a question")
        assert row.status == "completed", row.error
        assert row.usage["nodes"] == 3
        assert row.budget["max_nodes"] == {"max": 10, "used": 3}


async def test_PO01_the_sixth_call_of_a_loop_of_ten_is_refused_and_the_work_so_far_is_kept() -> None:
    graph = spec(
        node("l", "loop", entry="work", exit="END", max_iterations=10),
        llm("work", "{loops.l}", output_key="notes"), edges="work>l", reducers={"notes": "append"},
        output_key="notes", budgets={"max_llm_calls": 5},
    )  # fmt: skip
    model = fine()
    async with opened(model) as room:
        row = await room.run(graph, {})
        assert row.error is not None
        assert (row.status, row.error["code"]) == ("failed", "BUDGET_EXHAUSTED")
        assert len(model.calls) == 5
        assert (await room.state(row.run_id))["notes"] == [f"fine: {number}" for number in range(5)]


async def test_PO01_calls_inside_inner_graphs_count_and_their_own_budgets_do_not_hold() -> None:
    inner = spec(llm("x", "inner", output_key="t"), llm("y", "inner", output_key="t2"), edges="x>y y>END", name="inner",
                 output_key="t2", budgets={"max_llm_calls": 9_999})  # fmt: skip
    outer = spec(
        node("one", "subgraph", graph_name="inner", output_key="a"),
        node("two", "subgraph", graph_name="inner", output_key="b"),
        edges="one>two two>END", output_key="b", budgets={"max_llm_calls": 3},
    )  # fmt: skip
    model = fine()
    async with opened(model) as room:
        await room.create(inner)
        row = await room.run(outer, "x")
        assert row.error is not None
        assert (row.status, row.error["code"], row.error["node_path"]) == ("failed", "BUDGET_EXHAUSTED", "two#1/y#1")
        assert len(model.calls) == 3


@pytest.mark.parametrize("policy", ["collect_partial", "ignore"])
async def test_no_fail_policy_takes_the_end_of_a_budget_for_the_failure_of_an_item(policy: str) -> None:
    graph = spec(
        node("each", "parallel", for_each={"path": "rows"}, entry="do", join="j", fail_policy=policy, output_key="all",
             max_parallelism=1),
        llm("do", "{item}", on_error="continue"), join("j"), edges="do>j j>END", output_key="all",
        budgets={"max_llm_calls": 2},
    )  # fmt: skip
    model = fine()
    async with opened(model) as room:
        row = await room.run(graph, {"rows": ["a", "b", "c", "d"]})
        assert row.error is not None
        assert (row.status, row.error["code"]) == ("failed", "BUDGET_EXHAUSTED")
        assert len(model.calls) == 2


async def test_a_fan_out_that_pauses_goes_on_with_every_item_once_it_is_given_more() -> None:
    graph = spec(
        node("each", "parallel", for_each={"path": "rows"}, entry="do", join="j", output_key="all"),
        llm("do", "{item}"), join("j"), edges="do>j j>END", output_key="all",
        budgets={"max_llm_calls": 2, "on_budget": "pause"},
    )  # fmt: skip
    async with opened(fine()) as room:
        run_id = await room.start(graph, {"rows": ["a", "b", "c", "d", "e"]})
        decided = set()
        while (
            row := await room.supervisor.wait(run_id, timeout_ms=5_000, until=lambda row: row.status in STILL)
        ).status == "waiting":
            for asked in await room.pending(run_id):
                decided.add(asked["approval_id"])
                await room.decide(asked["approval_id"])
        assert len(decided) == 2
        assert (row.status, row.final_state) == ("completed", ([f"fine: {item}" for item in "abcde"],))


async def test_a_run_that_goes_elsewhere_leaves_its_inner_graphs_behind() -> None:
    graph = spec(
        passthrough("p"), llm("keep", "keep", output_key="kept"),
        node("each", "parallel", for_each={"path": "rows"}, entry="do", join="j", output_key="all"),
        llm("do", "{item}"), join("j"), put("rest", result="short"),
        edges="p>keep p>each do>j keep>END j>END rest>END", output_key="result",
        budgets={"max_llm_calls": 3, "max_nodes": 100, "on_budget": {"goto": ["rest"]}},
    )  # fmt: skip
    async with opened(fine()) as room:
        row = await room.run(graph, {"rows": ["a", "b", "c", "d"]})
        assert (row.status, row.final_state) == ("completed", ("short",))
        ended = [fact.firing for fact in await room.facts(row.run_id, e.FiringCancelled)]
        assert "each#1" in ended
        assert ended.index("each#1") > max(place for place, path in enumerate(ended) if "/" in path)
        assert await room.supervisor.fold(row.run_id)


async def test_two_bounds_hold_the_lower_one() -> None:
    graph = spec(llm("a", output_key="x"), llm("b", output_key="y"), edges="a>b b>END", output_key="y",
                 budgets={"max_llm_calls": 2})  # fmt: skip
    async with opened(fine()) as room:
        await room.create(graph)
        for given, status in ((9, "completed"), (1, "failed")):
            started = await room.data("graph_run_start", graph_id="case", input="x", budgets={"max_llm_calls": given})
            row = await room.ended(str(started["run_id"]))
            assert row.status == status
            assert row.budget["max_llm_calls"]["max"] == min(given, 2)
