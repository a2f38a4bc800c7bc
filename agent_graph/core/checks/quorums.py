"""Joins that can never have what they ask for: JOIN_QUORUM_IMPOSSIBLE, where inputs exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agent_graph.core.checks.keys import plain
from agent_graph.core.checks.shape import Shape
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.spec import ParsedNode
from agent_graph.core.topology import members

_INPUTS: Final = 24
"""Of one join: beyond that many it is not asked which can be there together."""
_STEPS: Final = 4_000
"""Sets that are looked at for one join."""
_WRITERS: Final = 8
"""Of one input: with more of them it is taken to be there."""


def impossible_quorums(shape: Shape) -> Iterator[Issue]:
    """`required` inputs, or with `all_success` all, of which no run has so many."""
    for place, node in enumerate(shape.nodes):
        if node.type != "join" or not shape.reached(place) or not 1 < len(node.config.inputs) <= _INPUTS:
            continue
        config = node.config
        if config.mode == "all_success" and config.require:
            required = len(config.inputs)
        elif config.mode == "quorum" and config.required <= len(config.inputs):  # more are told by the type's own check
            required = config.required
        else:
            continue
        assert isinstance(node, ParsedNode)
        groups = [_writers(shape, name) for name in config.inputs]
        most = _together(shape, groups)
        if most < required:
            yield _issue(shape, node, groups, most=most, required=required)


def _writers(shape: Shape, name: str) -> list[int] | None:
    """Who writes an input; None = it may be there without."""
    if name in shape.index:
        return [shape.index[name]]
    path = plain(name)
    if path[0] == "outputs" and ".".join(path[1:]) in shape.index:
        return [shape.index[".".join(path[1:])]]
    writers = members(shape.keys.writers(path))
    return writers if 0 < len(writers) <= _WRITERS and not shape.keys.brought(path) else None


def _together(shape: Shape, groups: Sequence[list[int] | None]) -> int:
    """How many inputs can be there in one run at most: the largest set of which no two exclude each other."""
    count = len(groups)
    beside = [0] * count
    for i, left in enumerate(groups):
        for j in range(i + 1, count):
            right = groups[j]
            if left is None or right is None or any(not _exclusive(shape, a, b) for a in left for b in right):
                beside[i] |= 1 << j
                beside[j] |= 1 << i
    return _largest((1 << count) - 1, beside, [_STEPS])


def _exclusive(shape: Shape, left: int, right: int) -> bool:
    return left != right and shape.branches.exclusive(left, right)


def _largest(nodes: int, beside: Sequence[int], steps: list[int]) -> int:
    """The size of the largest set in `nodes` of which all are beside each other; too large a guess when `steps` run
    out."""
    if not nodes:
        return 0
    steps[0] -= 1
    if steps[0] < 0:
        return nodes.bit_count()
    rest = members(nodes)
    fewest = min(rest, key=lambda i: (beside[i] & nodes).bit_count())
    if (beside[fewest] & nodes).bit_count() == len(rest) - 1:
        return len(rest)
    with_it = 1 + _largest(nodes & beside[fewest], beside, steps)
    return max(with_it, _largest(nodes & ~(1 << fewest), beside, steps))


def _issue(
    shape: Shape, node: ParsedNode, groups: Sequence[list[int] | None], *, most: int, required: int
) -> Issue:  # fmt: skip
    config = node.config
    related = tuple(dict.fromkeys(
        writer.pointer() for group in groups for place in group or ()
        if isinstance(writer := shape.nodes[place], ParsedNode)
    ))  # fmt: skip
    message = (
        f'"{node.id}" asks for {required} of its {len(config.inputs)} inputs, and no run has more than {most}:'
        " the others come from ways that exclude each other"
    )
    at, value = (node.pointer("/require"), False) if config.mode == "all_success" else (node.pointer("/required"), most)
    fix: JsonObject = {"op": "add", "path": at, "value": value}
    return Issue("JOIN_QUORUM_IMPOSSIBLE", message, severity="warning", pointer=at, node_id=node.id, related=related,
                 fix=(fix,))  # fmt: skip
