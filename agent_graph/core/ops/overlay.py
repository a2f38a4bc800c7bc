"""What the operations of one firing see: its values, with its own writes so far laid over them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agent_graph.core import statepath
from agent_graph.core.effects import MISSING, MaybeJson, Missing, Path, Write
from agent_graph.core.issues import pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import Limits
from agent_graph.core.ops.operations import BOOKS, CURRENT
from agent_graph.core.ops.reducers import fold
from agent_graph.errors import NodeFailure

if TYPE_CHECKING:
    from agent_graph.core.nodes.base import Values


class Overlay:
    """Reads what earlier operations wrote first; changes nothing that was there before."""

    __slots__ = ("_changed", "_gathered", "_values")

    def __init__(self, values: Values) -> None:
        self._values = values
        self._changed: dict[str, MaybeJson] = {}
        self._gathered: dict[str, list[JsonValue]] = {}
        """Operands by key, folded only when somebody looks: appending need not copy what was gathered."""

    @property
    def limits(self) -> Limits:
        return self._values.limits

    def reducer(self, key: str) -> str:
        return self._values.reducer(key)

    def read(self, path: str) -> MaybeJson:
        """What is at a state path, in the current value (``__input__``) or in the engine's books."""
        head, dot, rest = path.partition(".")
        if head == CURRENT:
            return statepath.read(self._values.current, rest) if dot else self._values.current
        if statepath.split(path)[0] in BOOKS:
            return self._values.read(path)
        return statepath.read(self._root(path), path)

    def value(self, path: str) -> JsonValue:
        """Like `read`; nothing reads as null."""
        found = self.read(path)
        return None if isinstance(found, Missing) else found

    def need(self, path: str) -> JsonValue:
        """Like `read`; nothing is an error."""
        found = self.read(path)
        if isinstance(found, Missing):
            raise NodeFailure("TRANSFORM_INVALID", f"there is nothing at {path}", path=path)
        return found

    def choose(self, names: list[str], *, within: Any) -> JsonObject:
        """{name: value} of the paths that hold something."""
        where = self.need(within) if isinstance(within, str) else None
        found = {name: self.read(name) if within is None else statepath.read(where, name) for name in names}
        return {name: value for name, value in found.items() if not isinstance(value, Missing)}

    def placeholder(self, path: str) -> MaybeJson:
        """What a template's placeholder stands for."""
        head, dot, rest = path.partition(".")
        if head not in ("input", "run_input"):
            return self.read(path)
        found = self._values.current if head == "input" else self._values.run_input
        return statepath.read(found, rest) if dot else found

    def place(self, path: str) -> Path:
        """The segments a write to `path` goes to."""
        return statepath.fixed(path) or statepath.resolve(self._root(path), path)

    def at(self, place: Path) -> JsonValue:
        """What is at resolved segments; nothing reads as null."""
        found = self._at(place)
        return None if isinstance(found, Missing) else found

    def has(self, place: Path) -> bool:
        return self._at(place) is not MISSING

    def apply(self, write: Write) -> None:
        """Lay one more write over; `NodeFailure` TRANSFORM_INVALID where it cannot be applied."""
        key, rest = write.path[0], write.path[1:]
        if write.op == "operand":
            self._gathered.setdefault(key, []).append(write.value)
        elif not rest:
            self._gathered.pop(key, None)
            self._changed[key] = MISSING if write.op == "delete" else write.value
        else:
            before = self.at((key,))
            if write.op == "delete":
                self._changed[key] = statepath.remove(before, rest)
            else:
                whole: Any = statepath.put({key: before}, write.path, write.value)
                self._changed[key] = whole[key]

    def _at(self, place: Path) -> MaybeJson:
        whole = self._key(place[0])
        if len(place) == 1 or isinstance(whole, Missing):
            return whole
        return statepath.read(whole, pointer(*place[1:]))

    def _root(self, path: str) -> JsonObject:
        """The top-level keys `path` may begin with: with dots, each beginning of it may be a flat key."""
        segments = statepath.split(path)
        count = 1 if path.startswith("/") else len(segments)
        keys = [".".join(segments[: n + 1]) for n in range(count)]
        found = {key: self._key(key) for key in keys}
        return {key: value for key, value in found.items() if not isinstance(value, Missing)}

    def _key(self, key: str) -> MaybeJson:
        value = self._changed[key] if key in self._changed else self._values.read(_whole(key))
        if key in self._gathered:
            for operand in self._gathered.pop(key):
                value = fold(self._values.reducer(key), value, operand)
            self._changed[key] = value
        return value


@lru_cache(maxsize=4096)  # the same few keys, at every step
def _whole(key: str) -> str:
    """The path of a top-level key, whatever its name."""
    return pointer(key)


def check_bounds(value: JsonValue, *, limits: Limits) -> None:
    """Raises `NodeFailure` VALUE_TOO_LARGE for a value that is certainly over the limits of size or depth.

    Operations can put a value into itself over and over; this looks at no more than the limit's worth of it.
    """
    left, depth, level = limits.value_bytes, 0, [value]
    while level:
        below: list[JsonValue] = []
        nested = 0
        left -= len(level)
        for item in level:
            if isinstance(item, str | list | dict):
                left -= len(item)
                if left < 0:
                    raise NodeFailure("VALUE_TOO_LARGE", f"the value is larger than {limits.value_bytes} bytes")
                if not isinstance(item, str):
                    nested = 1
                    below.extend(item if isinstance(item, list) else item.values())
        depth += nested
        if depth > limits.json_depth:
            raise NodeFailure("VALUE_TOO_LARGE", f"the value is nested deeper than {limits.json_depth} levels")
        level = below
