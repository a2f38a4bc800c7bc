"""Makes a graph spec from a template and its parameters; reads no file, and expands what it inserts never again.

There are two places for a parameter, both filled in one pass over the template (docs/reference/templates.md):

* ``{"$param": "name"}`` as a whole JSON value is replaced by the value of the parameter, whatever its type;
* ``{$name}`` inside a string is replaced by the parameter's text. There, what would be a placeholder of a prompt
  (``{path}``) is escaped, so the model sees the parameter exactly as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agent_graph.core import schema
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import pointer, suggest
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value, compact, parse_json
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.ops import prompt
from agent_graph.errors import AgentGraphError, TemplateParamsInvalid

PARAM: Final = "$param"
_ID: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TOKEN: Final = re.compile(r"\{\$([a-z][a-z0-9_]{0,63})\}")
_BRACES: Final = re.compile(r"\{[^{}]*\}")
"""Every placeholder of a prompt is one of these; `prompt.parse` knows which."""
_TOUCHING: Final = re.compile(r"[{}]\{\$[a-z0-9_]+\}|\{\$[a-z0-9_]+\}[{}]")
_PLAIN_KEYS: Final = frozenset(("name", "label", "description", "title"))
"""Members that are never a prompt: nothing is escaped there."""

_Whole = Callable[[str], JsonValue]
_Part = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Template:
    """A graph with open places. `params` is the JSON Schema of an object whose members each have a default or are
    required; `sample` is {input, params} that make a run."""

    id: str
    version: str
    title: str
    params: JsonObject
    spec: JsonObject
    sample: JsonObject

    @property
    def description(self) -> str:
        """What the graph is for."""
        return str(self.spec.get("description", ""))

    def to_json(self) -> JsonObject:
        return {
            "id": self.id, "version": self.version, "title": self.title, "description": self.description,
            "params": self.params, "spec": self.spec, "sample": self.sample,
        }  # fmt: skip


def from_json(body: JsonValue) -> Template:
    """The template written in `body`; ValueError with a sentence when it is none or its places do not fit."""
    if not isinstance(body, dict) or set(body) != {"id", "version", "title", "params", "spec", "sample"}:
        raise ValueError("a template is an object of id, version, title, params, spec and sample")
    texts = [body[key] for key in ("id", "version", "title")]
    objects = [body[key] for key in ("params", "spec", "sample")]
    if not all(isinstance(text, str) and text for text in texts) or not all(isinstance(o, dict) for o in objects):
        raise ValueError("id, version and title are texts, params, spec and sample are objects")
    template = Template(*texts, *objects)  # type: ignore[arg-type]  # checked one line above
    if not _ID.fullmatch(template.id):
        raise ValueError(f"{template.id!r} is no template id: a-z, 0-9 and _")
    if faults := _faults(template):
        raise ValueError(f"template {template.id}: {'; '.join(faults)}")
    return template


def instantiate(
    template: Template, name: str, *, params: Mapping[str, JsonValue], limits: Limits = DEFAULTS
) -> JsonObject:
    """The spec of a graph called `name`. Raises TemplateParamsInvalid with `problems`, all at once."""
    values = _complete(template, params, limits)

    def whole(place: str) -> JsonValue:
        return values[place]

    def part(place: str) -> str:
        value = values[place]
        return value if isinstance(value, str) else compact(value)

    spec: Any = _filled(template.spec, whole, part)
    metadata = {"template": template.id, "template_version": template.version, **spec.get("metadata", {})}
    return {**spec, "name": name, "metadata": metadata}


def params_from_text(
    template: Template, texts: Mapping[str, str], *, limits: Limits = DEFAULTS
) -> dict[str, JsonValue]:
    """Parameters typed as ``k=v``: a text stays a text where the schema takes one, else it is read as JSON.

    Unknown names and unreadable values are passed on as texts, for `instantiate` to refuse with the others.
    """
    properties: Any = template.params.get("properties", {})
    return {name: _typed(text, properties.get(name, {}), limits) for name, text in texts.items()}


def _typed(text: str, property_: Any, limits: Limits) -> JsonValue:
    kinds = property_.get("type", "string")
    if "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return text
    try:
        return parse_json(text, max_bytes=limits.value_bytes, max_depth=limits.json_depth)
    except AgentGraphError:
        return text


def _complete(template: Template, params: Mapping[str, JsonValue], limits: Limits) -> dict[str, JsonValue]:
    given = dict(params)
    check_value(given, max_depth=limits.json_depth, max_bytes=limits.value_bytes)
    properties: Any = template.params.get("properties", {})
    listed = f"there are {', '.join(properties)}" if properties else "there are none"
    problems = [
        f"there is no parameter {name[:80]!r}{suggest(name, properties) or ';'} {listed}"
        for name in given
        if name not in properties
    ]
    known = {name: value for name, value in given.items() if name in properties}
    problems += schema.violations(known, template.params)
    if problems:
        raise TemplateParamsInvalid(
            f"the parameters do not fit template {template.id}: {'; '.join(problems)}",
            template_id=template.id, problems=problems, params_schema=template.params,
        )  # fmt: skip
    defaults = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
    return {**defaults, **given}


def _filled(
    value: JsonValue, whole: Callable[[str], JsonValue], part: Callable[[str], str], key: str = ""
) -> JsonValue:
    """A copy of `value` with every place filled; what was filled in is not looked at again."""
    if isinstance(value, dict):
        if set(value) == {PARAM}:
            return whole(str(value[PARAM]))
        return {k: _filled(v, whole, part, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(item, whole, part, key) for item in value]
    if not isinstance(value, str):
        return value
    if key in _PLAIN_KEYS:
        return _TOKEN.sub(lambda match: part(match.group(1)), value)
    return _text(value, part)


def _text(text: str, part: _Part) -> str:
    """`text` with its places filled; a placeholder that has so much as a brace from a parameter is escaped."""
    pieces: list[str] = []
    ours: list[bool] = []
    at = 0
    for match in _TOKEN.finditer(text):
        for piece, own in ((text[at : match.start()], True), (part(match.group(1)), False)):
            pieces.append(piece)
            ours += [own] * len(piece)
        at = match.end()
    pieces.append(text[at:])
    ours += [True] * (len(text) - at)

    def kept(match: re.Match[str]) -> str:
        if all(ours[match.start() : match.end()]) or not prompt.parse(match.group()).placeholders:
            return match.group()
        return "{" + match.group() + "}"

    return _BRACES.sub(kept, "".join(pieces))


def _faults(template: Template) -> list[str]:
    bad = [f"{issue.message} at {issue.pointer}" for issue in schema.check(template.params, "/params")]
    return bad or [*_param_faults(template), *_text_faults(template)]


def _text_faults(template: Template) -> Iterator[str]:
    for text, at in _texts(template.spec, ""):
        if _TOUCHING.search(text):
            yield f"{at} has a brace right beside a parameter"
    if set(template.sample) != {"input", "params"} or schema.violations(template.sample["params"], template.params):
        yield "sample is {input, params}, and its params fit the schema"


def _param_faults(template: Template) -> Iterator[str]:
    properties: Any = template.params.get("properties", {})
    required: Any = template.params.get("required", [])
    if template.params.get("additionalProperties") is not False:
        yield "params must refuse unknown names: additionalProperties false"
    for name, rule in properties.items():
        if name not in required and "default" not in rule:
            yield f"parameter {name} has no default and is not required"
        if "default" in rule and schema.violations(rule["default"], rule):
            yield f"the default of parameter {name} does not fit its schema"
    places = dict(_places(template.spec, ""))
    yield from (f"{at} names the unknown parameter {name}" for name, at in places.items() if name not in properties)
    yield from (f"parameter {name} is used nowhere" for name in properties if name not in places)


def _places(value: JsonValue, where: str) -> Iterator[tuple[str, str]]:
    """(parameter, pointer) of every place in `value`."""
    if isinstance(value, dict) and set(value) == {PARAM}:
        yield str(value[PARAM]), where
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(item, where + pointer(key))
    elif isinstance(value, str):
        yield from ((match.group(1), where) for match in _TOKEN.finditer(value))


def _texts(value: JsonValue, where: str) -> Iterator[tuple[str, str]]:
    """(text, pointer) of every string in `value`."""
    if isinstance(value, str):
        yield value, where
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, where + pointer(key))
