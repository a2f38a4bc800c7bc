"""How much the owner of a data folder has to do, asked through its socket and told as a finding."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.store.base import Finding
from agent_graph.tools.socket_client import Owner

PATIENCE_S: Final = 5.0
"""Seconds the owner has to say it."""


async def load(folder: Path) -> Finding | None:
    """Runs under way and queued, and for every model host who waits there; None when nobody owns `folder` or lets
    others in."""
    owner = Owner(folder, "doctor")
    if not await owner.answers():
        return None
    try:
        async with asyncio.timeout(PATIENCE_S):
            envelope = await owner.call("graph_status", {})
    except (ConnectionError, TimeoutError):
        return Finding("load", "warning", f"the owner of the folder has not said it within {PATIENCE_S:.0f} s")
    if not envelope["ok"]:
        return Finding("load", "warning", f"{envelope['error_code']}: {envelope['error']}")
    data: Any = envelope["data"]
    capacity: JsonObject = data["capacity"]
    lost = data["store"]
    if not lost["ok"]:
        return Finding("load", "warning", f"{lost['error_code']}: {lost['error']}", capacity)
    return Finding("load", "ok", said_of(capacity), capacity)


def said_of(capacity: Any) -> str:
    """The `capacity` of a status in one line."""
    said = [f"{capacity['active']} of {capacity['active_runs']} runs under way, {capacity['queued']} in the queue"]
    for name, host in capacity["hosts"].items():
        words = f"{name}: {host['in_flight']} of {host['allowed']} calls"
        if host["allowed"] < host["parallel"]:
            words += f" (it has too much to do, else {host['parallel']})"
        if host["waiting"]:
            words += f", {host['waiting']} of {host['runs_waiting']} run(s) wait"
        if host["held_back_ms"]:
            words += f", new ones in {host['held_back_ms']} ms"
        said.append(words)
    return "; ".join(said)
