"""This project as the peer `ours` of the benchmark programs: ``bench_ours.py WORKLOAD --n N --mode MODE``.

Runs with the folder of those programs on PYTHONPATH (see ``make bench``). Pure nodes are transforms; a node that sleeps
or leaves a trace is a model that a function of ours answers for. Modes: full, normal (durable), memory.

What a run imports when it needs it is imported above, as the other programs do it: the clock covers runs alone.
"""

import time

STARTED = time.perf_counter()

import asyncio  # noqa: E402  (importing is measured)
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from _common import SLEEP, NodeLog, layered, main, payload  # noqa: E402

import agent_graph.core.nodes.human_approval  # noqa: E402
import agent_graph.core.nodes.state_transform  # noqa: E402
import agent_graph.core.ops.transforms  # noqa: E402
import agent_graph.store.lock  # noqa: E402
import agent_graph.store.sqlite  # noqa: E402, F401
from agent_graph.app import open_app  # noqa: E402
from agent_graph.core.approval import Ballot  # noqa: E402
from agent_graph.core.effects import ModelAnswer  # noqa: E402
from agent_graph.core.outcome import state  # noqa: E402
from agent_graph.engine.commands import Decide  # noqa: E402
from agent_graph.settings import load  # noqa: E402

IMPORTED_S = time.perf_counter() - STARTED
WAIT_MS = 600_000
ADD = {"operations": [{"op": "increment", "path": "counter"}]}


def opened(a, answer=None, *, recover=False):
    """The program over the data folder `a.db`, or over nothing in mode memory; `answer` is asked in a model's place."""
    model = None
    if answer is not None:
        from agent_graph.llm.scripted import ScriptedModel

        model = ScriptedModel(answer, parallel=2000)
    environ = {
        "AGENT_GRAPH_DATA_DIR": ":memory:" if a.mode in ("", "memory") else str(Path(a.db).absolute()),
        "AGENT_GRAPH_SYNCHRONOUS": a.mode if a.mode in ("full", "normal") else "",
        "AGENT_GRAPH_LIMITS__ACTIVE_RUNS": "1000",
    }
    return open_app(load(environ=environ), recover=recover, serve=False, model=model)


def spec(name, nodes, edges, **more):
    wired = [{"from": u, "to": v} for u, v in edges]
    return {"name": name, "entry": nodes[0]["id"], "nodes": nodes, "edges": wired, **more}


def chain(n, name="chain", make=lambda i: {"type": "state_transform", "config": ADD}, **more):
    nodes = [{"id": f"n{i}", **make(i)} for i in range(n)]
    edges = [(f"n{i}", f"n{i + 1}") for i in range(n - 1)]
    return spec(name, nodes, [*edges, (f"n{n - 1}", "END")], **{"output_key": "counter", **more})


async def created(deps, graph):
    checked = await deps.catalog.check(graph)
    await deps.catalog.put(checked, overwrite=True, expected_version=None)
    return checked.graph


async def run(deps, graph, value):
    """Start and wait for the end; the result."""
    row = await deps.supervisor.start(graph, value)
    return await result(deps, row.run_id)


async def result(deps, run_id):
    row = await deps.supervisor.wait(run_id, timeout_ms=WAIT_MS)
    assert row.status == "completed", (row.status, row.error)
    return row.final_state[0]


def init(**more):
    return {"payload": payload(), "counter": 0, **more}


async def w1(a):
    async with opened(a) as deps:
        warm, graph = await created(deps, chain(3, "warm")), await created(deps, chain(a.n))
        await run(deps, warm, init())
        t = time.perf_counter()
        counter = await run(deps, graph, init())
        dt = time.perf_counter() - t
        assert counter == a.n
    return {"seconds": dt, "steps": a.n}


def fan(width, name):
    lanes = [f"b{i}" for i in range(width)]
    nodes = [{"id": "start", "type": "passthrough"}]
    nodes += [{"id": lane, "type": "llm", "config": {"prompt": lane}} for lane in lanes]
    nodes += [{"id": "join", "type": "join", "config": {"inputs": lanes, "output": "out"}}]
    edges = [("start", lane) for lane in lanes] + [(lane, "join") for lane in lanes]
    return spec(name, nodes, [*edges, ("join", "END")], output_key="out", max_parallelism=1000)


async def w3(a):
    async def answer(call):
        await asyncio.sleep(SLEEP)
        return ModelAnswer("1")

    async with opened(a, answer) as deps:
        warm, graph = await created(deps, fan(2, "warm")), await created(deps, fan(a.n, "fan"))
        await run(deps, warm, init())
        t = time.perf_counter()
        out = await run(deps, graph, init())
        dt = time.perf_counter() - t
        assert len(out) == a.n
    return {"seconds": dt, "steps": a.n + 2, "makespan_x": round(dt / SLEEP, 3)}


async def w4(a):
    async with opened(a) as deps:
        graph = await created(deps, chain(10))
        await run(deps, graph, init())
        before = deps.store.database.transactions
        t = time.perf_counter()
        await asyncio.gather(*(run(deps, graph, init()) for _ in range(a.n)))
        dt = time.perf_counter() - t
        commits = deps.store.database.transactions - before
    return {"seconds": dt, "steps": a.n * 10, "runs_per_s": round(a.n / dt, 1), "commits": commits}


