"""What a process has done since it began, as plain counts: for who watches it, never for who decides anything."""

from __future__ import annotations

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import ModelAnswer


@dataclass(slots=True)
class Telemetry:
    """Of all runs of a process."""

    model_calls: int = 0
    """That were answered."""
    model_failures: int = 0
    """That were not."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """As hosts report them; one that does not adds nothing."""

    def answered(self, answer: ModelAnswer) -> None:
        self.model_calls += 1
        self.prompt_tokens += answer.prompt_tokens or 0
        self.completion_tokens += answer.completion_tokens or 0
