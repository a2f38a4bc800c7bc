"""When a snapshot is made: by events, by bytes, and never where it would weigh more than it saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import checkpoint
from agent_graph.engine import journal
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import opened


def chain(length: int) -> dict[str, Any]:
    """Each node appends one more copy of the input's `text`."""
    operation = {"op": "append", "path": "items", "from": "text"}
    nodes = [{"id": f"n{i}", "type": "state_transform", "config": {"operations": [operation]}} for i in range(length)]
    edges = [{"from": f"n{i}", "to": f"n{i + 1}" if i + 1 < length else "END"} for i in range(length)]
    return {
        "name": "chain", "entry": "n0", "nodes": nodes, "edges": edges, "reducers": {"items": "append"},
        "output_key": "items",
    }  # fmt: skip


@pytest.mark.parametrize(("text", "made"), [("x", False), ("x" * 30_000, True)])
async def test_a_run_of_few_events_has_a_snapshot_when_they_are_large(tmp_path: Path, text: str, made: bool) -> None:
    async with opened(ScriptedModel(), tmp_path) as room:
        row = await room.run(chain(20), {"text": text, "items": []})
        assert row.seq < journal.SNAPSHOT_EVENTS
        snapshot, rest, _ = await room.store.runs.load(row.run_id)
        assert (snapshot is not None) == made
        assert (len(rest) < row.seq) == made
        assert len(row.final_state[0]) == 20  # type: ignore[arg-type]  # a list


async def test_snapshots_weigh_less_together_than_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SNAPSHOT_EVENTS", 1)
    weights: list[int] = []
    dump = checkpoint.dump

    def weighed(run: Any) -> bytes:
        data = dump(run)
        weights.append(len(data))
        return data

    monkeypatch.setattr(checkpoint, "dump", weighed)
    async with opened(ScriptedModel(), tmp_path) as room:
        row = await room.run(chain(100), {"text": "x" * 1_000, "items": []})
        written = sum(len(str(event.body)) for event in await room.store.runs.events(row.run_id, limit=1000))
    assert len(weights) > 2
    assert weights == sorted(weights)
    assert sum(weights[:-1]) < written


async def test_a_run_in_memory_makes_none() -> None:
    async with opened(ScriptedModel()) as room:
        row = await room.run(chain(60), {"text": "x" * 10_000, "items": []})
        snapshot, events, _ = await room.store.runs.load(row.run_id)
        assert (snapshot, len(events)) == (None, row.seq)
