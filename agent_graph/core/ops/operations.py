"""The form of a transform's operations: which fields each takes, what it reads and writes; applies none of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from agent_graph.core import statepath
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import Issue, suggest, unknown_fields
from agent_graph.core.issues import pointer as to_pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, is_number, text_of
from agent_graph.core.ops.prompt import parse

CURRENT: Final = "__input__"
BOOKS: Final = frozenset({"outputs", "errors", "loops"})
"""The top-level names under which the engine's own books are read; nothing else may write them."""
MAX_OPERATIONS: Final = 64
MAX_SEGMENTS: Final = 64
"""Of a path that is written: nesting stays within what every reader of stored values can follow."""


@dataclass(frozen=True, slots=True)
class Form:
    """What one operation takes beside `op` and `path`."""

    operand: Literal["", "needed", "optional"] = ""
    """Whether it takes `value` or `from`."""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ("replace",)


FORMS: Final[dict[str, Form]] = {
    "set": Form("needed"),
    "copy": Form(required=("from",)),
    "delete": Form(optional=()),
    "increment": Form("optional"),
    "append": Form("needed", optional=("extend", "replace")),
    "merge": Form("needed"),
    "merge_object": Form("needed"),
    "select": Form(required=("values",), optional=("from", "replace")),
    "compare": Form("needed", optional=("into", "replace")),
    "format": Form(required=("template",), optional=("values", "replace")),
}


def writes(operation: JsonObject) -> list[str]:
    """The state path an operation writes."""
    target = operation.get("into", operation.get("path")) if operation.get("op") == "compare" else operation.get("path")
    return [target] if isinstance(target, str) else []


def overwrites(operations: Sequence[JsonObject]) -> list[str]:
    """The state paths that operations `replace` or `delete`: on a key with a reducer that is no contribution."""
    return [path for one in operations if one.get("op") == "delete" or one.get("replace") for path in writes(one)]


def reads(operation: JsonObject) -> list[str]:
    """The state paths an operation takes values from, each once; not the one it goes on from, nor the current value."""
    found = needs(operation)
    op, names = operation.get("op"), operation.get("values")
    if op == "compare":
        found += [path for path in (operation.get("path"), operation.get("from")) if isinstance(path, str)]
    elif op == "select" and "from" not in operation:
        found += [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    elif op == "format":
        found += _placeholders(operation, optional=True)
    return list(dict.fromkeys(path for path in found if path.partition(".")[0] != CURRENT))


def needs(operation: JsonObject) -> list[str]:
    """Those of `reads` that must hold something, or the operation fails."""
    source = operation.get("from")
    found = [source] if isinstance(source, str) and operation.get("op") != "compare" else []
    if operation.get("op") == "format":
        found += _placeholders(operation, optional=False)
    return list(dict.fromkeys(path for path in found if path.partition(".")[0] != CURRENT))


def check(operations: Sequence[JsonObject], pointer: str) -> list[Issue]:
    """What is wrong with a list of operations: FIELD_REQUIRED, FIELD_INVALID, FIELD_CONFLICT, UNKNOWN_FIELD,
    STATE_PATH_INVALID, RESERVED_KEY; `pointer` is that of the list."""
    if not 1 <= len(operations) <= MAX_OPERATIONS:
        return [Issue("FIELD_INVALID", f"a transform has 1 to {MAX_OPERATIONS} operations", pointer=pointer)]
    return [issue for n, operation in enumerate(operations) for issue in _check(operation, f"{pointer}/{n}")]


def _check(operation: object, at: str) -> list[Issue]:
    if not isinstance(operation, dict):
        return [Issue("FIELD_INVALID", "an operation is an object with `op` and `path`", pointer=at)]
    if "op" not in operation:
        return [Issue("FIELD_REQUIRED", "an operation needs `op`", pointer=at)]
    op = operation["op"]
    form = FORMS.get(op) if isinstance(op, str) else None
    if form is None:
        message = f"there is no operation {text_of(op)[:80]!r}{suggest(text_of(op), FORMS)}"
        return [Issue("FIELD_INVALID", message, pointer=at + "/op")]
    pair = ("value", "from") if form.operand else ()
    issues = unknown_fields(operation, ("op", "path", *pair, *form.required, *form.optional), at)
    issues += [
        Issue("FIELD_REQUIRED", f"`{op}` needs `{name}`", pointer=at)
        for name in ("path", *form.required)
        if name not in operation
    ]
    given = [name for name in pair if name in operation]
    if form.operand == "needed" and not given:
        issues.append(Issue("FIELD_REQUIRED", f"`{op}` needs `value` or `from`", pointer=at))
    elif len(given) == 2:
        issues.append(Issue("FIELD_CONFLICT", "give `value` or `from`, not both", pointer=at))
    for name in operation:
        if name in ("path", *pair, *form.required, *form.optional):
            issues += _check_field(operation, name, at + to_pointer(name))
    return issues + _check_target(operation, at)


def _check_field(operation: JsonObject, name: str, at: str) -> Iterable[Issue]:
    value, message = operation[name], ""
    if name in ("path", "from", "into"):
        return _check_path(value, at)
    if name == "values":
        if isinstance(value, list) and value:
            return [issue for n, item in enumerate(value) for issue in _check_path(item, f"{at}/{n}")]
        message = "`values` is a list of at least one path"
    elif name in ("replace", "extend"):
        message = "" if isinstance(value, bool) else f"`{name}` is true or false"
    elif name == "template":
        message = "" if isinstance(value, str) else "a template is a text"
    else:
        message = _value_fault(operation, value)
    return [Issue("FIELD_INVALID", message, pointer=at)] if message else []


def _value_fault(operation: JsonObject, value: JsonValue) -> str:
    op = operation["op"]
    if op == "increment" and not is_number(value):
        return "the step is a number"
    if op in ("merge", "merge_object") and not isinstance(value, dict):
        return f"`{op}` takes an object"
    if op == "append" and operation.get("extend") is True and not isinstance(value, list):
        return "`extend` takes a list"
    return ""


def _check_path(path: object, at: str) -> list[Issue]:
    if not isinstance(path, str):
        return [Issue("FIELD_INVALID", "a path is a text", pointer=at)]
    try:
        statepath.split(path)
    except ValueError as error:
        return [Issue("STATE_PATH_INVALID", str(error), pointer=at)]
    return []


def _check_target(operation: JsonObject, at: str) -> list[Issue]:
    name = "into" if operation["op"] == "compare" and "into" in operation else "path"
    path = operation.get(name)
    if not isinstance(path, str) or _check_path(path, at):
        return []
    segments, where = statepath.split(path), at + to_pointer(name)
    if segments[0].startswith("__") or segments[0] in BOOKS:
        message = f"{segments[0]} belongs to the engine; write another key"
        return [Issue("RESERVED_KEY", message, pointer=where)]
    if len(segments) > MAX_SEGMENTS:
        return [Issue("FIELD_INVALID", f"a path that is written has at most {MAX_SEGMENTS} segments", pointer=where)]
    return []


def _placeholders(operation: JsonObject, *, optional: bool) -> list[str]:
    template, names = operation.get("template"), operation.get("values")
    places = parse(template).placeholders if isinstance(template, str) else ()
    return [
        place.path
        for place in places
        if (optional or not place.optional)
        and (not isinstance(names, list) or place.path in names)
        and place.path.partition(".")[0] not in ("input", "run_input")
    ]
