"""Steps that ask nobody outside may be one commit while commits are shared; what a call follows from never waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_graph.core import events as e
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.store.base import RunRow
from tests.engine.room import Gates, Room, opened
from tests.specs import llm, spec, transform

ADD = {"op": "increment", "path": "n"}
CHAIN = spec(
    *(transform(f"n{place}", ADD) for place in range(12)),
    edges=" ".join([*(f"n{place}>n{place + 1}" for place in range(11)), "n11>END"]), output_key="n",
)  # fmt: skip
ASKING = spec(
    transform("a", ADD), transform("b", ADD), llm("ask", "number {n}", output_key="said"), transform("c", ADD),
    edges="a>b b>ask ask>c c>END", output_key="said",
)  # fmt: skip
RUNS = 40


def ends_by_commit(room: Room) -> list[int]:
    """How many firings end in each commit from here on."""
    found: list[int] = []

    def hear(_row: RunRow, events: Sequence[e.Event]) -> None:
        found.append(sum(isinstance(event.fact, e.ENDS) for event in events))

    room.shell.notify.listen(hear)
    return found


async def test_a_run_alone_in_a_file_commits_every_step(tmp_path: Path) -> None:
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        ends = ends_by_commit(room)
        assert (await room.run(CHAIN, {"n": 0})).final_state == (12,)
        assert max(ends) == 1
        assert sum(ends) == 12


async def test_many_runs_at_once_share_commits_and_their_records_are_those_of_a_run_alone(tmp_path: Path) -> None:
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        alone = await room.record((await room.run(CHAIN, {"n": 0})).run_id)
        ends = ends_by_commit(room)
        graph = await room.deps.catalog.get(CHAIN["name"])
        rows = await asyncio.gather(*(room.supervisor.start(graph, {"n": 0}) for _ in range(RUNS)))
        for row in rows:
            await room.ended(row.run_id)
        assert sum(ends) == 12 * RUNS
        assert max(ends) > 1
        for row in rows:
            assert await room.record(row.run_id) == alone
            assert await room.store.runs.verify_chain(row.run_id) is None


async def test_a_call_is_made_only_after_the_commit_of_all_it_follows_from(tmp_path: Path) -> None:
    room: Room
    unheard: list[str] = []

    async def answer(call: Any) -> str:
        """Every call so far stands in the log, with the steps before it."""
        called.append(call)
        committed = 0
        for row in (await room.store.runs.list(limit=RUNS))[0]:
            facts = await room.facts(row.run_id, e.NodeStarted, e.NodeFinished)
            begun = [fact.firing for fact in facts]
            committed += begun[:5] == ["a#1", "a#1", "b#1", "b#1", "ask#1"]
        if committed < len(called):
            unheard.append(f"{committed} of {len(called)}")
        return "fine"

    called: list[Any] = []
    async with opened(ScriptedModel(answer), tmp_path) as room:
        await room.create(ASKING)
        graph = await room.deps.catalog.get(ASKING["name"])
        rows = await asyncio.gather(*(room.supervisor.start(graph, {"n": 0}) for _ in range(RUNS)))
        for row in rows:
            assert (await room.ended(row.run_id)).final_state == ("fine",)
    assert len(called) == RUNS
    assert not unheard
