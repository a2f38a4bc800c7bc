"""The tree of frames: how those of a firing are opened, come to an end and are closed; it records nothing.

Engine.md 4. All of it follows from facts that are in the log anyway: an item's frame opens at the event that makes
room for it and closes at the last `node_finished` in it, so that an item costs no event beyond those of its nodes.
"""

from __future__ import annotations

from typing import Any

from agent_graph.core import early
from agent_graph.core.effects import FramesAnswer, Missing, OpenFrames
from agent_graph.core.events import WriteConflict
from agent_graph.core.firing import Firing, Owned, Part
from agent_graph.core.frames import Frame
from agent_graph.core.graph import END, Graph
from agent_graph.core.guarded import guarded
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.nodes import NODE_TYPES
from agent_graph.core.outcome import came_to
from agent_graph.core.places import admit
from agent_graph.core.run import Run, Wait
from agent_graph.core.view import View
from agent_graph.core.weights import most_held, most_of

# -- opening -------------------------------------------------------------------------------------------------------


def open_frames(run: Run, firing: Firing, *, at_ms: int) -> None:
    """The log says that what stands inside `firing` runs."""
    run.open.pop(firing.path, None)
    run.out.pop(firing.path, None)
    if firing.declared.config.timeout_ms is not None:
        run.waits[firing.path] = Wait(at_ms + firing.declared.config.timeout_ms)
    firing.owned = owned(run, firing)
    _go_on(run, firing, firing.owned)


def owned(run: Run, firing: Firing) -> Owned:
    """What a firing asked for when it had no answer yet: the same whenever it is asked."""
    asked = NODE_TYPES[firing.declared.type].step(firing.declared, View(firing, limits=run.limits), ())
    assert isinstance(asked, OpenFrames), "only owners open frames"
    graph = firing.frame.graph
    if asked.graph_version:
        return Owned(asked, graph.subgraphs[asked.graph_version])
    if asked.recursion:
        return Owned(asked, graph)
    state = firing.frame.state
    start = {slot: state.read(slot, firing.past) for slot in state.slots()}
    there: dict[Any, JsonValue] = {slot: value for slot, value in start.items() if not isinstance(value, Missing)}
    most = most_held({slot if isinstance(slot, str) else slot[1]: value for slot, value in there.items()})
    return Owned(asked, graph, there, most)


def frame_path(firing: Firing, item: int) -> str:
    """The beginning of the paths in the frame of an item: ``sub#1/``, ``map#2[3]/``."""
    return f"{firing.path}/" if firing.declared.type == "subgraph" else f"{firing.path}[{item}]/"


def new_frame(firing: Firing, mine: Owned, item: int) -> Frame:
    """A frame as it is before anything has happened in it."""
    value, asked = mine.asked.inputs[item], mine.asked
    region = asked.graph_version == "" and not asked.recursion
    run_input = firing.frame.run_input if region else value
    frame = Frame(mine.graph, frame_path(firing, item), run_input=run_input, owner=firing)
    frame.item = item
    state = frame.state
    state.base_current = value
    named: JsonObject = {name: one for name, one in zip(asked.names, (value, item), strict=True) if name}
    if region:
        frame.inside = mine.graph.topology.regions[firing.node].nodes
        state.base = dict(mine.start)
        state.base.update(named)
        state.tally.base = mine.start_bytes + most_held(named)
    else:
        state.base.update({**named, **spread(mine.graph, value)})
        state.tally.base = most_of(value) + most_held(named)
    return frame


def spread(graph: Graph, value: JsonValue) -> JsonObject:
    """The state an input starts with: an object's members, less those that hold what people decide."""
    if not isinstance(value, dict):
        return {}
    kept = guarded(graph)
    return {key: member for key, member in value.items() if key not in kept}


