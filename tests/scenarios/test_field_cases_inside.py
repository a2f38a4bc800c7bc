"""Field cases of joins, state and loops again, inside a graph inside and inside the items of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Room, opened
from tests.scenarios.test_joins_and_branches import in_any_order, increment, push
from tests.specs import Json, join, llm, node, passthrough, put, router, rule, spec, subgraph

Case = tuple[Json, Any, Any, str, int]
"""A graph, its input, its result, one of its nodes and how often that fires."""


def unequal_branches() -> Case:
    graph = spec(
        passthrough("s"), llm("a1"), put("a2", ra="A"), llm("b1"), llm("b2"), put("b3", rb="B"),
        join("j", ["ra", "rb"], "all", "collect_array"), edges="s>a1 a1>a2 a2>j s>b1 b1>b2 b2>b3 b3>j j>END",
        output_key="all",
    )  # fmt: skip
    return graph, {}, ["A", "B"], "j", 1


def a_way_not_taken() -> Case:
    graph = spec(
        router("r", rule("k", "eq", "x", "a"), default=["b"]), put("a", ra=1), put("b", rb=2),
        join("j", ["ra", "rb"], "o", "collect_array"), edges="r>a r>b a>j b>j j>END", output_key="o",
    )  # fmt: skip
    return graph, {"k": "x"}, [1, None], "b", 0


def a_join_in_a_cycle() -> Case:
    graph = spec(
        passthrough("s"), increment("x", "i"), push("p1", "p1"), push("p2", "p2"), join("j"),
        router("r", rule("i", "lt", 3, "x"), default=["END"]), edges="s>x x>p1 x>p2 p1>j p2>j j>r",
        reducers={"log": "append"}, output_key="log",
    )  # fmt: skip
    return graph, {"i": 0}, ["p1", "p2"] * 3, "j", 3


def a_way_back() -> Case:
    graph = spec(
        passthrough("s"), join("pre"), llm("gen"), increment("count", "n"),
        router("r", rule("n", "gte", 3, "done"), default=["pre"]), put("done", end=True),
        edges="s>pre pre>gen gen>count count>r done>END", output_key="end",
    )  # fmt: skip
    return graph, {"n": 0}, True, "gen", 3


def workers_of_one_key() -> Case:
    names = [f"a{n}" for n in range(3)]
    graph = spec(
        passthrough("s"), *(push(name, name) for name in names), join("j"),
        edges=" ".join(f"s>{name} {name}>j" for name in names) + " j>END", reducers={"log": "append"}, output_key="log",
    )  # fmt: skip
    return graph, {}, names, "j", 1


def loop_in_loop() -> Case:
    """Number 8 of the list of what an earlier program got wrong."""
    graph = spec(
        node("outer", "loop", entry="inner", exit="END", max_iterations=2),
        node("inner", "loop", entry="x", exit="outer", max_iterations=2), increment("x"), edges="x>inner",
        output_key="n",
    )  # fmt: skip
    return graph, {"n": 0}, 4, "x", 4


CASES: dict[str, Callable[[], Case]] = {
    "JB01": unequal_branches, "JB02": a_way_not_taken, "JB07": a_join_in_a_cycle, "JB08": a_way_back,
    "ST03": workers_of_one_key, "reproduction 8": loop_in_loop,
}  # fmt: skip


async def inside(room: Room, graph: Json, value: Any, *, items: int) -> Any:
    """Run `graph` in a graph inside, or, with `items`, once for each of so many equal items."""
    await room.create({**graph, "name": "inner"})
    if not items:
        return await room.run(spec(subgraph("o", "inner"), edges="o>END"), value)
    over = node("o", "parallel", for_each={}, graph_name="inner", max_parallelism=2)
    return await room.run(spec(over, edges="o>END"), [value] * items)


@pytest.mark.parametrize("items", [0, 3], ids=["a graph inside", "items"])
@pytest.mark.parametrize("name", CASES)
async def test_inside_a_frame_it_is_as_it_is_outside(name: str, items: int) -> None:
    graph, value, result, counted, times = CASES[name]()
    async with opened(in_any_order(items)) as room:
        alone = await room.run(graph, value)
        assert (alone.status, alone.final_state) == ("completed", (result,))
        row = await inside(room, graph, value, items=items)
        assert (row.status, row.final_state) == ("completed", ([result] * items if items else result,))
        started = [path for path, _ in await room.started(row.run_id)]
        for frame in [f"o#1[{item}]/" for item in range(items)] or ["o#1/"]:
            assert sum(path.startswith(f"{frame}{counted}#") for path in started) == times


@pytest.mark.parametrize("items", [0, 2], ids=["a graph inside", "items"])
async def test_ST05_a_bound_inside_names_the_node_inside_and_counts_that_frame_alone(items: int) -> None:
    graph = spec(
        increment("x"), router("r", rule("n", "gte", 1000, "END"), default=["x"]), edges="x>r", max_iterations=5,
        output_key="n",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        row = await inside(room, graph, {"n": 0}, items=items)
        assert (row.status, row.error["code"], row.error["node_id"]) == ("failed", "MAX_ITERATIONS_EXCEEDED", "r")
        assert row.error["node_path"] == ("o#1[0]/r#3" if items else "o#1/r#3")
        assert row.error["details"] == {"limit": 5}


async def test_JB05_a_branch_that_fails_inside_an_item_fails_that_item_alone_and_nothing_hangs() -> None:
    retry = {"max_attempts": 2, "initial_delay_ms": 1, "jitter": False}
    graph = spec(
        passthrough("s"), llm("a1", "ask {input}", output_key="r1", retry=retry), llm("a2", output_key="ra"),
        llm("b", output_key="rb"), join("j", ["ra", "rb"], "o", "all_success"),
        edges="s>a1 a1>a2 a2>j s>b b>j j>END", output_key="o",
    )  # fmt: skip
    broken = {"code": "MODEL_SERVER_ERROR", "message": "broken"}
    model = ScriptedModel([Reply(when="ask bad", error=broken), Reply("fine")])
    over = node("o", "parallel", for_each={}, graph_name="inner", fail_policy="collect_partial")
    async with opened(model) as room:
        await room.create({**graph, "name": "inner"})
        row = await room.run(spec(over, edges="o>END"), ["good", "bad"])
        fine = {"all_success": True, "values": ["fine", "fine"]}
        ((first, second),) = row.final_state
        assert (row.status, first) == ("completed", fine)
        assert second["error"]["code"] == "MODEL_SERVER_ERROR"
        assert [fact.frame for fact in await room.facts(row.run_id, e.FrameFailed)] == ["o#1[1]/"]
        assert model.count("ask bad") == 2


async def test_a_budget_counts_what_runs_inside_as_well() -> None:
    chain = spec(llm("a", "{input}"), llm("b", "{input}"), edges="a>b b>END", name="inner")
    over = node("o", "parallel", for_each={}, graph_name="inner", max_parallelism=1)
    model = ScriptedModel([Reply("fine")])
    async with opened(model) as room:
        await room.create(chain)
        row = await room.run(spec(over, edges="o>END", budgets={"max_llm_calls": 3}), ["x", "y"])
        assert row.status == "failed"
        assert row.error is not None
        assert row.error["code"].startswith("BUDGET_"), row.error
        assert len(model.calls) == 3
