"""`subgraph`: runs another graph, or its own one again, in a frame of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Final

from agent_graph.core import statepath
from agent_graph.core.bounds import Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done, FramesAnswer, Missing, OpenFrames
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue, pointer
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
    """The fields of a `subgraph` node."""

    graph_name: Annotated[str, Len(1)]
    """The graph it runs."""
    graph_version: str = ""
    """The version it runs; left out, the one that is current when this graph is stored is pinned."""
    input: dict[str, str] = field(default_factory=dict)
    """What the graph starts with, instead of `input_key`: a path in its input -> a state path here."""
    output: dict[str, str] = field(default_factory=dict)
    """What is taken over, instead of `output_key`: a state path here -> a path in the graph's state at its end."""
    allow_recursion: bool = False
    """The graph may run itself: `graph_name` is its own name, and the version the one it stands in."""
    timeout_ms: Milliseconds | None = None
    """Bounds all that runs inside."""


CHOOSES: Final = False
UNAVAILABLE: Final = UNAVAILABLE_EVERYWHERE


def prepare(_config: Config) -> None:
    """Paths are taken as they are written."""


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = []
    for one, other in (("input_key", "input"), ("output_key", "output")):
        if getattr(config, one) and getattr(config, other):
            message = f"`{one}` and `{other}` say the same in two ways; leave one out"
            issues.append(Issue("FIELD_CONFLICT", message, pointer=f"/{other}", node_id=node_id, related=(f"/{one}",)))
    paths = [(config.input_key, "/input_key"), (config.output_key, "/output_key")]
    for name in ("input", "output"):
        for key, path in getattr(config, name).items():
            at = pointer(name, key)
            paths += [(key, at), (path, at)]
            if not key or not path:
                message = f"`{name}` leads from a path to a path, and one of them is empty"
                issues.append(Issue("FIELD_INVALID", message, pointer=at, node_id=node_id))
    if config.allow_recursion and config.graph_version:
        message = "a graph that runs itself runs the version it stands in; leave `graph_version` out"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/graph_version", node_id=node_id))
    return [*issues, *path_issues(node_id, paths)]


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(config: Config) -> Sequence[Read]:
    if not config.input:
        return path_read(config.input_key, "/input_key")
    return [read for key, path in config.input.items() for read in path_read(path, pointer("input", key))]


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [*config.output] or ([config.output_key] if config.output_key else [])


def writes_current(config: Config) -> bool:
    return not config.output and not config.output_key


def step(node: Node, values: Values, answers: Sequence[Answer]) -> Done | OpenFrames:
    """Raises `NodeFailure` PROMPT_VALUE_MISSING when there is nothing at a path it starts with."""
    config: Config = node.config
    if not answers:
        return OpenFrames((_input(node, values),), graph_version=config.graph_version, recursion=config.allow_recursion)
    answer = answers[-1]
    assert isinstance(answer, FramesAnswer), "nothing else is asked for"
    (result,) = answer.results
    if config.output:
        assert isinstance(result, dict), "by path"
        return Done(tuple(contribution(values, path, result[path]) for path in sorted(result)), output=result)
    if config.output_key:
        return Done((contribution(values, config.output_key, result),), output=result)
    return Done(output=result, current=result)


def _input(node: Node, values: Values) -> JsonValue:
    config: Config = node.config
    if not config.input:
        return _found(node, values, config.input_key)
    made: JsonValue = {}
    for key, path in sorted(config.input.items()):
        made = statepath.put(made, statepath.resolve(made, key), _found(node, values, path))
    return made


def _found(node: Node, values: Values, path: str) -> JsonValue:
    found = value_at(values, path)
    if isinstance(found, Missing):
        message = f'graph {node.config.graph_name} starts with "{path}", and there is nothing'
        raise NodeFailure("PROMPT_VALUE_MISSING", message, path=path)
    return found
