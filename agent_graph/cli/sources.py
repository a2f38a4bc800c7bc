"""What a person types where a graph is wanted: a template, a file or a stored graph; and texts and JSON to read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from agent_graph.cli.documents import STDIN_NAME, YAML, Document, document, placed, spec_of, unplaced
from agent_graph.core.budgets import check
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, parse_json
from agent_graph.core.limits import Limits
from agent_graph.errors import GraphNotFound, InputInvalid, InputTooDeep, InputTooLarge, InvalidArgument

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """A graph: either its spec, or the id of a stored one."""

    spec: JsonObject | None = None
    graph_id: str = ""
    template: JsonObject | None = None
    """{id, name, params} of the template the spec was made from."""
    document: Document | None = None
    """Where the spec stands, if that is a file or standard input."""


def find(name: str, params: list[str], *, limits: Limits, data_dir: Path | None) -> Source:
    """A template wins over a file, a file over a stored graph; what looks like a path is one. `data_dir` holds the
    operator's own templates.

    Raises `InvalidArgument` for parameters where no template is, `TemplateParamsInvalid`, and what reading raises.
    """
    from agent_graph.core.template import instantiate, params_from_text
    from agent_graph.engine.templates import Library

    template = Library(data_dir).all().get(name)
    if template is not None:
        given = params_from_text(template, pairs(params), limits=limits)
        made: JsonObject = {"id": template.id, "name": template.id, "params": given}
        return Source(instantiate(template, template.id, params=given, limits=limits), template=made)
    if params:
        raise InvalidArgument(f"{name!r} is no template, so it takes no --param", argument="param")
    if name == STDIN or _is_path(name):
        found = read_document(name, limits=limits)
        return Source(spec_of(found), document=found)
    return Source(graph_id=name)


def _is_path(name: str) -> bool:
    return name.endswith((".json", *YAML)) or "/" in name or Path(name).is_file()


def unknown(name: str, *, data_dir: Path | None) -> GraphNotFound:
    """Nothing has that name."""
    from difflib import get_close_matches

    from agent_graph.engine.templates import Library

    close = get_close_matches(name, Library(data_dir).all(), n=1)
    if name.startswith("run-"):
        message = f"{name!r} looks like a run: agent-graph runs show {name}, or agent-graph render --run {name}"
        return GraphNotFound(message, graph_id=name)
    hint = f"; did you mean {close[0]}?" if close else "; agent-graph templates and agent-graph graphs list them"
    return GraphNotFound(f"there is no template, file or stored graph {name!r}{hint}", graph_id=name)


def check_no_template(name: str, *, data_dir: Path | None) -> None:
    """Raises `InvalidArgument` where a template is named and a file is wanted."""
    from agent_graph.engine.templates import Library

    if name in Library(data_dir).all() and not Path(name).exists():
        message = f"{name} is a template and no file; to read its graph: agent-graph render {name} --details"
        raise InvalidArgument(message, argument="file")


def read_budgets(given: list[str]) -> JsonObject:
    """What `--budget` says as an argument of `graph_run_start`, or none. Raises `InvalidBudgets`."""
    if not given:
        return {}
    named = pairs(given, option="budget")
    bounds: JsonObject = {
        name: int(text) if text.isascii() and text.isdigit() else text for name, text in named.items()
    }
    return {"budgets": check(bounds)}


def pairs(params: list[str], *, option: str = "param") -> dict[str, str]:
    pairs: dict[str, str] = {}
    for param in params:
        name, sign, value = param.partition("=")
        if not sign or not name:
            raise InvalidArgument(f"--{option} takes NAME=VALUE, not {param!r}", argument=option)
        pairs[name] = value
    return pairs


def read_document(name: str, *, limits: Limits) -> Document:
    """The file, or standard input, as a document of JSON or YAML (`.yaml`, `.yml`, on standard input what is no JSON).

    Raises `InputInvalid` with file, line and column of what cannot be read."""
    content = _bytes(name, limits.spec_bytes)
    try:
        return document(named(name), content, limits=limits)
    except (InputInvalid, InputTooDeep, InputTooLarge) as error:
        at = placed(content, error) if isinstance(error, InputInvalid) else None
        where = f"{named(name)}:{at[0]}:{at[1]}" if at else named(name)
        details = {**error.details, "line": at[0], "column": at[1]} if at else error.details
        raise type(error)(f"{where}: {unplaced(error.message)}", **details) from None


def read_json(name: str, *, max_bytes: int, max_depth: int) -> JsonValue:
    """The JSON in a file, or on stdin. Raises `InvalidArgument` when there is none, and what `parse_json` raises."""
    try:
        return parse_json(_bytes(name, max_bytes), max_bytes=max_bytes, max_depth=max_depth)
    except InputInvalid as error:
        raise InputInvalid(f"{named(name)}: {error.message}", **error.details) from None


def read_text(name: str, *, limits: Limits) -> str:
    """The text in a file, or on stdin. Raises `InvalidArgument` when there is none, `InputInvalid`, `InputTooLarge`."""
    try:
        return _bytes(name, limits.input_bytes).decode()
    except UnicodeDecodeError:
        raise InputInvalid(f"{named(name)} is not UTF-8") from None


def read_input(text: str | None, file: Path | None, *, limits: Limits) -> JsonValue:
    """The input of a run: a text, stdin as a text without its last newline, or the JSON of a file."""
    if text is not None and file is not None:
        raise InvalidArgument("give a text or --input, not both", argument="input")
    if file is not None:
        return read_json(str(file), max_bytes=limits.input_bytes, max_depth=limits.json_depth)
    if text != STDIN:
        return text or ""
    try:
        return _bytes(STDIN, limits.input_bytes).decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise InputInvalid("standard input is not UTF-8") from None


def _bytes(name: str, most: int) -> bytes:
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise ValueError("it is closed")
            content = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidArgument(f"{named(name)} cannot be read: {reason}", argument="file") from error
    if len(content) > most:
        raise InputTooLarge(f"{named(name)} is larger than {most} bytes", limit=most)
    return content


def named(name: str) -> str:
    """How a source is called in a sentence."""
    return STDIN_NAME if name == STDIN else name


async def stored(desk: Any, source: Source, *, tell: Any) -> JsonObject:
    """The envelope of the graph in the data folder: {graph_id, graph_version}; a spec is stored first.

    Another version under its name is replaced as the current one: old versions stay, and runs are pinned to theirs.
    """
    if source.spec is None:
        found: JsonObject = await desk.call("graph_status", {"resource": "graph", "graph_id": source.graph_id})
        return found
    given: JsonObject = {"spec": source.spec} if source.template is None else {"template": source.template}
    made: JsonObject = await desk.call("graph_create", given)
    if made["ok"] or made["error_code"] != "GRAPH_VERSION_CONFLICT":
        return made
    replaced: JsonObject = await desk.call("graph_create", {**given, "overwrite": True})
    if replaced["ok"]:
        tell(f"graph {replaced['graph_id']} has a new version; the ones before stay")
    return replaced
