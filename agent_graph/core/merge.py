"""The state as contributions: what each firing wrote, folded for whoever has it in its past; no scheduling here.

A *writer* is a firing that wrote something (a static `parallel` adds one for each branch input). Writers are numbered;
a *past* is a bit set of writers. Each slot (a top-level key, or an ``("outputs", node)`` pair and the like)
has a journal sorted by the order key (depth, node index, nth, position), so a read is a fold over the entries that are
in the reader's past. When one token is all that is left, everything so far becomes the base and numbering goes on from
there: a loop's memory does not grow with its rounds.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence

from agent_graph.core import statepath
from agent_graph.core.contributions import BOOKS, NOWHERE, OVERWRITES, Conflict, Entry, Writer, apply, slot_of
from agent_graph.core.effects import MISSING, MaybeJson, Missing, Path, Write
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.weights import Slot, Tally


class State:
    """All contributions of one frame."""

    __slots__ = (
        "base", "base_current", "base_writers", "forgotten", "journal", "next", "offset", "owned", "reducers", "tally",
        "writers",
    )  # fmt: skip

    def __init__(self, reducer_names: dict[str, str]) -> None:
        self.reducers = reducer_names
        self.base: dict[Slot, JsonValue] = {}
        self.base_current: JsonValue = None
        self.base_writers: dict[Slot, dict[Path, tuple[int, int]]] = {}
        """By slot and path: (writer, node) of the last writer that went into the base, in the order of their writes."""
        self.owned: set[Slot] = set()
        """Base values nobody else holds: a reducer may extend them in place."""
        self.journal: dict[Slot, list[Entry]] = {}
        self.writers: dict[int, Writer] = {}
        self.offset = 0
        self.next = 0
        self.forgotten = 0
        self.tally = Tally()

    # -- writing ---------------------------------------------------------------------------------------------------

    def add(self, writer: Writer, writes: Sequence[Write]) -> int:
        """Append a writer's contributions; returns its bit."""
        number = self.next
        self.next += 1
        self.tally.wrote(writes)
        touched: list[Slot] = []
        for position, write in enumerate(writes):
            slot, rest = slot_of(write.path)
            entry = Entry((*writer.order, position), number, write.op, rest, write.value)
            entries = self.journal.get(slot)
            if not entries:
                self.journal[slot] = [entry]
            elif entries[-1].order < entry.order:
                entries.append(entry)
            else:
                insort(entries, entry)
            touched.append(slot)
        writer.slots = tuple(dict.fromkeys(touched))
        self.writers[number] = writer
        return 1 << (number - self.offset)

    def everything(self) -> int:
        """The past that holds every writer, but those that are forgotten."""
        return ((1 << (self.next - self.offset)) - 1) & ~self.forgotten

    def forget(self, beginning: str, *, kept: int) -> None:
        """The writers whose paths begin so, and that are not in the past `kept`, are in nobody's past for good."""
        gone = sum(
            1 << (number - self.offset) for number, one in self.writers.items() if one.path.startswith(beginning)
        )
        self.forgotten = (self.forgotten | gone) & ~kept

    def compact(self, tips: tuple[int, ...]) -> None:
        """Make everything written so far the base; only when one token is left and has it all in its past."""
        if self.next == self.offset:
            return
        everything = self.everything()
        for slot, written in self.journal.items():
            if not (entries := [one for one in written if everything >> (one.writer - self.offset) & 1]):
                continue
            self._keep(slot, self._fold(slot, entries, everything, own=True))
            for entry in entries:
                self._note(slot, entry.rest, (entry.writer, self.writers[entry.writer].node))
        self.base_current = self.current(tips)
        self.tally.folded(self.journal)
        self.journal.clear()
        self.writers.clear()
        self.offset, self.forgotten = self.next, 0

    @property
    def level(self) -> bool:
        """Everything written so far is in the base."""
        return self.next == self.offset

    def absorb(self, node: int, writes: Sequence[Write], current: MaybeJson) -> None:
        """What `add` and then `compact` come to where the state is level and a firing of `node` saw all there is: its
        contributions go straight into the base."""
        if not writes and current is MISSING:
            return
        number = self.next
        self.next = self.offset = number + 1
        self.tally.wrote(writes)
        touched: list[Slot] = []
        for write in writes:
            slot, rest = slot_of(write.path)
            value: MaybeJson
            value, fresh = write.value, False
            if rest or write.op != "set":
                reducer = self.reducers.get(slot, "") if isinstance(slot, str) else ""
                entry = Entry(NOWHERE, number, write.op, rest, write.value)
                value, fresh = apply(reducer, self.base.get(slot, MISSING), entry, slot in self.owned)
            (self.owned.add if fresh else self.owned.discard)(slot)
            self._keep(slot, value)
            self._note(slot, rest, (number, node))
            touched.append(slot)
        if not isinstance(current, Missing):
            self.base_current = current
        self.tally.folded(touched)

    def overwrite(self, key: str, value: MaybeJson) -> None:
        """Whoever looks at a key sees this value from here on, MISSING for none, whatever was written there before. For
        a join it counts as written by whoever wrote there last."""
        if entries := self.journal.get(key):
            self._note(key, (), (entries[-1].writer, self.writers[entries[-1].writer].node))
            entries.clear()  # what has met stays known to have been written
        self.owned.discard(key)
        self._keep(key, value)
        self.tally.overwritten(key, value)

    def _keep(self, slot: Slot, value: MaybeJson) -> None:
        """The value of a slot in the base from here on."""
        if isinstance(value, Missing):
            self.base.pop(slot, None)
            self.owned.discard(slot)
        else:
            self.base[slot] = value

    def _note(self, slot: Slot, rest: Path, who: tuple[int, int]) -> None:
        """The last writer of a place in the base."""
        known = self.base_writers.setdefault(slot, {})
        if rest:
            known.pop(rest, None)
        else:
            known.clear()
        known[rest] = who

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, slot: Slot, past: int) -> MaybeJson:
        """The value of a slot as seen from `past`."""
        entries = self.journal.get(slot)
        if entries is None:
            self.owned.discard(slot)  # the value is handed out: no longer ours alone
            return self.base.get(slot, MISSING)
        return self._fold(slot, entries, past, own=False)

    def root(self, path: str, past: int) -> JsonObject:
        """As much of the state object, as seen from `past`, as a lookup of `path` can touch."""
        segments = statepath.split(path)
        if segments[0] in BOOKS:
            return {segments[0]: self._book(segments, past)}
        found: JsonObject = {}
        for count in range(1, 2 if path.startswith("/") else len(segments) + 1):
            key = ".".join(segments[:count]) if count > 1 else segments[0]
            value = self.read(key, past)
            if value is not MISSING:
                found[key] = value  # type: ignore[assignment]  # not MISSING
        return found

    def _book(self, segments: Path, past: int) -> JsonObject:
        book, rest = segments[0], segments[1:]
        names = {".".join(rest[:count]) for count in range(1, len(rest) + 1)}
        found: JsonObject = {}
        for slot in (
            [slot for slot in self.slots() if isinstance(slot, tuple) and slot[0] == book]
            if not rest
            else [(book, name) for name in sorted(names)]
        ):
            value = self.read(slot, past)
            if value is not MISSING:
                found[slot[1]] = value  # type: ignore[assignment]  # not MISSING
        return found

    def whole(self, past: int) -> JsonObject:
        """The state object as seen from `past`: the users' keys, without the engine's books."""
        found: JsonObject = {}
        for slot in self.slots():
            value = self.read(slot, past) if isinstance(slot, str) else MISSING
            if value is not MISSING:
                found[slot] = value  # type: ignore[index,assignment]  # a str and not MISSING
        return found

    def resolve(self, path: str, past: int) -> Path:
        """The segments `path` stands for as seen from `past`."""
        return statepath.resolve(self.root(path, past), path)

    def slots(self) -> Iterable[Slot]:
        """Every slot that ever held something."""
        return dict.fromkeys((*self.base, *self.journal))

    def _fold(self, slot: Slot, entries: list[Entry], past: int, *, own: bool) -> MaybeJson:
        if own and entries[-1].op == "set" and not entries[-1].rest:  # most: whatever was there before is gone
            self.owned.discard(slot)
            return entries[-1].value
        reducer, first = self.reducers.get(slot, "") if isinstance(slot, str) else "", 0
        for i in range(len(entries) - 1, -1, -1):
            entry = entries[i]
            if not entry.rest and entry.op in ("set", "replace") and past >> (entry.writer - self.offset) & 1:
                first = i
                break
        else:
            i = -1
        value: MaybeJson = MISSING if i >= 0 else self.base.get(slot, MISSING)
        fresh = own and i < 0 and slot in self.owned
        if not own and i < 0:
            self.owned.discard(slot)
        for entry in entries[first:]:
            if past >> (entry.writer - self.offset) & 1:
                value, fresh = apply(reducer, value, entry, fresh)
        if own:
            (self.owned.add if fresh else self.owned.discard)(slot)
        return value

    def last_writer(self, slot: Slot, rest: Path, past: int) -> tuple[int, int] | None:
        """(writer, node) of the last contribution to a path as seen from `past`; None when nobody wrote it."""
        for entry in reversed(self.journal.get(slot, ())):
            if past >> (entry.writer - self.offset) & 1 and statepath.overlap(entry.rest, rest):
                return entry.writer, self.writers[entry.writer].node
        known = self.base_writers.get(slot, {})
        return next((known[path] for path in reversed(known) if statepath.overlap(path, rest)), None)

    # -- the current value -----------------------------------------------------------------------------------------

    def merge_tips(self, tips: Iterable[int]) -> tuple[int, ...]:
        """The newest of some writers of the current value: those that are in no other's past."""
        known = sorted({tip for tip in tips if tip >= self.offset})
        if len(known) < 2:
            return tuple(known)
        covered = 0
        for tip in known:
            covered |= self.writers[tip].past
        return tuple(tip for tip in known if not covered >> (tip - self.offset) & 1)

    def seen(self, tips: tuple[int, ...]) -> int:
        """The writer whose current value is seen: the newest, or the nearest one all of `tips` go back to; -1: base."""
        if len(tips) < 2:
            return tips[0] if tips else -1
        chain = self._ancestry(tips[0])
        for tip in tips[1:]:
            others = set(self._ancestry(tip))
            chain = [number for number in chain if number in others]
        return chain[0]

    def _ancestry(self, tip: int) -> list[int]:
        chain = [tip]
        while chain[-1] >= self.offset:
            chain.append(self.writers[chain[-1]].saw)
        chain[-1] = -1  # whatever lies before the base is the base
        return chain

    def current(self, tips: tuple[int, ...]) -> JsonValue:
        """The current value as seen from `tips`."""
        number = self.seen(tips)
        value = self.base_current if number < 0 else self.writers[number].current
        assert value is not MISSING, "a writer of the current value has one"
        return value  # type: ignore[return-value]  # just asserted

    # -- conflicts -------------------------------------------------------------------------------------------------

    def conflicts(self, parts: Sequence[int]) -> tuple[Conflict, ...]:
        """Concurrent writes that meet for the first time where tokens with the pasts `parts` come together."""
        union, common = 0, -1
        for part in parts:
            union |= part
            common &= part
        if any(part == union for part in parts):
            return ()
        apart = union & ~common
        by_slot: dict[str, list[int]] = {}
        while apart:
            low = apart & -apart
            number = low.bit_length() - 1 + self.offset
            for slot in (one for one in self.writers[number].slots if isinstance(one, str)):  # a book is one node's own
                by_slot.setdefault(slot, []).append(number)
            apart ^= low
        found: list[Conflict] = []
        for slot, numbers in by_slot.items():
            if len(numbers) > 1:
                found += self._conflicts_in(slot, frozenset(numbers), parts)
        return tuple(sorted(found, key=lambda c: (c.key, c.winner)))

    def _conflicts_in(self, slot: str, numbers: frozenset[int], parts: Sequence[int]) -> Iterable[Conflict]:
        reduced = slot in self.reducers
        entries = [entry for entry in self.journal[slot] if entry.writer in numbers]
        if reduced and not any(entry.op in OVERWRITES for entry in entries):
            return
        lost: dict[int, list[Path]] = {place: [] for place in range(len(entries))}
        """By entry, the paths at which a later one has been found to win over it."""
        while entries:
            last = entries.pop()
            losers = [
                place
                for place, entry in enumerate(entries)
                if statepath.overlap(entry.rest, last.rest)
                and (not reduced or entry.op in OVERWRITES or last.op in OVERWRITES)
                and not any(statepath.covers(won, entry.rest, last.rest) for won in lost[place])
                and self._concurrent(entry.writer, last.writer)
                and not self._together(entry.writer, last.writer, parts)
            ]
            if losers:
                for place in losers:
                    lost[place].append(last.rest)
                names = tuple(dict.fromkeys(self.writers[entries[place].writer].path for place in losers))
                key = ".".join((slot, *last.rest))
                yield Conflict(key, self.writers[last.writer].path, names)

    def _concurrent(self, a: int, b: int) -> bool:
        if a == b:
            return False
        before_b = self.writers[b].past >> (a - self.offset) & 1
        before_a = self.writers[a].past >> (b - self.offset) & 1
        return not (before_a or before_b)

    def _together(self, a: int, b: int, parts: Sequence[int]) -> bool:
        both = 1 << (a - self.offset) | 1 << (b - self.offset)
        return any(part & both == both for part in parts)
