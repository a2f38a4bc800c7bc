"""Reducers: how contributions to one key of the state are folded, one function a reducer.

Folding never fails on what is already there, however it came about: null or nothing is a fresh start, and a value the
reducer cannot go on from is handled as each function says. Only an operand can be wrong, and is refused beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from agent_graph.core.effects import MaybeJson, Missing, Path, Write
from agent_graph.core.jsonvalue import JsonObject, JsonValue, fits, is_number
from agent_graph.errors import NodeFailure

Number: TypeAlias = "int | float"
_PLAIN: Final = 1e21
"""Below this canonical JSON writes a whole number without an exponent (ECMAScript)."""


def last_write_wins(_current: MaybeJson, operand: JsonValue, *, own: bool) -> JsonValue:
    """The operand."""
    return operand


def append(current: MaybeJson, operand: JsonValue, *, own: bool) -> JsonValue:
    """A list is concatenated, any other operand is one more element; a current value that is no list is the first."""
    more = operand if isinstance(operand, list) else [operand]
    if isinstance(current, list):
        if own:
            current.extend(more)
            return current
        return [*current, *more]
    return list(more) if current is None or isinstance(current, Missing) else [current, *more]


def add(current: MaybeJson, operand: JsonValue, *, own: bool) -> JsonValue:
    """The sum, exact for integers; a current value that is no number counts as 0.

    A sum that JSON cannot carry (an overflow) leaves the term of the larger magnitude.
    """
    term: Any = operand
    if not is_number(current):
        return operand
    before: Any = current
    try:
        return plus(before, term)
    except NodeFailure:
        return before if abs(before) >= abs(term) else operand


def merge(current: MaybeJson, operand: Any, *, own: bool) -> JsonValue:
    """Objects are merged at every level; elsewhere the operand's value stands."""
    if not isinstance(current, dict):
        return _own_objects(operand)
    merged = current if own else _own_objects(current)
    todo: list[tuple[JsonObject, JsonObject]] = [(merged, operand)]
    while todo:
        into, source = todo.pop()
        for key, item in source.items():
            there = into.get(key)
            if isinstance(there, dict) and isinstance(item, dict):
                todo.append((there, item))
            else:
                into[key] = _own_objects(item) if isinstance(item, dict) else item
    return merged


REDUCERS: Final[dict[str, Callable[..., JsonValue]]] = {
    "last_write_wins": last_write_wins,
    "append": append,
    "add": add,
    "merge": merge,
}
"""By their names in a spec; called as ``(current, operand, own=)`` where `own` allows to change `current` in place."""


def fold(name: str, current: MaybeJson, operand: JsonValue) -> JsonValue:
    """`current` with one more contribution; changes neither, and what it returns may be given to `fold_into`.

    Raises `NodeFailure` TRANSFORM_INVALID when the operand is not of the reducer's type.
    """
    check_operand(name, operand)
    return REDUCERS[name](current, operand, own=False)


def fold_into(name: str, owned_current: MaybeJson, operand: JsonValue) -> JsonValue:
    """Like `fold`, for a value that came from `fold` and that nobody else holds: it may change in place.

    The cost is that of the operand, whatever has been gathered. The operand is never changed, now or by later calls.
    """
    check_operand(name, operand)
    return REDUCERS[name](owned_current, operand, own=True)


def check_operand(name: str, operand: JsonValue) -> None:
    """Raises `NodeFailure` TRANSFORM_INVALID unless `operand` is what the reducer takes: add numbers, merge objects."""
    if name == "add" and not is_number(operand):
        raise NodeFailure("TRANSFORM_INVALID", f"the reducer add takes a number, not {kind(operand)}")
    if name == "merge" and not isinstance(operand, dict):
        raise NodeFailure("TRANSFORM_INVALID", f"the reducer merge takes an object, not {kind(operand)}")


def contribution(reducer: str, place: Path, value: JsonValue) -> Write:
    """The write of `value` at `place` (resolved segments) of a key with `reducer` ("" = none): engine.md 3.

    Below a key, `merge` takes an object that leads there and `last_write_wins` a plain write; a place inside a list
    or number that is being gathered is no operand: `NodeFailure` TRANSFORM_INVALID.
    """
    if not reducer or (reducer == "last_write_wins" and len(place) > 1):
        return Write("set", place, value)
    if len(place) > 1 and reducer != "merge":
        message = f"{place[0]} is gathered by the reducer {reducer}: write to it, not below it, or say `replace`"
        raise NodeFailure("TRANSFORM_INVALID", message, key=place[0])
    for segment in reversed(place[1:]):
        value = {segment: value}
    check_operand(reducer, value)
    return Write("operand", place[:1], value)


def plus(left: Number, right: Number) -> Number:
    """The sum, exact when both are whole numbers; `NodeFailure` TRANSFORM_INVALID on overflow.

    Whole means whole as JSON writes it: the log turns 1e16 into 10000000000000000, and a sum must not differ by
    whether its terms came just now or were read back.
    """
    left, right = _whole(left), _whole(right)
    try:
        total = left + right
    except OverflowError:  # an integer beyond every float, and a fraction
        total = float("inf")
    if not fits(total):
        raise NodeFailure("TRANSFORM_INVALID", "the sum is larger than a number may be")
    return total


def kind(value: MaybeJson) -> str:
    """The JSON type of a value, for a sentence."""
    if value is None or isinstance(value, Missing):
        return "null" if value is None else "nothing"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")


def _whole(number: Number) -> Number:
    """A float that stands for one integer, as that integer."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < _PLAIN else number


def _own_objects(value: JsonObject) -> JsonObject:
    """A copy of the objects within objects, so that merging in place touches nobody else's; the rest is shared."""
    copied = dict(value)
    todo = [copied]
    while todo:
        into = todo.pop()
        for key, item in into.items():
            if isinstance(item, dict):
                into[key] = inner = dict(item)
                todo.append(inner)
    return copied
