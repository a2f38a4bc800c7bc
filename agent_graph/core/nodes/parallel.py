"""`parallel`: starts named branches, each with its own input, that meet at a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent_graph.core.effects import Answer, Done, Missing
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
    """The node where the branches meet."""
    timeout_ms: Milliseconds | None = None
    max_parallelism: int | None = None
    fail_policy: str = "fail_fast"
    for_each: dict[str, Any] | None = None
    entry: str = ""
    graph_name: str = ""
    graph_version: str = ""


CHOOSES: Final = True
_OVER_DATA = "only static branches are available yet"
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": _OVER_DATA,
    "input_key": "a branch names its own `input`",
    "timeout_ms": "nothing bounds the branches as a whole yet",
    "max_parallelism": "the graph's `max_parallelism` holds; a bound of its own is not available yet",
    "fail_policy": 'a failed branch fails the run; only "fail_fast" is available yet',
    "for_each": _OVER_DATA,
    "entry": _OVER_DATA,
    "graph_name": _OVER_DATA,
    "graph_version": _OVER_DATA,
}
_BRANCH: Final = ("id", "entry", "input")


def prepare(_config: Config) -> None:
    """Branches are taken as they are written."""


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    if config.for_each is not None or config.graph_name:
        return ()  # refused as a whole by `UNAVAILABLE`
    issues = [
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
    return [
        Target(branch["entry"], pointer("branches", place, "entry"))
        for place, branch in enumerate(config.branches)
        if isinstance(branch.get("entry"), str)
    ]


def reads(config: Config) -> Sequence[Read]:
    return [
        read
        for place, branch in enumerate(config.branches)
        if isinstance(branch.get("input"), str)
        for read in path_read(branch["input"], pointer("branches", place, "input"))
    ]


def writes(_node_id: str, _config: Config) -> Sequence[str]:
    return ()


def writes_current(config: Config) -> bool:
    return any(branch.get("input") for branch in config.branches)


def step(node: Node, values: Values, _answers: Sequence[Answer]) -> Done:
    """Raises `NodeFailure` PROMPT_VALUE_MISSING when there is nothing at a branch's `input`."""
    inputs: dict[str, JsonValue] = {}
    for branch in node.config.branches:
        path = branch.get("input")
        if not path:
            continue
        found = value_at(values, path)
        if isinstance(found, Missing):
            message = f'branch "{branch["id"]}" starts with "{path}", and there is nothing'
            raise NodeFailure("PROMPT_VALUE_MISSING", message, path=path, branch=branch["id"])
        inputs[branch["entry"]] = found
    return Done(targets=tuple(branch["entry"] for branch in node.config.branches), inputs=inputs)
