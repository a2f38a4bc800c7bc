"""`router`: chooses where its token goes, by rules on the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `router` node."""

    rules: list[dict[str, Any]] = field(default_factory=list)
    """[{path, op, value or value_path, targets, label?}]; `all` / `any` / `not` nest."""
    default: list[str] | None = None
    """Targets when no rule holds; [] ends the branch, None makes that an error."""
    mode: Literal["first", "all"] = "first"
    routes: dict[str, str | list[str]] | None = None
    """The older form: text -> target; the first text the input contains, in the order of the map."""


CHOOSES: Final = True
UNAVAILABLE: Final = {**UNAVAILABLE_EVERYWHERE, "output_key": "a router writes nothing; its way is in the events"}
