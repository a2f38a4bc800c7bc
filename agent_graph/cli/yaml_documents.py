"""YAML 1.2 as a way to write JSON: the types of JSON and no others, no tags, every key a text and given once.

Values are built from the parser's events, so that depth and size are bounded and nothing is constructed that a
document asks for; only writing one back, comments and all, is left to the library.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from agent_graph.core.issues import pointer
from agent_graph.core.jsonvalue import JsonValue, json_equal
from agent_graph.core.patch import PatchFailed
from agent_graph.errors import InputInvalid, InputTooDeep, InputTooLarge

_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, JsonValue]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_DASH: Final = re.compile(r"^[^\s#-][^\n]*:[^\S\n]*(?:#[^\n]*)?\n( *)- ", re.MULTILINE)
_NO_JSON: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

Place = tuple[int, int]


def read_yaml(text: str, *, max_depth: int, most: int) -> JsonValue:
    """The one document of `text`, in at most `most` values. Raises `InputInvalid`, `InputTooDeep`, `InputTooLarge`."""
    return _Reader(max_depth, most).read(text)


def yaml_places(text: str, wanted: Collection[str]) -> dict[str, Place]:
    """Where the values at these pointers begin, in a text that was read already."""
    reader = _Reader(10_000, 10_000_000, wanted)
    reader.read(text)
    return reader.found


class _Reader:
    """One pass over the events of a document."""

    def __init__(self, max_depth: int, most: int, wanted: Collection[str] = ()) -> None:
        self._max_depth = max_depth
        self._left = most
        self._wanted = wanted
        self.found: dict[str, Place] = {}
        self._anchors: dict[str, JsonValue] = {}

    def read(self, text: str) -> JsonValue:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        try:
            return self._document(YAML(typ="safe", pure=True).parse(io.StringIO(text)))
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
            raise InputInvalid(f"{where}{getattr(error, 'problem', None) or 'this is no YAML'}") from None

    def _document(self, events: Iterator[Any]) -> JsonValue:
        """Containers under way are a stack of (value, key, anchor); a mapping without a key waits for one."""
        stack: list[list[Any]] = []
        result: list[JsonValue] = []
        for event in events:
            match type(event).__name__:
                case "ScalarEvent" | "AliasEvent" | "MappingStartEvent" | "SequenceStartEvent":
                    self._value(event, stack, result)
                case "MappingEndEvent" | "SequenceEndEvent":
                    value, _, anchor = stack.pop()
                    self._anchor(anchor, value)
                    _put(value, stack, result)
                case "DocumentStartEvent" if result:
                    raise _wrong(event, "one file holds one graph; there is a second document")
        return result[0] if result else None

    def _value(self, event: Any, stack: list[list[Any]], result: list[JsonValue]) -> None:
        self._left -= 1
        if self._left < 0:
            raise InputTooLarge("the document has too many values")
        kind = type(event).__name__
        if getattr(event, "tag", None) not in (None, "", "!"):
            raise _wrong(event, f"there are no tags in a graph, such as {event.tag}")
        waits = stack and isinstance(stack[-1][0], dict) and stack[-1][1] is None
        if waits:
            stack[-1][1] = self._key(event, stack[-1][0])
            return
        if self._wanted and (at := pointer(*_path(stack))) in self._wanted:
            mark = event.start_mark
            self.found.setdefault(at, (mark.line + 1, mark.column + 1))
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(stack) >= self._max_depth:
                raise InputTooDeep(f"the document is nested deeper than {self._max_depth} levels")
            stack.append([{} if kind == "MappingStartEvent" else [], None, event.anchor])
        elif kind == "AliasEvent":
            if event.anchor not in self._anchors:
                raise _wrong(event, f"*{event.anchor} names nothing before it")
            value = self._anchors[event.anchor]
            self._left -= _size(value, self._left)
            _put(value, stack, result)
        else:
            value = _scalar(event)
            self._anchor(event.anchor, value)
            _put(value, stack, result)

    def _key(self, event: Any, parent: Mapping[str, Any]) -> str:
        if type(event).__name__ != "ScalarEvent":
            raise _wrong(event, "a key is a text")
        key = _scalar(event)
        if event.value == "<<" and _is_plain(event):
            raise _wrong(event, "`<<` merges are no part of YAML 1.2; write the fields out")
        if not isinstance(key, str):
            raise _wrong(event, f"a key is a text; write {event.value!r} in quotes")
        if key in parent:
            raise _wrong(event, f"the key {key!r} is given twice")
        return key

    def _anchor(self, anchor: str | None, value: JsonValue) -> None:
        if anchor:
            self._anchors[anchor] = value


def _put(value: JsonValue, stack: list[list[Any]], result: list[JsonValue]) -> None:
    """Into the innermost container, or as the document itself."""
    if not stack:
        result.append(value)
    elif isinstance(stack[-1][0], list):
        stack[-1][0].append(value)
    else:
        stack[-1][0][stack[-1][1]] = value
        stack[-1][1] = None


def _path(stack: Sequence[Sequence[Any]]) -> Iterator[str | int]:
    for value, key, _ in stack:
        yield len(value) if isinstance(value, list) else key


def _is_plain(event: Any) -> bool:
    return event.style is None or event.style == ""


def _scalar(event: Any) -> JsonValue:
    """What a scalar is in JSON; `no`, `on`, dates and `1_000` are texts."""
    text: str = event.value
    if not _is_plain(event):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > 4_000:
            raise _wrong(event, "the number is too long")
        return int(text)
    if _NO_JSON.fullmatch(text):
        raise _wrong(event, f"{text} is no number of JSON")
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _size(value: JsonValue, most: int) -> int:
    """How many values there are in `value`; more than `most` is refused."""
    count, open_ = 0, [value]
    while open_:
        one = open_.pop()
        count += 1
        if count > most:
            raise InputTooLarge("the document has too many values")
        open_ += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return count


def _wrong(event: Any, sentence: str) -> InputInvalid:
    mark = event.start_mark
    return InputInvalid(f"line {mark.line + 1}, column {mark.column + 1}: {sentence}")


def patched_yaml(text: str, patch: Sequence[Mapping[str, Any]], *, wanted: JsonValue) -> str:
    """`text` with a patch applied to it, its comments and order kept. Raises `PatchFailed` when what comes of that
    does not read as `wanted`: an alias would have been changed in two places."""
    from ruamel.yaml import YAML

    from agent_graph.core.patch import apply_in_place

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 4096
    if (dash := _DASH.search(text)) is not None:  # as the file has it
        yaml.indent(mapping=2, sequence=len(dash[1]) + 2, offset=len(dash[1]))
    holder = {"": yaml.load(text)}
    for step in patch:
        try:
            apply_in_place(holder, step)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise PatchFailed(str(error)) from error
    out = io.StringIO()
    yaml.dump(holder[""], out)
    written = out.getvalue()
    if not json_equal(read_yaml(written, max_depth=10_000, most=10_000_000), wanted):
        raise PatchFailed("the file cannot be changed there without changing it elsewhere too")
    return written
