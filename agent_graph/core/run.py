"""A run: the fold of its events. It owns what it holds and never changes a value that belongs to an event."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import field
from itertools import chain
from typing import Final

from agent_graph.core.budgets import ON_BUDGET, Ledger
from agent_graph.core.classes import dataclass
from agent_graph.core.events import Fact, GatePlaced, WriteConflict
from agent_graph.core.firing import Firing
from agent_graph.core.frames import Frame
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.core.limits import DEFAULTS, Limits

PLACED: Final = frozenset({"llm"})
"""Node types whose effect holds one of the run's `max_parallelism` places."""
ON_FORK: Final = "on_fork"
"""In place of a firing's path: a fork asks whether it may go on."""
OF_THE_RUN: Final = frozenset({ON_BUDGET, ON_FORK})
"""Gates that stand for no firing: the run itself asks."""
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class Gate:
    """An approval as the log tells it: what was asked, who voted, how it ended."""

    approval_id: str
    firing: str
    node_id: str
    round: int
    prompt: str
    subject: JsonValue
    subject_digest: str
    audience: tuple[str, ...]
    allowed_decisions: tuple[str, ...]
    quorum: int
    channels: tuple[str, ...]
    opened_at_ms: int
    expires_at_ms: int
    self_approval: bool = True
    """Whoever started the run may decide."""
    subject_schema: JsonObject = field(default_factory=dict)
    """What an edited subject has to fit, {} = anything."""
    edited: bool = False
    """`subject` is no longer what was asked about; that is `original`."""
    original: JsonValue = None
    closed_at_ms: int | None = None
    status: str = "pending"
    """pending, approved, rejected, changes_requested, expired or withdrawn."""
    votes: list[JsonObject] = field(default_factory=list)
    decision: JsonObject | None = None


@dataclass(slots=True)
class Wait:
    """What a firing waits for beside people: the clock, or a message of that `name` and the clock at the latest."""

    due_ms: int | None
    """When the clock ends it, in milliseconds UTC."""
    name: str = ""


@dataclass(slots=True)
class Mutex:
    """Who holds a name, and who stands in line for it; paths of firings."""

    holders: list[str] = field(default_factory=list)
    """One, and after it those inside its frames to which it lends the name."""
    waiting: list[str] = field(default_factory=list)

    @property
    def following(self) -> str:
        """Who can hold it now, "" for nobody."""
        if not self.holders:
            return self.waiting[0] if self.waiting else ""
        last = self.holders[-1]
        return next((path for path in self.waiting if path.startswith((f"{last}/", f"{last}["))), "")


