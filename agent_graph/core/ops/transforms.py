"""The operations of `state_transform`: one function an operation, applied in order, all or none.

``path`` is where an operation writes, ``value`` or ``from`` (a path) what it takes. A ``from`` path that holds nothing
is an error; `compare` alone reads it as null, as predicates do. A target that holds nothing or null is a fresh start:
0, [] or {}. On a key with a reducer every write is a contribution (engine.md 3); ``replace`` overwrites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_graph.core import statepath
from agent_graph.core.effects import Path, Write
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, is_number, json_equal
from agent_graph.core.ops.operations import check, needs, overwrites, reads, writes
from agent_graph.core.ops.overlay import Overlay, check_bounds
from agent_graph.core.ops.prompt import Placeholder, Template, parse
from agent_graph.core.ops.reducers import contribution, kind, plus
from agent_graph.errors import NodeFailure

if TYPE_CHECKING:
    from agent_graph.core.nodes.base import Values

__all__ = ["OPERATIONS", "Prepared", "apply", "check", "needs", "overwrites", "prepare", "reads", "run", "writes"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where an operation writes."""

    place: Path
    reducer: str
    replace: bool

    def gathers(self, reducer: str) -> bool:
        """The operation's own operand goes to that reducer."""
        return self.reducer == reducer and len(self.place) == 1 and not self.replace

    def write(self, value: JsonValue) -> Write:
        """The write of the whole new value."""
        if self.replace and self.reducer:
            return Write("replace", self.place, value)
        return contribution("" if self.replace else self.reducer, self.place, value)


def assign(operation: JsonObject, state: Overlay, target: Target) -> Write:
    """The value itself, in place of what is there."""
    return target.write(_operand(operation, state))


def delete(_operation: JsonObject, state: Overlay, target: Target) -> Write | None:
    """Removes what is there; where nothing is, there is nothing a concurrent write could conflict with."""
    return Write("delete", target.place) if state.has(target.place) else None


def increment(operation: JsonObject, state: Overlay, target: Target) -> Write:
    """By 1 when neither `value` nor `from` is given. Integers stay integers, of any size."""
    step: Any = _operand(operation, state) if "value" in operation or "from" in operation else 1
    before: Any = state.at(target.place)
    before = 0 if before is None else before
    if not is_number(before):
        raise NodeFailure("TRANSFORM_INVALID", f"what is there is {kind(before)}, not a number")
    if not is_number(step):
        raise NodeFailure("TRANSFORM_INVALID", f"the step is {kind(step)}, not a number")
    total = plus(before, step)
    return Write("operand", target.place, step) if target.gathers("add") else target.write(total)


def append(operation: JsonObject, state: Overlay, target: Target) -> Write:
    """Pushes one element, a list too; `extend` pushes the elements of a list. What is no list becomes the first."""
    item = _operand(operation, state)
    if operation.get("extend") and not isinstance(item, list):
        raise NodeFailure("TRANSFORM_INVALID", f"`extend` takes an array, not {kind(item)}")
    more = item if operation.get("extend") and isinstance(item, list) else [item]
    if target.gathers("append"):
        return Write("operand", target.place, more)
    before = state.at(target.place)
    whole = [*before, *more] if isinstance(before, list) else [*([] if before is None else [before]), *more]
    if 2 * len(whole) > state.limits.value_bytes:
        raise NodeFailure("VALUE_TOO_LARGE", f"the list would be larger than {state.limits.value_bytes} bytes")
    return target.write(whole)


def merge(operation: JsonObject, state: Overlay, target: Target) -> Write:
    """The members of an object over those that are there; one level deep (the merge *reducer* goes deeper)."""
    over: Any = _operand(operation, state)
    before: Any = state.at(target.place)
    before = {} if before is None else before
    for value, what in ((over, "what is merged"), (before, "what is there")):
        if not isinstance(value, dict):
            raise NodeFailure("TRANSFORM_INVALID", f"{what} is {kind(value)}, not an object")
    if target.gathers("merge"):
        return Write("operand", target.place, over)
    return target.write({**before, **over})


