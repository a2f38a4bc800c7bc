"""A program whose database is taken away while it runs: its runs say so, what was stored is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_graph.app import open_app
from agent_graph.engine import heartbeat
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.settings import load
from tests.engine.room import Gates, Room
from tests.specs import gate, llm, spec

SLOW = spec(llm("first"), llm("slow", output_key="text"), edges="first>slow slow>END", name="slow")
GATED = spec(llm("first"), gate("h"), edges="first>h h>END", name="gated", output_key="input")


@pytest.fixture(autouse=True)
def beats_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_MS", 20)


@asynccontextmanager
async def program(folder: Path, model: ScriptedModel, **environ: str) -> AsyncIterator[Room]:
    settings = load({"data_dir": str(folder), "model": "fake"}, environ=environ)
    async with open_app(settings, recover=True, model=model) as deps:
        yield Room(deps, deps.supervisor.shell)


@pytest.mark.parametrize(("taken", "code"), [("agent-graph.db", "STORE_CORRUPT"), ("owner.lock", "DATA_DIR_LOCKED")])
async def test_runs_are_interrupted_and_say_why_and_what_was_stored_can_be_read(
    tmp_path: Path, taken: str, code: str
) -> None:
    gates = Gates("slow")
    folder = tmp_path / "data"
    async with program(folder, ScriptedModel(gates), AGENT_GRAPH_LIMITS__ACTIVE_RUNS="1") as room:
        gated = await room.start(GATED, {"input": "x"})
        await room.reaches(gated, "waiting")
        run_id = await room.start(SLOW)
        await gates.reached("slow")
        queued = str((await room.data("graph_run_start", graph_id="slow"))["run_id"])
        before = await room.counts()
        (folder / taken).unlink()

        row = await room.reaches(run_id, "interrupted")
        assert row.error is not None
        assert row.error["code"] == code
        assert gates.cancelled == ["slow"], "the call in flight is closed"
        assert (await room.reaches(queued, "interrupted")).error is not None
        assert [event["type"] for event in (await room.data("graph_run_events", run_id=run_id))["events"]][-2:] == [
            "node_finished", "node_started",
        ]  # fmt: skip
        waited = await room.data("graph_run_wait", run_id=run_id, timeout_ms=5_000)
        assert (waited["status"], waited["timed_out"]) == ("interrupted", False)
        assert (await room.data("graph_status"))["store"]["error_code"] == code

        refused = [
            await room.call("graph_run_start", graph_id="slow"),
            await room.call("graph_run_cancel", run_id=run_id, reason="why not"),
            await room.decide((await room.pending(gated))[0]["approval_id"]),
        ]
        assert [each["error_code"] for each in refused] == [code] * 3
        assert await room.counts() == before
        exported = await room.call("graph_run_export", run_id=gated)
        assert exported["ok"], "what was stored can be taken out"
    assert not (folder / taken).exists()


async def test_a_database_that_is_gone_at_the_next_start_is_not_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with program(folder, ScriptedModel(Gates())) as room:
        await room.run(SLOW)
    (folder / "agent-graph.db").unlink()
    for _ in range(2):
        with pytest.raises(Exception, match="is gone, and there was one") as refused:
            async with program(folder, ScriptedModel(Gates())):
                pass
        assert getattr(refused.value, "code", "") == "STORE_CORRUPT"
    assert not (folder / "agent-graph.db").exists()


async def test_a_loop_that_is_free_gives_signs_of_life(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with program(folder, ScriptedModel(Gates())):
        lock = folder / "owner.lock"
        first = lock.stat().st_mtime_ns
        async with asyncio.timeout(5):
            while lock.stat().st_mtime_ns == first:  # noqa: ASYNC110  (a file's time has no event)
                await asyncio.sleep(0.005)
