"""What firings have heard, as a snapshot keeps it; reads and changes no run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, assert_never

from agent_graph.core.effects import (
    Answer,
    ApprovalAnswer,
    FramesAnswer,
    ModelAnswer,
    SignalAnswer,
    TimeAnswer,
    ToolAnswer,
    answer_from_json,
    answer_to_json,
)


def out(answer: Answer) -> list[Any]:
    """[kind, what `back` makes it of]."""
    match answer:
        case ModelAnswer():
            return ["model", answer_to_json(answer)]
        case ToolAnswer():
            return ["tool", {f.name: getattr(answer, f.name) for f in fields(ToolAnswer)}]
        case FramesAnswer():
            return ["frames", answer.results]
        case ApprovalAnswer():
            return ["approval", {f.name: getattr(answer, f.name) for f in fields(ApprovalAnswer)}]
        case SignalAnswer():
            return ["signal", answer.payload]
        case TimeAnswer():
            return ["time", None]
        case _:
            assert_never(answer)


_ANSWERS: Final[dict[str, Callable[[Any], Answer]]] = {
    "model": answer_from_json,
    "tool": lambda item: ToolAnswer(**item),
    "frames": FramesAnswer,
    "approval": lambda item: ApprovalAnswer(**item),
    "signal": SignalAnswer,
    "time": lambda _item: TimeAnswer(),
}


def back(kind: str, item: Any) -> Answer:
    """The answer that `out` wrote so."""
    return _ANSWERS[kind](item)
