"""Many at once on one database, and a second pause in one branch."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from agent_graph.core import events as e
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Room, opened
from tests.specs import gate, join, llm, passthrough, put, spec

WIDTH, RUNS, CLIENTS = 10, 30, 4
WIDE = spec(
    passthrough("s"), *(put(f"t{n}", **{f"k{n}": n}) for n in range(WIDTH)), join("j"),
    edges=" ".join(f"s>t{n} t{n}>j" for n in range(WIDTH)) + " j>END", output_key="k0",
)  # fmt: skip


async def looks(room: Room, run_ids: list[str], done: asyncio.Event) -> int:
    """A client that reads without pause; how many of its calls were answered."""
    answered = 0
    while not done.is_set():
        for run_id in run_ids[:3]:
            for name in ("graph_run_get", "graph_run_events", "graph_run_state"):
                await room.data(name, run_id=run_id)
        await room.data("graph_approval_list")
        answered += 10
    return answered


async def test_SQ01_a_database_held_by_another_program_delays_writers_and_no_reader(tmp_path: Path) -> None:
    async with opened(ScriptedModel(), tmp_path) as room:
        await room.create(WIDE)
        first = str((await room.data("graph_run_start", graph_id="case", input={}))["run_id"])
        await room.ended(first)
        other = sqlite3.connect(tmp_path / "agent-graph.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        starts = [asyncio.ensure_future(room.data("graph_run_start", graph_id="case", input={})) for _ in range(RUNS)]
        done = asyncio.Event()
        clients = [asyncio.ensure_future(looks(room, [first], done)) for _ in range(CLIENTS)]
        for _ in range(20):  # readers are answered while no writer can be
            await room.data("graph_run_get", run_id=first)
        assert not any(start.done() for start in starts)
        other.execute("ROLLBACK")
        other.close()
        run_ids = [str((await start)["run_id"]) for start in starts]
        rows = [await room.ended(run_id) for run_id in run_ids]
        done.set()
        assert all(await asyncio.gather(*clients))
        assert [row.status for row in rows] == ["completed"] * RUNS
        for run_id in run_ids:
            log = await room.log(run_id)
            assert [event.seq for event in log] == list(range(len(log)))
            assert sum(isinstance(event.fact, e.NodeFinished) for event in log) == WIDTH + 2


async def test_AP05_the_second_pause_of_a_branch_is_answered_like_the_first() -> None:
    model = ScriptedModel(default=Reply(text="fine"))
    graph = spec(
        llm("a"), gate("h1"), llm("b"), gate("h2"), llm("c"), edges="a>h1 h1>b b>h2 h2>c c>END", output_key="c",
    )  # fmt: skip
    graph["nodes"][-1]["config"]["output_key"] = "c"
    async with opened(model) as room:
        run_id = await room.start(graph)
        seen = []
        for name in ("h1", "h2"):
            await room.reaches(run_id, "waiting")
            (pending,) = await room.pending(run_id)
            assert pending["node_id"] == name
            assert (await room.decide(pending["approval_id"], decision_note=f"yes to {name}"))["ok"]
            seen.append(pending["approval_id"])
        assert (await room.ended(run_id)).status == "completed"
        assert model.count("c") == 1
        first, second = [(await room.data("graph_approval_get", approval_id=each))["approval"] for each in seen]
        assert seen[0] != seen[1]
        assert (first["decision"]["note"], second["decision"]["note"]) == ("yes to h1", "yes to h2")
        assert first["decision"]["at_ms"] <= second["decision"]["at_ms"]
