"""`parallel`: starts named branches that meet at a join, or runs the same once for each item of a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Final, Literal

from agent_graph.core.bounds import Ge, Le
from agent_graph.core.classes import dataclass
from agent_graph.core.contributions import BOOKS
from agent_graph.core.effects import Answer, Done, FramesAnswer, Missing, OpenFrames
from agent_graph.core.graph import SPECIAL_TARGETS, Node
from agent_graph.core.issues import Issue, pointer, unknown_fields
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import (
    UNAVAILABLE_EVERYWHERE,
    Milliseconds,
    NodeConfig,
    Read,
    Target,
    Values,
    contribution,
    path_issues,
    path_read,
    value_at,
)
from agent_graph.errors import NodeFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `parallel` node."""

    branches: list[dict[str, Any]] = field(default_factory=list)
    """[{id, entry, input?}]; `input` is a state path, left out = the current value."""
    join: str = ""
    """The node where the branches meet; over data the last one that runs for an item: what it says is the result."""
    timeout_ms: Milliseconds | None = None
    """Bounds all items, or all that runs between the branches' entries and `join`."""
    max_parallelism: Annotated[int, Ge(1), Le(1000)] | None = None
    """How many items are under way at a time, or how many calls in static branches; never more than the graph's."""
    fail_policy: Literal["fail_fast", "collect_partial", "ignore"] = "fail_fast"
    """What becomes of an item or branch that fails: the node fails, or {error} is in its place, or null."""
    for_each: dict[str, Any] | None = None
    """{path, as?, index_as?, wait?}: the list ("" = the current value), the keys under which an item and its place are
    read ("item", "index"), and "all" or {"count": n} when n results are enough."""
    entry: str = ""
    """Where each item starts; all from there up to `join` runs once for each."""
    graph_name: str = ""
    """The graph that runs for each item, instead of `entry` and `join`."""
    graph_version: str = ""
    """The version of that graph; left out, the one that is current when this graph is stored is pinned."""


CHOOSES: Final = True
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "input_key": "a branch names its own `input`, and `for_each` its `path`",
}
_BRANCH: Final = ("id", "entry", "input")
_FOR_EACH: Final = ("path", "as", "index_as", "wait")


def prepare(_config: Config) -> None:
    """Branches are taken as they are written."""


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    if config.for_each is not None:
        return [*_over_data(node_id, config), *path_issues(node_id, [(config.output_key, "/output_key")])]
    issues = _left_over(node_id, config)
    issues += [
        Issue("FIELD_REQUIRED", f"a parallel needs `{name}`", node_id=node_id)
        for name in ("branches", "join")
        if not getattr(config, name)
    ]
    seen: dict[tuple[str, str], int] = {}
    for place, branch in enumerate(config.branches):
        at = pointer("branches", place)
        issues += unknown_fields(branch, _BRANCH, at, node_id=node_id)
        issues += _branch_issues(node_id, branch, at)
        for name, code in (("id", "DUPLICATE_ID"), ("entry", "DUPLICATE_TARGET")):
            given = branch.get(name)
            if isinstance(given, str) and seen.setdefault((name, given), place) != place:
                message = f'branch {seen[name, given]} has the {name} "{given}" already'
                issues.append(Issue(code, message, pointer=f"{at}/{name}", node_id=node_id))
    if ("entry", config.join) in seen:
        message = "the join cannot be the entry of a branch; leave the branch out"
        issues.append(Issue("FIELD_INVALID", message, pointer="/join", node_id=node_id))
    return issues


def _left_over(node_id: str, config: Config) -> list[Issue]:
    """What belongs to a fan-out over data, and there is none."""
    issues = []
    for name in ("entry", "graph_name", "graph_version", "output_key"):
        if getattr(config, name):
            message = f"`{name}` is for a fan-out over data; say over which with `for_each`, or leave it out"
            issues.append(Issue("FIELD_CONFLICT", message, pointer=f"/{name}", node_id=node_id))
    return issues


def _over_data(node_id: str, config: Config) -> list[Issue]:
    each = config.for_each or {}
    issues = unknown_fields(each, _FOR_EACH, "/for_each", node_id=node_id)
    issues += _each_issues(node_id, each)
    if config.branches:
        message = "`branches` are static and `for_each` is over data; leave one out"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/branches", node_id=node_id, related=("/for_each",)))
    if not config.graph_name:
        issues += [
            Issue("FIELD_REQUIRED", f"`for_each` needs `{name}`, or a `graph_name`", node_id=node_id)
            for name in ("entry", "join")
            if not getattr(config, name)
        ]
        if config.graph_version:
            message = "there is no `graph_name` whose version this could be"
            issues.append(Issue("FIELD_CONFLICT", message, pointer="/graph_version", node_id=node_id))
    for name in ("entry", "join"):
        if config.graph_name and getattr(config, name):
            message = f"`graph_name` runs a graph for each item and `{name}` a part of this one; leave one out"
            issues.append(
                Issue("FIELD_CONFLICT", message, pointer=f"/{name}", node_id=node_id, related=("/graph_name",))
            )
        if getattr(config, name) in SPECIAL_TARGETS:
            message = f"`{name}` is a node"
            issues.append(Issue("FIELD_INVALID", message, pointer=f"/{name}", node_id=node_id))
    return issues