def _go_on(run: Run, firing: Firing, mine: Owned) -> None:
    """Open as many frames as there is room for; when none is left the owner has its answer."""
    width = mine.asked.width or firing.frame.graph.max_parallelism
    while not mine.over and len(mine.live) < width and mine.opened < len(mine.asked.inputs):
        _open_next(run, firing, mine)
    if not mine.live:
        run.waits.pop(firing.path, None)
        firing.answers.append(FramesAnswer(_collected(mine)))
        run.open[firing.path] = firing


def _open_next(run: Run, firing: Firing, mine: Owned) -> None:
    item = mine.opened
    mine.opened += 1
    mine.live.add(item)
    frame = new_frame(firing, mine, item)
    run.frames[frame.path] = frame
    wrong = _unfit(frame, mine)
    if wrong:
        fail(run, frame, wrong)
        return
    region = mine.graph.topology.regions.get(firing.node) if frame.inside >= 0 else None
    frame.enter(0 if region is None else region.entry)
    admit(run, frame)


def _unfit(frame: Frame, mine: Owned) -> JsonObject | None:
    """Why an input cannot be that of the graph."""
    if frame.inside >= 0 or not isinstance(frame.graph.input_schema, dict):
        return None
    from agent_graph.core.schema import violations  # jsonschema is slow to import: only where a schema is

    found = violations(frame.run_input, frame.graph.input_schema)
    if not found:
        return None
    message = f"the input does not fit the input_schema of graph {frame.graph.name}: {found[0]}"
    details: JsonObject = {"graph_id": frame.graph.name, "violations": [*found]}
    return {"code": "INPUT_INVALID", "message": message, "class": "invalid", "details": details}


# -- ending --------------------------------------------------------------------------------------------------------


def is_doomed(run: Run, frame: Frame) -> bool:
    """Whether a frame around this one ends with all that is in it."""
    if run.ending:
        return True
    while (outer := _around(frame)) is not None:
        if outer.path in run.closing or early.ended(outer) or _is_lost(frame.owner):
            return True
        frame = outer
    return False


def _is_lost(owner: Firing | None) -> bool:
    """Whether it is in a static branch that is being ended."""
    if owner is None:
        return False
    graph = owner.frame.graph
    return any(graph.extents[fork][number][1] >> owner.node & 1 for fork, number in owner.frame.lost)


def _around(frame: Frame) -> Frame | None:
    return frame.around or (None if frame.owner is None else frame.owner.frame)


def why_it_ends(frame: Frame) -> str:
    """Why what runs in a closing frame is cancelled."""
    if frame.failure is not None:
        return "the frame failed"
    if frame.terminating:
        return "the run was ended"
    owner = frame.owner
    mine = None if owner is None else owner.owned
    if mine is not None and mine.late:
        return "the time was over"
    return "another frame failed" if mine is not None and mine.failure is not None else "the others were enough"


def fail(run: Run, frame: Frame, error: JsonObject) -> None:
    """A failure reaches a frame; the first one counts."""
    if frame.failure is None:
        frame.failure = error
        if frame.owner is not None:
            run.closing[frame.path] = None


def settle(run: Run, frame: Frame) -> None:
    """A firing of `frame` is through: when it was the last one, the frame comes to its end."""
    while (part := frame.part) is not None and not frame.busy:
        _drained(run, frame, part)
        frame = part.around
    owner = frame.owner
    if owner is None or owner.owned is None:
        return
    if frame.busy:
        if frame.terminating:
            run.closing[frame.path] = None
        return
    mine = owner.owned
    if is_doomed(run, frame):
        _close(run, frame, owner, mine)
        return
    if not mine.over:
        if frame.failure is None:
            _come_to(run, frame, owner, mine)
        if frame.failure is not None:
            if not frame.failing:
                return  # until the log says so
            _put_up_with(frame.failure, frame.item, mine)
        mine.stopped = frame.terminating and mine.failure is None
    _close(run, frame, owner, mine)
    _let_go(run, owner, mine)
    _go_on(run, owner, mine)


