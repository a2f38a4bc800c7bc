"""Short forms of spec v2 for tests: one function per node type, ``"a>b c>END"`` for edges."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def spec(*nodes: Json, edges: str = "", entry: str = "", name: str = "case", **top: Any) -> Json:
    """A graph; `entry` is the first node unless another is named."""
    body: Json = {"name": name, "entry": entry or nodes[0]["id"], "nodes": list(nodes)}
    body["edges"] = [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges.split()]
    return body | top


def node(node_id: str, kind: str, **config: Any) -> Json:
    return {"id": node_id, "type": kind, "config": config}


def passthrough(node_id: str) -> Json:
    return {"id": node_id, "type": "passthrough"}


def llm(node_id: str, prompt: str = "", **config: Any) -> Json:
    """A model call; its prompt is its id when none is given."""
    return node(node_id, "llm", prompt=prompt or node_id, **config)


def transform(node_id: str, *operations: Json) -> Json:
    return node(node_id, "state_transform", operations=list(operations))


def put(node_id: str, **values: Any) -> Json:
    """A transform that sets each of `values`."""
    return transform(node_id, *({"op": "set", "path": path, "value": value} for path, value in values.items()))


def router(node_id: str, *rules: Json, default: list[str] | None = None, **config: Any) -> Json:
    more = {} if default is None else {"default": default}
    return node(node_id, "router", rules=list(rules), **more, **config)


def rule(path: str, op: str, value: Any, *targets: str) -> Json:
    return {"path": path, "op": op, "value": value, "targets": list(targets)}


def join(node_id: str, inputs: list[str] | None = None, output: str = "", mode: str = "", **config: Any) -> Json:
    given = {"inputs": inputs, "output": output, "mode": mode}
    return node(node_id, "join", **{key: value for key, value in given.items() if value}, **config)


def subgraph(node_id: str, graph_name: str, **config: Any) -> Json:
    return node(node_id, "subgraph", graph_name=graph_name, **config)


def gate(node_id: str, **config: Any) -> Json:
    return node(node_id, "human_approval", **({"prompt": f"may {node_id} go on?"} | config))
