"""A node's `config`: read from a spec, checked against its type's ``Config``, and brought to its minimal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from agent_graph.core import fields as reading
from agent_graph.core.chat import Message
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonObject, compact, json_equal
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.nodes.base import Retry
from agent_graph.core.ops.predicates import ALIASES
from agent_graph.core.spec_fields import ON_NODE, NodeFields

CURRENT: Final = "__input__"
"""The older name of the current value; writing it is the default."""
_NOTHING: Final[frozenset[str]] = frozenset()
_BARE: Final[dict[str, Any]] = {}
"""By type, where nothing is required: the config that says nothing."""
PARTS: Final = {"retry": tuple(f.name for f in fields(Retry)), "messages": tuple(f.name for f in fields(Message))}
"""The fields of what stands inside a field."""


def as_sent(shell: NodeFields, at: str, issues: list[Issue]) -> tuple[JsonObject, frozenset[str]]:
    """The config together with what stands on the node itself, and the names of those fields."""
    given: JsonObject = dict(shell.config or {})
    if shell.model_fields_set.isdisjoint(ON_NODE):
        return given, _NOTHING
    moved = set()
    for name in ON_NODE:
        value = getattr(shell, name)
        known = name in config_names(shell.type)
        if value is None or (value is False and not known):
            continue  # programs that write every field write these too
        if name in given:
            if not json_equal(given[name], value):
                message = f"`{name}` stands on the node and in its config, and they differ"
                related = (f"{at}/config/{name}",)
                issues.append(
                    Issue("FIELD_CONFLICT", message, pointer=f"{at}/{name}", node_id=shell.id, related=related)
                )
            continue
        given[name] = value
        moved.add(name)
    return given, frozenset(moved)


def upgraded(kind: str, given: JsonObject, *, legacy: bool) -> JsonObject:
    """Without the keys that were once the defaults, under the names they had then."""
    if not given:
        return given
    older = {name for name in ("output_key", "input_key", "output") if given.get(name) == CURRENT}
    if legacy:
        older |= {"output_key"} if given.get("output_key") == "__approval_decision__" else set()
        older |= {"counter_key"} if str(given.get("counter_key")).startswith("__loop__:") else set()
    if older & set(config_names(kind)):
        given = {name: value for name, value in given.items() if name not in older}
    return given


def read_config(kind: str, given: JsonObject, issues: list[Issue], *, place: tuple[str, str, frozenset[str]]) -> Any:
    """The instance of the type's ``Config``, None when a field of it is wrong."""
    at, node_id, moved = place
    known = config_names(kind)
    if not given and kind in _BARE:
        return _BARE[kind]
    try:
        config = config_adapter(kind).validate_json(compact(given), strict=True)
        if not given:
            _BARE[kind] = config  # frozen: all nodes that say nothing share it
    except ValidationError as error:
        faults = reading.faults(error, given)
        for fault in faults:
            base = at if fault.path and fault.path[0] in moved else at + "/config"
            names = PARTS.get(str(fault.path[0]), known) if len(fault.path) > 1 else known
            issues.append(reading.issue(fault, base, known=names, node_id=node_id))
        if any(fault.kind != "unknown" or len(fault.path) != 1 for fault in faults):
            return None
        mended = reading.repaired(given, [str(fault.path[0]) for fault in faults], known)
        return read_config(kind, mended, [], place=place)  # so that one misspelt name does not hide what else is wrong
    for name, reason in KNOWN_TYPES[kind].UNAVAILABLE.items():
        if name in given and not json_equal(given[name], config_defaults(kind)[name]):
            where = f"{at}{'' if name in moved else '/config'}/{name}"
            issues.append(Issue("NODE_TYPE_UNAVAILABLE", reason, pointer=where, node_id=node_id))
    return config


@cache
def config_adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(KNOWN_TYPES[kind].Config)


@cache
def config_names(kind: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(KNOWN_TYPES[kind].Config))


@cache
def config_defaults(kind: str) -> dict[str, Any]:
    """By field: what it is when it is left out; a required one is not there."""
    found = {}
    for field in fields(KNOWN_TYPES[kind].Config):
        if field.default is not MISSING:
            found[field.name] = field.default
        elif field.default_factory is not MISSING:
            found[field.name] = field.default_factory()
    return found


def without_defaults(kind: str, given: Mapping[str, Any]) -> JsonObject:
    """What of a config says something: a default written out is not kept, an alias is resolved.

    A map whose order counts becomes a list of pairs.
    """
    defaults = config_defaults(kind)
    kept = {k: v for k, v in given.items() if k not in defaults or not json_equal(v, defaults[k])}
    if isinstance(retry := kept.pop("retry", None), dict):
        usual = asdict(Retry())
        kept |= {"retry": said} if (said := {k: v for k, v in retry.items() if not json_equal(v, usual[k])}) else {}
    match kind:
        case "llm":
            if isinstance(messages := kept.get("messages"), list):
                kept["messages"] = [{k: v for k, v in one.items() if (k, v) != ("images", [])} for one in messages]
        case "router":
            if "rules" in kept:
                kept["rules"] = [_plain_rule(rule) for rule in kept["rules"]]
            if isinstance(kept.get("routes"), dict):
                kept["routes"] = [[text, targets] for text, targets in kept["routes"].items()]
        case "parallel":
            if isinstance(each := kept.get("for_each"), dict):
                usual_each = {"path": "", "as": "item", "index_as": "index", "wait": "all"}
                kept["for_each"] = {k: v for k, v in each.items() if usual_each.get(k) != v}
        case "state_transform":
            kept["operations"] = [_plain_operation(operation) for operation in kept["operations"]]
        case _:
            kept |= {name: _plain_rule(kept[name]) for name in ("until", "of") if name in kept}
    return kept


def _plain_rule(rule: Any) -> Any:
    if isinstance(rule, list):
        return [_plain_rule(member) for member in rule]
    if not isinstance(rule, dict):
        return rule
    plain = {k: v for k, v in rule.items() if (k, v) not in (("ignore_case", False), ("label", ""))}
    plain |= {name: _plain_rule(plain[name]) for name in ("all", "any", "not") if name in plain}
    if isinstance(op := plain.get("op"), str):
        plain["op"] = ALIASES.get(op, op)
    return plain


def _plain_operation(operation: Mapping[str, Any]) -> JsonObject:
    plain = {k: v for k, v in operation.items() if k not in ("replace", "extend") or v is not False}
    if plain.get("op") == "merge_object":
        plain["op"] = "merge"
    if plain.get("op") == "increment" and json_equal(plain.get("value"), 1):
        del plain["value"]
    return plain
