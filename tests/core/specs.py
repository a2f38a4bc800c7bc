"""Short ways to write a spec, for the tests of the core."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from agent_graph.core.compile import Compiled, compile_graph
from agent_graph.core.issues import Issue


def llm(name: str, key: str = "", **config: Any) -> dict[str, Any]:
    return {
        "id": name,
        "type": "llm",
        "prompt": "{input}",
        "config": {**({"output_key": key} if key else {}), **config},
    }


def put(name: str, *paths: str) -> dict[str, Any]:
    operations = [{"op": "set", "path": path, "value": 1} for path in paths or (f"of_{name}",)]
    return {"id": name, "type": "state_transform", "config": {"operations": operations}}


def pass_(name: str) -> dict[str, Any]:
    return {"id": name, "type": "passthrough"}


def transform(name: str, *operations: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "type": "state_transform", "config": {"operations": list(operations)}}


def join(name: str, output: str = "", *inputs: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "join", "config": {"output": output, "inputs": list(inputs), **config}}


def router(name: str, *rules: list[str], default: list[str] | None = None, **config: Any) -> dict[str, Any]:
    found = [{"path": "k", "op": "eq", "value": place, "targets": rule} for place, rule in enumerate(rules)]
    body = {"rules": found, **({} if default is None else {"default": default}), **config}
    return {"id": name, "type": "router", "config": body}


def loop(name: str, entry: str, exit_: str, bound: int = 3, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "loop", "config": {"entry": entry, "exit": exit_, "max_iterations": bound, **config}}


def gate(name: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "human_approval", "config": {"prompt": "Go on?", **config}}


def parallel(name: str, join_at: str, *entries: str) -> dict[str, Any]:
    branches = [{"id": f"b{place}", "entry": entry} for place, entry in enumerate(entries)]
    return {"id": name, "type": "parallel", "config": {"branches": branches, "join": join_at}}


def edges(*ways: str) -> list[dict[str, Any]]:
    """``"a>b>c"`` is two edges."""
    found = []
    for way in ways:
        names = way.split(">")
        found += [{"from": a, "to": b} for a, b in pairwise(names)]
    return found


def spec(nodes: list[dict[str, Any]], *ways: str, **top: Any) -> dict[str, Any]:
    """A graph that starts at its first node."""
    return {"name": "g", "entry": nodes[0]["id"], "nodes": nodes, "edges": edges(*ways), **top}


def codes(raw: Any) -> list[tuple[str, str]]:
    """(code, pointer) of every issue."""
    return [(issue.code, issue.pointer) for issue in compile_graph(raw).issues]


def issues(raw: Any, code: str) -> list[Issue]:
    return [issue for issue in compile_graph(raw).issues if issue.code == code]


def compiled(raw: Any) -> Compiled:
    """What must be a graph."""
    found = compile_graph(raw)
    assert found.graph is not None, found.issues
    return found
