"""Facts about frames: what stands inside a node begins, and what of it does not come to a result."""

from __future__ import annotations

from typing import ClassVar

from agent_graph.core.events.base import Fact
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject


@dataclass(frozen=True, slots=True)
class FramesOpened(Fact):
    """What stands inside a node runs: `count` frames, not all at once. When the last is through, the node is done."""

    type: ClassVar[str] = "frames_opened"
    firing: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class ItemsClosed(Fact):
    """Enough results are there: those of `items`; all others are let go. `short`: no more could come."""

    type: ClassVar[str] = "items_closed"
    firing: str
    items: tuple[int, ...]
    short: bool = False


@dataclass(frozen=True, slots=True)
class BranchFailed(Fact):
    """A static branch whose failure its `parallel` puts up with is through: what it knew goes to the join."""

    type: ClassVar[str] = "branch_failed"
    parallel: str
    branch: str
    error: JsonObject
    frame: str = ""


@dataclass(frozen=True, slots=True)
class FrameFailed(Fact):
    """A failure reached a frame; what runs in it is cancelled."""

    type: ClassVar[str] = "frame_failed"
    error: JsonObject
    frame: str = ""