@dataclass(slots=True)
class Usage:
    """Counted from recorded facts; tokens of calls whose host said nothing are counted in `unreported`."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    nodes: int = 0
    cache_hits: int = 0
    """Answers taken from other runs; no calls."""


@dataclass(slots=True)
class Fork:
    """What a run that was forked has of its origin, and what was changed."""

    run_id: str
    seq: int
    """The last event that was taken over."""
    inherited: Usage
    """What the events that were taken over had used; it is not counted again."""
    models: dict[str, str] = field(default_factory=dict)
    """By node id, the model it asks in place of its own."""
    given: dict[str, JsonValue] = field(default_factory=dict)
    """By node id or path of a firing: what it says next, without being asked."""
    asks: dict[int, JsonObject] = field(default_factory=dict)
    """Questions that a person has to approve before anything goes on, by number, as `core.forks.Question`."""
    asked: int = 0
    """How many there were."""


@dataclass(slots=True)
class Run:
    """Everything `decide` needs. Made by `scheduler.new_run`, changed only by `scheduler.evolve`."""

    run_id: str = ""
    graph_version: str = ""
    input: JsonValue = None
    thread_id: str = ""
    model: str = ""
    started_by: str = ""
    principal: str = ""
    """The authenticated one who started it, "" for the local user."""
    started_as: str = ""
    """The local user's name, where nobody was authenticated."""
    limits: Limits = DEFAULTS
    """What its steps apply, as it was accepted with."""
    seq: int = 0
    """The number of events folded, and the seq of the next one."""
    at_ms: int = 0
    """The latest time of these events."""
    lifecycle: str = "new"
    """new, accepted, running, interrupted, completed, failed or cancelled."""
    error: JsonObject | None = None
    """The error the run ended or stopped with."""
    told: dict[str, list[Fact]] = field(default_factory=dict)
    """By firing (or ``END``): facts about the step it is at that are in the log already, should the log end there."""
    cancel_reason: str | None = None
    accepted_at_ms: int = 0
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    frames: dict[str, Frame] = field(default_factory=dict)
    """The open frames by path: the root is at "" once the run is accepted; an owner's come after the frame it is in."""
    parts: dict[str, Frame] = field(default_factory=dict)
    """Those of the frames that are regions of others."""
    closing: dict[str, None] = field(default_factory=dict)
    """The frames, but for the root, that are to be ended with all that is in them: they fail, or nobody waits for
    them any more."""
    losing: dict[str, None] = field(default_factory=dict)
    """The frames in which static branches are to be ended, whose failure is put up with."""
    met: list[WriteConflict] = field(default_factory=list)
    """Conflicts that met at the end of frames that are closed, until the log tells of them."""
    open: dict[str, Firing] = field(default_factory=dict)
    """Firings that want a step: just enabled with a place, or just answered."""
    out: dict[str, Firing] = field(default_factory=dict)
    """Firings whose effect a driver has taken: a mark in memory, no fact; a folded run has none."""
    queue: OrderedDict[str, Firing] = field(default_factory=OrderedDict)
    """Enabled firings that wait for one of the run's places."""
    pausing: dict[str, int] = field(default_factory=dict)
    """Firings between two attempts, which hold no place: when the next one is due, in milliseconds UTC."""
    waits: dict[str, Wait] = field(default_factory=dict)
    """Firings that wait for the clock or for a message; oldest first, and they hold no place."""
    mail: dict[str, list[JsonValue]] = field(default_factory=dict)
    """By name: the payloads of messages that came before anybody waited for them, oldest first."""
    mutexes: dict[str, Mutex] = field(default_factory=dict)
    """By name; none that nobody holds or stands in line for."""
    places: int = 0
    """Places taken."""
    taken: dict[tuple[str, int], int] = field(default_factory=dict)
    """Of them those inside static branches that have a bound of their own, by frame and fork."""
    until: dict[str, int] = field(default_factory=dict)
    """By firing of a static fork whose branches are under way: when their time is over, in milliseconds UTC."""
    partly: dict[str, JsonObject] = field(default_factory=dict)
    """By node id (of one inside frames: path and id): {code, message, failed, of} of fan-outs whose
    latest firing put up with items that failed."""
    gates: dict[str, Gate] = field(default_factory=dict)
    """The approvals of the run by id."""
    barriers: dict[str, GatePlaced] = field(default_factory=dict)
    """By node id: the gate that was placed before it while the run was under way."""
    reminders: dict[str, int] = field(default_factory=dict)
    """By approval that is open: when its end is to be told of beforehand, in milliseconds UTC; none once it was."""
    usage: Usage = field(default_factory=Usage)
    fork: Fork | None = None
    """It begins with the events of another run."""
    ledger: Ledger | None = None
    """What it may use and has used; None when nothing bounds it."""

    @property
    def ending(self) -> bool:
        """It is about to end, with all that is active in it: cancelled, failed, or a token has reached END_RUN."""
        stopped = self.frame is not None and self.frame.terminating
        return stopped or self.cancel_reason is not None or self.failure is not None

    @property
    def deadlocked(self) -> bool:
        """Who is left stands in line for a mutex that an owner holds inside whose frames others do, or owns those: no
        grant, no answer and no clock will ever change that."""
        going = self.open or self.out or self.queue or self.pausing or self.waits
        if not self.mutexes or going or self.open_approvals:
            return False
        lines = self.mutexes.values()
        return any(mutex.waiting for mutex in lines) and not any(mutex.following for mutex in lines)

    @property
    def stands_still(self) -> bool:
        """Its time is over, and it asks for more; or it asks whether it may go on at all: nothing is begun."""
        return self.asks or (self.ledger is not None and self.ledger.stands_still)

    @property
    def asks(self) -> bool:
        """A fork that has not been let go on: nothing but an end by force comes before the answer."""
        return self.fork is not None and bool(self.fork.asks)

    @property
    def status(self) -> str:
        """As the contract names it: a running run in which only outside answers are left is ``waiting``."""
        if self.lifecycle != "running":
            return self.lifecycle
        going = bool(self.open or self.out or self.queue or self.pausing)
        if going and self.ledger is None and self.fork is None:  # nearly always
            return "running"
        if self.asks:
            return "running" if self.ending else "waiting"
        going = going or any(mutex.following for mutex in self.mutexes.values())
        ends = self.closing or self.losing or self.met or self.ending or self.deadlocked
        moving = ends or (going and not self.stands_still)
        waits = not moving and self.frame is not None and self.frame.busy
        return "waiting" if waits else "running"

    @property
    def frame(self) -> Frame | None:
        """The root frame."""
        return self.frames.get("")

    @property
    def failure(self) -> JsonObject | None:
        """The first failure that reached the root frame; the run is about to fail."""
        return None if self.frame is None else self.frame.failure

    @property
    def terminal(self) -> bool:
        return self.lifecycle in TERMINAL

    @property
    def open_approvals(self) -> list[Gate]:
        """The approvals that wait for a decision, oldest first."""
        return [gate for gate in self.gates.values() if gate.status == "pending"]

    def firing(self, path: str) -> Firing | None:
        """The active firing of that path."""
        known = self.open.get(path) or self.out.get(path)
        if known is not None:
            return known
        inside, slash, name = path.rpartition("/")
        frame = self.frames.get(inside + slash)
        if frame is None:
            return None
        node = frame.graph.index.get(name.rpartition("#")[0])
        found = None if node is None else frame.running.get(node)
        return found if found is not None and found.path == path else None

    @property
    def running(self) -> Iterator[Firing]:
        """All active firings, those of inner frames after those of the frames around them."""
        return chain.from_iterable(frame.running.values() for frame in self.frames.values())

    def let_go(self, path: str) -> None:
        """A frame is no more."""
        self.frames.pop(path, None)
        self.parts.pop(path, None)
        self.closing.pop(path, None)
        self.losing.pop(path, None)
        for name in [name for name in self.until if name.rpartition("/")[0] == path[:-1]]:
            del self.until[name]

    def hand_over(self, path: str) -> None:
        """Mark that a driver performs the effect of this firing: `decide` does not offer it again."""
        self.out[path] = self.open.pop(path)

    def hear(self, firing: Firing) -> None:
        """An answer has come: the firing wants a step, after all that do. In a folded run it is there already, for
        nobody has taken its effect, and still it is the last."""
        self.out.pop(firing.path, None)
        self.open.pop(firing.path, None)
        self.open[firing.path] = firing


def approval_id(run_id: str, firing: str, number: int) -> str:
    """The id of an approval of a run: drawn from what it is, so that every round of every run has its own."""
    return "apr-" + digest([run_id, firing, number]).removeprefix("sha256:")[:24]
