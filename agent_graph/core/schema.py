"""JSON Schemas (2020-12) in specs: checked when a graph is made, applied to values with a bound on the work.

It fetches nothing: a `$ref` stays inside its schema. Patterns are RE2. Works the same wherever it runs: a schema that
would take too many steps for a value is not applied further, and that counts as not fitting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_graph.core.issues import Issue, pointer, suggest
from agent_graph.core.jsonvalue import JsonObject, JsonValue, equality_key, is_number, size
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.plain_schemas import TYPES, plainly_right

if TYPE_CHECKING:
    from fractions import Fraction

STEPS: Final = 100_000
"""Keywords applied to one value, at most: so many, and `STEPS_PER_BYTE` more for every byte of the value."""
STEPS_PER_BYTE: Final = 2
SCHEMA_DEPTH: Final = 64
"""Nesting of a schema."""
KEYWORD_DEPTH: Final = 150
"""Keywords inside keywords while a schema is applied; a fixed number, so that it does not depend on the caller."""
_SHOWN: Final = 300
_PROBES: Final[tuple[JsonValue, ...]] = (None, True, 0, "", [], {})

_ONE: Final = (
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_LIST: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAP: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


class _TooMuch(Exception):
    """The schema takes more steps than one value may cost."""


def check(schema: JsonObject, at: str, *, node_id: str = "", limits: Limits = DEFAULTS) -> list[Issue]:
    """What is wrong with `schema`: SCHEMA_INVALID and REGEX_INVALID; `at` is its own pointer."""
    plain = plainly_right(schema) and not _too_deep(schema)
    faults = () if plain else _faults(schema)
    issues = [Issue("SCHEMA_INVALID", message, pointer=at + where, node_id=node_id) for where, message in faults]
    if issues:
        return issues
    for where, part in _parts(schema):
        issues += [
            Issue("REGEX_INVALID", message, pointer=at + where + place, node_id=node_id)
            for place, text in _patterns(part)
            if (message := _pattern_fault(text, limits.regex_chars))
        ]
    if not issues and not plain and any(_outcome(schema, probe)[1] for probe in _PROBES):
        message = "the schema refers to itself without end, or takes too many steps"
        issues.append(Issue("SCHEMA_INVALID", message, pointer=at, node_id=node_id))
    return issues


def unbounded(schema: JsonObject, at: str, *, node_id: str = "") -> list[Issue]:
    """SCHEMA_UNBOUNDED for every string and array a model could go on writing for ever."""
    issues = []
    for where, part in _parts(schema):
        for kind, bound in (("string", "maxLength"), ("array", "maxItems")):
            if _is_open(part, kind, bound):
                message = f"`{kind}` without `{bound}`: small models ramble to their limit here"
                issues.append(Issue("SCHEMA_UNBOUNDED", message, severity="info", pointer=at + where, node_id=node_id))
    return issues


def violations(value: JsonValue, schema: JsonObject) -> list[str]:
    """In what `value` does not fit a `schema` that `check` found right: at most five sentences, [] when it fits."""
    found, endless = _outcome(schema, value)
    return found or (["the schema takes too many steps for this value"] if endless else [])


def _outcome(schema: JsonObject, value: JsonValue) -> tuple[list[str], bool]:
    """(violations, whether it was given up)."""
    found: list[tuple[str, str]] = []
    steps = _Steps(STEPS + STEPS_PER_BYTE * size(value))
    try:
        for error in _validator(schema, steps).iter_errors(value):
            found.append((pointer(*error.absolute_path), str(error.message)))
            if len(found) == 5:
                break
    except (_TooMuch, RecursionError):
        return [], True
    return [f"at {where or 'the top'}: {_cut(message)}" for where, message in found], False


def _cut(message: str) -> str:
    return message if len(message) <= _SHOWN else message[:_SHOWN] + " ..."


def _faults(schema: JsonObject) -> Iterator[tuple[str, str]]:
    """(pointer, sentence) of what makes `schema` no schema, or one that is not taken here."""
    if _too_deep(schema):
        yield "", f"the schema is nested deeper than {SCHEMA_DEPTH} levels"
        return
    library = _library()
    errors = library.Draft202012Validator(library.Draft202012Validator.META_SCHEMA).iter_errors(schema)
    found = [(pointer(*error.absolute_path), _said(error)) for error in errors]
    if found:
        yield from found
        return
    for where, part in _parts(schema):
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in part and (message := _ref_fault(schema, str(part[keyword]))):
                yield where + pointer(keyword), message
        if "unevaluatedProperties" in part and "patternProperties" in part:
            message = "`unevaluatedProperties` beside `patternProperties` is not taken; use `additionalProperties`"
            yield where + "/unevaluatedProperties", message
        if "$id" in part and where:
            yield where + "/$id", "only the whole schema can have an `$id`"


def _said(error: Any) -> str:
    """The library's sentence; of a type that is none, which there are."""
    at = list(error.absolute_path)
    if at and at[-1] == "type" and isinstance(error.instance, str):
        return f"{_cut(repr(error.instance))} is no type{suggest(error.instance, TYPES)} There are {', '.join(TYPES)}"
    return _cut(str(error.message))


