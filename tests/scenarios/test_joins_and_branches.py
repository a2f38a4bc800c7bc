"""Field cases of joins, branches and loops (JB, ST): the token rule of the scheduling page, seen from outside."""

from __future__ import annotations

import asyncio
import random

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, asked, opened
from tests.sizes import size
from tests.specs import Json, join, llm, node, passthrough, put, router, rule, spec, transform

TIMES = size(10, 50)


def increment(node_id: str, path: str = "n") -> Json:
    return transform(node_id, {"op": "increment", "path": path, "value": 1})


def push(node_id: str, value: str) -> Json:
    return transform(node_id, {"op": "append", "path": "log", "value": value})


def in_any_order(seed: int) -> ScriptedModel:
    """A model whose answers come in another order for each seed."""
    dice = random.Random(seed)

    async def answer(call: CallModel) -> str:
        for _ in range(dice.randrange(30)):
            await asyncio.sleep(0)
        return f"said {call.messages[-1]['content']}"

    return ScriptedModel(answer, parallel=16)


@pytest.mark.parametrize("seed", range(TIMES))
async def test_JB01_a_join_of_unequal_branches_starts_once_and_keeps_the_order_of_its_inputs(seed: int) -> None:
    graph = spec(
        passthrough("s"), llm("a1"), put("a2", ra="A"), llm("b1"), llm("b2"), put("b3", rb="B"),
        join("j", ["ra", "rb"], "all", "collect_array"), increment("z"),
        edges="s>a1 a1>a2 a2>j s>b1 b1>b2 b2>b3 b3>j j>z z>END", output_key="n",
    )  # fmt: skip
    async with opened(in_any_order(seed)) as room:
        row = await room.run(graph, {"n": 0})
        assert row.final_state == (1,)
        assert (await room.state(row.run_id))["all"] == ["A", "B"]
        started = [firing for firing, _ in await room.started(row.run_id)]
        assert started.count("j#1") == 1
        assert started.index("j#1") > max(started.index("a2#1"), started.index("b3#1"))
        assert "j#2" not in started


