"""How many bytes values take as JSON: a bound that is cheap, and the exact count; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Missing, Write
from agent_graph.core.jsonvalue import JsonValue, canonical, compact

SHORT: Final = 1_024
"""Characters of a text that is not measured: no character takes more than 6 bytes."""
AROUND: Final = 8
"""Bytes around a member of an object or list: quotes, colon, comma, brackets."""
NUMBER: Final = 32
"""Bytes no number takes, integers beyond 64 bits apart; a sum has room in those of its terms."""
EXPONENT: Final = 20
"""Bytes a float with an exponent may take beyond Python's form of it: 1e+20 is written out."""

NESTED: Final = (list, dict)
"""The types of values that hold others."""

Slot: TypeAlias = "str | tuple[str, str]"


@dataclass(slots=True)
class Tally:
    """What is known of the size of a state: bounds kept up with every write, and what was measured."""

    base: int = 0
    """The base has no more bytes than that."""
    written: int = 0
    """What was written since adds no more than that, whoever looks."""
    measured: dict[Slot, int] = field(default_factory=dict)
    """Bytes of values in the base."""
    views: dict[tuple[Slot, int], int] = field(default_factory=dict)
    """Bytes of slots that were written since, by the part of a past that wrote there."""
    foreseen: tuple[Sequence[Write], int] = ((), 0)
    """The writes that were asked about last, and by how much they let a state grow at most."""

    def foresee(self, writes: Sequence[Write], most: Callable[[Write], int]) -> int:
        """`most_written`, of writes that are about to be made: these very writes are not weighed again then."""
        self.foreseen = writes, most_written(writes, most)
        return self.foreseen[1]

    def wrote(self, writes: Sequence[Write]) -> None:
        known, more = self.foreseen
        self.written += more if writes is known else most_written(writes)

    def folded(self, slots: Iterable[Slot]) -> None:
        """What was written went into `slots` of the base."""
        self.base, self.written = self.base + self.written, 0
        self.views.clear()
        for slot in slots:
            self.measured.pop(slot, None)

    def overwritten(self, key: str, value: JsonValue | Missing) -> None:
        """A key of the base holds another value, or is gone."""
        self.base += 0 if isinstance(value, Missing) else most_held({key: value})
        self.measured.pop(key, None)
        self.views.clear()


def most_of(value: JsonValue) -> int:
    """A number of bytes that the canonical JSON of `value` does not pass; text that is short is not looked at."""
    if isinstance(value, str):
        return 6 * len(value) + 2 if len(value) <= SHORT else most_in(compact(value))
    if isinstance(value, NESTED):
        return most_in(compact(value))
    return NUMBER + (value.bit_length() // 3 if isinstance(value, int) else 0)


def most_in(text: str) -> int:
    """The same of a value whose compact form is `text`."""
    return bytes_of(text) + EXPONENT * (text.count("e+") + text.count("e-"))


def bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def most_written(writes: Sequence[Write], most: Callable[[Write], int] | None = None) -> int:
    """A number of bytes by which `writes` let no state grow beyond, whatever it held before.

    `most` bounds a value where `most_of` does not do.
    """
    total = known = 0
    last: JsonValue = None
    for write in writes:
        if write.value is not last or last is None:  # what goes to a key is a node's output as well
            last, known = write.value, most_of(write.value) if most is None else most(write)
        total += known + 6 * len("".join(write.path)) + AROUND * len(write.path)
    return total


def most_held(members: Mapping[str, JsonValue]) -> int:
    """A number of bytes that an object with `members` does not pass."""
    return sum(6 * len(key) + AROUND + most_of(value) for key, value in members.items())


def exact(key: str, value: JsonValue) -> int:
    """Bytes of one member of an object, comma and all. Canonical, so that it is the same when read from the log."""
    return len(canonical(key)) + len(canonical(value)) + 2
