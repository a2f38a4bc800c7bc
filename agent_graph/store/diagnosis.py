"""Says in findings how a data folder is: lock, folder, room, schema, integrity, chains, clock; changes nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.errors import AgentGraphError
from agent_graph.store.base import Finding
from agent_graph.store.check import Examined, examine
from agent_graph.store.folder import check_folder, file_system, free_bytes
from agent_graph.store.lock import SILENT_MS, had_database, locked, owner_of, silence_ms
from agent_graph.store.migrate import schema_version
from agent_graph.store.row_seals import Ring
from agent_graph.store.sqlite import check_not_gone

LITTLE_ROOM_BYTES: Final = 256 * 2**20
SANE_FROM_MS: Final = 1_735_689_600_000
"""2025-01-01: no clock that is right shows less."""
SLACK_MS: Final = 60_000


def machine(program: str) -> Finding:
    """The versions in use."""
    details: JsonObject = {
        "program": program,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "schema": schema_version(),
    }
    said = f"agent-graph {program}, schema {schema_version()}, Python {details['python']}, SQLite {details['sqlite']}"
    return Finding("versions", "ok", f"{said}, {sys.platform}", details)


def clock(now_ms: int, *, newest_ms: int) -> Finding:
    """Whether the time can be right: `newest_ms` is the latest that the store holds."""
    details: JsonObject = {"now_ms": now_ms, "newest_ms": newest_ms}
    now = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="seconds")
    if now_ms < SANE_FROM_MS:
        return Finding("clock", "warning", f"it says {now}, which cannot be", details)
    if now_ms + SLACK_MS < newest_ms:
        behind_s = (newest_ms - now_ms) // 1000
        return Finding("clock", "warning", f"it says {now}, {behind_s} s before the newest run was moved", details)
    return Finding("clock", "ok", now, details)


async def store(
    folder: Path, name: str, *, full: bool, now_ms: int, tells: JsonObject, ring: Ring | None = None,
    rows: bool = True,
) -> tuple[list[Finding], int]:  # fmt: skip
    """Findings about a data folder and the database `name` in it, and the newest time in it (0 = none); `tells` is what
    the settings say about who is told outside. Without `rows` their seals are not looked at: the keys are wrong."""
    if not _is_there(folder):
        return [Finding("folder", "ok", f"{folder} is not there yet; the first command makes it")], 0
    found = [_folder(folder), _room(folder)]
    try:
        owner = await owner_of(folder)
    except AgentGraphError as refusal:
        return [*found, _unsound("owner", refusal)], 0
    found.append(_owner(folder, owner, now_ms=now_ms))
    try:
        check_not_gone(folder / name, had_database=had_database(folder))
    except AgentGraphError as refusal:
        return [*found, _unsound("database", refusal)], 0
    if not _is_there(folder / name):
        return [*found, Finding("database", "ok", "none yet")], 0
    try:
        examined = await examine(folder / name, full=full, owned=owner is not None, ring=ring, rows=rows)
    except AgentGraphError as refusal:
        return [*found, _unsound("database", refusal)], 0
    found += _database(examined, full=full)
    if examined.told or tells.get("webhook") or tells.get("command"):
        found.append(_told(examined, tells))
    return found, examined.newest_ms


def _unsound(name: str, refusal: AgentGraphError) -> Finding:
    return Finding(
        name, "unsound", f"{refusal.code}: {refusal.message}", {"error_code": refusal.code, **refusal.details}
    )


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


def _folder(folder: Path) -> Finding:
    try:
        check_folder(folder)
    except AgentGraphError as refusal:
        return _unsound("folder", refusal)
    kind = file_system(folder)
    return Finding("folder", "ok", f"{folder} ({kind or 'unknown file system'})", {"path": str(folder), "kind": kind})


def _room(folder: Path) -> Finding:
    free = free_bytes(folder)
    return Finding(
        "room", "warning" if free < LITTLE_ROOM_BYTES else "ok", f"{free // 2**20} MiB free", {"free_bytes": free}
    )


def _owner(folder: Path, owner: JsonObject | None, *, now_ms: int) -> Finding:
    if owner is None:
        return Finding("owner", "ok", "nobody; the folder is free")
    if silence_ms(owner, now_ms=now_ms) > SILENT_MS:
        return Finding("owner", "warning", locked(folder, owner, now_ms=now_ms).message, owner)
    started = owner.get("started_at_ms")
    since = (
        f" since {datetime.fromtimestamp(started / 1000, UTC).isoformat(timespec='seconds')}"
        if isinstance(started, int)
        else ""
    )
    who = f"process {owner.get('pid', 'unknown')}"
    through = f", reached through {owner['reach']}" if owner.get("reach") else ""
    return Finding("owner", "ok", f"{who}{since}{through}", owner)


def _database(examined: Examined, *, full: bool) -> list[Finding]:
    check = "integrity_check" if full else "quick_check"
    details: JsonObject = {
        "schema": examined.schema, "file_bytes": examined.file_bytes, "runs": examined.runs, "events": examined.events,
        "check": check, "faults": list(examined.faults),
    }  # fmt: skip
    if examined.faults:
        said = f"STORE_CORRUPT: {check}: {examined.faults[0]}; move it away and put a copy of it back"
        found = [Finding("database", "unsound", said, details)]
    else:
        older = "" if examined.schema == schema_version() else ", which the next start brings up to date"
        said = f"schema {examined.schema}{older}, {examined.file_bytes:,} bytes, {check} ok"
        found = [Finding("database", "ok", said, details)]
    damaged: list[JsonObject] = [{"run_id": run_id, "seq": seq} for run_id, seq in examined.damaged]
    details = {"runs": examined.runs, "events": examined.events, "damaged": [*damaged]}
    if damaged:
        run_id, seq = examined.damaged[0]
        said = f"STORE_CORRUPT: event {seq} of run {run_id} is not what was written ({len(damaged)} runs in all)"
        found.append(Finding("events", "unsound", said, details))
    else:
        found.append(Finding("events", "ok", f"{examined.events} of {examined.runs} runs hold together", details))
    found.append(_rows(examined))
    return found


def _told(examined: Examined, tells: JsonObject) -> Finding:
    """How telling the outside goes. A failure after which something was taken is over."""
    by_target: JsonObject = {one.target: {**asdict(one)} for one in examined.told}
    details: JsonObject = {"set_up": tells, "targets": by_target}
    said = [f"{name}: nothing yet" for name in ("webhook", "command") if tells.get(name) and name not in by_target]
    trouble = False
    for one in examined.told:
        text = f"{one.target}: {one.delivered} told, {one.waiting} waiting, {one.given_up} given up"
        if (one.failed_at_ms or 0) > (one.delivered_at_ms or 0):
            trouble = True
            failed = datetime.fromtimestamp((one.failed_at_ms or 0) / 1000, UTC).isoformat(timespec="seconds")
            text += f"; failed at {failed}: {one.failure}"
        if one.waiting and not tells.get(one.target):
            trouble = True
            text += "; the settings name none any more"
        said.append(text)
    return Finding("notices", "warning" if trouble else "ok", "; ".join(said), details)


def _rows(examined: Examined) -> Finding:
    if not examined.rows_checked:
        return Finding("rows", "warning", "not looked at: the keys are not as they should be")
    rows: list[JsonValue] = [{"table": table, "row": name} for table, name in examined.rows]
    if not rows:
        return Finding("rows", "ok", "each is what was written", {"damaged": []})
    table, name = examined.rows[0]
    said = f"STORE_CORRUPT: the row of {name} in {table} is not what was written ({len(rows)} rows in all)"
    return Finding("rows", "unsound", said, {"damaged": rows})
