"""Static branches bounded as a whole, through the public door: calls at a time, their time, a restart in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.engine.commands import Expire
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import Gates, asked, opened
from tests.engine.test_waits import HOUR_MS, StillClock
from tests.specs import Json, join, llm, node, spec


def council(**config: Any) -> Json:
    branches = [{"id": f"a{n}", "entry": f"a{n}"} for n in range(3)]
    return spec(
        node("p", "parallel", branches=branches, join="j", **config),
        *(llm(f"a{n}", f"analyst {n}", output_key=f"r{n}") for n in range(3)),
        join("j", ["r0", "r1", "r2"], "findings"), edges="j>END", output_key="findings",
    )  # fmt: skip


LATE = {"code": "FRAMES_TIMEOUT", "message": f"what runs inside it took longer than {HOUR_MS} ms"}


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_branch_that_is_late_is_left_out_and_its_call_is_closed(tmp_path: Path, restarted: bool) -> None:
    clock, gates = StillClock(), Gates("analyst 1")
    graph = council(fail_policy="collect_partial", timeout_ms=HOUR_MS, max_parallelism=2)
    first = ScriptedModel(gates)
    async with opened(first, tmp_path, clock=clock) as room:
        run_id = await room.start(graph, {})
        await gates.reached("analyst 1")
        await room.supervisor.wait(run_id, timeout_ms=5_000, until=lambda row: row.seq > 12)
        if not restarted:
            clock.at_ms += HOUR_MS
            await room.supervisor.ask(run_id, Expire())  # who looks at the clock
            assert (await room.ended(run_id)).status == "completed"
            await room.at_rest()
            assert gates.cancelled == ["analyst 1"]
    clock.at_ms += HOUR_MS  # nobody was there
    second = ScriptedModel(Gates())
    async with opened(second, tmp_path, clock=clock) as room:
        row = await room.ended(run_id)
        assert row.status == "completed"
        assert row.final_state == (["fine: analyst 0", {"error": LATE}, "fine: analyst 2"],)
        assert [fact.firing for fact in await room.facts(run_id, e.TimerFired)] == ["p#1"]
        assert [fact.firing for fact in await room.facts(run_id, e.FiringCancelled)] == ["a1#1"]
        found = await room.data("graph_run_get", run_id=run_id)
        assert found["errors"] == {"a1": LATE}
        events = (await room.data("graph_run_events", run_id=run_id, limit=100))["events"]
        assert [one["node_id"] for one in events if one["type"] == "timer_fired"] == ["p"]
        assert await room.store.runs.next_wake() is None
    assert asked(first, "analyst") == [3]
    assert asked(second, "analyst") == [0]
