"""Predicates: rules on values, checked once, prepared once, asked often; one function per op.

A path that holds nothing reads as null. ``ne``, ``not_in``, ``not_contains``, ``not_exists`` and ``not_empty`` hold
exactly when the op they negate does not. No op ever fails on a value: of the wrong type is "does not hold".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from agent_graph.core import statepath
from agent_graph.core.effects import MaybeJson, Missing
from agent_graph.core.issues import Issue, suggest, unknown_fields
from agent_graph.core.issues import pointer as to_pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, is_number, json_equal, text_of
from agent_graph.core.limits import DEFAULTS, Limits

Read: TypeAlias = Callable[[str], MaybeJson]
Predicate: TypeAlias = Callable[[Read], bool]
Test: TypeAlias = Callable[[JsonValue, JsonValue], bool]

MAX_NESTING: Final = 32
"""Levels of ``all`` / ``any`` / ``not`` inside one another."""

TYPES: Final[dict[str, Callable[[JsonValue], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": is_number,
    "integer": lambda value: is_number(value) and (not isinstance(value, float) or value.is_integer()),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
"""What `is_type` can ask for; as in JSON Schema 3.0 is an integer, and a boolean is no number."""


def eq(value: JsonValue, operand: JsonValue) -> bool:
    return json_equal(value, operand)


def lt(value: Any, operand: Any) -> bool:
    return _comparable(value, operand) and bool(value < operand)


def lte(value: Any, operand: Any) -> bool:
    return _comparable(value, operand) and bool(value <= operand)


def gt(value: JsonValue, operand: JsonValue) -> bool:
    return lt(operand, value)


def gte(value: JsonValue, operand: JsonValue) -> bool:
    return lte(operand, value)


def contains(value: JsonValue, operand: JsonValue) -> bool:
    """A string contains a text (of a number or boolean: its JSON), an array an element, an object a key."""
    if isinstance(value, str):
        return not (operand is None or isinstance(operand, list | dict)) and text_of(operand) in value
    if isinstance(value, list):
        return any(json_equal(item, operand) for item in value)
    return isinstance(value, dict) and isinstance(operand, str) and operand in value


def within(value: JsonValue, operand: JsonValue) -> bool:
    return contains(operand, value)


def starts_with(value: JsonValue, operand: JsonValue) -> bool:
    return isinstance(value, str) and isinstance(operand, str) and value.startswith(operand)


def ends_with(value: JsonValue, operand: JsonValue) -> bool:
    return isinstance(value, str) and isinstance(operand, str) and value.endswith(operand)


def exists(value: JsonValue, _operand: JsonValue) -> bool:
    return value is not None


def empty(value: JsonValue, _operand: JsonValue) -> bool:
    """Null, "", [] and {}; a number or boolean is never empty, a blank is not."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def is_type(value: JsonValue, operand: JsonValue) -> bool:
    names = operand if isinstance(operand, list) else [operand]
    return any(isinstance(name, str) and name in TYPES and TYPES[name](value) for name in names)


def _not(test: Test) -> Test:
    return lambda value, operand: not test(value, operand)


TESTS: Final[dict[str, Test]] = {
    "eq": eq, "ne": _not(eq), "lt": lt, "lte": lte, "gt": gt, "gte": gte, "in": within, "not_in": _not(within),
    "contains": contains, "not_contains": _not(contains), "starts_with": starts_with, "ends_with": ends_with,
    "is_type": is_type, "exists": exists, "not_exists": _not(exists), "empty": empty, "not_empty": _not(empty),
}  # fmt: skip
"""By their names in a spec; ``regex`` beside them is compiled when a rule is prepared."""

ALIASES: Final = {"equals": "eq", "not_equals": "ne"}
_SIGNS: Final = {
    "=": "eq", "==": "eq", "===": "eq", "is": "eq", "!=": "ne", "<>": "ne", "!==": "ne", "<": "lt", "<=": "lte",
    ">": "gt", ">=": "gte", "matches": "regex", "=~": "regex",
}  # fmt: skip
"""What other languages write."""
OPS: Final = (*TESTS, "regex", *ALIASES)

_ALONE: Final = frozenset({"exists", "not_exists", "empty", "not_empty"})
_FIXED: Final = frozenset({"regex", "is_type"})
_TEXTUAL: Final = frozenset(
    {"eq", "ne", "in", "not_in", "contains", "not_contains", "starts_with", "ends_with", "regex"}
)
_GROUPS: Final = ("all", "any", "not")


