"""What came of a firing or a run: a step's answer as facts, the state and the result; pure reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agent_graph.core import events as e
from agent_graph.core import growth, statepath, weights
from agent_graph.core.effects import MISSING, Done, MaybeJson, Missing, Write
from agent_graph.core.firing import Firing
from agent_graph.core.frames import Frame
from agent_graph.core.graph import END, END_RUN, Graph, Node
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value, compact
from agent_graph.core.limits import Limits
from agent_graph.core.run import Run
from agent_graph.errors import InputTooDeep, NodeFailure

SILENT: Final = frozenset({"router", "passthrough", "state_transform", "loop", "timer"})
"""Node types without an output of their own."""


def finished(firing: Firing, done: Done, attempt: int) -> list[e.Fact]:
    """The facts of a firing that is done."""
    path = firing.path
    facts: list[e.Fact] = [e.Warned(path, w.code, w.message, w.details) for w in done.warnings]
    mine = firing.owned
    if mine is not None and mine.asked.enough is not None:
        items = tuple(sorted(mine.results.keys() - mine.failed))
        facts.append(e.ItemsClosed(path, items, short=len(items) < mine.asked.enough))
    if done.exhausted is not None:
        facts.append(e.LoopExhausted(path, done.exhausted))
    if done.transition:
        facts.append(e.RouteTaken(path, done.transition, ways_on(firing.frame.graph, firing.node, done.targets)))
    output, current = _maybe(done.output), _maybe(done.current)
    return [*facts, e.NodeFinished(path, done.writes, output, current, done.targets, done.inputs, attempt)]


def check_bounds(run: Run, firing: Firing, done: Done) -> None:
    """Raises `NodeFailure` VALUE_TOO_LARGE when a value, or the state with all of them, is beyond the run's limits."""
    limits, frame = run.limits, firing.frame
    writes = frame.written(firing, done)
    more = frame.state.tally.foresee(writes, lambda write: _checked(write, limits))
    limit = limits.state_bytes
    size = growth.beyond(frame.state, firing.past, limit=limit, writes=writes, more=more)
    if size:
        message = f"the run's state would be larger than {limit} bytes (state_bytes)"
        raise NodeFailure("VALUE_TOO_LARGE", message, limit=limit, bytes=size)


def to_done(fact: e.NodeFinished) -> Done:
    """What a step said, as the log kept it."""
    return Done(
        writes=fact.writes, output=fact.output[0] if fact.output else MISSING,
        current=fact.current[0] if fact.current else MISSING,
        targets=fact.targets, inputs=fact.inputs,
    )  # fmt: skip


def state(run: Run) -> JsonObject:
    """The state: of a completed run all that ended, merged once; of any other the fold of its finished firings."""
    if run.frame is None:
        return {}
    frame = run.frame
    return frame.state.whole(frame.merged_end().past if run.lifecycle == "completed" else frame.state.everything())


def final_state(run: Run) -> tuple[JsonValue, ...]:
    """The result as one element, or nothing when the run has none."""
    return () if run.frame is None or run.lifecycle != "completed" else result(run.frame)


def result(frame: Frame) -> tuple[JsonValue, ...]:
    """What a frame comes to if it ends now, as one element; nothing when that was never written.

    Of what runs over data it is what the node said at which it ends, null when it failed and the branch went on.
    """
    if frame.owner is None or frame.inside < 0:
        return _at(frame, output_path(frame))
    exit_node = frame.graph.nodes[frame.graph.topology.leaves_by(frame.owner.node)]
    if not speaks(exit_node):
        return _at(frame, "")
    said = frame.state.read(("outputs", exit_node.id), frame.merged_end().past)
    return (None,) if isinstance(said, Missing) else (said,)


def speaks(node: Node) -> bool:
    """Whether a node has an output (engine.md 3): a join without inputs brings branches together and says nothing."""
    return bool(node.config.inputs) if node.type == "join" else node.type not in SILENT


