"""`loop`: runs its body until a predicate holds, at most so many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from annotated_types import Ge, Le, Len

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `loop` node."""

    entry: Annotated[str, Len(1)]
    """Where the body starts."""
    exit: Annotated[str, Len(1)]
    """Where it goes on when the body is done."""
    max_iterations: Annotated[int, Ge(1), Le(100_000)] = 32
    """How often the body runs at most."""
    until: dict[str, Any] | None = None
    """A router predicate, asked after every round of the body."""
    counter_key: str = ""
    """A further state path for the count; it is always at ``loops.<id>``."""
    on_limit: list[str] | None = None
    """Targets at the bound; None = `exit`."""


CHOOSES: Final = True
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": "a loop writes its count only; name `counter_key`",
    "input_key": "a loop reads what `until` names",
}
