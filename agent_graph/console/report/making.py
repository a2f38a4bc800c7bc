"""The page of a report: its style is in it and named by its digest, so that a browser applies that and nothing else."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from agent_graph.console.drawing import drawn
from agent_graph.console.rendering import fragment
from agent_graph.console.report.gathering import Ask, Gathered, gathered
from agent_graph.console.report.story import Room, Step, cut_from, steps, timeline

STATIC: Final = Path(__file__).parent.parent / "static"
MOST_STEPS: Final = 500
"""Steps told one by one."""
MOST_VOTES: Final = 200


async def made(ask: Ask, run_id: str, *, now_ms: int) -> tuple[str, Gathered]:
    """The report of a run as HTML, and what it is made of. Raises `Turned`."""
    told = await gathered(ask, run_id)
    return as_page(told, now_ms=now_ms), told


def as_page(told: Gathered, *, now_ms: int) -> str:
    """The report as one text; nothing in it is fetched, run or followed."""
    room, all_steps = Room(), steps(told.events)
    style, run = _style(), told.run
    labels = {node["id"]: node.get("label", "") for node in (told.graph or {}).get("nodes", ())}
    return str(
        fragment(
            "report.html", told=told, run=run, now_ms=now_ms, policy=_policy(style),
            style=Markup(style),  # noqa: S704  (our own file)
            began_ms=run["started_at_ms"],
            result=room.shown(run["final_state"]) if "final_state" in run else None,
            given=_input(told, room), drawing=None if told.graph is None else drawn(told.graph),
            approvals=[_approval(one, room) for one in told.approvals[:MOST_VOTES]],
            steps=[_step(step, room, labels) for step in all_steps[:MOST_STEPS]],
            more_steps=max(0, len(all_steps) - MOST_STEPS), times=timeline(all_steps, now_ms=now_ms),
        )
    )  # fmt: skip


def _input(told: Gathered, room: Room) -> Any:
    accepted = next((event for event in told.events if event["type"] == "run_accepted"), None)
    return None if accepted is None else room.shown(accepted.get("input"), event_bytes=cut_from(accepted))


def _step(step: Step, room: Room, labels: dict[str, str]) -> dict[str, Any]:
    said = room.shown(step.said[0], event_bytes=step.cut_from) if step.said else None
    notes = [room.shown(note) for note in step.notes[:20]]
    label = "" if "/" in step.path else labels.get(step.node, "")  # nodes of inner graphs have labels of their own
    return {"step": step, "label": label, "said": said, "notes": notes, "more_notes": max(0, len(step.notes) - 20)}


def _approval(one: Any, room: Room) -> dict[str, Any]:
    votes = [{**vote, "note": room.shown(vote.get("decision_note") or "")} for vote in one["votes"]]
    return {"one": one, "prompt": room.shown(one["prompt"]), "subject": room.shown(one["subject"]), "votes": votes}


@cache
def _style() -> str:
    """The console's colours and forms, what a report adds to them, and on paper the light ones."""
    console = (STATIC / "console.css").read_text(encoding="utf-8")
    start = console.index(":root {")
    light = console[start : console.index("}", start) + 1]
    own = (STATIC / "report.css").read_text(encoding="utf-8")
    return f"{console}\n{own}\n@media print {{ {light} }}\n"


def _policy(style: str) -> str:
    """What a browser lets the page do: apply this very style. No script, no picture, no address."""
    known = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{known}'; base-uri 'none'; form-action 'none'"
