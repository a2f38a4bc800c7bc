"""`dataclass`, whose frozen classes the type checker alone keeps frozen; for what every step of a run makes anew.

``dataclasses.dataclass(frozen=True)`` has each field set through ``object.__setattr__``: that takes four times as long,
and was a quarter of a step. Mypy sees the standard decorator, so that an assignment to a field is an error as ever. Not
for what comes from users of the library, who may not run mypy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from agent_graph.core import classes

    def dataclass(*, frozen: bool, **options: Any) -> Any:
        """As in `core.classes`; what is to be frozen keeps its hash."""
        return classes.dataclass(frozen=frozen, guarded=False, **options)
