"""A snapshot: a run's fold as bytes, so that resuming need not read the whole log; holds nothing the log does not."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import fields
from typing import Any

from agent_graph.core import early, forks, packed, places
from agent_graph.core.answers import from_body, to_body
from agent_graph.core.budgets import Ledger
from agent_graph.core.contributions import Conflict, Entry, Writer
from agent_graph.core.effects import MISSING
from agent_graph.core.events import from_json, to_json
from agent_graph.core.firing import Firing, Lost, Part, Token
from agent_graph.core.frame_tree import new_frame, owned
from agent_graph.core.frames import Frame
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import of_record, recorded
from agent_graph.core.merge import State
from agent_graph.core.run import Gate, Mutex, Run, Usage, Wait
from agent_graph.core.transfer import give
from agent_graph.core.weights import Slot

FORMAT = 20
_PLAIN = (
    "run_id", "graph_version", "input", "thread_id", "model", "started_by", "seq", "at_ms", "lifecycle", "error",
    "cancel_reason", "accepted_at_ms", "started_at_ms", "finished_at_ms", "places",
    "partly", "reminders", "started_as", "principal",
)  # fmt: skip
_FIRING = tuple(f.name for f in fields(Firing) if f.name not in ("frame", "owned"))


def dump(run: Run) -> bytes:
    """The fold as UTF-8 JSON. What a driver has in hand is put back: a loaded run offers it anew."""
    body: dict[str, Any] = {"format": FORMAT, **{name: getattr(run, name) for name in _PLAIN}}
    body["limits"] = recorded(run.limits)
    body["open"] = [*run.out, *run.open]
    body["queue"] = [*run.queue]
    body["pausing"], body["mail"] = run.pausing, run.mail
    body["mutexes"] = [[name, mutex.holders, mutex.waiting] for name, mutex in run.mutexes.items()]
    body["waits"] = [[path, wait.due_ms, wait.name] for path, wait in run.waits.items()]
    body["until"] = run.until
    body["gates"] = [{f.name: getattr(gate, f.name) for f in fields(Gate)} for gate in run.gates.values()]
    body["usage"] = {f.name: getattr(run.usage, f.name) for f in fields(Usage)}
    body["told"] = [[name, [to_json(fact) for fact in facts]] for name, facts in run.told.items()]
    body["ledger"] = None if run.ledger is None else run.ledger.to_json()
    body["fork"] = None if run.fork is None else forks.to_json(run.fork)
    body["closing"] = [*run.closing]
    body["losing"] = [*run.losing]
    body["met"] = [to_json(fact) for fact in run.met]
    body["barriers"] = [to_json(fact) for fact in run.barriers.values()]
    body["frames"] = [_frame_out(frame) for frame in run.frames.values()]
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return packed.pack(text, run.input).encode()  # an input's pictures are in the state too, and in every item's


def load(graph: Graph, data: bytes) -> Run:
    """The run `dump` wrote. ValueError when the bytes are no such snapshot: then the log is to be folded anew."""
    try:
        return _run_in(graph, json.loads(packed.unpack(data.decode())))
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a snapshot of a run: {type(error).__name__}: {error}") from error


def _run_in(graph: Graph, body: Any) -> Run:
    if body["format"] != FORMAT:
        raise ValueError(f"snapshot format {body['format']!r} is not {FORMAT}")
    run = Run(**{name: body[name] for name in _PLAIN})
    run.limits = of_record(body["limits"])
    run.usage = Usage(**body["usage"])
    for item in body["gates"]:
        gate = Gate(**{**item, **{name: tuple(item[name]) for name in ("audience", "allowed_decisions", "channels")}})
        run.gates[gate.approval_id] = gate
    run.told = {name: [from_json(fact) for fact in facts] for name, facts in body["told"]}
    run.ledger = None if body["ledger"] is None else Ledger.from_json(body["ledger"])
    run.fork = None if body["fork"] is None else forks.from_json(body["fork"])
    run.closing = dict.fromkeys(body["closing"])
    run.losing = dict.fromkeys(body["losing"])
    run.barriers = {fact["node"]: from_json(fact) for fact in body["barriers"]}  # type: ignore[misc]  # as above
    run.met = [from_json(fact) for fact in body["met"]]  # type: ignore[misc]  # nothing else is kept there
    for item in body["frames"]:
        _frame_in(run, _frame_of(graph, run, item), item)
    for frame in run.frames.values():
        frame.look_again()
    by_path = {firing.path: firing for firing in run.running}
    run.open = {path: by_path[path] for path in body["open"]}
    run.pausing, run.mail = dict(body["pausing"]), dict(body["mail"])
    run.mutexes = {name: Mutex(holders, waiting) for name, holders, waiting in body["mutexes"]}
    run.waits = {path: Wait(due_ms, name) for path, due_ms, name in body["waits"]}
    run.until = dict(body["until"])
    for firing in filter(places.is_placed, run.open.values()):
        places.count(run, firing)
    run.queue = OrderedDict((path, by_path[path]) for path in body["queue"])
    return run


# -- frames --------------------------------------------------------------------------------------------------------


def _frame_out(frame: Frame) -> JsonObject:
    body: dict[str, Any] = {
        "owner": frame.owner and frame.owner.path,
        "item": frame.item,
        "failure": frame.failure,
        "failing": frame.failing,
        "lost": [
            [*key, lost.error, *_token_out(Token(lost.past, lost.tips, lost.depth)), lost.mark]
            for key, lost in frame.lost.items()
        ],
        "terminating": frame.terminating,
        "part": _part_out(frame),
        "state": None if frame.part else _state_out(frame.state, _at_first(frame)),
        "tokens": [[edge, [_token_out(token) for token in queue]] for edge, queue in frame.tokens.items()],
        "running": [_firing_out(firing) for firing in frame.running.values()],
        "nth": list(frame.nth.items()),
        "depths": list(frame.depths.items()),
        "last": [[node, _token_out(token)] for node, token in frame.last.items()],
        "join_seen": list(frame.join_seen.items()),
        "ended": [_token_out(token) for token in frame.ended],
        "ended_at": list(frame.ended_at.items()),
        "given": [[node, _token_out(token)] for node, token in frame.given.items()],
    }
    return body


def _at_first(frame: Frame) -> State:
    """The state as it was when the frame was opened: what is there still is not written again."""
    if frame.owner is None or frame.owner.owned is None:
        return State(frame.graph.reducers)
    return new_frame(frame.owner, frame.owner.owned, frame.item).state


def _frame_of(graph: Graph, run: Run, body: Any) -> Frame:
    """A frame as it was when it was opened; its owner's has been read by now."""
    if body["part"] is not None:
        return _region_in(run, body["part"])
    if body["owner"] is None:
        return Frame(graph, run_input=run.input)
    owner = run.firing(body["owner"])
    if owner is None or owner.owned is None:
        raise LookupError(f"nothing owns frame {body['item']} of {body['owner']}")
    owner.owned.live.add(body["item"])
    return new_frame(owner, owner.owned, body["item"])