def prepare(rule: JsonObject) -> Predicate:
    """A rule that `check` accepted, as a function of a way to read paths; made once, pure, fails on no value."""
    parts: dict[str, Any] = rule
    if "not" in parts:
        inner = prepare(parts["not"])
        return lambda read: not inner(read)
    if "all" in parts:
        every = [prepare(part) for part in parts["all"]]
        return lambda read: all(part(read) for part in every)
    if "any" in parts:
        some = [prepare(part) for part in parts["any"]]
        return lambda read: any(part(read) for part in some)
    return _prepare_test(rule)


def _prepare_test(rule: JsonObject) -> Predicate:
    path, op = str(rule["path"]), _op(rule)
    fold, fold_other = _folds(op) if rule.get("ignore_case") else (_same, _same)
    if op == "regex":
        pattern = _compile(str(rule["value"]), ignore_case=bool(rule.get("ignore_case")))
        return lambda read: isinstance(value := read(path), str) and pattern.search(value.encode()) is not None
    test = TESTS[op]
    if "value_path" in rule:
        other = str(rule["value_path"])
        return lambda read: test(fold(_value(read(path))), fold_other(_value(read(other))))
    operand = fold_other(rule.get("value"))
    return lambda read: test(fold(_value(read(path))), operand)


def reads(rule: JsonObject) -> list[str]:
    """The paths a rule reads, each once, in order; not "" (the current value)."""
    found: dict[str, None] = {}
    todo: list[Any] = [rule]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            found.update({part[name]: None for name in ("path", "value_path") if isinstance(part.get(name), str)})
            todo.append(part.get("not"))
            todo += [member for name in ("any", "all") for member in reversed(_list(part.get(name)))]
    found.pop("", None)
    return list(found)


def check(rule: JsonObject, pointer: str, *, limits: Limits = DEFAULTS) -> list[Issue]:
    """What is wrong with a rule: FIELD_REQUIRED, FIELD_INVALID, FIELD_CONFLICT, UNKNOWN_FIELD, STATE_PATH_INVALID,
    REGEX_INVALID; `pointer` is the rule's own."""
    return _check(rule, pointer, 0, limits)


def _check(rule: object, at: str, depth: int, limits: Limits) -> list[Issue]:
    if not isinstance(rule, dict):
        return [Issue("FIELD_INVALID", "a rule is an object with `path` and `op`, or `all`, `any`, `not`", pointer=at)]
    if depth > MAX_NESTING:
        return [Issue("FIELD_INVALID", f"rules are nested deeper than {MAX_NESTING} levels", pointer=at)]
    groups = [name for name in _GROUPS if name in rule]
    if not groups:
        return _check_test(rule, at, limits)
    name = groups[0]
    issues = []
    if len(rule) > 1:
        others = ", ".join(f"`{other}`" for other in rule if other != name)
        issues.append(Issue("FIELD_CONFLICT", f"`{name}` stands alone in a rule, without {others}", pointer=at))
    where, inner = at + to_pointer(name), rule[name]
    if name == "not":
        return issues + _check(inner, where, depth + 1, limits)
    if not isinstance(inner, list) or not inner:
        return [*issues, Issue("FIELD_INVALID", f"`{name}` is a list of at least one rule", pointer=where)]
    for place, member in enumerate(inner):
        issues += _check(member, f"{where}/{place}", depth + 1, limits)
    return issues


def _check_test(rule: JsonObject, at: str, limits: Limits) -> list[Issue]:
    issues = unknown_fields(rule, ("path", "op", "value", "value_path", "ignore_case", *_GROUPS), at)
    for name in ("path", "value_path"):
        if name in rule:
            issues += _check_path(rule[name], at + to_pointer(name))
    issues += [
        Issue("FIELD_REQUIRED", f"a rule needs `{name}`", pointer=at) for name in ("path", "op") if name not in rule
    ]
    if "op" not in rule:
        return issues
    op = _op(rule)
    if op not in TESTS and op != "regex":
        meant = _SIGNS.get(op)
        hint = f'; did you mean "{meant}"?' if meant else suggest(op, OPS)
        message = f"there is no op {text_of(rule['op'])[:80]!r}{hint} There are {', '.join((*TESTS, 'regex'))}"
        return [*issues, Issue("FIELD_INVALID", message, pointer=at + "/op")]
    return issues + _check_operand(rule, op, at, limits) + _check_case(rule, op, at)