def select(operation: JsonObject, state: Overlay, target: Target) -> Write:
    """An object of the listed paths that hold something, by their names; within `from` when that is given."""
    names: Any = operation["values"]
    chosen = state.choose(names, within=operation.get("from"))
    check_bounds(chosen, limits=state.limits)
    return target.write(chosen)


def compare(operation: JsonObject, state: Overlay, target: Target) -> Write:
    """Whether `path` equals `value` or `from`: true or false goes `into`, or else over `path` itself."""
    other = state.value(str(operation["from"])) if "from" in operation else operation.get("value")
    return target.write(json_equal(state.value(str(operation["path"])), other))


def format_text(operation: JsonObject, state: Overlay, target: Target) -> Write:
    """A template as in a prompt; with `values` only those names are placeholders, every other brace is text."""
    template = parse(str(operation["template"]))
    names = operation.get("values")
    if isinstance(names, list):
        template = Template(tuple(_only(part, names) for part in template.parts))
    try:
        return target.write(template.render(state.placeholder, max_bytes=state.limits.value_bytes))
    except NodeFailure as failure:
        if failure.code != "PROMPT_VALUE_MISSING":
            raise
        raise NodeFailure("TRANSFORM_INVALID", failure.message, **failure.details) from None


Operation: TypeAlias = Callable[[JsonObject, Overlay, Target], Write | None]
OPERATIONS: Final[dict[str, Operation]] = {
    "set": assign, "copy": assign, "delete": delete, "increment": increment, "append": append, "merge": merge,
    "merge_object": merge, "select": select, "compare": compare, "format": format_text,
}  # fmt: skip
"""By their names in a spec."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An operation and what is known of it whatever the state."""

    spec: JsonObject
    act: Operation
    path: str
    """Where it writes."""
    place: Path | None
    """Its segments; None where what is there decides which they are."""
    replace: bool

    def target(self, state: Overlay) -> Target:
        place = self.place or state.place(self.path)
        return Target(place, state.reducer(place[0]), self.replace)


def prepare(operations: Sequence[JsonObject]) -> tuple[Prepared, ...]:
    """Operations that `check` accepted, for `run`; made once."""
    return tuple(
        Prepared(one, OPERATIONS[str(one["op"])], path, statepath.fixed(path), bool(one.get("replace")))
        for one in operations
        for path in writes(one)
    )


def apply(operations: Sequence[JsonObject], values: Values) -> tuple[Write, ...]:
    """`run`, of operations as they are written."""
    return run(prepare(operations), values)


def run(operations: Sequence[Prepared], values: Values) -> tuple[Write, ...]:
    """The writes of `operations` on what `values` sees; later ones see what earlier ones did.

    All or nothing: raises `NodeFailure` TRANSFORM_INVALID or VALUE_TOO_LARGE, which names the operation.
    """
    state = Overlay(values)
    done: list[Write] = []
    for place, prepared in enumerate(operations):
        operation = prepared.spec
        try:
            write = prepared.act(operation, state, prepared.target(state))
            if write is not None:
                state.apply(write)
                done.append(write)
        except NodeFailure as failure:
            message = f"operations/{place} ({operation['op']} {operation['path']}): {failure.message}"
            raise NodeFailure(failure.code, message, **{**failure.details, "operation": place}) from None
    return tuple(done)


def _operand(operation: JsonObject, state: Overlay) -> JsonValue:
    value = state.need(str(operation["from"])) if "from" in operation else operation["value"]
    check_bounds(value, limits=state.limits)
    return value


def _only(part: str | Placeholder, names: list[Any]) -> str | Placeholder:
    if isinstance(part, str) or part.path in names:
        return part
    return "{" + part.path + ("?" if part.optional else "|json" if part.as_json else "") + "}"
