"""The canonical record of a run (engine.md 9): the same for the same answers, whatever the timing, crash or machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from agent_graph.core import events as e
from agent_graph.core import statepath
from agent_graph.core.budgets import ON_BUDGET
from agent_graph.core.effects import MISSING, EvidenceAnswer, Path
from agent_graph.core.firing import Firing
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.outcome import final_state, state
from agent_graph.core.run import Gate
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.core.view import View

DECISION: Final = {"decision", "note", "by", "via", "at_ms"}
"""The members of the record a gate leaves in the state (spec-v2)."""
OF_ITS_TIME: Final = {"used", "attempt"}
"""What a refusal says of the moment it was made at."""
CHANGES: Final = {"put", "gone", "frame", "models", "model", "outputs"}
"""What a fork changes of the run it goes on with; one that changes nothing is the same run."""
Place: TypeAlias = tuple["str | int", ...]
_NUMBERS: Final = re.compile(r"(?<=[#\[])(\d+)(?=[/\]])")


def canonical_record(graph: Graph, log: Iterable[e.Event]) -> JsonObject:
    """Fold `log` and tell what a run is compared by.

    {status, error_code, final_state, state, firings, approvals, choices}. A firing is {path, depth, input, output,
    route}, in the order of frames and in a frame of (depth, node index, nth); `input` digests what it read (the current
    value and the paths its type declares), `output` what it wrote, `route` where its tokens went; `evidence`, where
    it cites, names the witnesses. When a gate was decided is no part of it, although the decision in the state says so.
    Choices are in the order of frames, too.
    """
    run = new_run()
    firings: list[tuple[tuple[Place, int, int, int], JsonObject]] = []
    choices: list[tuple[tuple[Place, str], JsonValue]] = []
    had: set[tuple[str, str]] = set()
    for event in log:
        fact = _timeless(event.fact) if run.gates else event.fact
        if isinstance(fact, e.NodeFinished) or (isinstance(fact, e.NodeFailed) and fact.targets is not None):
            firing = run.firing(fact.firing)
            if firing is not None:
                order = (place_of(firing.frame.path), firing.depth, firing.node, firing.nth)
                firings.append((order, _firing(firing, fact)))
                if firing.lane < 0:  # in which order the tokens it makes follow one another
                    merged: JsonObject = {"type": "merged_each", "firing": firing.path}
                    choices.append(((order[0], firing.declared.id), merged))
        elif isinstance(fact, e.CacheHit | e.BudgetGranted) or (
            isinstance(fact, e.TimerFired)
            and fact.firing in {**run.waits, **run.until}  # a pause belongs to an attempt
        ):
            had.add((fact.type, fact.firing))
        elif (choice := _choice(fact)) is not None:
            choices.append(choice)
        evolve(graph, run, e.Event(event.seq, 0, fact))
    gates = sorted(run.gates.values(), key=lambda gate: (gate.firing, gate.round))
    return {
        "status": run.lifecycle,
        "error_code": (run.error or {}).get("code"),
        "final_state": list(final_state(run)),
        "state": state(run),
        "firings": [body for _, body in sorted(firings, key=lambda pair: pair[0])],
        "approvals": [_gate(gate) for gate in gates],
        "choices": [
            *(choice for _, choice in sorted(choices, key=lambda pair: pair[0])),
            *_listed(had),
        ],
    }


def _choice(fact: e.Fact) -> tuple[tuple[Place, str], JsonValue] | None:
    """What a fact says of time that a replay obeys, and its place in their order."""
    match fact:
        case e.FrameFailed() | e.BranchFailed():
            error = {key: value for key, value in fact.error.items() if key != "attempts"}
            name = f"{fact.parallel} {fact.branch}" if isinstance(fact, e.BranchFailed) else ""
            return (place_of(fact.frame), name), {**e.to_json(fact), "error": error}
        case e.BudgetRefused():
            lasting: JsonObject = {name: value for name, value in e.to_json(fact).items() if name not in OF_ITS_TIME}
            return (_frame_of(fact.firing), ""), lasting
        case e.FiringCancelled() | e.ItemsClosed() | e.JoinClosed():
            return (_frame_of(fact.firing), ""), e.to_json(fact)
        case e.RunForked():
            changed: JsonObject = {name: value for name, value in e.to_json(fact).items() if name in CHANGES}
            return (((), ""), {"type": fact.type, **changed}) if changed else None
        case e.MutexGranted():
            return ((), fact.name), e.to_json(fact)
        case e.SignalReceived():  # whether somebody waited for it already is timing
            return ((), fact.name), {"type": fact.type, "name": fact.name, "payload": fact.payload}
        case _:
            return None


def _listed(had: Iterable[tuple[str, str]]) -> list[JsonValue]:
    return [{"type": kind, "firing": path} for kind, path in sorted(had)]


def _frame_of(firing: str) -> Place:
    return place_of(firing[: firing.rfind("/") + 1])


def place_of(frame: str) -> Place:
    """The place of a frame's path in the order of frames: by name, by count and by item."""
    return tuple(int(part) if part.isdigit() else part for part in _NUMBERS.split(frame))


