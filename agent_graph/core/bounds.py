"""The bounds of a node's fields: `Ge`, `Le` and `Len` as pydantic reads them, and what a run need not pay for.

Only who checks a spec asks what they are (the protocol is `annotated_types.GroupedMetadata`), and that library takes
longer to load than all node types together. May not import it, or pydantic, before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal


class Ge:
    """At least so much."""

    __slots__ = ("least",)
    __is_annotated_types_grouped_metadata__: Literal[True] = True

    def __init__(self, least: int) -> None:
        self.least = least

    def __iter__(self) -> Iterator[Any]:
        from annotated_types import Ge as Standard

        yield Standard(self.least)


class Le:
    """At most so much."""

    __slots__ = ("most",)
    __is_annotated_types_grouped_metadata__: Literal[True] = True

    def __init__(self, most: int) -> None:
        self.most = most

    def __iter__(self) -> Iterator[Any]:
        from annotated_types import Le as Standard

        yield Standard(self.most)


class Len:
    """At least so many, and at most."""

    __slots__ = ("least", "most")
    __is_annotated_types_grouped_metadata__: Literal[True] = True

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most

    def __iter__(self) -> Iterator[Any]:
        from annotated_types import Len as Standard

        yield from Standard(self.least, self.most)
