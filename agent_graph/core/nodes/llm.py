"""`llm`: asks a model once, checks what it answers, and may ask for one mended answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Le, Len

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, Milliseconds, NodeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of an `llm` node; `prompt`, `model`, `json_mode` and `max_tokens` may stand on the node too."""

    prompt: Annotated[str, Len(1)] = "{input}"
    system: str = ""
    model: str = ""
    """"" = the run's or the server's default."""
    json_mode: bool = False
    output_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) of the answer; sent to the model and checked here."""
    repair: Annotated[int, Ge(0), Le(3)] = 1
    """Rounds in which the model is shown what was wrong with its answer."""
    max_tokens: Annotated[int, Ge(1), Le(1_000_000)] | None = None
    temperature: Annotated[float, Ge(0), Le(100)] | None = None
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Further options by Ollama's names; the fields above win."""
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    """Left out of the request when None."""
    keep_alive: int | float | str | None = None
    """Seconds, or a duration such as "5m"."""
    timeout_ms: Milliseconds = 600_000
    idle_timeout_ms: Milliseconds = 120_000
    """Silence allowed after the first byte."""
    on_length: Literal["keep", "error"] = "keep"
    """What a text cut by `max_tokens` is worth; with a schema or `json_mode` it is always an error."""
    messages: list[Any] | None = None
    fallback_models: list[str] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)
    max_tool_rounds: int = 5
    cache: Any = False
    evidence_required: bool = False


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "messages": "give `prompt` and `system`; `messages` is not available yet",
    "fallback_models": "nothing falls back to another model yet",
    "tools": "a model cannot call tools yet",
    "max_tool_rounds": "a model cannot call tools yet",
    "cache": "answers are not cached yet",
    "evidence_required": "nothing checks evidence yet",
}
