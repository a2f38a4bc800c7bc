"""What the nodes of a random shape do: prompts, rules, operations and joins over a small stock of state keys."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.properties.shapes import Shape

REDUCERS = {"log": "append", "total": "add", "facts": "merge", "last": "last_write_wins"}
SHARED = ("p", "q", "doc.x", "doc.y")
"""Keys without a reducer that any node may write: the compiler refuses what provably meets."""
INPUT: dict[str, Any] = {
    "topic": "tides", "q": 1, "total": 2, "log": ["start"], "doc": {"x": 0, "z": [1, {"w": 2}]}, "a.b": "flat",
}  # fmt: skip
WORDS = ("yes", "no", "deep", "fair")
"""Every scripted answer starts with one of them, so rules on answers do choose."""


OPERATIONS = ("set", "set", "increment", "append", "merge", "copy", "select", "compare", "format", "operand")


class Filling:
    """Fills in the configs of one shape; `sharing` is how readily nodes write keys that others write too."""

    def __init__(self, shape: Shape, rng: Random) -> None:
        self.shape = shape
        self.rng = rng
        self.sharing = rng.choice((0.0, 0.05, 0.2, 0.5) if shape.wild else (0.0, 0.0, 0.1, 0.3))
        self.deleting = rng.choice((0.1, 0.5, 0.8, 0.9))
        self.reducers = {key: REDUCERS[key] for key in REDUCERS if rng.random() < 0.7}
        self.own: dict[str, str] = {}
        """Node -> the key that it alone sets."""

    def fill(self) -> None:
        for name, kind in self.shape.kinds.items():
            getattr(self, f"fill_{kind}")(name, self.shape.config[name])
            if kind != "human_approval" and "on_error" not in self.shape.config[name] and self.rng.random() < 0.06:
                self.shape.config[name]["on_error"] = "continue"

    def written_key(self, *, operand: str = "") -> str:
        """A key for a value of the kind `operand` (a reducer's operand), or any."""
        fitting = [key for key, reducer in self.reducers.items() if reducer in (operand, "last_write_wins")]
        if fitting and self.rng.random() < 0.45:
            return self.rng.choice(fitting)
        return self.rng.choice(SHARED) if self.rng.random() < self.sharing else ""

    def read_key(self) -> str:
        own = list(self.own.values())
        return self.rng.choice([*REDUCERS, *SHARED, "topic", *(own or ["p"]), *(own or ["p"])])

    def own_key(self, name: str) -> str:
        return self.own.setdefault(name, f"k_{name}")

    def node_name(self) -> str:
        return self.rng.choice(list(self.shape.kinds))

    def fill_passthrough(self, name: str, config: dict[str, Any]) -> None:
        """Nothing to say."""

    def fill_llm(self, name: str, config: dict[str, Any]) -> None:
        places = [f"{{outputs.{self.node_name()}?}}" for _ in range(self.rng.randint(0, 2))]
        places += [f"{{{self.read_key()}?}}" for _ in range(self.rng.randint(0, 3))]
        config["prompt"] = f"{name} {{input|json}} " + " ".join(places)
        if self.rng.random() < 0.1:
            config["input_key"] = "topic"
        if self.rng.random() < 0.15:
            config["json_mode"] = True
            config["output_key"] = self.written_key(operand="merge") or self.own_key(name)
        elif self.rng.random() < 0.7:
            config["output_key"] = self.written_key(operand="append") or self.own_key(name)

    def fill_state_transform(self, name: str, config: dict[str, Any]) -> None:
        operations = [self.operation(name) for _ in range(self.rng.choice((1, 1, 2, 3)))]
        if name in self.shape.counters:
            operations.insert(0, {"op": "increment", "path": self.shape.counters[name]})
        if self.rng.random() < self.deleting:
            operations.append({"op": "delete", "path": self.deleted(name)})
        config["operations"] = operations

    def deleted(self, name: str) -> str:
        own = [key for owner, key in self.own.items() if owner != name]
        stock = [*(own or [self.own_key(name)]), self.own_key(name), self.own_key(name), "topic", "doc.z.0"]
        if self.rng.random() < self.sharing:
            return self.rng.choice([*self.reducers, *SHARED])
        return self.rng.choice(stock)

    def operation(self, name: str) -> dict[str, Any]:
        rng = self.rng
        pick = rng.choice(
            ("set", "set", "increment", "append", "merge", "copy", "select", "compare", "format", "operand")
        )
        match pick:
            case "operand" if self.reducers:
                return self.operand(rng.choice(list(self.reducers)))
            case "increment":
                return {"op": "increment", "path": f"i_{name}", "value": rng.choice((1, 2, 0.5))}
            case "append":
                return {"op": "append", "path": f"a_{name}", "value": rng.choice((1, "x", [2]))}
            case "merge":
                return {
                    "op": rng.choice(("merge", "merge_object")),
                    "path": f"o_{name}",
                    "value": {rng.choice("uv"): 1},
                }
            case "copy":
                source = rng.choice(("topic", "topic", "topic", "doc.z", "a.b", self.read_key()))
                return {"op": "copy", "path": self.own_key(name), "from": source}
            case "select":
                keys = [self.read_key() for _ in range(2)]
                return {"op": "select", "path": f"s_{name}", "values": keys}
            case "compare":
                return {"op": "compare", "path": self.read_key(), "value": 1, "into": f"e_{name}"}
            case "format":
                return {"op": "format", "path": f"f_{name}", "template": f"{name}:{{{self.read_key()}?}}"}
        key = self.written_key() or self.own_key(name)
        return {"op": "set", "path": key, "value": rng.choice((0, 1, "yes", None, {"n": name}, [name]))}

    def operand(self, key: str) -> dict[str, Any]:
        """A contribution to a key with a reducer, or now and then what overwrites it."""
        value: Any = {"append": ["e"], "add": 2, "merge": {"u": {"v": 1}}, "last_write_wins": "yes"}[REDUCERS[key]]
        if self.rng.random() < self.sharing / 2:
            return {"op": "set", "path": key, "value": value, "replace": True}
        if REDUCERS[key] == "add":
            return {"op": "increment", "path": key, "value": self.rng.randint(1, 3)}
        if REDUCERS[key] == "append":
            return {"op": "append", "path": key, "value": self.rng.choice(("e", ["l"]))}
        return {"op": "set", "path": key, "value": value}

    def fill_router(self, name: str, config: dict[str, Any]) -> None:
        for rule in config["rules"]:
            if len(rule) == 1:
                rule.update(self.predicate())

    def predicate(self) -> dict[str, Any]:
        rng = self.rng
        answer = rng.choice((f"outputs.{self.node_name()}", self.read_key()))
        number = rng.choice(("total", "q", "doc.x", *(f"i_{name}" for name in self.shape.counters)))
        simple: dict[str, Any] = rng.choice((
            {"path": answer, "op": "contains", "value": rng.choice(WORDS)},
            {"path": self.read_key(), "op": rng.choice(("exists", "not_exists", "empty", "not_empty"))},
            {"path": number, "op": rng.choice(("lt", "gte")), "value": 3},
            {"path": "last", "op": "eq", "value": "yes"},
            {"path": "log", "op": "regex", "value": "[ae]"},
        ))  # fmt: skip
        return {"not": simple} if rng.random() < 0.15 else simple

    def fill_loop(self, name: str, config: dict[str, Any]) -> None:
        if self.rng.random() < 0.5:
            config["until"] = self.predicate()
        if self.rng.random() < 0.4:
            config["counter_key"] = f"count_{name}"

    def fill_parallel(self, name: str, config: dict[str, Any]) -> None:
        for branch in config["branches"]:
            if self.rng.random() < 0.5:
                branch["input"] = self.rng.choice(("topic", "doc", "a.b", "doc.z.1.w"))

    def fill_join(self, name: str, config: dict[str, Any]) -> None:
        rng = self.rng
        if rng.random() < 0.15:
            return
        talkers = [node for node, kind in self.shape.kinds.items() if kind in ("llm", "join", "human_approval")]
        near = [source for source, target in self.shape.edges if target == name and source in talkers]
        pool = [*(near * 3), *talkers, *(self.own.values()), "topic", *self.reducers]
        config["inputs"] = list(dict.fromkeys(rng.choice(pool) for _ in range(rng.randint(1, 4))))
        config["inputs"].append("topic")  # something is always there
        config["inputs"] = list(dict.fromkeys(config["inputs"]))
        config["mode"] = rng.choice((
            "collect_array", "collect_array", "collect_object", "merge_objects", "first_non_null", "all_success",
            "quorum", "dedupe_by_identity", "contradiction_matrix", "minority_report",
        ))  # fmt: skip
        config["on_missing"] = rng.choice(("null", "null", "skip"))
        if rng.random() < 0.2:
            config["allow_stale"] = True
        if rng.random() < 0.7:
            config["output"] = self.written_key() or self.own_key(name)

    def fill_human_approval(self, name: str, config: dict[str, Any]) -> None:
        config["prompt"] = f"{name}: {{input|json}}?"
        if self.rng.random() < 0.3:
            config["subject_key"] = self.rng.choice(("topic", "doc"))
        if self.rng.random() < 0.7:
            config["output_key"] = self.own_key(name)
        if self.rng.random() < 0.2:
            config["allowed_decisions"] = ["approve", "reject"]
            config.pop("on_request_changes", None)
