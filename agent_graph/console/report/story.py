"""The events of a run as its steps, one for each firing with what it came to; and texts cut to what a page can hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final

from agent_graph.console.rendering import lasting, pretty
from agent_graph.core.classes import dataclass

TEXT: Final = 20_000
"""Characters of one text."""
LEAST: Final = 400
"""Characters of a text once the report is full."""
WHOLE: Final = 2_000_000
"""Characters of all texts together."""
WAITS: Final = ("approval_opened", "signal_awaited", "timer_set")
ENDS: Final = {"node_finished": "completed", "node_failed": "failed", "firing_cancelled": "cancelled"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A value as it is shown, and what is to be said of it where it was cut."""

    value: Any
    note: str = ""


class Room:
    """How much text the report takes still: large texts are cut, and all of them once it is full."""

    def __init__(self) -> None:
        self._left = WHOLE

    def shown(self, value: Any, *, event_bytes: int = 0) -> Shown:
        """`event_bytes` is how large the event was that has been cut already, 0 where it was not."""
        text = pretty(value)
        most = min(TEXT, max(LEAST, self._left))
        self._left -= min(len(text), most)
        whole = len(text) <= most
        if event_bytes:
            return Shown(value if whole else text[:most], f"Cut: the event that holds it has {event_bytes:,} bytes.")
        return Shown(value) if whole else Shown(text[:most], f"Cut: {most:,} of {len(text):,} characters.")


def cut_from(event: Any) -> int:
    """Bytes of an event of which only a part was given, else 0."""
    return int(event["whole_bytes"]) if event.get("truncated") else 0


@dataclass(slots=True)
class Step:
    """A firing of a node, from its start on."""

    path: str
    node: str
    began_ms: int
    ended_ms: int | None = None
    status: str = "running"
    attempts: int = 1
    model: str = ""
    tokens: list[tuple[int, int]] = field(default_factory=list)
    """(prompt, completion) of each answer whose host told."""
    notes: list[str] = field(default_factory=list)
    waited: bool = False
    """For a person, a message or the clock."""
    said: list[Any] = field(default_factory=list)
    """What it came to, as one element; empty for a node that says nothing."""
    cut_from: int = 0
    """Bytes of the event that told so, where that was cut."""

    @property
    def lasted(self) -> str:
        return "" if self.ended_ms is None else lasting(max(0, self.ended_ms - self.began_ms))

    @property
    def used(self) -> str:
        if not self.tokens:
            return ""
        prompt, completion = (sum(counts) for counts in zip(*self.tokens, strict=True))
        return f"{prompt:,} + {completion:,} tokens"


def steps(events: Iterable[Any]) -> list[Step]:
    """By their start; of each, all that its events say."""
    found: dict[str, Step] = {}
    for event in events:
        path = event.get("firing")
        if not isinstance(path, str):
            continue
        step = found.get(path)
        if event["type"] == "node_started":
            if step is None:
                found[path] = Step(path, event["node_id"], event["at_ms"])
            else:
                step.attempts = event["attempt"]
        elif step is not None:
            _tell(step, event)
    return list(found.values())


def _tell(step: Step, event: Any) -> None:
    kind = event["type"]
    step.waited = step.waited or kind in WAITS
    if kind in ENDS:
        step.ended_ms, step.status = event["at_ms"], ENDS[kind]
    match kind:
        case "model_answered" | "cache_hit":
            _answered(step, event["answer"], cached=kind == "cache_hit")
        case "node_finished":
            said = event.get("output") or event.get("current") or [write[2] for write in event.get("writes", ())[:1]
                                                                    if len(write) > 2]  # fmt: skip
            step.said, step.cut_from = list(said[:1]), cut_from(event)
        case "node_failed":
            step.notes.append(f"failed with {_error(event['error'])}")
        case "node_retried":
            step.notes.append(f"attempt {event['attempt']} failed with {_error(event['error'])}")
        case _:
            step.notes += _noted(event)


def _answered(step: Step, answer: Any, *, cached: bool) -> None:
    step.model = str(answer.get("model") or answer.get("performer") or step.model)
    counts = answer.get("prompt_tokens"), answer.get("completion_tokens")
    if cached:
        step.notes.append("took an answer that an earlier run has paid for")
    elif isinstance(counts[0], int) and isinstance(counts[1], int):
        step.tokens.append((counts[0], counts[1]))


def _noted(event: Any) -> list[str]:
    match event["type"]:
        case "route_taken":
            return [f"went by {event['transition']} to {', '.join(event['targets']) or 'nothing'}"]
        case "tool_called":
            return [f"called the tool {event['name']}"]
        case "tool_answered" if event.get("failed"):
            return [f"the call failed: {event['code']}"]
        case "evidence_checked":
            return [_evidence(event)]
        case "warning":
            return [f"{event['code']}: {event['message']}"]
        case "loop_exhausted":
            return [f"came to its bound of {event['count']}"]
        case "firing_cancelled":
            return [f"ended: {event['reason']}"]
        case "approval_opened":
            return [f"asked for a decision: {event['approval_id']}"]
        case "signal_received":
            return [f"got the message {event['name']}"]
        case _:
            return []


def _evidence(event: Any) -> str:
    named = ", ".join(f"{one['witness_id']} ({one['digest'][:19]}...)" for one in event.get("witnesses", ()))
    problems = event.get("problems", ())
    if problems:
        return f"cited what does not stand there: {problems[0]['code']}"
    return f"cited, word for word: {named}"


def _error(error: Any) -> str:
    return f"{error.get('code', '')}: {error.get('message', '')}"


# -- the timeline --------------------------------------------------------------------------------------------------

MOST_BARS: Final = 150
LABEL: Final = 230
WIDTH: Final = 1_000
ROW: Final = 24
TICKS: Final = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """A step in the timeline, in units of the drawing."""

    label: str
    whole: str
    status: str
    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """When which step was under way."""

    bars: list[Bar]
    ticks: list[tuple[float, str]]
    height: int
    left_out: int


def timeline(told: list[Step], *, now_ms: int) -> Timeline | None:
    """None where nothing has begun. A step that has not ended goes on to `now_ms`."""
    if not told:
        return None
    first_ms = min(step.began_ms for step in told)
    last_ms = max(now_ms if step.ended_ms is None else step.ended_ms for step in told)
    span_ms = max(1, last_ms - first_ms)
    scale = (WIDTH - LABEL - 10) / span_ms
    bars = []
    for place, step in enumerate(told[:MOST_BARS]):
        end_ms = last_ms if step.ended_ms is None else step.ended_ms
        label = step.path if len(step.path) <= 30 else f"\u2026{step.path[-29:]}"
        whole = f"{step.path}: {step.status}{', ' + step.lasted if step.lasted else ''}"
        width = max(3.0, (end_ms - step.began_ms) * scale)
        x = min(LABEL + (step.began_ms - first_ms) * scale, WIDTH - width)
        status = "waiting" if step.waited and step.status == "completed" else step.status
        bars.append(Bar(label, whole, status, round(x, 1), place * ROW, round(width, 1)))
    ticks = [
        (round(LABEL + (WIDTH - LABEL - 10) * part / TICKS, 1), lasting(span_ms * part // TICKS))
        for part in range(TICKS + 1)
    ]
    return Timeline(bars, ticks, len(bars) * ROW + 30, max(0, len(told) - MOST_BARS))
