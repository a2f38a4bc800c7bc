"""Effects on the world and the people before them: APPROVAL_AFTER_EFFECT, EFFECT_RETRY_UNSAFE,
REQUEST_CHANGES_NO_LOOP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agent_graph.core.checks.shape import NodeLike, Shape
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.nodes import KNOWN_TYPES
from agent_graph.core.spec import ParsedNode
from agent_graph.core.topology import bits

_SHOWN: Final = 20


def acts(node: NodeLike) -> bool:
    """The node may change something in the world."""
    kind: Any = KNOWN_TYPES[node.type]
    return hasattr(kind, "acts") and bool(kind.acts(node.config))


def late_approvals(shape: Shape) -> Iterator[Issue]:
    """APPROVAL_AFTER_EFFECT: an effect no gate stands before, and a gate behind it that stands before none."""
    effects = [place for place, node in enumerate(shape.nodes) if acts(node) and shape.reached(place)]
    gates = [place for place, node in enumerate(shape.nodes) if node.type == "human_approval" and shape.reached(place)]
    if not effects or not gates:
        return
    every = bits(gates, len(shape.nodes))
    free = [place for place in effects if not any(every >> above & 1 for above in shape.branches.dominators(place))]
    for gate in gates:
        before = [place for place in free if shape.upstream(gate) >> place & 1]
        guarded = [place for place in effects if shape.upstream(place) >> gate & 1 and place not in before]
        if before and not guarded:
            yield _late(shape, gate, before)


def _late(shape: Shape, gate: int, before: list[int]) -> Issue:
    node, acting = shape.nodes[gate], [shape.nodes[place] for place in before[:_SHOWN]]
    assert isinstance(node, ParsedNode)
    names = " and ".join(f'"{one.id}"' for one in acting[:3]) + (" and others" if len(acting) > 3 else "")
    message = f'"{node.id}" asks whether to go on when {names} has already acted; put the gate before what it is about'
    related = tuple(one.pointer() for one in acting if isinstance(one, ParsedNode))
    return Issue("APPROVAL_AFTER_EFFECT", message, severity="warning", pointer=node.pointer(), node_id=node.id,
                 related=related)  # fmt: skip


def unsafe_retries(shape: Shape) -> Iterator[Issue]:
    """EFFECT_RETRY_UNSAFE: `retry` on a call that could then be made twice; it is not made again."""
    for node in shape.nodes:
        kind: Any = KNOWN_TYPES[node.type]
        retry = node.config.retry
        if not hasattr(kind, "repeatable") or retry is None or retry.max_attempts == 1 or kind.repeatable(node.config):
            continue
        assert isinstance(node, ParsedNode)
        message = (
            f'"{node.id}" may change something outside, and a call that failed may have done so all the same: it is not'
            " made again unless `idempotent` says that twice does no more than once"
        )
        yield Issue("EFFECT_RETRY_UNSAFE", message, severity="warning", pointer=node.pointer("/retry"),
                    node_id=node.id, fix=({"op": "remove", "path": node.pointer("/retry")},))  # fmt: skip


def changes_without_rework(shape: Shape) -> Iterator[Issue]:
    """REQUEST_CHANGES_NO_LOOP: what is asked to be changed never comes back to the gate."""
    for place, node in enumerate(shape.nodes):
        if node.type != "human_approval" or "request_changes" not in node.config.allowed_decisions:
            continue
        way = node.config.on_request_changes
        if way == "continue" or not shape.reached(place):
            continue
        if isinstance(way, list):
            starts = [shape.index[name] for name in way if name in shape.index]
            if any(shape.built.ancestors(place) >> start & 1 for start in starts):
                continue
            why = "the way it leads to never comes back here"
        else:
            why = "nothing reworks it: the same is asked again, until somebody decides otherwise"
        assert isinstance(node, ParsedNode)
        others: list[JsonValue] = [
            one for one in dict.fromkeys(node.config.allowed_decisions) if one != "request_changes"
        ]
        message = f'"{node.id}" lets people ask for changes, and {why}; name the node that reworks it'
        fix: JsonObject = {"op": "add", "path": node.pointer("/allowed_decisions"), "value": others}
        yield Issue("REQUEST_CHANGES_NO_LOOP", message, severity="info", pointer=node.pointer(), node_id=node.id,
                    fix=(fix,) if others and way is None else ())  # fmt: skip
