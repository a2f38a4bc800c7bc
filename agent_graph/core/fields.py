"""What pydantic finds wrong with a piece of a spec, as issues a person can act on: code, pointer, a plain sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from agent_graph.core.classes import dataclass
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject

if TYPE_CHECKING:
    from pydantic import ValidationError

_UNKNOWN: Final = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_MISSING: Final = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
_SENTENCES: Final = {
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "too_short": "must have at least {min_length} of them",
    "too_long": "must have at most {max_length} of them",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must have 1 to 64 letters, digits and the signs _ . -",
}


_SHAPES: Final = {"for_each": '{"path": "items"}'}
"""What an object of that name looks like at least."""
_MEANT: Final = {"source": "from", "src": "from", "target": "to", "dst": "to", "kind": "type"}
"""Names that other graph formats have for ours."""


@dataclass(frozen=True, slots=True)
class Field:
    """One thing wrong: `kind` is required, unknown or invalid, `path` leads to it from the value that was checked."""

    kind: str
    path: tuple[str | int, ...]
    sentence: str


def faults(error: ValidationError, value: Any) -> list[Field]:
    """What is wrong with `value`, each place once; the alternatives of a union are one sentence with "or"."""
    found: dict[tuple[str, tuple[str | int, ...]], list[str]] = {}
    for one in error.errors(include_url=False):
        kind = "unknown" if one["type"] in _UNKNOWN else "required" if one["type"] in _MISSING else "invalid"
        path = _path(one["loc"], value, absent=kind == "required")
        found.setdefault((kind, path), []).append(_sentence({**one}) + _near(one))
    around = {path[:length] for _, path in found for length in range(len(path))}
    return [
        Field(kind, path, " or ".join(dict.fromkeys(sentences)))
        for (kind, path), sentences in found.items()
        if path not in around
    ]


def _path(loc: Sequence[str | int], value: Any, *, absent: bool) -> tuple[str | int, ...]:
    """`loc` without the names pydantic gives to the alternatives of a union; `absent`: its last step is not there."""
    path: list[str | int] = []
    for place, step in enumerate(loc):
        known = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        if step in known:
            value = value[step]
            path.append(step)
        elif absent and place == len(loc) - 1 and isinstance(value, dict):
            path.append(step)
    return tuple(path)


def _sentence(one: Mapping[str, Any]) -> str:
    template = _SENTENCES.get(one["type"])
    if template is None:
        return str(one["msg"])
    return template.format(**{str(k): v for k, v in one.get("ctx", {}).items()})


def _near(one: Mapping[str, Any]) -> str:
    """The one of a few words that was probably meant."""
    given = one.get("input")
    if one["type"] != "literal_error" or not isinstance(given, str):
        return ""
    return did_you_mean(given[:64], re.findall(r"'([^']*)'", str(one.get("ctx", {}).get("expected", ""))))


def issue(fault: Field, at: str, *, known: Iterable[str], node_id: str = "", edge: str = "") -> Issue:
    """The issue of one fault; `at` points to the value that was checked, `known` are the fields it may have."""
    name = fault.path[-1] if fault.path else ""
    where = at + pointer(*fault.path)
    if fault.kind == "required" and isinstance(name, int):  # an item of a pair, which has no name
        fault = replace(fault, kind="invalid", sentence="is too short")
    if fault.kind == "required":
        return Issue("FIELD_REQUIRED", f"`{name}` is required", pointer=where, node_id=node_id, edge=edge)
    if fault.kind == "unknown":
        near = closest(str(name), known)
        message = f'there is no field "{name}" here' + (f'; did you mean "{near}"?' if near else "")
        return Issue("UNKNOWN_FIELD", message, pointer=where, node_id=node_id, edge=edge,
                     fix=moved(where, at + pointer(*fault.path[:-1], near)) if near else ())  # fmt: skip
    if name in _SHAPES and "must be an object" in fault.sentence:
        fault = replace(fault, sentence=f"{fault.sentence}, such as {_SHAPES[str(name)]}")
    subject = f"`{name}`" if isinstance(name, str) and name else "this"
    if isinstance(name, int) and len(fault.path) > 1:
        subject = f"item {name} of `{fault.path[-2]}`"
    return Issue("FIELD_INVALID", f"{subject} {fault.sentence}", pointer=where, node_id=node_id, edge=edge)


def moved(source: str, target: str) -> tuple[JsonObject, ...]:
    """The patch that gives a field another name, or another place."""
    return ({"op": "move", "from": source, "path": target},)


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that looks most like `name`, "" when none does."""
    known = list(known)
    if _MEANT.get(name) in known:
        return _MEANT[name]
    by_key = {_key(candidate): candidate for candidate in known}
    found = get_close_matches(_key(name), by_key, n=1, cutoff=0.6)
    return by_key[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: ``; did you mean "x"?``, or nothing."""
    found = closest(name, known)
    return f'; did you mean "{found}"?' if found else ""


def _key(name: str) -> str:
    return name.lower().replace("-", "_").replace("_", "")


def repaired(value: Mapping[str, Any], unknown: Iterable[str], known: Sequence[str]) -> dict[str, Any]:
    """`value` as its sender meant it: unknown fields under the name they resemble, or left out."""
    kept = dict(value)
    for name in unknown:
        given = kept.pop(name)
        meant = closest(name, known)
        if meant and meant not in kept:
            kept[meant] = given
    return kept
