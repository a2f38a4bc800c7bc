"""Compares two recorded runs, firing by firing: where they part first, what each did there, what it took; runs nothing.

Firings are matched by their paths, which name node, count and item. What a firing read and wrote is compared by digest,
without the times at which people decided. Runs of different graphs are compared by the same paths: what only one of the
graphs has is said to be that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.core.difference import difference
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest, json_equal
from agent_graph.core.nesting import whole
from agent_graph.core.record import canonical_record

ANSWERS = (e.ModelAnswered, e.CacheHit, e.AnswerGiven)
COMPARED = ("status", "depth", "input", "output", "route", "error_code")


@dataclass(slots=True)
class Step:
    """One firing as a run's log tells it. Digests are "" where it did not come so far."""

    path: str
    rank: int
    """Its place in the order in which firings began."""
    status: str = "unfinished"
    depth: int | None = None
    input: str = ""
    output: str = ""
    route: list[str] | None = None
    error_code: str = ""
    attempts: int = 0
    models: list[str] = field(default_factory=list)
    calls: int = 0
    tokens: int | None = 0
    """Of prompts and answers; None where a host did not say."""
    began_ms: int = 0
    took_ms: int | None = None
    taken_over: bool = False
    """It began in the events that a fork has of its origin."""

    def to_json(self) -> JsonObject:
        """What is told of one side."""
        models: list[JsonValue] = [*dict.fromkeys(self.models)]
        body: JsonObject = {
            "status": self.status, "attempts": self.attempts, "models": models, "llm_calls": self.calls,
            "tokens": "unknown" if self.tokens is None else self.tokens, "took_ms": self.took_ms,
            "route": None if self.route is None else [*self.route],
        }  # fmt: skip
        if self.error_code:
            body["error_code"] = self.error_code
        if self.taken_over:
            body["taken_over"] = True
        return body


@dataclass(frozen=True, slots=True)
class Course:
    """A run's way: its firings by path, in the order in which they began, and its canonical record."""

    graph: Graph
    steps: dict[str, Step]
    record: JsonObject


def course(graph: Graph, log: Sequence[e.Event]) -> Course:
    """The way of a run with that whole log."""
    record: Any = canonical_record(graph, log)
    steps: dict[str, Step] = {}
    for event in log:
        if isinstance(event.fact, e.RunForked):
            for step in steps.values():
                step.taken_over = True
        _note(steps, event)
    for told in record["firings"]:
        step = steps[told["path"]]
        step.depth, step.input, step.output, step.route = told["depth"], told["input"], told["output"], told["route"]
    return Course(graph, steps, record)


def _note(steps: dict[str, Step], event: e.Event) -> None:
    fact = event.fact
    path = getattr(fact, "firing", "")
    if isinstance(fact, e.NodeStarted) and path not in steps:
        steps[path] = Step(path, len(steps), began_ms=event.at_ms)
    step = steps.get(path)
    if step is None:
        return
    match fact:
        case e.NodeStarted():
            step.attempts += 1
        case e.ModelAnswered() | e.CacheHit() | e.AnswerGiven():
            _note_answer(step, fact)
        case e.NodeFinished():
            step.status, step.took_ms = "finished", event.at_ms - step.began_ms
        case e.NodeFailed():
            step.status, step.took_ms = "failed", event.at_ms - step.began_ms
            step.error_code = str(fact.error.get("code", ""))
        case e.FiringCancelled():
            step.status, step.took_ms = "cancelled", event.at_ms - step.began_ms
        case _:
            pass


def _note_answer(step: Step, fact: e.ModelAnswered | e.CacheHit | e.AnswerGiven) -> None:
    answer: Any = fact.answer
    step.models.append(str(answer.get("performer") or answer.get("model") or "unknown"))
    if not isinstance(fact, e.ModelAnswered):
        return  # nobody was paid
    step.calls += 1
    counted = answer.get("prompt_tokens"), answer.get("completion_tokens")
    known = None not in counted and step.tokens is not None
    step.tokens = step.tokens + sum(counted) if known else None


def compare(left: Course, right: Course, *, most: int) -> JsonObject:
    """{same, first_divergence?, nodes, counts, state_patch, ...} of two runs; at most `most` firings are told, those
    that differ first."""
    differ: list[tuple[int, JsonObject]] = []
    alike: list[JsonObject] = []
    for path in dict.fromkeys((*left.steps, *right.steps)):
        one, other = left.steps.get(path), right.steps.get(path)
        what = list(_differences(one, other))
        row = _row(left, right, path, what)
        if what:
            rank = min(step.rank for step in (one, other) if step is not None)
            differ.append((rank, row))
        else:
            alike.append(row)
    differ.sort(key=lambda pair: pair[0])
    rows = [row for _, row in differ]
    told = [*rows, *alike]
    patch, complete = difference(left.record["state"], right.record["state"])
    same_record = digest(left.record) == digest(right.record)
    body: JsonObject = {
        "same": same_record, "first_divergence": _first(rows, same=same_record, left=left, right=right),
        "counts": {"firings": len(told), "differ": len(rows)}, "nodes": [*told[:most]], "truncated": len(told) > most,
        "state_patch": [*patch], "state_patch_complete": complete,
        "same_result": json_equal(left.record["final_state"], right.record["final_state"]),
        "same_graph": left.graph.name == right.graph.name, "same_version": left.graph.version == right.graph.version,
    }  # fmt: skip
    return body


def _differences(one: Step | None, other: Step | None) -> Iterator[str]:
    if one is None or other is None:
        yield "only_b" if one is None else "only_a"
        return
    for name in COMPARED:
        if getattr(one, name) != getattr(other, name):
            yield name


def _row(left: Course, right: Course, path: str, what: list[str]) -> JsonObject:
    node_id = path.rpartition("/")[2].partition("#")[0]
    body: JsonObject = {"node_path": path, "node_id": node_id, "differs": [*what]}
    for name, side in (("a", left), ("b", right)):
        step = side.steps.get(path)
        body[name] = None if step is None else step.to_json()
        if not any(node.id == node_id for graph in whole(side.graph) for node in graph.nodes):
            body["no_such_node"] = name
    return body


def _first(rows: list[JsonObject], *, same: bool, left: Course, right: Course) -> JsonObject | None:
    """The firing at which the two part; or what else of their records differs, where no firing does."""
    if rows:
        return {name: rows[0][name] for name in ("node_path", "node_id", "differs")}
    if same:
        return None
    members = [name for name in left.record if digest(left.record[name]) != digest(right.record[name])]
    return {"node_path": "", "node_id": "", "differs": [*members]}
