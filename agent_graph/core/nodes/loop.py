"""`loop`: runs its body until a predicate holds, at most so many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from agent_graph.core.bounds import Ge, Le, Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done, MaybeJson, Write
from agent_graph.core.graph import END, SPECIAL_TARGETS, Node
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import (
    UNAVAILABLE_EVERYWHERE,
    NodeConfig,
    Read,
    Target,
    Values,
    contribution,
    path_issues,
    path_read,
    value_at,
)
from agent_graph.core.ops import predicates


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `loop` node."""

    entry: Annotated[str, Len(1)]
    """Where the body starts."""
    exit: Annotated[str, Len(1)]
    """Where it goes on when the body is done."""
    max_iterations: Annotated[int, Ge(1), Le(100_000)] = 32
    """How often the body runs at most."""
    until: dict[str, Any] | None = None
    """A router predicate, asked after every round of the body."""
    counter_key: str = ""
    """A further state path for the count; it is always at ``loops.<id>``."""
    on_limit: list[str] | None = None
    """Targets at the bound; None = `exit`."""


CHOOSES: Final = True
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "output_key": "a loop writes its count only; name `counter_key`",
    "input_key": "a loop reads what `until` names",
}


def prepare(config: Config) -> Any:
    """The predicate of `until`, or None."""
    return None if config.until is None else predicates.prepare(config.until)


def check(node_id: str, config: Config, limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = path_issues(node_id, [(config.counter_key, "/counter_key")])
    if config.until is not None:
        issues += [replace(issue, node_id=node_id) for issue in predicates.check(config.until, "/until", limits=limits)]
    if config.entry in SPECIAL_TARGETS:
        message = "the body starts at a node"
        issues.append(Issue("FIELD_INVALID", message, pointer="/entry", node_id=node_id))
    if config.entry == config.exit:
        message = "`exit` leads into the body again; it needs another target"
        issues.append(Issue("FIELD_INVALID", message, pointer="/exit", node_id=node_id))
    return issues


def targets(config: Config) -> Sequence[Target]:
    at_limit = [Target(name, pointer("on_limit", place)) for place, name in enumerate(config.on_limit or ())]
    return [Target(config.entry, "/entry"), Target(config.exit, "/exit"), *at_limit]


def reads(config: Config) -> Sequence[Read]:
    """What `until` reads, its own count aside."""
    paths = predicates.reads(config.until) if config.until is not None else ()
    found = [read for path in paths for read in path_read(path, "/until", optional=True)]
    return [read for read in found if read.path != config.counter_key]


def writes(_node_id: str, config: Config) -> Sequence[str]:
    """The further path of the count; ``loops.<id>`` is the engine's own book."""
    return [config.counter_key] if config.counter_key else []


def writes_current(_config: Config) -> bool:
    return False


def step(node: Node, values: Values, _answers: Sequence[Answer]) -> Done:
    """A token from outside starts at 0 and enters; one from the body counts, then `until` or the bound decides."""
    config: Config = node.config
    place = pointer("loops", node.id)
    before = values.read(place) if values.reentered else 0
    count = before + 1 if values.reentered and isinstance(before, int) else 0
    writes = [Write("set", ("loops", node.id), count)]
    if config.counter_key:
        writes.append(contribution(values, config.counter_key, count))

    def find(path: str) -> MaybeJson:
        return count if path in (place, f"loops.{node.id}", config.counter_key) else value_at(values, path)

    if not values.reentered:
        return Done(tuple(writes), targets=(config.entry,), transition="entry")
    if node.prepared is not None and node.prepared(find):
        return Done(tuple(writes), targets=(config.exit,), transition="exit")
    if count < config.max_iterations:
        return Done(tuple(writes), targets=(config.entry,), transition="entry")
    chosen = (config.exit,) if config.on_limit is None else tuple(dict.fromkeys(config.on_limit)) or (END,)
    return Done(tuple(writes), targets=chosen, transition="limit", exhausted=count)
