"""graph_run_checkpoint: what is kept of a run beside its events is checked before it is told."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_graph.store import row_seals
from tests.fakes.opened import Tools, opened
from tests.tools.specs import keep


def long(length: int = 50) -> dict[str, Any]:
    """Nodes enough for a snapshot."""
    operation = {"op": "append", "path": "items", "from": "text"}
    nodes = [{"id": f"n{i}", "type": "state_transform", "config": {"operations": [operation]}} for i in range(length)]
    edges = [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(length - 1)]
    return {
        "name": "long", "entry": "n0", "nodes": nodes, "edges": edges, "reducers": {"items": "append"},
        "output_key": "items",
    }  # fmt: skip


@pytest.fixture
async def filed(tmp_path: Path) -> AsyncIterator[Tools]:
    """Tools over a file, with a run that has a snapshot."""
    async with opened(folder=tmp_path) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=long())
        await tools.ended("long", {"text": "x", "items": []})
        yield tools


async def run_of(tools: Tools) -> Any:
    return (await tools.ok("graph_run_list"))["runs"][0]


async def test_a_snapshot_is_told_with_its_digest(filed: Tools, tmp_path: Path) -> None:
    run = await run_of(filed)
    answer = await filed.ok("graph_run_checkpoint", run_id=run["run_id"])
    with sqlite3.connect(tmp_path / "agent-graph.db") as another:
        ((count, data),) = another.execute("SELECT seq, data FROM snapshots").fetchall()
        (events,) = another.execute("SELECT count(*) FROM events").fetchone()
    another.close()
    assert answer == {
        "run_id": run["run_id"], "seq": count - 1, "at_ms": answer["at_ms"], "status": "running",
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "verified": True,
        "state_digest": answer["state_digest"], "readable": True, "bytes": len(data), "events_since": events - count,
    }  # fmt: skip
    assert await filed.ok("graph_run_checkpoint", run_id=run["run_id"], seq=answer["seq"]) == answer
    state = await filed.ok("graph_run_state", run_id=run["run_id"], at=answer["seq"])
    assert state["state_version"] == answer["seq"]


async def test_only_the_latest_snapshot_is_there(filed: Tools) -> None:
    run = await run_of(filed)
    latest = (await filed.ok("graph_run_checkpoint", run_id=run["run_id"]))["seq"]
    refusal = await filed.refused("graph_run_checkpoint", run_id=run["run_id"], seq=latest - 1)
    assert (refusal["error_code"], refusal["details"]["latest"]) == ("CHECKPOINT_NOT_FOUND", latest)


async def test_a_short_run_has_none_and_an_unknown_run_is_not_found(filed: Tools) -> None:
    await filed.ok("graph_create", spec=keep())
    run = await filed.ended("keep")
    refusal = await filed.refused("graph_run_checkpoint", run_id=run["run_id"])
    assert refusal["error_code"] == "CHECKPOINT_NOT_FOUND"
    assert (await filed.refused("graph_run_checkpoint", run_id="run-none"))["error_code"] == "RUN_NOT_FOUND"
    assert (await filed.refused("graph_run_checkpoint", run_id="x", seq=-2))["error_code"] == "INVALID_ARGUMENT"


def _change(path: Path, change: Any) -> None:
    """Write the snapshot anew as `change` makes it of its fold, with the digest of what is written."""
    with sqlite3.connect(path / "agent-graph.db") as another:
        ((run_no, data),) = another.execute("SELECT run_no, data FROM snapshots").fetchall()
        changed = change(data)
        digest = hashlib.sha256(changed).hexdigest()
        row_seals.register(another, row_seals.RowSeals())  # the folder has no key: its seals are digests
        seal = row_seals.sealing("snapshots", {"digest": "?2"})
        sql = f"UPDATE snapshots SET data = ?1, digest = ?2, row_seal = {seal} WHERE run_no = ?3"
        another.execute(sql, (changed, digest, run_no))
    another.close()


def _edited(old: str, new: str) -> Any:
    def change(data: bytes) -> bytes:
        text = zlib.decompress(data).decode()
        assert old in text
        return zlib.compress(text.replace(old, new, 1).encode())

    return change


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE snapshots SET data = x'00' || substr(data, 2)",
        "UPDATE snapshots SET digest = 'x'",
        "UPDATE snapshots SET seq = seq + 1000000",
        "UPDATE snapshots SET seq = seq - 1",
        "UPDATE snapshots SET row_seal = ''",
    ],
)
async def test_a_damaged_snapshot_is_refused_and_the_run_is_still_read(
    filed: Tools, tmp_path: Path, damage: str
) -> None:
    run = await run_of(filed)
    with sqlite3.connect(tmp_path / "agent-graph.db") as another:
        another.execute(damage)
    another.close()
    refusal = await filed.refused("graph_run_checkpoint", run_id=run["run_id"])
    assert (refusal["error_code"], refusal["retryable"]) == ("CHECKPOINT_INTEGRITY_FAILURE", False)
    assert (await filed.ok("graph_run_get", run_id=run["run_id"], include_state=True))["state"]["items"] == ["x"] * 50


async def test_a_forged_snapshot_is_told_apart_by_the_events(filed: Tools, tmp_path: Path) -> None:
    run = await run_of(filed)
    _change(tmp_path, _edited('"x"', '"y"'))
    refusal = await filed.refused("graph_run_checkpoint", run_id=run["run_id"])
    assert refusal["error_code"] == "CHECKPOINT_INTEGRITY_FAILURE"
    assert "events" in refusal["error"]


async def test_what_cannot_be_unpacked_is_refused(filed: Tools, tmp_path: Path) -> None:
    run = await run_of(filed)
    _change(tmp_path, lambda data: b"no zlib" + data)
    refusal = await filed.refused("graph_run_checkpoint", run_id=run["run_id"])
    assert refusal["error_code"] == "CHECKPOINT_INTEGRITY_FAILURE"


async def test_a_snapshot_of_another_version_of_the_program_is_whole_and_not_read(filed: Tools, tmp_path: Path) -> None:
    run = await run_of(filed)

    def older(data: bytes) -> bytes:
        body = json.loads(zlib.decompress(data))
        return zlib.compress(json.dumps({**body, "format": 1}).encode())

    _change(tmp_path, older)
    answer = await filed.ok("graph_run_checkpoint", run_id=run["run_id"])
    assert (answer["verified"], answer["readable"]) == (True, False)
