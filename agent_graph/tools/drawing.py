"""How a run went, as marks on its graph's drawing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import field

from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.ways import WayKey, node_of, taken
from agent_graph.errors import RunPruned
from agent_graph.store.base import Store
from agent_graph.tools.deps import Deps

PAGE = 500


@dataclass(slots=True)
class Marks:
    """Statuses by node id (running, waiting, completed, failed, cancelled), ways taken; by node, firings that ended
    and those of them that failed."""

    statuses: dict[str, str] = field(default_factory=dict)
    firings: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    taken: dict[WayKey, int] = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """{ways: [{from, to, name, times}], nodes: {id: {status, firings, failed}}}; ways nobody took are left out."""
        ways: list[JsonValue] = [
            {"from": source, "to": target, "name": name, "times": times}
            for (source, name, target), times in self.taken.items()
        ]
        nodes: JsonObject = {
            node: {"status": status, "firings": self.firings.get(node, 0), "failed": self.failed.get(node, 0)}
            for node, status in self.statuses.items()
            if node
        }
        return {"ways": ways, "nodes": nodes}


async def facts(store: Store, run_id: str, *, until_seq: int | None = None) -> AsyncIterator[e.Event]:
    """The run's events in order, up to and with `until_seq`."""
    first = 0
    while True:
        page = await store.runs.events(run_id, first_seq=first, limit=PAGE)
        for stored in page:
            if until_seq is not None and stored.seq > until_seq:
                return
            yield e.Event(stored.seq, stored.at_ms, e.from_json(stored.body))
        if len(page) < PAGE:
            return
        first = page[-1].seq + 1


async def colours(deps: Deps, run_id: str) -> Marks:
    """The marks of a run. Raises `RunNotFound`, `RunPruned`."""
    row = await deps.store.runs.get(run_id)
    if row.first_seq:
        raise RunPruned(f"the events of run {run_id} were pruned: how it went can be drawn no longer", run_id=run_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    marks = Marks()
    seen = [event.fact async for event in facts(deps.store, run_id)]
    for fact in seen:
        status = _status(fact)
        if status:
            node = node_of(graph, str(getattr(fact, "firing", "")))
            marks.statuses[node] = status
            if isinstance(fact, e.NodeFinished | e.NodeFailed):
                marks.firings[node] = marks.firings.get(node, 0) + 1
            if isinstance(fact, e.NodeFailed):
                marks.failed[node] = marks.failed.get(node, 0) + 1
    marks.taken = taken(graph, seen)
    return marks


def _status(fact: e.Fact) -> str:
    match fact:
        case e.NodeStarted() | e.ApprovalDecided() | e.TimerFired() | e.SignalReceived():
            return "running"
        case e.ApprovalOpened() | e.TimerSet() | e.SignalAwaited():
            return "waiting"
        case e.NodeFinished():
            return "completed"
        case e.NodeFailed():
            return "failed"
        case e.FiringCancelled():
            return "cancelled"
        case _:
            return ""
