"""A firing, one run of a node, and the tokens it takes and makes; neither knows any rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from agent_graph.core.classes import dataclass
from agent_graph.core.contributions import Conflict
from agent_graph.core.effects import Answer, OpenFrames
from agent_graph.core.graph import Graph, Node
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.merge import State
from agent_graph.core.weights import Slot

if TYPE_CHECKING:
    from agent_graph.core.frames import Frame
    from agent_graph.core.topology import Region


class Token(NamedTuple):
    """What travels: the bit set of writers in its causal past, the newest writers of the current value, its depth."""

    past: int
    tips: tuple[int, ...]
    depth: int


def merged(tokens: Sequence[Token], state: State) -> Token:
    """Several tokens of a frame with that state as one."""
    past, depth = 0, 0
    for token in tokens:
        past |= token.past
        depth = max(depth, token.depth)
    return Token(past, state.merge_tips(tip for token in tokens for tip in token.tips), depth)


@dataclass(slots=True)
class Part:
    """What makes a frame a region: a part of the frame around it with tokens of its own (`core.early`)."""

    around: Frame = field(repr=False)
    region: Region
    forked: Token
    """What its fork started it with."""
    rank: int
    """Its place among regions in the order of writes."""
    arrived: dict[int, Token] = field(default_factory=dict)
    """By in-edge of its join: the first token that counts."""
    closed: bool = False
    """Its join has fired."""
    kept: int = 0
    """What went on from it: the past of the token its join made."""


@dataclass(slots=True)
class Regions:
    """The regions in a frame."""

    open: dict[str, Frame] = field(default_factory=dict, repr=False)
    """By path; those in which something runs still, though their join may be through."""
    standing: dict[int, int] = field(default_factory=dict)
    """By join, for how many regions it stands: it counts as running."""
    fresh: list[Frame] = field(default_factory=list, repr=False)
    """Those opened since somebody last took this list."""


@dataclass(slots=True)
class Owned:
    """What a firing has opened: a frame for each of the inputs, not all at once."""

    asked: OpenFrames
    graph: Graph
    start: dict[Slot, JsonValue] = field(default_factory=dict)
    """What frames of the owner's own graph start with: all that the owner sees."""
    start_bytes: int = 0
    """A number of bytes that `start` does not pass."""
    opened: int = 0
    live: set[int] = field(default_factory=set)
    results: dict[int, JsonValue] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    """Those in whose place there is an error, or null."""
    first: JsonObject | None = None
    """{code, message} of the first of those."""
    failure: JsonObject | None = None
    """What the owner is going to fail with."""
    late: bool = False
    """Its time is over."""
    stopped: bool = False
    """In one of them a token has reached END_RUN: the owner's goes there too."""

    @property
    def over(self) -> bool:
        """Nobody waits for what is still open."""
        enough = self.asked.enough
        if self.late or self.stopped or self.failure is not None:
            return True
        return enough is not None and len(self.results) - len(self.failed) >= enough


@dataclass(slots=True)
class Lost:
    """A static branch that has failed and is being ended: what it knew, for its token to the join."""

    error: JsonObject
    past: int = 0
    tips: tuple[int, ...] = ()
    depth: int = 0
    mark: int = -1
    """The node under whose name its error is to be found; -1 where one has failed by itself."""


@dataclass(slots=True)
class Firing:
    """One run of a node within its frame."""

    frame: Frame = field(repr=False, compare=False)
    node: int
    path: str
    nth: int
    depth: int
    past: int
    tips: tuple[int, ...]
    reentered: bool
    lane: int = 0
    """Whose latest firing its past holds: its node's; with `merge` "each" that of the same in-edge (``~edge``)."""
    seen_before: dict[str, int] = field(default_factory=dict)
    """For a join: the last writer of each input as its previous firing saw it."""
    conflicts: tuple[Conflict, ...] = ()
    attempt: int = 0
    """0 until `node_started`."""
    restart: bool = False
    """A call it wants now may have been made before: it is made again, as a new attempt."""
    model: str = ""
    """The fallback model that is asked; "" = the node's own."""
    tries: int = 0
    """Attempts of that model that have failed."""
    answers: list[Answer] = field(default_factory=list)
    approval_id: str = ""
    """The gate's pending approval."""
    barred: bool = False
    """A gate was placed before it, and it may not begin; it holds no place."""
    cleared: bool = False
    """A person has let it pass there."""
    refusal: JsonObject | None = None
    """The error it ends with, for it may not pass."""
    lost: bool = False
    """It has failed, and holds its place in the frame until its branch is ended."""
    closed_by: tuple[str, ...] | None = None
    """Of a join that did not wait for all: the nodes whose tokens it took."""
    short: bool = False
    """They were fewer than it waited for."""
    owned: Owned | None = None
    """The frames it has opened."""
    calling: tuple[str, int] | None = None
    """The tool call that was made and not answered yet: its id, and the attempt it was made in."""
    unsure: bool = False
    """It was made before, in an attempt that did not live to hear the answer: nobody knows what came of it."""

    @property
    def declared(self) -> Node:
        """The node it is a run of."""
        return self.frame.graph.nodes[self.node]
