"""Whether a state grows beyond its limit: told from what a firing sees, so that timing has no part in it.

The bytes of a state are those of its keys and of the engine's books (``outputs``, ``loops``) as canonical JSON. A
state keeps a bound no view of it passes, raised by every write; while that is within the limit nothing is measured.
Beyond it the base is measured, each value once for as long as it stays, and then what lies over it in this view.
Changes nothing but what it remembers of that.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_graph.core import weights
from agent_graph.core.contributions import NOWHERE, Entry, apply, slot_of
from agent_graph.core.effects import MaybeJson, Missing, Write
from agent_graph.core.merge import State
from agent_graph.core.weights import Slot


def beyond(state: State, past: int, *, limit: int, writes: Sequence[Write] = (), more: int = 0) -> int:
    """The bytes of the state seen from `past` with `writes` after it, where they are more than `limit`; else 0.

    `more` is what `weights.most_written` tells of the writes.
    """
    tally = state.tally
    if tally.base + tally.written + more <= limit:
        return 0
    tally.base = _base(state)
    if tally.base + tally.written + more <= limit:
        return 0
    size = _seen(state, past, writes)
    return size if size > limit else 0


def _base(state: State) -> int:
    """The bytes of the base; a value that did not change since is not measured again."""
    measured = state.tally.measured
    for slot, value in state.base.items():
        if slot not in measured:
            measured[slot] = weights.exact(_name(slot), value)
    return sum(measured.values())


def _seen(state: State, past: int, writes: Sequence[Write]) -> int:
    over: dict[Slot, list[Entry]] = {slot: [] for slot in state.journal}
    for write in writes:
        slot, rest = slot_of(write.path)
        over.setdefault(slot, []).append(Entry(NOWHERE, 0, write.op, rest, write.value))
    total = sum(size for slot, size in state.tally.measured.items() if slot not in over)
    return total + sum(_slot(state, slot, past, entries) for slot, entries in over.items())


def _slot(state: State, slot: Slot, past: int, own: Sequence[Entry]) -> int:
    """The bytes of one slot as seen from `past`, with a firing's own contributions after it."""
    mask = 0
    for entry in state.journal.get(slot, ()):
        mask |= 1 << (entry.writer - state.offset)
    seen, views = (slot, past & mask), state.tally.views
    if not own and seen in views:
        return views[seen]
    value: MaybeJson = state.read(slot, past)
    for entry in own:
        value, _ = apply(state.reducers.get(slot, "") if isinstance(slot, str) else "", value, entry, False)
    size = 0 if isinstance(value, Missing) else weights.exact(_name(slot), value)
    if not own:
        views[seen] = size
    return size


def _name(slot: Slot) -> str:
    return slot if isinstance(slot, str) else slot[1]
