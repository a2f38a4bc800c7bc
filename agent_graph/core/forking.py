"""Makes the log of a fork: a run that begins with another's events, and goes on from there by itself.

Nothing of the origin is performed again: its facts are taken over as they are, up to a point, and with them the answers
to calls that were under way there. What people decided stays decided, each decision at its subject, unless something is
changed or whoever forks could not have decided there: then they are asked anew before anything goes on. What nobody had
decided yet is asked from the beginning. Performs nothing, and changes nothing of the origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.core.following import follow
from agent_graph.core.fork_changes import LISTED, Changed, Changes, check_decisions, graphs_around, node_of, state_of
from agent_graph.core.fork_outputs import Past
from agent_graph.core.fork_questions import Forker, questions, went_in
from agent_graph.core.forks import asking, changed_frame, opens_the_same, owners_in
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph
from agent_graph.core.nesting import whole
from agent_graph.core.run import Run, approval_id
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.errors import ForkDiverges, ForkNotAllowed, ForkPointInvalid, ForkPointNotFound, InvalidArgument

ABOUT_GATES: Final = (
    e.ApprovalOpened, e.ApprovalVoted, e.ApprovalReminded, e.ApprovalDecided, e.ApprovalExpired, e.ApprovalWithdrawn,
)  # fmt: skip
ANSWERS: Final = (e.ModelAnswered, e.CacheHit, e.ToolCalled, e.ToolAnswered, e.EvidenceChecked)
"""What is still taken over of calls that were under way."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a fork begins: after `count` events, before the firing `before` if that was asked for."""

    count: int
    before: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """A fork that can be stored: its graph, its whole log and the fold of it."""

    graph: Graph
    log: tuple[e.Event, ...]
    run: Run


def before(log: Sequence[e.Event], name: str, *, nth: int = 0) -> Point:
    """The point before the `nth` firing of a node, counted from 1 in the order in which they began, 0 being the latest;
    or before the firing of that path. Raises `ForkPointNotFound`."""
    first: dict[str, int] = {}
    for place, event in enumerate(log):
        path = getattr(event.fact, "firing", "")
        if path and "#" in path:
            first.setdefault(path, place)
    if name in first:
        return Point(first[name], name)
    own = [path for path in first if node_of(path) == name]
    if 0 <= nth <= len(own) and own:
        return Point(first[own[nth - 1]], own[nth - 1])
    known = list(dict.fromkeys(map(node_of, first)))
    said = f"began {len(own)} time(s)" if own else f"never began; there are {', '.join(known[:LISTED]) or 'none'}"
    raise ForkPointNotFound(f"{name!r} {said}", before=name, nth=nth, firings=own[:LISTED])


def failed(log: Sequence[e.Event]) -> Point:
    """The point before the firing that failed the run. Raises `ForkPointInvalid` where none did."""
    error: Any = next((one.fact.error for one in reversed(log) if isinstance(one.fact, e.RunFailed)), None)
    if error is None:
        raise ForkPointInvalid("the run has not failed; say from where: before a node, or at an event")
    if not error.get("node_path"):
        message = f"the run failed at no node ({error['code']}); say from where: before a node, or at an event"
        raise ForkPointInvalid(message, error=error)
    return before(log, str(error["node_path"]))


def at(log: Sequence[e.Event], seq: int) -> Point:
    """The point after an event. Raises `ForkPointNotFound`."""
    if not 0 <= seq < len(log):
        raise ForkPointNotFound(f"the run has {len(log)} events, the last has seq {len(log) - 1}", at=seq)
    return Point(seq + 1)


def fork(
    graph: Graph, log: Sequence[e.Event], point: Point, *, origin: Graph, forker: Forker, changes: Changes, now_ms: int
) -> Made:
    """The fork of a run of `origin` with that log; it goes on as a run of `graph`: `origin`, or another version.

    Raises `ForkPointInvalid` where the run was about to end; `ForkDiverges` where `graph` does not go the recorded way
    up to there; `ForkNotAllowed`, and what `Changes.made` raises, for changes.
    """
    there = _folded(origin, log[: point.count])
    prefix = _undecided_left_out(log[: point.count], there)
    if graph.version != origin.version:
        _check_shared(graph, origin, log[: point.count], there)
    went = went_in(log, point.count, origin.version)
    other = went != graph.version
    changed = changes.made(graph, there, Past(log[: point.count]))
    prefix += _under_way(log[point.count :], there, changed, other=other)
    placed = [one.fact for one in log[point.count :] if isinstance(one.fact, e.GatePlaced)]
    prefix += [e.Event(0, there.at_ms, fact) for fact in placed]
    _check_placed(graph, [*there.barriers, *(fact.node for fact in placed)])
    asks = questions(
        log, point.count, there, forker=forker, changed=changed, version=graph.version if other else ""
    )  # fmt: skip
    own = e.RunForked(
        there.run_id, point.count - 1, point.before, changed.put, changed.gone, changed.models, changed.model,
        changed.outputs, went if other else "", forker.budgets, forker.policy,
        tuple(ask.to_json() for ask in asks), forker.principal or forker.started_as, forker.via, changed.frame,
    )  # fmt: skip
    facts = _renamed(prefix, there, origin, graph, forker, seq=point.count - 1)
    return _made(graph, facts, own, now_ms=max(now_ms, there.at_ms))


