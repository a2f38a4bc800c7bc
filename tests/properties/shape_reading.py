"""What engine.md section 2 says of a graph's shape, found in the spec by plain searches: ways, forward order, reach."""

from __future__ import annotations

from typing import Any


def ways_of(spec: dict[str, Any]) -> dict[str, list[str]]:
    """Node -> the nodes it can put a token on, once each: declared edges first, then targets, then `on_error`."""
    declared = declared_of(spec)
    ways = {}
    for node in spec["nodes"]:
        chosen = targets_of(node) + (error_targets_of(node) or [])
        targets = [target for target in chosen if target not in ("END", "END_RUN")]
        ways[node["id"]] = list(dict.fromkeys([t for t in declared[node["id"]] if t != "END"] + targets))
    return ways


def targets_of(node: dict[str, Any]) -> list[str]:
    """What a node can choose: rules, default; branches; entry, exit, on_limit; on_reject, on_request_changes."""
    config = node.get("config", {})
    found: list[Any] = []
    for rule in config.get("rules", ()):
        found += rule["targets"]
    found += config.get("default") or []
    found += [branch["entry"] for branch in config.get("branches", ())]
    if node["type"] == "loop":
        found += [config["entry"], config["exit"], *(config.get("on_limit") or [])]
    for name in ("on_reject", "on_request_changes"):
        if isinstance(config.get(name), list):
            found += config[name]
    return found


def error_targets_of(node: dict[str, Any]) -> list[str] | None:
    """The targets of `on_error`; None when it has none."""
    on_error: Any = node.get("config", {}).get("on_error")
    return on_error["goto"] if isinstance(on_error, dict) else None


def declared_of(spec: dict[str, Any]) -> dict[str, list[str]]:
    """Node -> targets of its declared edges, END among them; a branch node without out-edges leads to the join."""
    declared: dict[str, list[str]] = {node["id"]: [] for node in spec["nodes"]}
    for edge in spec.get("edges", ()):
        if edge["from"] != "START":
            declared[edge["from"]].append(edge["to"])
    joins = {node["id"]: node["config"]["join"] for node in spec["nodes"] if node["type"] == "parallel"}
    regions = {name: branch_nodes(spec, name, joins, declared) for name in joins}
    dead_ends = [
        node["id"]
        for node in spec["nodes"]
        if not declared[node["id"]] and node["type"] not in ("router", "loop", "parallel")
    ]
    for name in dead_ends:
        around = [fork for fork, region in regions.items() if name in region]
        innermost = [fork for fork in around if not any(o in regions[fork] for o in around if o != fork)]
        declared[name] = [joins[fork] for fork in innermost or around]
    return declared


def branch_nodes(spec: dict[str, Any], fork: str, joins: dict[str, str], declared: dict[str, list[str]]) -> set[str]:
    """The nodes between the branch entries of a static `parallel` and its join; one inside leads on to its own join."""
    nodes = {node["id"]: node for node in spec["nodes"]}
    seen: set[str] = set()
    todo = targets_of(nodes[fork])
    while todo:
        name = todo.pop()
        if name not in seen and name not in (joins[fork], "END"):
            seen.add(name)
            todo += declared[name] + targets_of(nodes[name])
            todo += [joins[name]] if name in joins else []
    return seen


def forward_order(spec: dict[str, Any]) -> list[str]:
    """Reverse postorder of a depth-first search from the entry."""
    ways, seen, postorder = ways_of(spec), set(), []

    def visit(name: str) -> None:
        seen.add(name)
        for target in ways[name]:
            if target not in seen:
                visit(target)
        postorder.append(name)

    visit(spec["entry"])
    return [*reversed(postorder), *(name for name in ways if name not in seen)]


def after(ways: dict[str, list[str]], name: str) -> set[str]:
    """The nodes a token at `name` can get to; `name` itself when it lies on a cycle."""
    seen: set[str] = set()
    todo = list(ways[name])
    while todo:
        here = todo.pop()
        if here not in seen:
            seen.add(here)
            todo += ways[here]
    return seen


class Feeds:
    """Whether a path leads from a node to an edge that avoids the edge's target; kept, because the graph stays."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.ways = ways_of(spec)
        self.known: dict[tuple[str, str, str], bool] = {}

    def __call__(self, active: str, edge: tuple[str, str]) -> bool:
        key = (active, *edge)
        if key not in self.known:
            source, avoided = edge
            seen, todo = set(), [active]
            while todo:
                name = todo.pop()
                if name not in seen and name != avoided:
                    seen.add(name)
                    todo += self.ways[name]
            self.known[key] = source in seen
        return self.known[key]
