"""A graph as it stands in a file, JSON or YAML: its value, the place of every part, and how it is written back."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_graph.cli.yaml_documents import patched_yaml, read_yaml, yaml_places
from agent_graph.core.issues import pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, parse_json
from agent_graph.core.limits import Limits
from agent_graph.core.patch import applied
from agent_graph.errors import InputInvalid, InvalidArgument

YAML: Final = (".yaml", ".yml")
_SIGN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')

Place = tuple[int, int]
"""(line, column), both from 1; a column counts characters."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read, or standard input."""

    name: str
    text: str
    value: JsonValue

    @property
    def is_yaml(self) -> bool:
        return self.name.endswith(YAML)

    def places(self, pointers: Collection[str]) -> dict[str, Place]:
        """Where the values at `pointers` begin; of one that is not there, where the nearest around it does."""
        wanted = {part for one in pointers for part in _around(one)}
        if self.is_yaml:
            found = yaml_places(self.text, wanted)
        else:
            found = {at: place(self.text, offset) for at, offset in _offsets(self.text, wanted).items()}
        return {one: next(found[part] for part in _around(one) if part in found) for one in pointers}

    def mended(self, patch: Sequence[Mapping[str, Any]]) -> str:
        """The text with `patch` applied: YAML keeps its comments, JSON its indentation. Raises `PatchFailed`."""
        value = applied(self.value, patch)
        if self.is_yaml:
            return patched_yaml(self.text, patch, wanted=value)
        return self._spliced(patch) or json.dumps(value, ensure_ascii=False, indent=_indent(self.text)) + "\n"

    def _spliced(self, patch: Sequence[Mapping[str, Any]]) -> str:
        """JSON with one text in the place of another, everything else as it was; "" for any other patch."""
        (step, *more) = patch
        offset = _offsets(self.text, {step["path"]}).get(step["path"]) if step["op"] == "replace" else None
        if more or offset is None or not isinstance(step["value"], str) or self.text[offset] != '"':
            return ""
        sign = _SIGN.match(self.text, offset)
        assert sign is not None
        return self.text[:offset] + json.dumps(step["value"], ensure_ascii=False) + self.text[sign.end() :]


def document(name: str, content: bytes, *, limits: Limits) -> Document:
    """The document in `content`. Raises `InputInvalid` with the place of what cannot be read."""
    if not name.endswith(YAML):
        return Document(name, content.decode(errors="replace"),
                        parse_json(content, max_bytes=limits.spec_bytes, max_depth=limits.json_depth))  # fmt: skip
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputInvalid("it is not UTF-8") from None
    return Document(name, text, read_yaml(text, max_depth=limits.json_depth, most=limits.spec_bytes))


def spec_of(found: Document) -> JsonObject:
    """The graph in a document. Raises `InputInvalid` when it holds something else."""
    if not isinstance(found.value, dict):
        raise InputInvalid(f"{found.name} holds no graph: a graph is an object")
    return found.value


def write_back(path: Path, text: str, *, before: bytes) -> None:
    """Put `text` in the file's place at once, if it is still as it was read. Raises `InvalidArgument` when not."""
    try:
        if path.read_bytes() != before:
            raise InvalidArgument(f"{path} has changed since it was read; nothing is written", argument="file")
        real = path.resolve()
        handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(real.stat().st_mode & 0o7777)
            Path(name).replace(real)
        finally:
            Path(name).unlink(missing_ok=True)  # there is none any more where it took the file's place
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}", argument="file") from error


def _around(one: str) -> Iterator[str]:
    """The pointer itself, then those of all that it lies in."""
    while one:
        yield one
        one = one.rpartition("/")[0]
    yield ""


def _indent(text: str) -> int | str | None:
    found = re.search(r"\n([ \t]+)", text)
    return None if found is None else len(found[1]) if found[1].isspace() and "\t" not in found[1] else found[1]


def _offsets(text: str, wanted: Collection[str]) -> dict[str, int]:
    """One pass over the signs of a JSON text that was read already."""
    found: dict[str, int] = {}
    path: list[str | int] = []
    key, awaits_key = "", False
    for match in _SIGN.finditer(text):
        sign = match.group()
        if sign in ("}", "]"):
            path.pop()
        elif sign == ",":
            last = path[-1]
            awaits_key = isinstance(last, str)
            path[-1] = last if isinstance(last, str) else last + 1
        elif sign == ":":
            awaits_key, path[-1] = False, key
        elif awaits_key:
            key = json.loads(sign)
        else:
            if (at := pointer(*path)) in wanted:
                found.setdefault(at, match.start())
            awaits_key = sign == "{"
            path += [""] if awaits_key else [0] if sign == "[" else []
    return found


def place(text: str, offset: int) -> Place:
    """The line and column of a character."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
