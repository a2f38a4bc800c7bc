"""Which value is a run's result: declared, or inferred from how the graph ends; else OUTPUT_AMBIGUOUS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_graph.core.choices import EXIT, Selections
from agent_graph.core.dominators import immediate_dominators
from agent_graph.core.graph import Output
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.topology import Topology
from agent_graph.core.wiring import Wiring

CURRENT = "__input__"


def infer(wiring: Wiring, built: Topology, ways: Sequence[Selections], *, declared: str) -> tuple[Output, list[Issue]]:
    """The place of the result (spec-v2, `output_key`): what the ending node wrote, where a run has only one."""
    if declared:
        return Output("" if declared == CURRENT else declared, declared=True), []
    ends = _ending(wiring, built, ways)
    owners = {region.exit: fork for fork, region in built.regions.items()}  # what an item ends with is its result
    paths = {node: _written(wiring, owners.get(node, node)) for node in ends}
    if len(ends) > 1 and _splits(built, ways, ends, wiring.elsewhere):
        return Output(), [_issue(wiring, paths)]
    if len(set(paths.values())) == 1:
        return Output(paths[ends[0]]), []
    return Output(by_end={wiring.nodes[owners.get(node, node)].id: path for node, path in paths.items()}), []


def _ending(wiring: Wiring, built: Topology, ways: Sequence[Selections]) -> list[int]:
    """The nodes that name END; where none does, those after which nothing comes."""
    reached = [node for node in range(built.node_count) if built.reachable >> node & 1]
    ending = [node for node in reached if any(EXIT in targets for targets in ways[node])]
    named = [
        node
        for node in ending
        if node in wiring.ends | wiring.ends_run or len(ways[node]) > 1 or built.out_declared[node]
    ]
    return named or ending


def _written(wiring: Wiring, node: int) -> str:
    """The path of what the node itself leaves behind; "" is the current value."""
    parsed = wiring.nodes[node]
    config = parsed.config
    match parsed.type:
        case "join":
            return str(config.output or config.output_key)
        case "human_approval":
            return config.output_key or parsed.id
        case _:
            return str(config.output_key)


def _splits(built: Topology, ways: Sequence[Selections], ends: Sequence[int], elsewhere: Sequence[int]) -> bool:
    """Some selection, or where `on_budget` leads, sends tokens on ways that do not all meet again before the end."""
    count = built.node_count
    to_end = set(ends)
    useful = _leading_to(ways, ends)
    into: list[list[int]] = [[] for _ in range(count + 1)]  # turned round: from the end (node `count`) backwards
    out: list[list[int]] = [[] for _ in range(count + 1)]
    forks = []
    for node in range(count):
        if not useful[node] or not built.reachable >> node & 1:
            continue
        for targets in ways[node]:
            there = [count if t == EXIT else t for t in targets if (node in to_end if t == EXIT else useful[t])]
            for target in there:
                out[target].append(node)
                into[node].append(target)
            if len(there) > 1:
                forks.append(there)
    forks += [[node for node in elsewhere if node != EXIT]] if len(elsewhere) > 1 else []
    after = immediate_dominators(count, out, into)
    return any(_meeting(there, after, count) == count for there in forks)


def _leading_to(ways: Sequence[Selections], ends: Sequence[int]) -> list[bool]:
    back: list[list[int]] = [[] for _ in ways]
    for node, options in enumerate(ways):
        for targets in options:
            for target in targets:
                if target != EXIT:
                    back[target].append(node)
    found = [False] * len(ways)
    open_ = list(ends)
    while open_:
        node = open_.pop()
        if not found[node]:
            found[node] = True
            open_ += back[node]
    return found


def _meeting(nodes: Sequence[int], after: Sequence[int], end: int) -> int:
    """The first node that every way from all of `nodes` must pass."""
    common = _chain(nodes[0], after, end)
    for node in nodes[1:]:
        here = set(_chain(node, after, end))
        common = [one for one in common if one in here]
    return common[0]


def _chain(node: int, after: Sequence[int], end: int) -> list[int]:
    chain = [node]
    while chain[-1] != end:
        chain.append(after[chain[-1]])
    return chain


def _issue(wiring: Wiring, paths: Mapping[int, str]) -> Issue:
    names = [wiring.nodes[node].id for node in paths]
    shown = ", ".join(f'"{name}"' for name in names[:8]) + (" ..." if len(names) > 8 else "")
    keyed = next((path for path in reversed(list(paths.values())) if path), "")
    say = "name its path as `output_key`"
    if not keyed:  # the value they share by now is not what any of them said, so nothing here could be a repair
        say = "give the node that says it an `output_key`, and name the same at the top of the graph"
    message = f"a run can end at {shown}, and nothing says whose result counts: {say}"
    fix: tuple[JsonObject, ...] = ({"op": "add", "path": "/output_key", "value": keyed},) if keyed else ()
    related = tuple(pointer("nodes", wiring.nodes[node].place) for node in list(paths)[:50])
    return Issue("OUTPUT_AMBIGUOUS", message, pointer="/output_key", related=related, fix=fix)
