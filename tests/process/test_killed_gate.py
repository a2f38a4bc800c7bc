"""A gate that was placed in a live run stands whoever is killed around it, asks once, and its answer is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_graph.engine.keys import keys_of
from agent_graph.store.sqlite import open_store

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]

PROGRAM = Path(__file__).parent / "gate_program.py"
ROOT = Path(__file__).parents[2]


def until_killed(folder: Path, *step: str) -> Any:
    """What the program says when it has come so far; then it is killed."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder / "data"), str(folder / "ledger"), *step], cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        said = program.stdout.readline()
        program.kill()
    assert said, "it ended by itself; what it said is on standard error"
    return json.loads(said)


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_placed_gate_outlives_every_kill_around_it(tmp_path: Path, decision: str) -> None:
    run_id = until_killed(tmp_path, "place")["run_id"]
    asked = until_killed(tmp_path, "wait")
    assert until_killed(tmp_path, "wait") == asked, "it is the same question after another kill"
    assert until_killed(tmp_path, "decide", decision) == asked
    end = until_killed(tmp_path, "end")
    calls = Counter((tmp_path / "ledger").read_text(encoding="utf-8").split())
    async with await open_store(tmp_path / "data" / "agent-graph.db", ring=keys_of(tmp_path / "data")) as store:
        assert await store.runs.verify_chain(run_id) is None
        events = Counter(event.body["type"] for event in await store.runs.events(run_id, limit=1_000))
        [approval] = (await store.approvals.list(run_id=run_id))[0]
    assert {events[name] for name in ("gate_placed", "approval_opened", "approval_decided")} == {1}
    if decision == "approve":
        assert end["status"] == "completed"
        assert approval.status == "approved"
        assert calls == {"draft": 2, "send": 2}, "what was in flight when it was killed is asked again, and no more"
    else:
        assert (end["status"], end["error"]["code"]) == ("failed", "APPROVAL_REJECTED")
        assert approval.status == "rejected"
        assert calls == {"draft": 2}, "nobody went past a gate that said no"
