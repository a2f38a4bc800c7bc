"""What one firing contributes to a state, and how one contribution is folded into a value; knows no state.

A *writer* is a firing that wrote something, an *entry* one of its writes in the journal of a slot.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from agent_graph.core import statepath
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import MISSING, MaybeJson, Missing, Path
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.ops import reducers
from agent_graph.core.weights import Slot

Order: TypeAlias = tuple[int, int, int]
NOWHERE = (0, 0, 0, 0)
"""The order of an entry that is compared with no other."""
BOOKS = frozenset({"outputs", "errors", "loops"})
"""First path segments that name the engine's own books, one slot per node."""
OVERWRITES = frozenset({"replace", "delete"})
"""What does not go through a key's reducer."""


@dataclass(slots=True)
class Writer:
    """One firing that wrote. `past` is what it had seen, `saw` whose current value it had seen (-1: the base)."""

    node: int
    order: Order
    path: str
    past: int
    saw: int
    current: MaybeJson = MISSING
    slots: tuple[Slot, ...] = ()


@dataclass(slots=True, order=True)
class Entry:
    """One contribution in a slot's journal."""

    order: tuple[int, int, int, int]
    writer: int = field(compare=False)
    op: str = field(compare=False)
    rest: Path = field(compare=False)
    value: JsonValue = field(compare=False)


@dataclass(slots=True)
class Conflict:
    """Concurrent writes of overlapping paths that met for the first time."""

    key: str
    winner: str
    losers: tuple[str, ...]


def slot_of(path: Path) -> tuple[Slot, Path]:
    """The slot a path lives in and the rest of the path inside it."""
    if path[0] in BOOKS and len(path) > 1:
        return (path[0], path[1]), path[2:]
    return path[0], path[1:]


def apply(reducer: str, value: MaybeJson, entry: Entry, fresh: bool) -> tuple[MaybeJson, bool]:
    """Fold one entry into a slot's value; `fresh` says the value is ours alone and may change in place."""
    if entry.op == "operand":
        if fresh and not isinstance(value, Missing):
            return reducers.fold_into(reducer, value, entry.value), True
        return reducers.fold(reducer, value, entry.value), True
    if entry.op == "delete":
        if not entry.rest:
            return MISSING, False
        return (MISSING if isinstance(value, Missing) else statepath.remove(value, entry.rest)), False
    if not entry.rest:
        return entry.value, False
    # What a concurrent write left in the way gives way: the later one stands, whatever it is.
    root: JsonValue = {} if isinstance(value, Missing) else value
    return statepath.put(root, entry.rest, entry.value, force=True), False
