"""What a firing can select: the sets of ways of which one is taken, and what follows for where tokens can end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

EXIT: Final = -1
"""END as a target: the token ends."""

Selections: TypeAlias = tuple[tuple[int, ...], ...]
"""By choice: the nodes (or EXIT) that all get a token when it is made. A node that never chooses has one selection."""


def selections(kind: str, config: Any, out: tuple[int, ...], index: dict[str, int]) -> Selections:
    """The selections of a node of type `kind`; `out` are its declared ways, EXIT included where its token ends.

    A router that takes all rules that hold selects a union of these; each alone is a lower bound of it.
    """

    def nodes(targets: Sequence[str] | None) -> tuple[int, ...]:
        return tuple(dict.fromkeys(index.get(name, EXIT) for name in targets or ())) or (EXIT,)

    match kind:
        case "router":
            found = [nodes(rule["targets"]) for rule in config.rules]
            found += [nodes([to] if isinstance(to, str) else to) for to in _routes(config.routes)]
            found += [nodes(config.default)] if config.default is not None else []
        case "loop":
            found = [nodes([config.entry]), nodes([config.exit])]
            found += [nodes(config.on_limit)] if config.on_limit is not None else []
        case "parallel" if config.for_each is None:
            found = [nodes([branch["entry"] for branch in config.branches])]
        case "parallel" if not config.graph_name:
            found = [nodes([config.entry])]
        case "human_approval":
            found = _gate(config, out, nodes)
        case "join" if config.mode == "vote" and config.on_deadlock is not None:
            found = [out, nodes(config.on_deadlock)]
        case "signal":
            found = [out, nodes(config.on_expire["goto"])] if isinstance(config.on_expire, dict) else [out]
        case "graphql":
            found = [out, nodes(config.on_errors["goto"])] if isinstance(config.on_errors, dict) else [out]
        case _:
            found = [out]
    if config.on_error != "fail":
        found += [out] if config.on_error == "continue" else [nodes(config.on_error["goto"])]
    return tuple(dict.fromkeys(found))


def _routes(routes: Any) -> list[Any]:
    pairs = routes.items() if isinstance(routes, dict) else routes or ()
    return [targets for _, targets in pairs]


def _gate(config: Any, out: tuple[int, ...], nodes: Any) -> list[tuple[int, ...]]:
    ways = {
        "approve": "continue", "edit": "continue", "reject": config.on_reject,
        "request_changes": config.on_request_changes,
    }  # fmt: skip
    chosen = [ways.get(decision) for decision in config.allowed_decisions]
    chosen += [config.on_expire["goto"]] if isinstance(config.on_expire, dict) else []
    return [out if way == "continue" else nodes(way) for way in chosen if way is not None]


def can_end(ways: Sequence[Selections]) -> list[bool]:
    """By node: some choices let a token on it, and all that comes of it, end. Linear time.

    The least fixed point: a way round a cycle that never leaves it is no end.
    """
    ends = [False] * len(ways)
    waiting: list[list[int]] = [[] for _ in ways]
    left: list[int] = []
    owner: list[int] = []
    ready: list[int] = []
    for node, options in enumerate(ways):
        if not options:
            ready.append(node)  # nothing can be chosen: its firing fails, and that is an end too
        for targets in options:
            inner = [target for target in targets if target != EXIT]
            for target in inner:
                waiting[target].append(len(left))
            if not inner:
                ready.append(node)
            left.append(len(inner))
            owner.append(node)
    while ready:
        node = ready.pop()
        if ends[node]:
            continue
        ends[node] = True
        for selection in waiting[node]:
            left[selection] -= 1
            if not left[selection]:
                ready.append(owner[selection])
    return ends
