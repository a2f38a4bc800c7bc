"""Decisions in the very moment a gate's time is over, and a process that dies between a vote and what follows it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import Room, opened
from tests.sizes import size
from tests.specs import gate, put, spec

RACES = size(40, 500)
pytestmark = pytest.mark.timeout(120)
EXPIRY_MS = 1_000
GATED = spec(
    gate("h", expiry_ms=EXPIRY_MS, on_expire={"goto": ["late"]}), put("z", came="yes"), put("late", came="late"),
    edges="h>z z>END late>END", output_key="came",
)  # fmt: skip


class StillClock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.at_ms = 1_000_000

    def now_ms(self) -> int:
        return self.at_ms


async def waiting(room: Room) -> tuple[str, str]:
    run_id = str((await room.data("graph_run_start", graph_id="case", input={}))["run_id"])
    await room.reaches(run_id, "waiting")
    (pending,) = await room.pending(run_id)
    return run_id, str(pending["approval_id"])


async def closed(room: Room, run_id: str, answer: dict[str, Any]) -> str:
    """How the gate was closed: once, and as whoever decided was told."""
    row = await room.ended(run_id)
    assert row.status == "completed"
    (fact,) = await room.facts(run_id, e.ApprovalDecided, e.ApprovalExpired)
    decided = isinstance(fact, e.ApprovalDecided)
    assert answer["ok"] == decided
    assert decided or answer["error_code"] == "APPROVAL_EXPIRED"
    assert row.final_state == ("yes" if decided else "late",)
    assert len(await room.facts(run_id, e.ApprovalVoted)) == decided
    return fact.type


@pytest.mark.parametrize("left_ms", [1, 0])
async def test_a_decision_in_the_last_moment_counts_and_one_in_the_next_does_not(left_ms: int) -> None:
    clock = StillClock()
    async with opened(ScriptedModel(), clock=clock) as room:
        await room.create(GATED)
        for _ in range(RACES):
            run_id, name = await waiting(room)
            clock.at_ms += EXPIRY_MS - left_ms
            answer = asyncio.create_task(room.decide(name))
            if not left_ms:
                room.shell.notify.gates.set()
            told = await answer
            clock.at_ms += left_ms
            room.shell.notify.gates.set()
            assert await closed(room, run_id, told) == ("approval_decided" if left_ms else "approval_expired")


async def test_whichever_comes_first_at_that_moment_the_other_changes_nothing() -> None:
    clock = StillClock()
    seen = set()
    async with opened(ScriptedModel(), clock=clock) as room:
        await room.create(GATED)
        for race in range(RACES):
            run_id, name = await waiting(room)
            clock.at_ms += EXPIRY_MS - 1
            answer = asyncio.create_task(room.decide(name))
            for _ in range(race % 12):  # the clock strikes somewhere on the way of the decision
                await asyncio.sleep(0)
            clock.at_ms += 1
            room.shell.notify.gates.set()
            seen.add(await closed(room, run_id, await answer))
    assert seen == {"approval_decided", "approval_expired"}


DIES = """
import asyncio, os, signal, sys
from agent_graph.engine.runner import Runner
from agent_graph.llm.scripted import ScriptedModel
from pathlib import Path
from tests.engine.room import opened
from tests.engine.test_gate_races import GATED, waiting

async def dies(self):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with opened(ScriptedModel(), Path(sys.argv[1])) as room:
        await room.create(GATED)
        run_id, name = await waiting(room)
        print(run_id, flush=True)
        Runner._advance = dies  # the vote is stored by then, and nobody has woken what waits for it
        await room.decide(name)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.process
@pytest.mark.timeout(60)
async def test_a_vote_that_was_stored_counts_although_the_process_died_before_anybody_woke(
    tmp_path: Path, repository: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DIES, str(tmp_path), stdout=asyncio.subprocess.PIPE, cwd=repository
    )
    out, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    run_id = out.decode().strip()
    async with opened(ScriptedModel(), tmp_path) as room:
        row = await room.ended(run_id)
        assert (row.status, row.final_state) == ("completed", ("yes",))
        assert len(await room.facts(run_id, e.ApprovalVoted)) == len(await room.facts(run_id, e.ApprovalDecided)) == 1
        assert [firing for firing, _ in await room.started(run_id)] == ["h#1", "z#1"]