def _check_path(path: JsonValue, at: str) -> list[Issue]:
    if not isinstance(path, str):
        return [Issue("FIELD_INVALID", "a path is a text", pointer=at)]
    try:
        if path:
            statepath.split(path)
    except ValueError as error:
        return [Issue("STATE_PATH_INVALID", str(error), pointer=at)]
    return []


def _check_operand(rule: JsonObject, op: str, at: str, limits: Limits) -> list[Issue]:
    given = [name for name in ("value", "value_path") if name in rule]
    if op in _ALONE:
        used = [name for name in given if rule[name] is not None]
        return [Issue("FIELD_CONFLICT", f"`{op}` takes no `{name}`", pointer=at + to_pointer(name)) for name in used]
    if len(given) == 2:
        return [Issue("FIELD_CONFLICT", "give `value` or `value_path`, not both", pointer=at)]
    if op in _FIXED and "value_path" in rule:
        return [Issue("FIELD_CONFLICT", f"`{op}` takes a fixed `value`", pointer=at + "/value_path")]
    if not given:
        other = "" if op in _FIXED else " or `value_path`"
        return [Issue("FIELD_REQUIRED", f"`{op}` needs `value`{other}", pointer=at)]
    return _check_value(rule["value"], op, at + "/value", limits) if "value" in rule else []


def _check_value(value: JsonValue, op: str, at: str, limits: Limits) -> list[Issue]:
    message, code = "", "FIELD_INVALID"
    if op == "regex":
        code, message = "REGEX_INVALID", _pattern_fault(value, limits.regex_chars)
    elif op == "is_type":
        unknown = [name for name in _list(value) or [value] if not isinstance(name, str) or name not in TYPES]
        message = f"a type is one of {', '.join(TYPES)}" if unknown else ""
    elif op in ("in", "not_in"):
        message = "" if isinstance(value, list) else f"`{op}` takes a list of values"
    elif op in ("lt", "lte", "gt", "gte"):
        message = "" if is_number(value) or isinstance(value, str) else f"`{op}` takes a number or a text"
    elif op in ("starts_with", "ends_with"):
        message = "" if isinstance(value, str) else f"`{op}` takes a text"
    return [Issue(code, message, pointer=at)] if message else []


def _check_case(rule: JsonObject, op: str, at: str) -> list[Issue]:
    wanted = rule.get("ignore_case", False)
    if not isinstance(wanted, bool):
        return [Issue("FIELD_INVALID", "`ignore_case` is true or false", pointer=at + "/ignore_case")]
    if wanted and op not in _TEXTUAL:
        return [Issue("FIELD_CONFLICT", f"`ignore_case` means nothing to `{op}`", pointer=at + "/ignore_case")]
    return []


def _pattern_fault(pattern: JsonValue, most: int) -> str:
    if not isinstance(pattern, str):
        return "a pattern is a text"
    if len(pattern) > most:
        return f"a pattern has at most {most} characters"
    import re2

    try:
        _compile(pattern, ignore_case=False)
    except re2.error as error:
        return f"not a pattern of RE2: {_reason(error)}"
    return ""


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _compile(pattern: str, *, ignore_case: bool) -> Any:
    import re2  # here, not above: most graphs have no pattern

    options = re2.Options()
    options.log_errors = False  # it would write on stderr
    options.never_capture = True
    options.case_sensitive = not ignore_case
    return re2.compile(pattern, options)


def _op(rule: JsonObject) -> str:
    op = rule["op"]
    return ALIASES.get(op, op) if isinstance(op, str) else text_of(op)


def _value(found: MaybeJson) -> JsonValue:
    return None if isinstance(found, Missing) else found


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _comparable(left: JsonValue, right: JsonValue) -> bool:
    """Numbers with numbers (exactly, whatever their size), texts with texts by code point; nothing else."""
    return (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def _same(value: JsonValue) -> JsonValue:
    return value


def _folds(op: str) -> tuple[Callable[[JsonValue], JsonValue], Callable[[JsonValue], JsonValue]]:
    """How an op without case sees its value and its operand."""
    if op in ("contains", "not_contains"):
        return _fold_members, _fold_text
    return (_fold_text, _fold_members) if op in ("in", "not_in") else (_fold_text, _fold_text)


def _fold_text(value: JsonValue) -> JsonValue:
    return value.casefold() if isinstance(value, str) else value


def _fold_members(value: JsonValue) -> JsonValue:
    """What can be contained: an array's elements, an object's keys."""
    return [_fold_text(item) for item in value] if isinstance(value, list | dict) else _fold_text(value)