def _too_deep(schema: JsonObject) -> bool:
    level: list[JsonValue] = [schema]
    for _ in range(SCHEMA_DEPTH):
        level = [
            item
            for part in level
            for item in (part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
        ]
    return bool(level)


def _ref_fault(schema: JsonObject, ref: str) -> str:
    if ref == "#":
        return ""
    if not ref.startswith("#"):
        return f"{ref[:100]!r} leads out of this schema; nothing is fetched"
    name = ref[1:]
    if name.startswith("/"):
        here: JsonValue = schema
        for segment in name[1:].split("/"):
            segment = segment.replace("~1", "/").replace("~0", "~")
            here = here.get(segment) if isinstance(here, dict) else None
        return "" if isinstance(here, dict | bool) else f"{ref[:100]!r} leads to no schema"
    anchors = {part.get(keyword) for _, part in _parts(schema) for keyword in ("$anchor", "$dynamicAnchor")}
    return "" if name in anchors else f"there is no anchor {name[:100]!r} in this schema"


def _parts(schema: JsonValue) -> Iterator[tuple[str, JsonObject]]:
    """(pointer, schema) for `schema` and every schema inside it."""
    todo: list[tuple[str, JsonValue]] = [("", schema)]
    while todo:
        where, part = todo.pop()
        if not isinstance(part, dict):
            continue
        yield where, part
        inner = [(where + pointer(name), part[name]) for name in _ONE if name in part]
        for names in _LIST:
            several = part.get(names)
            if isinstance(several, list):
                inner += [(where + pointer(names, place), item) for place, item in enumerate(several)]
        for names in _MAP:
            named = part.get(names)
            if isinstance(named, dict):
                inner += [(where + pointer(names, name), item) for name, item in named.items()]
        todo.extend(reversed(inner))


def _patterns(part: JsonObject) -> Iterator[tuple[str, str]]:
    text = part.get("pattern")
    if isinstance(text, str):
        yield "/pattern", text
    named = part.get("patternProperties")
    if isinstance(named, dict):
        yield from ((pointer("patternProperties", name), name) for name in named)


def _pattern_fault(text: str, most: int) -> str:
    import re2

    if len(text) > most:
        return f"a pattern has at most {most} characters"
    try:
        _pattern(text)
    except re2.error as error:
        return f"not an RE2 pattern: {_cut(_reason(error))}"
    return ""


def _reason(error: Exception) -> str:
    reason = error.args[0]
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _is_open(part: JsonObject, kind: str, bound: str) -> bool:
    named = part.get("type")
    kinds = named if isinstance(named, list) else [named]
    return kind in kinds and not any(keyword in part for keyword in (bound, "enum", "const", "pattern", "format"))


# The library, with patterns, uniqueness and multiples of our own and every step counted


@cache
def _library() -> Any:
    import jsonschema

    return jsonschema


@lru_cache(maxsize=512)
def _pattern(text: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False  # it would write to stderr
    options.never_capture = True
    return re2.compile(text, options)


class _Steps:
    """What applying a schema to one value may still cost."""

    __slots__ = ("depth", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self.depth = 0

    def take(self, keyword: Any) -> None:
        self.left -= 1 + (len(keyword) if isinstance(keyword, list | dict) else 0)
        if self.left < 0 or self.depth >= KEYWORD_DEPTH:
            raise _TooMuch


def _validator(schema: JsonObject, steps: _Steps) -> Any:
    library = _library()
    own = {
        "pattern": _apply_pattern,
        "patternProperties": _apply_pattern_properties,
        "additionalProperties": _apply_additional_properties,
        "uniqueItems": _apply_unique_items,
        "multipleOf": _apply_multiple_of,
    }
    counted = {
        name: _counted(apply, steps) for name, apply in {**library.Draft202012Validator.VALIDATORS, **own}.items()
    }
    cls = library.validators.extend(library.Draft202012Validator, counted)
    return cls(schema)  # `check` let no reference out of the schema: the library never looks for one


def _counted(apply: Callable[..., Any], steps: _Steps) -> Callable[..., Iterator[Exception]]:
    def counting(validator: Any, keyword: Any, instance: Any, schema: Any) -> Iterator[Exception]:
        steps.take(keyword)
        steps.depth += 1
        try:
            yield from apply(validator, keyword, instance, schema) or ()
        finally:
            steps.depth -= 1

    return counting


def _error(message: str) -> Exception:
    error: Exception = _library().ValidationError(message)
    return error


def _apply_pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Exception]:
    if isinstance(instance, str) and not _pattern(pattern).search(instance):
        yield _error(f"{_cut(repr(instance))} does not match {pattern!r}")


def _apply_pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Exception]:
    if not isinstance(instance, dict):
        return
    for pattern, below in patterns.items():
        for name, item in instance.items():
            if _pattern(pattern).search(name):
                yield from validator.descend(item, below, path=name, schema_path=pattern)


def _apply_additional_properties(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[Exception]:
    if not isinstance(instance, dict):
        return
    patterns = [_pattern(pattern) for pattern in schema.get("patternProperties", {})]
    known = schema.get("properties", {})
    extra = [name for name in instance if name not in known and not any(p.search(name) for p in patterns)]
    if below is False and extra:
        yield _error(f"there is no property {', '.join(map(repr, extra[:5]))} here")
    elif below is not False:
        for name in extra:
            yield from validator.descend(instance[name], below, path=name)


def _apply_unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[Exception]:
    if wanted and isinstance(instance, list) and len({equality_key(item) for item in instance}) < len(instance):
        yield _error("the items are not all different")


def _apply_multiple_of(_validator: Any, factor: Any, instance: Any, _schema: Any) -> Iterator[Exception]:
    if is_number(instance) and _exact(instance) % _exact(factor):
        yield _error(f"{instance!r} is not a multiple of {factor!r}")


def _exact(number: float) -> Fraction:
    """As it is written: 0.1 is a tenth."""
    from fractions import Fraction  # brings decimal numbers along, and few schemas need it

    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))
