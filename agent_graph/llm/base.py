"""What every model host looks like to the engine: one call, one listing, one close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel, ModelAnswer

DeltaKind: TypeAlias = Literal["text", "thinking"]
OnDelta: TypeAlias = Callable[[DeltaKind, str], None]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One installed model; `digest` is "" where the host does not tell."""

    name: str
    digest: str = ""
    size_bytes: int | None = None
    capabilities: tuple[str, ...] = ()


class ModelClient(Protocol):
    """A model host. `provider` is ollama, embedded or scripted; `host` the label that limits and status use."""

    provider: str
    host: str
    parallel: int
    """Calls the host should have in flight at most, from everything we run."""

    async def chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        """Perform one call, telling `on_delta` of text as it comes.

        Raises the ``Model*`` errors of `agent_graph.errors`, never anything of the transport. The time limits of
        `call` hold from the moment this is awaited. Cancelling the task closes the connection at once.
        An answer whose `done_reason` is "length" is returned, not raised: the node decides what it means.
        """
        ...

    async def models(self) -> tuple[ModelInfo, ...]:
        """The installed models, in the host's order. Raises `ModelUnreachable` when the host does not answer."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
