"""A form made of a JSON Schema of an object: one field for each of its properties, and the object that comes back.

Nothing is checked here. What a field cannot be read as stays the text it is, and whoever takes the object says, by the
schema, what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_graph.console.forms import Form
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact, parse_json
from agent_graph.core.limits import Limits
from agent_graph.errors import AgentGraphError

PREFIX: Final = "p."
"""Before the names of properties, so that none of them is taken for a field of the page."""
LINE: Final = 200
"""Most characters of a text that is typed on one line."""
NUMBERS: Final = ("integer", "number")


@dataclass(frozen=True, slots=True)
class Field:
    """One property as it is asked for."""

    name: str
    kind: str
    """``choice``, ``switch``, ``number``, ``line``, ``text``, ``lines`` (a text on each) or ``json``."""
    value: str
    """What stands in it; of a switch that is on ``on``."""
    hint: str
    required: bool
    schema: Mapping[str, Any]
    choices: Sequence[str] = ()

    @property
    def label(self) -> str:
        said = self.schema.get("title") or self.name.replace("_", " ")
        return str(said)[:1].upper() + str(said)[1:]


def fields(schema: Any, typed: Form | None) -> Sequence[Field]:
    """Those of a schema, with what was typed, or else their defaults; () where it names no properties."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ()
    required = schema.get("required", ())
    return [
        _field(name, about, typed, name in required) for name, about in properties.items() if isinstance(about, dict)
    ]


def _field(name: str, about: Mapping[str, Any], typed: Form | None, required: bool) -> Field:
    kind, default = _kind(about), about.get("default")
    value = _shown(default, kind) if typed is None else typed.get(PREFIX + name, "")
    choices = [_shown(one, "choice") for one in about["enum"]] if kind == "choice" else ()
    return Field(name, kind, value, str(about.get("description", "")), required, about, choices)


def _kind(about: Mapping[str, Any]) -> str:
    kind = about.get("type")
    if isinstance(about.get("enum"), list):
        return "choice"
    if kind == "boolean":
        return "switch"
    if kind in NUMBERS:
        return "number"
    if kind == "string":
        return "line" if about.get("maxLength", LINE + 1) <= LINE else "text"
    items = about.get("items")
    if kind == "array" and isinstance(items, dict) and items.get("type") == "string":
        return "lines"
    return "json"


def _shown(value: JsonValue, kind: str) -> str:
    if value is None:
        return ""
    if kind == "switch":
        return "on" if value is True else ""
    if kind == "lines" and isinstance(value, list):
        return "\n".join(str(one) for one in value)
    return value if isinstance(value, str) else compact(value)


def typed_object(schema: Any, form: Form, *, limits: Limits) -> JsonObject:
    """What was typed, by property; one that was left empty is left out, and so is its default."""
    said: JsonObject = {}
    for field in fields(schema, form):
        if field.kind == "switch":
            said[field.name] = bool(field.value)
        elif field.value.strip():
            said[field.name] = _read(field, limits)
        elif field.kind in ("line", "text") and field.schema.get("default"):
            said[field.name] = ""  # emptied on purpose: the schema says whether it may be
    return said


def _read(field: Field, limits: Limits) -> JsonValue:
    text = field.value
    if field.kind in ("line", "text"):
        return text
    if field.kind == "lines":
        return [line.strip() for line in text.split("\n") if line.strip()]
    if field.kind == "choice":
        return next((one for one in field.schema["enum"] if _shown(one, "choice") == text), text)
    try:
        return parse_json(text.strip(), max_bytes=limits.input_bytes, max_depth=limits.json_depth)
    except AgentGraphError:
        return text