def _frame_in(run: Run, frame: Frame, body: Any) -> None:
    run.frames[frame.path] = frame
    frame.failure, frame.failing, frame.terminating = body["failure"], body["failing"], body["terminating"]
    if frame.part is None:
        _state_in(frame.state, body["state"])
    for edge, tokens in body["tokens"]:
        for token in tokens:
            frame.put(edge, _token_in(token))
    for node, token in body["given"]:
        give(frame, node, _token_in(token))
    for item in body["running"]:
        _firing_in(run, frame, dict(item))
    frame.nth = dict(body["nth"])
    frame.depths = dict(body["depths"])
    frame.last = {node: _token_in(token) for node, token in body["last"]}
    frame.join_seen.update(body["join_seen"])
    frame.ended = [_token_in(token) for token in body["ended"]]
    frame.ended_at = dict(body["ended_at"])
    for fork, number, error, *token, mark in body["lost"]:
        frame.lost[fork, number] = Lost(error, *_token_in(token), mark)


def _part_out(frame: Frame) -> list[Any] | None:
    part = frame.part
    if part is None:
        return None
    topology = frame.graph.topology
    fork = next(fork for fork, region in topology.early.items() if region is part.region)
    stands = frame.path in part.around.regions.open and not _rejoined(frame, part)
    arrived = [[edge, _token_out(token)] for edge, token in part.arrived.items()]
    return [
        part.around.path,
        frame.path,
        fork,
        _token_out(part.forked),
        str(part.rank),
        arrived,
        part.closed,
        stands,
        f"{part.kept:x}",
    ]


def _rejoined(frame: Frame, part: Part) -> bool:
    """The join of a region is through, though something runs in it still."""
    return part.closed and part.region.exit not in frame.running


def _region_in(run: Run, body: Any) -> Frame:
    around = run.frames[body[0]]
    frame = Frame(around.graph, body[1], run_input=around.run_input)
    part = Part(around, around.graph.topology.early[body[2]], _token_in(body[3]), int(body[4]))
    early.lay(frame, part)
    run.parts[frame.path] = frame
    part.arrived, part.closed = {edge: _token_in(token) for edge, token in body[5]}, body[6]
    part.kept = int(body[8], 16)
    if not body[7]:
        early.home(frame, part.region.exit)
    return frame


