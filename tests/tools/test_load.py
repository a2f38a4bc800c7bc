"""What a doctor says of an owner's load."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import diagnose, open_app
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.settings import load as load_settings
from agent_graph.tools import load
from agent_graph.tools.load import said_of
from tests.engine.room import Gates, Room
from tests.specs import llm, spec

HOST = {"parallel": 4, "allowed": 4, "in_flight": 4, "waiting": 0, "runs_waiting": 0, "held_back_ms": 0}


def capacity(**host: int) -> Any:
    return {"active": 3, "active_runs": 64, "queued": 2, "hosts": {"ollama": HOST | host}}


def test_it_is_said_in_a_sentence() -> None:
    assert said_of(capacity()) == "3 of 64 runs under way, 2 in the queue; ollama: 4 of 4 calls"
    assert said_of(capacity(waiting=12, runs_waiting=5)).endswith("ollama: 4 of 4 calls, 12 of 5 run(s) wait")
    assert said_of(capacity(allowed=2, in_flight=0, held_back_ms=900)).endswith(
        "ollama: 0 of 2 calls (it has too much to do, else 4), new ones in 900 ms"
    )


async def test_nobody_owns_the_folder(tmp_path: Path) -> None:
    assert await load.load(tmp_path) is None


async def test_the_owner_is_asked_and_not_disturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates("draft")
    settings = load_settings({"data_dir": str(tmp_path / "data"), "model": "fake"}, environ={})
    async with open_app(settings, model=ScriptedModel(gates, parallel=1)) as deps:
        room = Room(deps, deps.supervisor.shell)
        await room.start(spec(llm("draft"), edges="draft>END"))
        await gates.reached("draft")
        await room.data("graph_run_start", graph_id="case")
        while not room.shell.limiter.load()["scripted"]["waiting"]:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        (found,) = [each for each in await diagnose(settings, full=False) if each.name == "load"]
        assert (found.level, found.details["active"]) == ("ok", 2)
        assert found.said == "2 of 64 runs under way, 0 in the queue; scripted: 1 of 1 calls, 1 of 1 run(s) wait"
        monkeypatch.setattr(load, "PATIENCE_S", 0.0)
        slow = await load.load(tmp_path / "data")
        assert slow is not None
        assert slow.level == "warning"
        (tmp_path / "data" / "agent-graph.db").unlink()
        monkeypatch.setattr(load, "PATIENCE_S", 5.0)
        lost = await load.load(tmp_path / "data")
        assert lost is not None
        assert lost.said.startswith("STORE_CORRUPT: ")
        gates.open("draft")