def _at(frame: Frame, path: str) -> tuple[JsonValue, ...]:
    """What a frame that ended holds at a path, "" being the current value."""
    token = frame.merged_end()
    if not path:
        return (frame.state.current(token.tips),)
    return _maybe(statepath.read(frame.state.root(path, token.past), path))


def came_to(
    frame: Frame, *, limits: Limits, taken: Mapping[str, str] | None = None
) -> tuple[JsonValue, ...] | JsonObject:
    """What a frame in which nothing is active any more came to, as one element; or the error it ends with.

    With `taken` it is an object: by key, what the frame's state holds at a path.
    """
    size = growth.beyond(frame.state, frame.merged_end().past, limit=limits.state_bytes)
    if size:  # no single branch was: what they wrote meets here
        message = f"the branches that ended leave a state larger than {limits.state_bytes} bytes (state_bytes)"
        details: JsonObject = {"limit": limits.state_bytes, "bytes": size}
        return {"code": "VALUE_TOO_LARGE", "message": message, "details": details}
    path = next((path for path in taken.values() if not _at(frame, path)), "") if taken else output_path(frame)
    if taken and not path:
        return ({key: _at(frame, wanted)[0] for key, wanted in taken.items()},)
    if not taken and (found := result(frame)):
        return found
    message = f"the run ended and nothing was written at its output_key {path!r}"
    return {"code": "OUTPUT_KEY_NOT_WRITTEN", "message": message, "path": path}


def output_path(frame: Frame) -> str:
    """Where the result of a frame that ended as it did is; "" is the current value."""
    nodes, output = frame.graph.nodes, frame.graph.output
    if not output.by_end:
        return output.path
    ended = [(depth, node) for node, depth in frame.ended_at.items() if nodes[node].id in output.by_end]
    return output.by_end[nodes[max(ended)[1]].id] if ended else ""


def errors(run: Run) -> JsonObject:
    """By node id, {code, message} of nodes whose latest firing failed while the run went on, or some of its items."""
    if run.frame is None:
        return {}
    frame = run.frame
    past = frame.merged_end().past if run.lifecycle == "completed" else frame.state.everything()
    found = frame.state.root("errors", past)["errors"]
    assert isinstance(found, dict), "a book"
    return {**run.partly, **found}


def ways_on(graph: Graph, node: int, targets: tuple[str, ...] | None) -> tuple[str, ...]:
    """Where tokens go: to the chosen targets, or along the declared out-edges when none are."""
    if targets is not None:
        return targets or (END,)
    topology = graph.topology
    source = topology.leaves_by(node)
    ways: Sequence[str] = [graph.nodes[topology.edges[edge].target].id for edge in topology.out_declared[source]]
    ends = (END,) if topology.ends[source] else ()
    return (*ways, *ends, *((END_RUN,) if topology.ends_run_behind(node) else ()))


def _maybe(value: MaybeJson) -> tuple[JsonValue, ...]:
    return () if value is MISSING else (value,)  # type: ignore[return-value]  # not MISSING


def _checked(write: Write, limits: Limits) -> int:
    """`weights.most_of` a value that is within the limits of size and depth; a short text is not measured."""
    value, limit, depth = write.value, limits.value_bytes, limits.json_depth
    nested = isinstance(value, weights.NESTED)
    if not nested and (most := weights.most_of(value)) <= limit:
        return most
    text, what = compact(value), "its output" if write.path[0] == "outputs" else ".".join(write.path)
    size = weights.bytes_of(text)
    if size > limit:
        message = f"{what} would be larger than {limit} bytes (value_bytes)"
        raise NodeFailure("VALUE_TOO_LARGE", message, limit=limit, bytes=size)
    if nested and text.count("[") + text.count("{") > depth:  # else it cannot be; brackets in texts count too
        try:
            check_value(value, max_depth=depth)
        except InputTooDeep:
            message = f"{what} would be nested deeper than {depth} levels (json_depth)"
            raise NodeFailure("VALUE_TOO_LARGE", message, limit=depth) from None
    return weights.most_in(text)