def _each_issues(node_id: str, each: dict[str, Any]) -> list[Issue]:
    def wrong(name: str, message: str) -> Issue:
        return Issue("FIELD_INVALID", message, pointer=pointer("for_each", name), node_id=node_id)

    path = each.get("path", "")
    issues = path_issues(node_id, [(path, "/for_each/path")]) if isinstance(path, str) else []
    issues += [] if isinstance(path, str) else [wrong("path", "`path` is a state path")]
    for name, usual in _NAMES.items():
        key = each.get(name, usual)
        if not isinstance(key, str) or not key or not _KEY.fullmatch(key):
            issues.append(wrong(name, f"`{name}` is a key: letters, digits and _, and no digit first"))
        elif key in BOOKS or key.startswith("__"):
            message = f"`{key}` belongs to the engine"
            at = pointer("for_each", name)
            issues.append(Issue("RESERVED_KEY", message, pointer=at, node_id=node_id))
    if each.get("as", "item") == each.get("index_as", "index"):
        issues.append(wrong("index_as", "`as` and `index_as` are two keys"))
    wait = each.get("wait", "all")
    count = wait.get("count") if isinstance(wait, dict) and len(wait) == 1 else None
    if wait != "all" and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        issues.append(wrong("wait", '`wait` is "all" or {"count": n}, and n at least 1'))
    return issues


_NAMES: Final = {"as": "item", "index_as": "index"}
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


def _branch_issues(node_id: str, branch: dict[str, Any], at: str) -> list[Issue]:
    issues = []
    for name in ("id", "entry"):
        if name not in branch:
            issues.append(Issue("FIELD_REQUIRED", f"a branch needs `{name}`", pointer=at, node_id=node_id))
        elif not isinstance(branch[name], str) or not branch[name]:
            issues.append(Issue("FIELD_INVALID", f"`{name}` is a text", pointer=f"{at}/{name}", node_id=node_id))
    entry = branch.get("entry")
    if isinstance(entry, str) and entry in SPECIAL_TARGETS:
        message = "a branch starts at a node; leave the branch out"
        issues.append(Issue("FIELD_INVALID", message, pointer=f"{at}/entry", node_id=node_id))
    path = branch.get("input", "")
    if not isinstance(path, str):
        message = "`input` is a state path; leave it out for the current value"
        issues.append(Issue("FIELD_INVALID", message, pointer=f"{at}/input", node_id=node_id))
    else:
        issues += path_issues(node_id, [(path, f"{at}/input")])
    return issues


def targets(config: Config) -> Sequence[Target]:
    if config.for_each is not None:
        return [Target(config.entry, "/entry")] if config.entry else []
    return [
        Target(branch["entry"], pointer("branches", place, "entry"))
        for place, branch in enumerate(config.branches)
        if isinstance(branch.get("entry"), str)
    ]


def reads(config: Config) -> Sequence[Read]:
    if config.for_each is not None:
        path = config.for_each.get("path", "")
        return path_read(path, "/for_each/path") if isinstance(path, str) else []
    return [
        read
        for place, branch in enumerate(config.branches)
        if isinstance(branch.get("input"), str)
        for read in path_read(branch["input"], pointer("branches", place, "input"))
    ]


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [config.output_key] if config.output_key else ()


def writes_current(config: Config) -> bool:
    if config.for_each is not None:
        return not config.output_key
    return any(branch.get("input") for branch in config.branches)


def step(node: Node, values: Values, answers: Sequence[Answer]) -> Done | OpenFrames:
    """Raises `NodeFailure` PROMPT_VALUE_MISSING when there is nothing at a branch's `input`, or no list at `path`."""
    config: Config = node.config
    if config.for_each is not None:
        return _each(node, values, answers)
    inputs: dict[str, JsonValue] = {}
    for branch in config.branches:
        path = branch.get("input")
        if not path:
            continue
        found = value_at(values, path)
        if isinstance(found, Missing):
            message = f'branch "{branch["id"]}" starts with "{path}", and there is nothing'
            raise NodeFailure("PROMPT_VALUE_MISSING", message, path=path, branch=branch["id"])
        inputs[branch["entry"]] = found
    return Done(targets=tuple(branch["entry"] for branch in config.branches), inputs=inputs)


def _each(node: Node, values: Values, answers: Sequence[Answer]) -> Done | OpenFrames:
    config: Config = node.config
    each = config.for_each or {}
    if not answers:
        wait = each.get("wait", "all")
        return OpenFrames(
            _items(node, values, each.get("path", "")), width=config.max_parallelism,
            enough=None if wait == "all" else wait["count"], graph_version=config.graph_version,
            names=(each.get("as", "item"), each.get("index_as", "index")), policy=config.fail_policy,
        )  # fmt: skip
    answer = answers[-1]
    assert isinstance(answer, FramesAnswer), "nothing else is asked for"
    results: list[JsonValue] = [*answer.results]
    if config.output_key:
        return Done((contribution(values, config.output_key, results),), output=results)
    return Done(output=results, current=results)


def _items(node: Node, values: Values, path: str) -> list[JsonValue]:
    found = value_at(values, path)
    what = f'"{path}"' if path else "the current value"
    if isinstance(found, Missing):
        raise NodeFailure("PROMPT_VALUE_MISSING", f'"{node.id}" goes through {what}, and there is nothing', path=path)
    if not isinstance(found, list):
        message = f'"{node.id}" goes through {what}, and that is no list'
        raise NodeFailure("FOR_EACH_NOT_A_LIST", message, path=path)
    return found
