"""What is read and cannot have been written: KEY_READ_BEFORE_WRITE, PROMPT_PLACEHOLDER_UNKNOWN,
JOIN_INPUT_NEVER_WRITTEN.

The run's input is spread over the state, so a key nobody writes may still be there: without a schema that says
otherwise it is only called wrong where it looks like one that is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from agent_graph.core.checks.keys import BOOKS, WITHOUT_OUTPUT, Path, plain
from agent_graph.core.checks.shape import Shape
from agent_graph.core.classes import dataclass
from agent_graph.core.fields import closest
from agent_graph.core.issues import Issue, Severity, pointer
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.nodes.base import Read
from agent_graph.core.spec import ParsedNode
from agent_graph.core.topology import members

_COMPARED: Final = 40_000
"""Unknown names times known ones in one graph, beyond which no nearest one is looked for."""
_ASKING: Final = frozenset({"router", "loop"})
"""Types whose reads may find nothing: a rule is then decided by that."""


@dataclass(slots=True)
class _Names:
    """What could have been meant; each unknown name is compared once."""

    known: list[str]
    left: int
    found: dict[str, str] = field(default_factory=dict)

    def closest(self, name: str) -> str:
        if name not in self.found:
            self.left -= len(self.known)
            self.found[name] = closest(name, self.known) if self.left >= 0 else ""
        return self.found[name]


@dataclass(slots=True)
class _Sought:
    """One read nothing answers."""

    shape: Shape
    node: ParsedNode
    read: Read
    names: _Names
    near: str = ""

    @property
    def shown(self) -> str:
        return f"`{self.read.path}`"

    def hidden(self, writers: Iterable[int]) -> bool:
        """All of them run for items of a list, and it does not run there."""
        seen = self.shape.seen(self.shape.index[self.node.id])
        return not any(seen >> writer & 1 for writer in writers)


def unanswered_reads(shape: Shape) -> Iterator[Issue]:
    """Every read that nothing upstream, and as far as is known not the input either, can have written."""
    names: _Names | None = None
    for place, node in enumerate(shape.nodes):
        if not shape.reads[place] or not shape.reached(place):
            continue
        seen: set[Path] = set()
        for read in shape.reads[place]:
            path = plain(read.path)
            if path in seen or answered(shape, place, read.path, path):
                continue
            seen.add(path)
            names = names or _Names([*dict.fromkeys((*shape.keys.names(), *shape.index))], _COMPARED)
            sought = _Sought(shape, node, read, names)  # type: ignore[arg-type]  # a spec that was read has these
            yield from _issues(sought, place, path)


def answered(shape: Shape, place: int, text: str, path: Path) -> bool:
    """Whether the read is answered: somebody upstream writes it, or it is known to be in the input."""
    node = shape.nodes[place]
    if node.type == "join" and text in shape.index:
        writer = shape.index[text]
        return _has_output(shape, writer) and bool((shape.upstream(place) & shape.seen(place)) >> writer & 1)
    if path[0] in BOOKS and len(path) > 1:
        return _in_books(shape, place, path)
    if shape.keys.brought(path):
        return True
    writers = shape.keys.writers(path)
    own = 1 << place if node.type == "state_transform" else 0  # an operation sees what the ones before it did
    return bool(writers & (shape.upstream(place) & shape.seen(place) | own)) if writers else False


def _in_books(shape: Shape, place: int, path: Path) -> bool:
    named = next((".".join(path[1:end]) for end in range(len(path), 1, -1) if ".".join(path[1:end]) in shape.index), "")
    if not named:
        return False
    writer = shape.index[named]
    before = bool((shape.upstream(place) & shape.seen(place)) >> writer & 1)
    match path[0]:
        case "outputs":
            return before and _has_output(shape, writer)
        case "errors":
            return before and shape.nodes[writer].config.on_error != "fail"
        case _:
            return (before or writer == place) and shape.nodes[writer].type == "loop"


def _has_output(shape: Shape, place: int) -> bool:
    node = shape.nodes[place]
    return node.type not in WITHOUT_OUTPUT and not (node.type == "join" and not node.config.inputs)


def _issues(sought: _Sought, place: int, path: Path) -> Iterator[Issue]:
    shape, node, read = sought.shape, sought.node, sought.read
    is_join = node.type == "join" and read.pointer.startswith("/inputs")
    if (is_join and read.path in shape.index) or path[0] in BOOKS:
        yield _of_node(sought, place, path)
        return
    writing = shape.keys.writers(path)
    if writing:
        writers = members(writing)
        if not read.optional or node.type in (*_ASKING, "join"):
            yield _too_late(sought, writers)
    elif is_join:
        yield _never(sought, "JOIN_INPUT_NEVER_WRITTEN", "warning", "joins")
    elif read.optional and node.type not in _ASKING:
        sought.near = _nearest(sought)
        if sought.near:
            yield _never(sought, _code(sought), "warning", "reads")
    else:
        sought.near = _nearest(sought)
        if node.type in _ASKING and not sought.near and not shape.keys.closed:
            return  # the input is what most routers ask
        yield _never(sought, _code(sought), _severity(sought), "asks" if node.type in _ASKING else "reads")


def _code(sought: _Sought) -> str:
    return "PROMPT_PLACEHOLDER_UNKNOWN" if _placeholders(sought) else "KEY_READ_BEFORE_WRITE"


def _severity(sought: _Sought) -> Severity:
    if sought.shape.keys.closed:
        return "warning" if sought.read.optional else "error"
    return "warning" if sought.near else "info"


def _nearest(sought: _Sought) -> str:
    head, dot, rest = sought.read.path.partition(".")
    near = sought.names.closest(sought.read.path)
    if not near and dot and (found := sought.names.closest(head)):
        near = f"{found}.{rest}"
    return "" if near == sought.read.path else near


def _never(sought: _Sought, code: str, severity: Severity, verb: str) -> Issue:
    """Nobody writes it at all."""
    near = sought.near = sought.near or _nearest(sought)
    hint = f'; did you mean "{near}"?' if near else ""
    if sought.shape.keys.closed:
        why = "no node writes it, and `input_schema` allows no such key"
    elif code == "JOIN_INPUT_NEVER_WRITTEN":
        why = "no node has that id or writes that key; if the run's input brings it, say so in `input_schema`"
    else:
        why = "no node writes it: the run's input has to bring it"
        if not sought.read.optional:
            why += ", or this node fails"
    message = f'"{sought.node.id}" {verb} {sought.shown}, and {why}{hint}'
    return Issue(code, message, severity=severity, pointer=sought.node.pointer(sought.read.pointer),
                 node_id=sought.node.id, fix=_renamed(sought) if near else _declared(sought, code))  # fmt: skip


def _too_late(sought: _Sought, writers: list[int]) -> Issue:
    """Somebody writes it, but never before this node."""
    nodes = [sought.shape.nodes[place] for place in writers[:50]]
    who = " and ".join(f'"{node.id}"' for node in nodes[:3]) + (" and others" if len(nodes) > 3 else "")
    own = len(nodes) == 1 and nodes[0].id == sought.node.id
    why = f"{'it' if own else who} {'writes it itself, later' if own else 'can only run after it or beside it'}"
    if sought.hidden(writers):
        why = f"{who} runs once for each item of a list and writes to that item's state alone"
    message = f'"{sought.node.id}" reads {sought.shown}, and {why}: there is nothing yet'
    related = tuple(node.pointer() for node in nodes if isinstance(node, ParsedNode))
    return Issue("KEY_READ_BEFORE_WRITE", message, severity="warning", related=related, node_id=sought.node.id,
                 pointer=sought.node.pointer(sought.read.pointer),
                 fix=optional_fix(sought.node, sought.read))  # fmt: skip


def _of_node(sought: _Sought, place: int, path: Path) -> Issue:
    """It names a node: one that is not there, that leaves nothing, or that comes later."""
    shape, name = sought.shape, sought.read.path
    if path[0] in BOOKS:
        name = next((".".join(path[1:end]) for end in range(len(path), 1, -1) if ".".join(path[1:end]) in shape.index),
                    ".".join(path[1:]))  # fmt: skip
    at = sought.node.pointer(sought.read.pointer)
    code = "JOIN_INPUT_NEVER_WRITTEN" if sought.node.type == "join" else _code(sought)
    fix: tuple[JsonObject, ...] = ()
    related: tuple[str, ...] = ()
    if name not in shape.index:
        near = sought.names.closest(name)
        near = near if near in shape.index else ""
        why = "there is no such node" + (f'; did you mean "{near}"?' if near else "")
        sought.near = f"{path[0]}.{near}" if near else ""
        fix = _renamed(sought) if near else ()
    else:
        writer = shape.nodes[shape.index[name]]
        related = (writer.pointer(),) if isinstance(writer, ParsedNode) else ()
        if (shape.upstream(place) & shape.seen(place)) >> shape.index[name] & 1:
            why = f"a `{writer.type}` leaves none" if path[0] != "errors" else f'"{name}" fails the run when it fails'
        else:
            code, why = "KEY_READ_BEFORE_WRITE", f'"{name}" can only run after it or beside it'
            if sought.hidden([shape.index[name]]):
                why = f'"{name}" runs once for each item of a list, and only what runs for that item sees it'
    what = {"errors": "the error", "loops": "the count"}.get(path[0], "the output")
    message = f'"{sought.node.id}" reads {what} of "{name}", and {why}'
    return Issue(code, message, severity="warning", pointer=at, node_id=sought.node.id, related=related, fix=fix)


def _placeholders(sought: _Sought) -> bool:
    """The read stands in a text with placeholders."""
    _, text = _text(sought.node, sought.read)
    return "{" + sought.read.path in text


def _text(node: ParsedNode, read: Read) -> tuple[str, str]:
    """(its pointer in the spec, the string) that holds the read; empty where that is not one string."""
    at = node.pointer(read.pointer)
    value: Any = node.minimal.get("config", {})
    for step in read.pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        # a misspelt field is read under the name that was meant, and nothing stands there
        value = value[int(step)] if isinstance(value, list) else (value or {}).get(name)
    if isinstance(value, str):
        return at, value
    for name in ("template", "path", "value_path", "from") if isinstance(value, Mapping) else ():
        text = value.get(name)
        if isinstance(text, str) and (text == read.path or "{" + read.path in text):
            return f"{at}/{name}", text
    return at, ""


def _renamed(sought: _Sought) -> tuple[JsonObject, ...]:
    """The near name in place of the unknown one, where a string holds it as a whole or in braces."""
    at, text = _text(sought.node, sought.read)
    mended = sought.near if text == sought.read.path else text
    for ending in ("}", "?}", "|json}"):
        mended = mended.replace("{" + sought.read.path + ending, "{" + sought.near + ending)
    return ({"op": "replace", "path": at, "value": mended},) if mended != text else ()


def optional_fix(node: ParsedNode, read: Read) -> tuple[JsonObject, ...]:
    """``{x?}`` for ``{x}``."""
    at, text = _text(node, read)
    mended = text.replace("{" + read.path + "}", "{" + read.path + "?}")
    return ({"op": "replace", "path": at, "value": mended},) if mended != text else ()


def _declared(sought: _Sought, code: str) -> tuple[JsonObject, ...]:
    """The key named in `input_schema`, where the input may bring it."""
    key, schema = plain(sought.read.path)[0], sought.shape.top.get("input_schema")
    if sought.shape.keys.closed or code == "JOIN_INPUT_NEVER_WRITTEN":
        return ()
    if schema is None:
        value: JsonObject = {"type": "object", "required": [key], "properties": {key: {}}}
        return ({"op": "add", "path": "/input_schema", "value": value},)
    if isinstance(schema.get("properties"), dict):
        return ({"op": "add", "path": pointer("input_schema", "properties", key), "value": {}},)
    return ({"op": "add", "path": "/input_schema/properties", "value": {key: {}}},)
