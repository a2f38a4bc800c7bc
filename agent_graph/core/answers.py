"""The answers a firing has heard, as a snapshot keeps them; not their form in the log, which has them as facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, assert_never

from agent_graph.core.effects import (
    Answer,
    ApprovalAnswer,
    EvidenceAnswer,
    FramesAnswer,
    ModelAnswer,
    SignalAnswer,
    TimeAnswer,
    ToolAnswer,
    answer_from_json,
    answer_to_json,
)


def to_body(answer: Answer) -> list[Any]:
    """[kind, JSON value]."""
    match answer:
        case ModelAnswer():
            return ["model", answer_to_json(answer)]
        case ToolAnswer():
            return ["tool", {f.name: getattr(answer, f.name) for f in fields(ToolAnswer)}]
        case EvidenceAnswer():
            return ["evidence", [list(answer.witnesses), list(answer.problems)]]
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


def from_body(kind: str, item: Any) -> Answer:
    """The answer `to_body` told of; LookupError or TypeError for what it did not."""
    return _KINDS[kind](item)


_KINDS: Final[dict[str, Callable[[Any], Answer]]] = {
    "model": answer_from_json,
    "tool": lambda item: ToolAnswer(**item),
    "evidence": lambda item: EvidenceAnswer(tuple(item[0]), tuple(item[1])),
    "frames": FramesAnswer,
    "approval": lambda item: ApprovalAnswer(**item),
    "signal": SignalAnswer,
    "time": lambda _item: TimeAnswer(),
}
