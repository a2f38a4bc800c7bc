"""Makes a failing graph smaller by leaving things out for as long as it still fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Spec = dict[str, Any]


def shrink(spec: Spec, fails: Callable[[Spec], bool], *, most: int = 1500) -> Spec:
    """A smaller spec for which `fails` still holds; it asks at most `most` times."""
    asked, progress = 0, True
    while progress and asked < most:
        progress = False
        for smaller in candidates(spec):
            asked += 1
            if asked > most:
                break
            if fails(smaller):
                spec, progress = smaller, True
                break
    return spec


def candidates(spec: Spec) -> Iterator[Spec]:
    """Every spec that lacks one node, edge, reducer, rule, operation, target or setting; nodes first."""
    for node in spec["nodes"]:
        if node["id"] != spec["entry"]:
            yield without_node(spec, node["id"])
            yield short_cut(spec, node["id"])
    for name in ("edges", "nodes"):
        for index in range(len(spec[name])):
            if name == "edges":
                yield {**spec, name: spec[name][:index] + spec[name][index + 1 :]}
            else:
                for smaller in smaller_configs(spec[name][index]):
                    yield {**spec, name: [*spec[name][:index], smaller, *spec[name][index + 1 :]]}
    for key in spec.get("reducers", {}):
        yield {**spec, "reducers": {k: v for k, v in spec["reducers"].items() if k != key}}


def without_node(spec: Spec, name: str) -> Spec:
    """Leave out a node, its edges and every target that names it."""
    copy: Spec = json.loads(json.dumps(spec))
    copy["nodes"] = [node for node in copy["nodes"] if node["id"] != name]
    copy["edges"] = [edge for edge in copy["edges"] if name not in (edge["from"], edge["to"])]
    for node in copy["nodes"]:
        config = node.get("config", {})
        for rule in config.get("rules", ()):
            rule["targets"] = [target for target in rule["targets"] if target != name] or ["END"]
        if "branches" in config:
            config["branches"] = [branch for branch in config["branches"] if branch["entry"] != name]
        for field in ("default", "on_reject", "on_request_changes"):
            if isinstance(config.get(field), list):
                config[field] = [target for target in config[field] if target != name]
    return copy


def short_cut(spec: Spec, name: str) -> Spec:
    """Leave out a node and lead what came to it to where it led first."""
    onward = next((edge["to"] for edge in spec["edges"] if edge["from"] == name and edge["to"] != name), "END")
    text = json.dumps({**spec, "nodes": [node for node in spec["nodes"] if node["id"] != name]})
    copy: Spec = json.loads(text.replace(f'"{name}"', f'"{onward}"'))
    seen: dict[tuple[str, str], Spec] = {}
    for edge in copy["edges"]:
        if edge["from"] != onward or edge in spec["edges"]:
            seen.setdefault((edge["from"], edge["to"]), edge)
    copy["edges"] = list(seen.values())
    return copy


def smaller_configs(node: Spec) -> Iterator[Spec]:
    """The node as a passthrough where it only passes on, and its config with one thing less."""
    config = node.get("config", {})
    if node["type"] in ("llm", "state_transform", "join"):
        yield {"id": node["id"], "type": "passthrough", "config": {}}
    for name, value in config.items():
        if name not in ("entry", "exit", "join", "prompt", "operations"):
            yield {**node, "config": {k: v for k, v in config.items() if k != name}}
        if isinstance(value, list) and len(value) > 1:
            for index in range(len(value)):
                yield {**node, "config": {**config, name: value[:index] + value[index + 1 :]}}