def _drained(run: Run, region: Frame, part: Part) -> None:
    """Nothing runs in a region any more: it is gone, and what was counted in it is not forgotten."""
    run.let_go(region.path)
    part.around.regions.open.pop(region.path, None)
    for node in region.nth:
        part.around.nth.setdefault(node, 0)
    region.state.forget(region.path, kept=part.kept)


def time_over(run: Run, owner: Firing, mine: Owned) -> None:
    """What runs inside a firing has had its time: it fails, or what is not there yet counts as failed."""
    run.waits.pop(owner.path, None)
    mine.late = True
    limit = owner.declared.config.timeout_ms
    error: JsonObject = {
        "code": "FRAMES_TIMEOUT", "message": f"what runs inside it took longer than {limit} ms", "class": "timeout",
        "details": {"timeout_ms": limit, "done": len(mine.results), "of": len(mine.asked.inputs)},
    }  # fmt: skip
    for item in range(len(mine.asked.inputs)):
        if item not in mine.results:
            _put_up_with(error, item, mine)
    _let_go(run, owner, mine)


def forget(run: Run, owner: Firing) -> None:
    """An owner is cancelled: what is left of its frames, in which nothing runs any more, goes with it."""
    if owner.owned is not None:
        for item in owner.owned.live:
            run.let_go(frame_path(owner, item))


def _let_go(run: Run, owner: Firing, mine: Owned) -> None:
    """End what is still open where nobody waits for it."""
    if mine.over:
        run.closing.update(dict.fromkeys(frame_path(owner, item) for item in sorted(mine.live)))


def _come_to(run: Run, frame: Frame, owner: Firing, mine: Owned) -> None:
    """Nothing is left to do in a frame: take its result, or have it fail."""
    came = _result(run, frame, owner)
    if isinstance(came, dict):
        fail(run, frame, {**came, "class": "invalid"})
        return
    end = frame.path + END
    run.met += [WriteConflict(end, one.key, one.winner, one.losers) for one in frame.end_conflicts()]
    mine.results[frame.item] = came[0]


def _result(run: Run, frame: Frame, owner: Firing) -> tuple[JsonValue, ...] | JsonObject:
    taken: dict[str, str] = getattr(owner.declared.config, "output", {})
    return came_to(frame, limits=run.limits, taken=taken)


def _put_up_with(failure: JsonObject, item: int, mine: Owned) -> None:
    """What the `fail_policy` says of a frame that failed."""
    if mine.asked.policy == "fail_fast":
        mine.failure = mine.failure or failure
        return
    said: JsonObject = {name: failure[name] for name in ("code", "message")}
    mine.first = mine.first or said
    mine.results[item] = {"error": said} if mine.asked.policy == "collect_partial" else None
    mine.failed.add(item)


def put_up_with(run: Run, firing: Firing) -> None:
    """A firing is done: note which of its items failed all the same."""
    place, mine = firing.path.rpartition("#")[0], firing.owned
    run.partly.pop(place, None)
    if mine is not None and mine.first is not None:
        count, total = len(mine.failed), len(mine.asked.inputs)
        said = f"{count} of {total} items failed (first: {mine.first['code']} {mine.first['message']})"
        run.partly[place] = {"code": "ITEMS_FAILED", "message": said, "failed": count, "of": total}


def _close(run: Run, frame: Frame, owner: Firing, mine: Owned) -> None:
    run.let_go(frame.path)
    mine.live.discard(frame.item)
    if frame.inside >= 0:  # nodes of the owner's own graph: they were reached
        for node in frame.nth:
            owner.frame.nth.setdefault(node, 0)


def _collected(mine: Owned) -> list[JsonValue]:
    """The results in the order of the inputs; of a fan-out that ends early those of the items that were enough."""
    kept = mine.results.keys() - mine.failed if mine.asked.enough is not None else mine.results.keys()
    return [mine.results[item] for item in sorted(kept)]