def _token_out(token: Token) -> list[Any]:
    return [f"{token.past:x}", list(token.tips), token.depth]


def _token_in(body: Any) -> Token:
    return Token(int(body[0], 16), tuple(body[1]), body[2])


def _firing_out(firing: Firing) -> JsonObject:
    body: dict[str, Any] = {name: getattr(firing, name) for name in _FIRING}
    body["past"] = f"{firing.past:x}"
    body["conflicts"] = [[c.key, c.winner, list(c.losers)] for c in firing.conflicts]
    body["answers"] = [to_body(answer) for answer in firing.answers]
    mine = firing.owned
    if mine is not None:
        body["owned"] = [
            mine.opened,
            list(mine.results.items()),
            sorted(mine.failed),
            mine.failure,
            mine.late,
            mine.stopped,
            mine.first,
        ]
    return body


def _firing_in(run: Run, frame: Frame, body: Any) -> None:
    has = body.pop("owned", None)
    body["past"] = int(body["past"], 16)
    body["tips"] = tuple(body["tips"])
    body["closed_by"] = None if body["closed_by"] is None else tuple(body["closed_by"])
    body["conflicts"] = tuple(Conflict(key, winner, tuple(losers)) for key, winner, losers in body["conflicts"])
    body["answers"] = [from_body(*item) for item in body["answers"]]
    body["calling"] = body["calling"] and tuple(body["calling"])
    firing = Firing(frame=frame, **body)
    frame.running[firing.node] = firing
    frame.running_set |= 1 << firing.node
    frame.active |= 1 << firing.node
    if has is not None:
        mine = firing.owned = owned(run, firing)
        mine.opened, results, failed, mine.failure, mine.late, mine.stopped, mine.first = has
        mine.results, mine.failed = dict(results), {*failed}


# -- state ---------------------------------------------------------------------------------------------------------


def _state_out(state: State, first: State) -> JsonObject:
    writers = [
        [number, w.node, list(w.order), w.path, f"{w.past:x}", w.saw, [] if w.current is MISSING else [w.current],
         [_slot_out(slot) for slot in w.slots]]
        for number, w in state.writers.items()
    ]  # fmt: skip
    body: dict[str, Any] = {
        "base": [
            [_slot_out(slot), value] for slot, value in state.base.items() if first.base.get(slot, MISSING) is not value
        ],
        "gone": [_slot_out(slot) for slot in first.base if slot not in state.base],
        "base_current": [] if first.base_current is state.base_current else [state.base_current],
        "base_writers": [
            [_slot_out(slot), [[list(path), list(who)] for path, who in known.items()]]
            for slot, known in state.base_writers.items()
        ],
        "journal": [
            [_slot_out(slot), [[list(n.order), n.writer, n.op, list(n.rest), n.value] for n in entries]]
            for slot, entries in state.journal.items()
        ],
        "writers": writers,
        "offset": state.offset,
        "next": state.next,
        "forgotten": f"{state.forgotten:x}",
        "most": [state.tally.base, state.tally.written],
    }
    return body


def _state_in(state: State, body: Any) -> None:
    for slot in body["gone"]:
        del state.base[_slot_in(slot)]
    state.base.update((_slot_in(slot), value) for slot, value in body["base"])
    if body["base_current"]:
        (state.base_current,) = body["base_current"]
    for slot, known in body["base_writers"]:
        state.base_writers[_slot_in(slot)] = {tuple(path): (who[0], who[1]) for path, who in known}
    for slot, entries in body["journal"]:
        state.journal[_slot_in(slot)] = [
            Entry((o[0], o[1], o[2], o[3]), writer, op, tuple(rest), value) for o, writer, op, rest, value in entries
        ]
    for number, node, order, path, past, saw, current, slots in body["writers"]:
        value = current[0] if current else MISSING
        slots_in = tuple(_slot_in(slot) for slot in slots)
        state.writers[number] = Writer(node, (order[0], order[1], order[2]), path, int(past, 16), saw, value, slots_in)
    state.offset, state.next, state.forgotten = body["offset"], body["next"], int(body["forgotten"], 16)
    state.tally.base, state.tally.written = body["most"]


def _slot_out(slot: Slot) -> Any:
    return slot if isinstance(slot, str) else list(slot)


def _slot_in(body: Any) -> Slot:
    return body if isinstance(body, str) else (body[0], body[1])
