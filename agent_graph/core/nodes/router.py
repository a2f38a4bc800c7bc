"""`router`: chooses where its token goes, by rules on the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Final, Literal

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done, MaybeJson, Missing
from agent_graph.core.graph import END, Node
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, text_of
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import (
    UNAVAILABLE_EVERYWHERE,
    NodeConfig,
    Read,
    Target,
    Values,
    path_issues,
    path_read,
    value_at,
)
from agent_graph.core.ops import predicates
from agent_graph.errors import NodeFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `router` node."""

    rules: list[dict[str, Any]] = field(default_factory=list)
    """[{path, op, value or value_path, targets, label?}]; `all` / `any` / `not` nest."""
    default: list[str] | None = None
    """Targets when no rule holds; [] ends the branch, None makes that an error."""
    mode: Literal["first", "all"] = "first"
    """The first rule that holds decides, or every one that does."""
    routes: dict[str, str | list[str]] | list[tuple[str, str | list[str]]] | None = None
    """The older form: text -> target(s), tried in order; as [text, target(s)] pairs where key order may be lost."""


CHOOSES: Final = True
UNAVAILABLE: Final = {**UNAVAILABLE_EVERYWHERE, "output_key": "a router writes nothing; its way is in the events"}

_OF_ROUTER: Final = ("targets", "label")
"""The fields of a rule that are no part of its predicate."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way out: taken when `holds`; `name` is its transition."""

    name: str
    holds: predicates.Predicate
    targets: tuple[str, ...]


def prepare(config: Config) -> tuple[Way, ...]:
    """The ways in the order in which they are tried."""
    ways = [
        Way(f"rules/{place}", predicates.prepare(_predicate(rule)), tuple(dict.fromkeys(rule["targets"])))
        for place, rule in enumerate(config.rules)
    ]
    ways += [
        Way(f"routes/{place}", _contains(text, config.input_key), tuple(dict.fromkeys(chosen)))
        for place, (text, chosen, _) in enumerate(_routes(config))
    ]
    return tuple(ways)


def check(node_id: str, config: Config, limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = path_issues(node_id, [(config.input_key, "/input_key")])
    for place, rule in enumerate(config.rules):
        at = pointer("rules", place)
        issues += _list_issues(node_id, rule.get("targets"), at, at + "/targets")
        if not isinstance(rule.get("label", ""), str):
            issues.append(Issue("FIELD_INVALID", "a label is a text", pointer=at + "/label", node_id=node_id))
        issues += [replace(issue, node_id=node_id) for issue in predicates.check(_predicate(rule), at, limits=limits)]
    if not config.rules and config.default is None and not config.routes:
        issues.append(Issue("FIELD_REQUIRED", "a router needs `rules` or a `default`", node_id=node_id))
    if config.routes is not None and config.rules:
        message = "`routes` is the older form of `rules`; give one of them"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/routes", node_id=node_id))
    return issues


def targets(config: Config) -> Sequence[Target]:
    found = []
    for place, rule in enumerate(config.rules):
        chosen = rule.get("targets")
        if isinstance(chosen, list):
            found += [
                Target(name, pointer("rules", place, "targets", n))
                for n, name in enumerate(chosen)
                if isinstance(name, str)
            ]
    for _, several, at in _routes(config):
        found += [Target(name, where) for name, where in zip(several, at, strict=True)]
    found += [Target(name, f"/default/{n}") for n, name in enumerate(config.default or ())]
    return found


def reads(config: Config) -> Sequence[Read]:
    found = [
        read
        for place, rule in enumerate(config.rules)
        for path in predicates.reads(_predicate(rule))
        for read in path_read(path, pointer("rules", place), optional=True)
    ]
    return found + (path_read(config.input_key, "/input_key", optional=True) if config.routes else [])


def writes(_node_id: str, _config: Config) -> Sequence[str]:
    return ()


def writes_current(_config: Config) -> bool:
    return False


def step(node: Node, values: Values, _answers: Sequence[Answer]) -> Done:
    """Raises `NodeFailure` NO_DEFAULT_ROUTE when no rule holds and there is no default."""
    ways: tuple[Way, ...] = node.prepared

    def find(path: str) -> MaybeJson:
        return value_at(values, path)

    held = (way for way in ways if way.holds(find))
    if node.config.mode == "first":
        first = next(held, None)
        if first is not None:
            return Done(targets=first.targets, transition=first.name)
    elif taken := list(held):
        chosen = tuple(dict.fromkeys(name for way in taken for name in way.targets))
        return Done(targets=chosen, transition="+".join(way.name for way in taken))
    if node.config.default is None:
        message = f'no rule of router "{node.id}" holds and it has no default'
        raise NodeFailure("NO_DEFAULT_ROUTE", message, rules=len(ways))
    return Done(targets=tuple(dict.fromkeys(node.config.default)) or (END,), transition="default")


def _predicate(rule: JsonObject) -> JsonObject:
    return {name: value for name, value in rule.items() if name not in _OF_ROUTER}


def _contains(text: str, input_key: str) -> predicates.Predicate:
    def holds(find: Callable[[str], MaybeJson]) -> bool:
        found = find(input_key)
        return not isinstance(found, Missing) and text in text_of(found)

    return holds


def _routes(config: Config) -> Iterator[tuple[str, list[str], list[str]]]:
    """(text, targets, their pointers) of the older form, in order."""
    routes = config.routes or []
    as_map = isinstance(routes, dict)
    for place, (text, chosen) in enumerate(routes.items() if isinstance(routes, dict) else routes):
        at = pointer("routes", text) if as_map else pointer("routes", place, 1)
        if isinstance(chosen, list):
            yield text, chosen, [f"{at}/{n}" for n in range(len(chosen))]
        else:
            yield text, [chosen], [at]


def _list_issues(node_id: str, chosen: object, rule: str, at: str) -> list[Issue]:
    if chosen is None:
        return [Issue("FIELD_REQUIRED", "a rule needs `targets`", pointer=rule, node_id=node_id)]
    if not isinstance(chosen, list) or not chosen or not all(isinstance(name, str) for name in chosen):
        message = '`targets` is a list of node ids; ["END"] ends the branch'
        return [Issue("FIELD_INVALID", message, pointer=at, node_id=node_id)]
    return []