def _timeless(fact: e.Fact) -> e.Fact:
    """The fact with 0 wherever a gate's decision says when it was made, however deep and in however many copies."""
    if not isinstance(fact, e.NodeFinished):
        return fact
    body: dict[str, Any] = e.to_json(fact)
    whole: JsonValue = {key: list(value) if isinstance(value, tuple) else value for key, value in body.items()}
    for segments in _decisions(whole):
        whole = statepath.put(whole, (*segments, "at_ms"), 0)
    assert isinstance(whole, dict), "as above"
    return e.from_json(whole)


def _decisions(value: JsonValue) -> Iterator[Path]:
    """Where in `value` the records of gates' decisions are."""
    todo: list[tuple[Path, JsonValue]] = [((), value)]
    while todo:
        segments, here = todo.pop()
        if isinstance(here, dict):
            if here.keys() == DECISION:
                yield segments
            todo += [((*segments, key), item) for key, item in here.items()]
        elif isinstance(here, list):
            todo += [((*segments, str(place)), item) for place, item in enumerate(here)]


def _gate(gate: Gate) -> JsonObject:
    """A gate with its votes, without their times; one on a budget is on what was used by then: that is of its time."""
    timed = {"at_ms", "subject_digest"} if gate.firing == ON_BUDGET else {"at_ms"}
    votes: list[JsonValue] = [{key: value for key, value in vote.items() if key not in timed} for vote in gate.votes]
    return {"path": gate.firing, "round": gate.round, "status": gate.status, "votes": votes}


def _firing(firing: Firing, fact: e.NodeFinished | e.NodeFailed) -> JsonObject:
    """What a firing came to; of one that failed while the run went on, what ``errors.<node>`` holds."""
    body: JsonObject = e.to_json(fact)
    if isinstance(fact, e.NodeFailed):
        body = {"error": {name: fact.error[name] for name in ("code", "message")}}
    written: JsonObject = {key: body[key] for key in ("writes", "output", "current", "inputs", "error") if key in body}
    witnesses = cited_by(firing)
    return {
        "path": firing.path,
        "depth": firing.depth,
        "input": digest(seen(firing)),
        "output": digest(written),
        "route": None if fact.targets is None else list(fact.targets),
        **({"evidence": list(witnesses)} if witnesses else {}),
    }


def cited_by(firing: Firing) -> tuple[JsonObject, ...]:
    """[{witness_id, digest, locator_digest}] of what the answer that was taken cites."""
    heard = [answer for answer in firing.answers if isinstance(answer, EvidenceAnswer)]
    return heard[-1].witnesses if heard and not heard[-1].problems else ()


def seen(firing: Firing) -> JsonObject:
    """What a firing can have read: the current value and every path its type declares (absent ones left out)."""
    node, view = firing.declared, View(firing)
    read: JsonObject = {}
    for place in NODE_TYPES[node.type].reads(node.config):
        value = view.join_input(place.path) if node.type == "join" else view.read(place.path)
        if value is not MISSING:
            read[place.path] = value  # type: ignore[assignment]  # not MISSING
    return {"current": view.current, "reads": read}
