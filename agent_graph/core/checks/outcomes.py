"""The run's result and the nodes' products: OUTPUT_NEVER_WRITTEN, OUTPUT_NEVER_READ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_graph.core.checks.keys import Path, plain
from agent_graph.core.checks.shape import Shape
from agent_graph.core.fields import closest
from agent_graph.core.issues import Issue, Severity
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.spec import ParsedNode

_MADE: Final = frozenset({"llm", "join", "tool", "http", "graphql", "subgraph", "parallel"})
"""The types whose product is the reason why they run."""


def unwritten_output(shape: Shape) -> Iterator[Issue]:
    """OUTPUT_NEVER_WRITTEN: nothing writes the declared `output_key`, so no run can succeed."""
    text = shape.output.path
    path = plain(text)
    if not shape.output.declared or not path or shape.keys.writers(path):
        return
    if path[0] == "outputs" or shape.keys.brought(path):
        return
    names = [".".join(one) for one in shape.keys.at]
    near = closest(text, names[:2000])
    only = names[0] if len(names) == 1 else ""
    hint = f'; did you mean "{near}"?' if near else f"; there is {_listed(names)}" if names else ""
    why = "a run that ends without it fails"
    message = f"`output_key` names `{text}` as the result, but no node writes it, and {why}{hint}"
    fix: tuple[JsonObject, ...] = ()
    if near or only:
        fix = ({"op": "replace", "path": "/output_key", "value": near or only},)
    severity: Severity = "error" if shape.keys.closed else "warning"
    yield Issue("OUTPUT_NEVER_WRITTEN", message, severity=severity, pointer="/output_key", fix=fix)


def unread_outputs(shape: Shape) -> Iterator[Issue]:
    """OUTPUT_NEVER_READ: what a node makes under a name of its own, and nobody asks for."""
    makers = [
        place for place, node in enumerate(shape.nodes)
        if node.type in _MADE and shape.reached(place) and _product(node)
    ]  # fmt: skip
    if not makers:
        return
    asked, within = _asked(shape)
    for place in makers:
        node = shape.nodes[place]
        path = plain(_product(node))
        if node.id in asked or path in within or any(path[:length] in asked for length in range(1, len(path) + 1)):
            continue
        assert isinstance(node, ParsedNode)
        name = "output" if getattr(node.config, "output", "") else "output_key"
        message = f'"{node.id}" writes `{_product(node)}`, and no node reads it, nor is it the result'
        yield Issue("OUTPUT_NEVER_READ", message, severity="info", pointer=node.pointer("/" + name), node_id=node.id)


def _product(node: object) -> str:
    config = getattr(node, "config", None)
    output = getattr(config, "output", "")
    return (output if isinstance(output, str) else "") or str(getattr(config, "output_key", ""))


def _asked(shape: Shape) -> tuple[set[str | Path], set[Path]]:
    """The ids of nodes whose output is asked for and the paths that are read; and all that these paths lie in."""
    results = [shape.output.path, *shape.output.by_end.values()]
    asked: set[str | Path] = {plain(path) for path in results if path}
    for node, row in zip(shape.nodes, shape.reads, strict=True):
        for read in row:
            path = plain(read.path)
            asked.add(path)
            if path[0] == "outputs" or (node.type == "join" and read.path in shape.index):
                asked.add(".".join(path[1:]) if path[0] == "outputs" else read.path)
                asked |= {".".join(path[1:end]) for end in range(2, len(path))}
    within = {path[:length] for path in asked if isinstance(path, tuple) for length in range(1, len(path) + 1)}
    return asked, within


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:5]) + (" and more" if len(names) > 5 else "")
