"""Asks the person at the terminal for a decision on an approval; may show nothing a terminal would obey."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any, Final

from agent_graph.cli.output import one_line, plain, pretty, say
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.system.event_loop import typed

SHOWN: Final = 20_000
"""Characters of a subject shown at the prompt."""


def can_ask() -> bool:
    """Somebody is there to be asked: stdin and stderr are terminals."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


async def ask(approval: JsonObject) -> tuple[str, str] | None:
    """The decision and its note; None when the person leaves it open. Cancelling takes the question back."""
    every: Any = approval["allowed_decisions"]
    allowed = [decision for decision in every if decision != "edit"]
    say("\n" + described(approval))
    if allowed != every:
        say(f"To edit it, leave it open: agent-graph approvals decide {approval['approval_id']} edit")
    while True:
        said = await line(f"{' / '.join(allowed)}, or nothing to leave it open: ")
        if not said:
            return None
        fits = [decision for decision in allowed if decision.startswith(said.lower().replace(" ", "_"))]
        if len(fits) == 1:
            note = await line("A note, or nothing: ")
            return fits[0], note or ""
        say(f"{one_line(said, 40)!r} is none of them.")


def described(approval: JsonObject, *, whole: bool = False) -> str:
    """An approval for people: what is asked, of whom, until when, and exactly what will happen."""
    audience: Any = approval["audience"]
    expires = datetime.fromtimestamp(float(str(approval["expires_at_ms"])) / 1000).astimezone()
    subject = pretty(approval["subject"])
    if len(subject) > SHOWN and not whole:
        subject = subject[:SHOWN] + f"\n[cut: {len(subject)} characters in all; agent-graph approvals show has them]"
    lines = [
        f"Approval {approval['approval_id']} of run {approval['run_id']}, node {approval['node_id']}",
        f"for {one_line(', '.join(map(str, audience))) or 'anybody'}, until {expires:%Y-%m-%d %H:%M %Z}",
        *_quoted(str(approval["prompt"])),
        "What is decided on:",
        *_quoted(subject),
    ]
    return "\n".join(lines)


def _quoted(text: str) -> list[str]:
    """Every line marked, so that what a model wrote cannot pass for a line of ours."""
    return [f"  | {line}" for line in plain(text).split("\n")]


async def line(prompt: str, *, exact: bool = False) -> str | None:
    """A line typed by the person, "" for an empty one; None at the end of the input. `exact` keeps it as it came."""
    print(plain(prompt), end="", file=sys.stderr, flush=True)
    came = await typed(sys.stdin.fileno(), 65_536)
    if not came:
        print(file=sys.stderr)
        return None
    text = came.decode(errors="replace")
    return text.rstrip("\r\n") if exact else plain(text).strip()
