"""Says in a finding how the keys of a data folder are; makes and changes nothing."""

from __future__ import annotations

from pathlib import Path

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine import key_files as files
from agent_graph.engine.keys import Begun, KeyRing, check_mode, check_not_begun, keys_of
from agent_graph.errors import AgentGraphError
from agent_graph.store.base import Finding


def look(folder: Path, *, was: Begun, keyless: bool, path: Path | None) -> tuple[list[Finding], KeyRing | None]:
    """The finding about the keys, none where there is no folder; and the keys to check rows with, where they are
    right. `was` as `open_keys` takes it."""
    if not folder.is_dir():
        return [], None
    try:
        book = files.read_book(folder)
        if book is None:
            check_not_begun(folder, was=was, keyless=keyless)
            return [Finding("keys", "ok", "none yet")], None
        check_mode(folder, book, keyless=keyless)
        ring = keys_of(folder, path)
        if ring is None:
            return [Finding("keys", "ok", "none: the folder was begun without one", {"mode": files.KEYLESS})], None
        details: JsonObject = {
            "mode": files.KEYED, "key_id": ring.key_id, "keys": [one.to_json() for one in ring.infos()]
        }  # fmt: skip
        return [Finding("keys", "ok", f"{ring.key_id} seals; {len(ring.infos())} known", details)], ring
    except AgentGraphError as refusal:
        details = {"error_code": refusal.code, **refusal.details}
        return [Finding("keys", "unsound", f"{refusal.code}: {refusal.message}", details)], None
