"""What answers a run from outside: pure functions, so the same question always gets the same answer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from agent_graph.core.effects import ApprovalAnswer, CallModel, ModelAnswer
from tests.properties.fillings import WORDS


@dataclass(frozen=True, slots=True)
class World:
    """Scripted models and people; `seed` makes other answers to the same graph."""

    seed: int = 0
    failing: float = 0.0
    """Share of model calls that fail for good."""
    stumbling: float = 0.0
    """Share of first and second attempts that fail in passing."""
    forgiven: frozenset[str] = frozenset()
    """Nodes whose failures are handled: a third of their calls fail for good."""
    silent: float = 0.0
    """Share of approvals nobody ever decides."""

    def _draw(self, *parts: Any) -> float:
        text = json.dumps([self.seed, *parts], sort_keys=True)
        return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2**48

    def model(self, firing: str, call: CallModel) -> ModelAnswer | dict[str, Any]:
        """The answer to `call`, or the error of a call that fails."""
        question = asdict(call)
        share = 0.3 if firing.rpartition("/")[2].rpartition("#")[0] in self.forgiven else self.failing
        if self._draw("fails", firing, question) < share:
            return {"code": "MODEL_NOT_FOUND", "message": f"no model for {firing}", "class": "not_found"}
        number = int(self._draw("answer", firing, question) * 2**20)
        if call.format is not None:
            return ModelAnswer(text=json.dumps({"n": number % 7, WORDS[number % 4]: True}), prompt_tokens=3)
        return ModelAnswer(text=f"{WORDS[number % 4]} {number:x}", completion_tokens=2)

    def stumble(self, firing: str, attempt: int) -> ModelAnswer | dict[str, Any] | None:
        """What an attempt comes to that fails in passing: an answer nobody can use, or an error; mostly None."""
        draw = self._draw("stumbles", firing, attempt)
        if attempt > 2 or draw >= self.stumbling:
            return None
        if draw < self.stumbling / 2:
            return ModelAnswer(text=" ", prompt_tokens=1)
        return {"code": "MODEL_OVERLOADED", "message": f"busy at {draw}", "class": "overloaded"}

    def is_slow(self, firing: str) -> bool:
        """Whether the time of static branches can be over before they are through: that of every third."""
        return self._draw("slow", firing) < 1 / 3

    def person(self, firing: str, round_: int, allowed: tuple[str, ...]) -> ApprovalAnswer | None:
        """The decision at a gate: changes are asked for in the first rounds only, so rework ends."""
        draw = self._draw("person", firing, round_)
        nth = int(firing.rpartition("#")[2])
        if self._draw("silent", firing) < self.silent:
            return None
        decision = "approve"
        if "request_changes" in allowed and nth + round_ <= 3 and draw < 0.45:
            decision = "request_changes"
        elif self.failing and draw > 0.97:
            decision = "expired"
        elif "reject" in allowed and draw > 0.93:
            decision = "reject"
        if decision == "expired":
            return ApprovalAnswer(round_, decision, "", "", "", 999)
        at_ms = 1000 + int(draw * 1000)  # the time goes into the state: it depends on what is decided alone
        return ApprovalAnswer(round_, decision, f"note {draw:.3f}", "someone", "console", at_ms)
