"""A graph as it stands in a file, JSON or YAML: its value, the place of every part, and how it is written back."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent_graph.cli.json_texts import fault, parts, patched
from agent_graph.cli.yaml_documents import patched_yaml, read_yaml, yaml_places
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, json_equal, parse_json
from agent_graph.core.limits import Limits
from agent_graph.core.patch import applied
from agent_graph.errors import InputInvalid, InvalidArgument
from agent_graph.system.files import replace

YAML: Final = (".yaml", ".yml")

STDIN_NAME: Final = "standard input"
_PLACE: Final = re.compile(r"^line (\d+), column (\d+): | \(line (\d+), column (\d+)\)$")

Place = tuple[int, int]
"""(line, column), both from 1; a column counts characters."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read, or standard input."""

    name: str
    text: str
    value: JsonValue
    is_yaml: bool = False

    def places(self, pointers: Collection[str]) -> dict[str, Place]:
        """Where the values at `pointers` begin; of one that is not there, where the nearest around it does."""
        wanted = {part for one in pointers for part in _around(one)}
        if self.is_yaml:
            found = yaml_places(self.text, wanted)
        else:
            known = parts(self.text)
            found = {at: place(self.text, known[at].start) for at in wanted if at in known}
        return {one: next(found[part] for part in _around(one) if part in found) for one in pointers}

    def mended(self, patch: Sequence[Mapping[str, Any]]) -> str:
        """The text with `patch` applied: YAML keeps its comments, JSON its layout. Raises `PatchFailed`."""
        value = applied(self.value, patch)
        if self.is_yaml:
            return patched_yaml(self.text, patch, wanted=value)
        text = patched(self.text, patch)
        if text and json_equal(parse_json(text.encode(), max_bytes=len(text.encode()), max_depth=10_000), value):
            return text
        return json.dumps(value, ensure_ascii=False, indent=_indent(self.text)) + "\n"


def document(name: str, content: bytes, *, limits: Limits) -> Document:
    """The document in `content`. Raises `InputInvalid` with the place of what cannot be read."""
    if not name.endswith(YAML) and (name != STDIN_NAME or content.lstrip()[:1] in (b"{", b"[", b"")):
        return Document(name, content.decode(errors="replace"),
                        parse_json(content, max_bytes=limits.spec_bytes, max_depth=limits.json_depth))  # fmt: skip
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputInvalid("it is not UTF-8") from None
    return Document(name, text, read_yaml(text, max_depth=limits.json_depth, most=limits.spec_bytes), is_yaml=True)


def placed(content: bytes, error: InputInvalid) -> Place | None:
    """Where in the file that is what the error says; None when that cannot be known."""
    if found := _PLACE.search(error.message):
        line, column = (int(part) for part in found.groups() if part)
        return line, column
    text = content.decode(errors="replace")
    offset = fault(text, error.message)
    return None if offset is None else place(text, offset)


def unplaced(message: str) -> str:
    """A message without the line and column it says."""
    return _PLACE.sub("", message)


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
            replace(Path(name), real)
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


def place(text: str, offset: int) -> Place:
    """The line and column of a character."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