@pytest.mark.parametrize(
    ("mode", "collected"),
    [("first_non_null", 1), ("collect_array", [1, None]), ("collect_object", {"ra": 1, "rb": None})],
)
async def test_JB02_a_way_not_taken_does_not_hold_up_a_join(mode: str, collected: object) -> None:
    """`on_missing` is null by default: the slot of the way not taken holds null."""
    graph = spec(
        router("r", rule("k", "eq", "x", "a"), default=["b"]), put("a", ra=1), put("b", rb=2),
        join("j", ["ra", "rb"], "o", mode), put("z", done=True), edges="r>a r>b a>j b>j j>z z>END", output_key="o",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        row = await room.run(graph, {"k": "x"})
        assert (row.status, row.final_state) == ("completed", (collected,))
        got = await room.data("graph_run_get", run_id=row.run_id, include_state=True)
        assert got["state"]["done"] is True
        assert got["skipped"] == ["b"]


async def test_JB07_a_join_in_a_cycle_fires_once_in_each_round() -> None:
    graph = spec(
        passthrough("s"), increment("x", "i"), push("p1", "p1"), push("p2", "p2"), join("j"),
        router("r", rule("i", "lt", 3, "x"), default=["END"]), edges="s>x x>p1 x>p2 p1>j p2>j j>r",
        reducers={"log": "append"}, output_key="log",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        row = await room.run(graph, {"i": 0})
        assert row.final_state == (["p1", "p2"] * 3,)
        assert (await room.state(row.run_id))["i"] == 3
        joins = [firing for firing, _ in await room.started(row.run_id) if firing.startswith("j#")]
        assert joins == ["j#1", "j#2", "j#3"]


@pytest.mark.parametrize("with_join", [False, True])
async def test_JB08_a_way_back_never_holds_up_the_first_round(with_join: bool) -> None:
    first = [passthrough("s"), join("pre")] if with_join else []
    again = "pre" if with_join else "gen"
    graph = spec(
        *first, llm("gen", output_key="draft"), llm("rev", "review {draft}", output_key="review"),
        router("r", rule("review", "contains", "OK", "done"), default=[again]), put("done", end=True),
        edges=("s>pre pre>gen " if with_join else "") + "gen>rev rev>r done>END", output_key="end",
    )  # fmt: skip
    verdicts = [Reply(when="review", text=text, times=1) for text in ("no", "no", "OK")]
    model = ScriptedModel([*verdicts, Reply(when="gen", text="draft")])
    async with opened(model) as room:
        row = await room.run(graph, {})
        assert (row.status, row.final_state) == ("completed", (True,))
        assert asked(model, "gen", "review") == [3, 3]


@pytest.mark.parametrize("turned", [False, True])
async def test_JB10_two_routers_of_one_node_are_both_followed(turned: bool) -> None:
    nodes = [
        router("r1", default=["left"]), router("r2", default=["right"]), passthrough("left"), passthrough("right"),
        router("r3", default=["l2"]), router("r4", default=["r2b"]), push("l2", "L"), push("r2b", "R"),
    ]  # fmt: skip
    edges = ["s>r1", "s>r2", "left>r3", "right>r4", "l2>END", "r2b>END"]
    if turned:
        nodes.reverse()
        edges.reverse()
    graph = spec(
        passthrough("s"), *nodes, edges=" ".join(edges), reducers={"log": "append"}, output_key="log"
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        (log,) = (await room.run(graph, {})).final_state
        assert sorted(log) == ["L", "R"]  # type: ignore[type-var, arg-type]  # a list of texts


async def test_JB11_a_slow_sibling_does_not_hold_up_an_unrelated_branch() -> None:
    """a2 starts while b is still under way: there are no layers."""
    gates = Gates("slow b")
    graph = spec(
        passthrough("s"), llm("a1"), llm("a2", "then a2", output_key="r2"), llm("b", "slow b"), join("j"),
        edges="s>a1 a1>a2 a2>j s>b b>j j>END", max_parallelism=4, output_key="r2",
    )  # fmt: skip
    model = ScriptedModel(gates)
    async with opened(model) as room:
        run_id = await room.start(graph, {})
        await gates.reached("slow b")
        await room.supervisor.wait(run_id, timeout_ms=5000, until=lambda _: asked(model, "then a2") == [1])
        assert asked(model, "a1", "then a2", "slow b") == [1, 1, 1]
        assert (await room.store.runs.get(run_id)).status == "running"
        gates.open("slow b")
        assert (await room.ended(run_id)).status == "completed"


def collector(mode: str) -> Json:
    nodes: list[Json] = [passthrough("s")]
    edges = ["j>END"]
    for n in (1, 2, 3):
        nodes += [
            router(f"r{n}", rule(f"take{n}", "eq", True, f"k{n}"), default=["j"]),
            llm(f"k{n}", json_mode=True, output_key=f"v{n}"),
        ]
        edges += [f"s>r{n}", f"k{n}>j"]
    nodes.append(join("j", ["v1", "v2", "v3"], "o", mode))
    return spec(*nodes, edges=" ".join(edges), output_key="o")


@pytest.mark.parametrize(
    ("mode", "collected"),
    [
        ("collect_array", [{"who": "k1", "k1": 1}, None, {"who": "k3", "k3": 1}]),
        ("merge_objects", {"who": "k3", "k1": 1, "v2": None, "k3": 1}),
    ],
)
async def test_JB12_a_collector_waits_for_the_slow_one_and_keeps_the_order_of_its_inputs(
    mode: str, collected: object
) -> None:
    """A way not taken leaves null in its place, in every mode; the later input wins a clash, whoever was quicker."""
    gates = Gates("k3")

    async def answer(call: CallModel) -> Json:
        name = str(call.messages[-1]["content"])
        await gates(call)
        return {"who": name, name: 1}

    async with opened(ScriptedModel(answer)) as room:
        run_id = await room.start(collector(mode), {"take1": True, "take2": False, "take3": True})
        await gates.reached("k3")
        await room.supervisor.wait(run_id, timeout_ms=5000, until=lambda row: row.usage.get("llm_calls") == 1)
        assert "j#1" not in [firing for firing, _ in await room.started(run_id)]
        gates.open("k3")
        row = await room.ended(run_id)
        assert (row.status, row.final_state) == ("completed", (collected,))
        assert [firing for firing, _ in await room.started(run_id)].count("j#1") == 1


@pytest.mark.parametrize("seed", range(TIMES))
async def test_JB13_a_plain_node_with_two_parents_runs_once_per_round(seed: int) -> None:
    both = spec(
        passthrough("s"), passthrough("a"), llm("b"), increment("t"), edges="s>a s>b a>t b>t t>END", output_key="n"
    )
    one = spec(
        router("s", default=["a"]), passthrough("a"), passthrough("b"), increment("t"), edges="a>t b>t t>END",
        output_key="n",
    )  # fmt: skip
    one["nodes"][0]["config"]["rules"] = [rule("never", "eq", True, "a", "b")]
    async with opened(in_any_order(seed)) as room:
        assert (await room.run(both, {"n": 0})).final_state == (1,)
        assert (await room.run(one, {"n": 0})).final_state == (1,)


# -- ST05: limits of loops ------------------------------------------------------------------------------------------


async def test_ST05_a_cycle_that_never_ends_fails_with_limit_and_node_and_keeps_its_work() -> None:
    """The graph's `max_iterations` bounds the longest chain of firings: x r x r x, so x ran three times of five."""
    graph = spec(
        increment("x"), router("r", rule("n", "gte", 1000, "END"), default=["x"]), edges="x>r", max_iterations=5,
        output_key="n",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        row = await room.run(graph, {"n": 0})
        assert row.status == "failed"
        assert row.error is not None
        assert (row.error["code"], row.error["node_id"]) == ("MAX_ITERATIONS_EXCEEDED", "r")
        assert row.error["details"] == {"limit": 5}
        assert await room.state(row.run_id) == {"n": 3}


async def test_ST05_a_loop_node_runs_its_body_exactly_as_often_as_it_may() -> None:
    graph = spec(
        node("l", "loop", entry="x", exit="END", max_iterations=5), increment("x"), edges="x>l", output_key="n"
    )
    async with opened(ScriptedModel()) as room:
        row = await room.run(graph, {"n": 0})
        assert (row.status, row.final_state) == ("completed", (5,))


async def test_ST05_a_cycle_without_a_way_out_is_refused() -> None:
    async with opened(ScriptedModel()) as room:
        before = await room.counts()
        refused = await room.call("graph_create", spec=spec(increment("x"), passthrough("y"), edges="x>y y>x"))
        assert refused["error_code"] == "SPEC_INVALID"
        assert "LOOP_WITHOUT_EXIT" in {issue["code"] for issue in refused["details"]["issues"]}
        assert await room.counts() == before


async def test_ST05_five_steps_fit_a_limit_of_five_and_a_wide_fork_counts_its_depth_alone() -> None:
    chain = spec(*(increment(f"x{i}") for i in range(5)), edges="x0>x1 x1>x2 x2>x3 x3>x4 x4>END", max_iterations=5,
                 output_key="n")  # fmt: skip
    wide = spec(
        passthrough("s"), *(increment(f"x{i}") for i in range(10)), join("j"),
        edges=" ".join(f"s>x{i} x{i}>j" for i in range(10)) + " j>END", reducers={"n": "add"}, max_iterations=5,
        output_key="n",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        assert (await room.run(chain, {"n": 0})).final_state == (5,)
        assert (await room.run(wide, {"n": 0})).final_state == (10,)
