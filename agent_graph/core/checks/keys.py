"""Who writes and who reads which state path, as far as the configs say; decides nothing about what is wrong.

Paths are compared without regard to how they are written: a flat key that contains dots and a path of several segments
are one, so that nothing is called unwritten that may be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from agent_graph.core import statepath
from agent_graph.core.classes import dataclass
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.topology import Topology, bits

Path = tuple[str, ...]

WITHOUT_OUTPUT: Final = frozenset({"router", "passthrough", "state_transform", "loop", "timer"})
"""The types whose nodes have no output of their own (engine.md 3)."""
BOOKS: Final = frozenset({"outputs", "errors", "loops"})


def plain(path: str) -> Path:
    """The segments of `path` with every dot as a border; () when it is no path."""
    try:
        return tuple(".".join(statepath.split(path)).split("."))
    except ValueError:
        return ()


@dataclass(slots=True)
class Keys:
    """Who writes what, by path; sets of nodes as integers."""

    at: dict[Path, list[int]] = field(default_factory=dict)
    """By path: the nodes that write exactly this."""
    below: dict[Path, list[int]] = field(default_factory=dict)
    """By path: the nodes that write it or something in it."""
    items: frozenset[str] = frozenset()
    """Names under which a fan-out over data hands an item and its number to its nodes."""
    given: frozenset[str] = frozenset()
    """The keys that the input schema names."""
    closed: bool = False
    """The run's input can bring no other key than `given`."""
    count: int = 0
    _sets: dict[Path, int] = field(default_factory=dict)

    def writers(self, path: Path) -> int:
        """The reachable nodes that write `path`, something in it or what it lies in."""
        found = self._sets.get(path)
        if found is None:
            nodes = [*self.below.get(path, ())]
            for length in range(1, len(path)):
                nodes += self.at.get(path[:length], ())
            found = self._sets[path] = bits(nodes, self.count) if nodes else 0
        return found

    def names(self) -> list[str]:
        """The paths that are written, as they would be read, and the keys of the input."""
        return [*(".".join(path) for path in self.at), *self.given]

    def brought(self, path: Path) -> bool:
        """The run's input is known to bring it, or a fan-out does."""
        return path[0] in self.given or path[0] in self.items


def known_keys(nodes: Sequence[Any], built: Topology, *, input_schema: Any) -> Keys:
    """The keys of a graph. `nodes` have id, type and config."""
    given, closed = keys_of_input(input_schema)
    keys = Keys(given=given, closed=closed, count=len(nodes))
    items = {"item", "index"}
    reachable = built.reachable
    for place, node in enumerate(nodes):
        if not reachable >> place & 1:
            continue
        for text in KNOWN_TYPES[node.type].writes(node.id, node.config):
            path = plain(text)
            keys.at.setdefault(path, []).append(place)
            for length in range(1, len(path) + 1):
                keys.below.setdefault(path[:length], []).append(place)
        over = getattr(node.config, "for_each", None) or {}
        items |= {str(over[name]) for name in ("as", "index_as") if name in over}
    keys.items = frozenset(items)
    return keys


def keys_of_input(schema: Any) -> tuple[frozenset[str], bool]:
    """The keys a JSON Schema names for an object, and whether there can be no others."""
    if not isinstance(schema, Mapping):
        return frozenset(), False
    kinds = schema.get("type")
    if kinds is not None and "object" not in ([kinds] if isinstance(kinds, str) else kinds):
        return frozenset(), True
    names: set[str] = set()
    todo: list[Any] = [schema]
    plainly = True
    while todo:
        part = todo.pop()
        if not isinstance(part, Mapping):
            continue
        names |= set(part.get("properties") or ())
        names |= {name for name in part.get("required") or () if isinstance(name, str)}
        plainly = plainly and not {"$ref", "$dynamicRef", "patternProperties"} & set(part)
        for word in ("anyOf", "oneOf", "allOf"):
            todo += part.get(word) or ()
        todo += [part.get(word) for word in ("if", "then", "else")]
        plainly = plainly and "not" not in part
    return frozenset(names), plainly and schema.get("additionalProperties") is False