def _folded(graph: Graph, log: Sequence[e.Event]) -> Run:
    """The run at the point. Raises `ForkPointInvalid` where it is about to end: then it goes on nowhere."""
    run, last = new_run(), -1
    for event in log:
        evolve(graph, run, event)
        if not (run.terminal or run.ending):
            last = event.seq
    if run.terminal or run.ending:
        message = f"there the run is about to end already; the last event from which it goes on has seq {last}"
        raise ForkPointInvalid(message, latest=last)
    return run


def _check_shared(graph: Graph, origin: Graph, log: Sequence[e.Event], there: Run) -> None:
    """Raises `ForkDiverges` unless the other version goes the recorded way, asking the same: what it shares with the
    origin is all that it may take over."""
    own = follow(origin, log)
    done = follow(replace(graph, budgets=origin.budgets), log, like=own)
    where = done.divergence.firing if done.divergence is not None else ""
    if done.divergence is None:
        calls = [path for place, (path, call) in done.calls.items() if own.calls.get(place) != (path, call)]
        where = calls[0] if calls else ""
        if not calls:
            return
    message = f"the other version leaves the recorded way at {where or 'its beginning'}; fork before that, or earlier"
    raise ForkDiverges(message, node_path=where, run_id=there.run_id)


# -- what is taken over --------------------------------------------------------------------------------------------


def _undecided_left_out(log: Sequence[e.Event], there: Run) -> list[e.Event]:
    """The events without those about gates that nobody had decided: each opens anew, with nobody's vote."""
    pending = {gate.approval_id for gate in there.open_approvals}
    return [one for one in log if not (isinstance(one.fact, ABOUT_GATES) and one.fact.approval_id in pending)]


def _under_way(later: Iterable[e.Event], there: Run, changed: Changed, *, other: bool) -> list[e.Event]:
    """The answers that calls under way got later: they were asked at the point, and are paid for. None where what is
    asked may be another thing."""
    if other or changed.put or changed.gone:
        return []
    called = {
        firing.path: firing.attempt for firing in there.running
        if firing.attempt and firing.declared.type == "llm" and not changed.touches(firing)
    }  # fmt: skip
    found: list[e.Event] = []
    for event in later:
        fact = event.fact
        path = getattr(fact, "firing", "")
        if path not in called or isinstance(fact, e.BudgetGranted | e.BudgetSettled | e.WriteConflict):
            continue
        if isinstance(fact, ANSWERS) and fact.attempt == called[path]:
            found.append(e.Event(0, there.at_ms, fact))
        else:
            del called[path]
    return found


def _check_placed(graph: Graph, nodes: Iterable[str]) -> None:
    """Raises `ForkNotAllowed` where a gate was placed before a node that the other version does not have."""
    known = {node.id for inner in whole(graph) for node in inner.nodes}
    for node in nodes:
        if node not in known:
            message = f"a gate was placed before {node!r}, which the other version does not have: nobody would be asked"
            raise ForkNotAllowed(message, node_id=node)


def _renamed(
    prefix: Sequence[e.Event], there: Run, origin: Graph, graph: Graph, forker: Forker, *, seq: int
) -> Iterator[tuple[int, e.Fact]]:
    """The facts as the fork's own: its id instead of the origin's, and the ids that are drawn from it."""
    names: dict[str, str] = {}
    for event in prefix:
        fact = event.fact
        if isinstance(fact, e.RunAccepted):
            fact = replace(
                fact, run_id=forker.run_id, graph_id=graph.name, graph_version=graph.version,
                thread_id=forker.thread_id or fact.thread_id,
                started_by=forker.started_by, principal=forker.principal, started_as=forker.started_as,
                budgets=fact.budgets or origin.budgets, forked_from={"run_id": there.run_id, "seq": seq},
            )  # fmt: skip
        elif isinstance(fact, e.ApprovalOpened):
            names[fact.approval_id] = approval_id(forker.run_id, fact.firing, fact.round)
        if isinstance(fact, ABOUT_GATES):
            fact = replace(fact, approval_id=names[fact.approval_id])
        yield event.at_ms, fact


def _made(graph: Graph, facts: Iterable[tuple[int, e.Fact]], own: e.RunForked, *, now_ms: int) -> Made:
    run, log = new_run(), []

    def record(at_ms: int, fact: e.Fact) -> None:
        event = e.Event(run.seq, at_ms, fact)
        frame = changed_frame(run, fact) if isinstance(fact, e.RunForked) else None
        was = {} if frame is None else state_of(frame)
        evolve(graph, run, event)
        if frame is not None:  # earlier forks count too: another version may have had no gate there
            check_decisions(graphs_around(frame), was, state_of(frame))
            _check_owners(run, frame)
        log.append(event)

    for at_ms, fact in facts:
        record(at_ms, fact)
    record(now_ms, own)
    assert run.fork is not None, "it has just been forked"
    for asked in asking(run, run.fork):
        record(now_ms, asked)  # who has to decide sees it as soon as the fork is there
    return Made(graph, tuple(log), run)


def _check_owners(run: Run, frame: Frame) -> None:
    """Raises `InvalidArgument` where something runs in inner frames that it would not have opened so."""
    for firing in owners_in(run, frame):
        if not opens_the_same(run, firing):
            message = (
                f"patch: what runs inside {firing.path} was begun with what would be changed; fork before it, or leave"
                " that as it is"
            )
            raise InvalidArgument(message, argument="patch", node_path=firing.path)