async def w5(a):
    """Each step makes a text of its own of 10 KB and appends it."""

    def make(i):
        text = {"op": "format", "path": "items", "template": f"{i:06d}{{pad}}"}
        return {"type": "state_transform", "config": {"operations": [text, *ADD["operations"]]}}

    async with opened(a) as deps:
        graph = await created(deps, chain(a.n, make=make, reducers={"items": "append"}))
        t = time.perf_counter()
        row = await deps.supervisor.start(graph, {"items": [], "pad": "y" * 9_994, "counter": 0})
        assert await result(deps, row.run_id) == a.n
        dt = time.perf_counter() - t
    async with opened(a) as deps:
        t = time.perf_counter()
        _, again = await deps.supervisor.fold(row.run_id)
        items = state(again)["items"]
        fold_ms = (time.perf_counter() - t) * 1000
        assert len(items) == a.n
    return {"seconds": dt, "steps": a.n, "fold_ms": round(fold_ms, 2)}


async def w6(a):
    nodes = [
        {"id": "x", "type": "state_transform", "config": ADD},
        {"id": "y", "type": "router", "config": {
            "rules": [{"path": "counter", "op": "lt", "value_path": "limit", "targets": ["x"]}], "default": ["END"]}},
    ]  # fmt: skip
    async with opened(a) as deps:
        graph = await created(deps, spec("loop", nodes, [("x", "y")], output_key="counter", max_iterations=10 * a.n))
        await run(deps, graph, init(limit=3))
        t = time.perf_counter()
        counter = await run(deps, graph, init(limit=a.n))
        dt = time.perf_counter() - t
        assert counter == a.n
    return {"seconds": dt, "steps": 2 * a.n}


def w7(a):
    from agent_graph.core.compile import compile_graph
    from agent_graph.core.limits import DEFAULTS

    compile_graph(spec("warm", [{"id": "a", "type": "passthrough"}], [("a", "END")]))  # as all peers do first
    names, edges, _, sink = layered(a.n)
    nodes = [{"id": "start", "type": "passthrough"}] + [{"id": x, "type": "passthrough"} for x in names]
    wired = [("start", x) for x in names[:50]] + edges + [(x, "END") for x in sink]
    graph = spec("build", nodes, wired, output_key="__input__")
    compile_graph(chain(3), limits=DEFAULTS)  # warm-up, as everywhere: the first check imports the validator
    t = time.perf_counter()
    made = compile_graph(graph, limits=replace(DEFAULTS, nodes=2 * a.n, edges=10 * a.n))
    dt = time.perf_counter() - t
    assert made.graph is not None, made.issues[:3]
    return {"seconds": dt, "steps": a.n, "edges": len(edges)}


def gated():
    gate = {"type": "human_approval", "config": {"prompt": "ok?"}}
    return chain(10, "gated", lambda i: gate if i == 5 else {"type": "state_transform", "config": ADD})


async def w8a(a):
    async with opened(a) as deps:
        graph = await created(deps, gated())
        t = time.perf_counter()
        row = await deps.supervisor.start(graph, init())
        row = await deps.supervisor.wait(row.run_id, timeout_ms=WAIT_MS, until=lambda row: row.status == "waiting")
        dt = time.perf_counter() - t
    assert row.status == "waiting"
    return {"seconds": dt, "steps": 5}


async def w8b(a):
    t = time.perf_counter()
    async with opened(a, recover=True) as deps:
        [gate], _ = await deps.store.approvals.list(statuses=["pending"])
        await deps.supervisor.ask(gate.run_id, Decide(gate.approval_id, Ballot("approve", "Ada", "cli")))
        counter = await result(deps, gate.run_id)
        dt = time.perf_counter() - t
    assert counter == 9
    return {"seconds": dt, "steps": 5}


async def w10(a):
    """The second process only opens the folder: what was under way goes on by itself."""
    log = NodeLog(a.log)

    async def answer(call):
        i = call.messages[-1]["content"]
        log.s(i)
        await asyncio.sleep(0.003)
        log.e(i)
        return ModelAnswer(i)

    async with opened(a, answer, recover=True) as deps:
        t = time.perf_counter()
        if a.workload == "w10a":
            asks = chain(a.n, "logged", lambda i: {"type": "llm", "config": {"prompt": str(i)}}, output_key="outputs")
            await run(deps, await created(deps, asks), init())
        else:
            rows, _ = await deps.store.runs.list()
            for row in rows:
                await result(deps, row.run_id)
        dt = time.perf_counter() - t
    return {"seconds": dt, "steps": a.n}


WORKLOADS: dict[str, Any] = {
    "w1": w1, "w2": w1, "w3": w3, "w3d": w3, "w4": w4, "w5": w5, "w6": w6, "w7": w7, "w8a": w8a, "w8b": w8b,
    "w10a": w10, "w10b": w10,
}  # fmt: skip

if __name__ == "__main__":
    main("ours", WORKLOADS, IMPORTED_S)
