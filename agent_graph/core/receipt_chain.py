"""The chain of a run's events as a bundle gives it: whether it is whole, and if not, where; reads no store.

An event is a text, the exact bytes that were hashed, or {seq, prev, hash} where its text is withheld.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue, parse_json
from agent_graph.errors import InvalidRequest

NO_EVENT: Final = "0" * 64
"""``prev`` of the first event."""
MOST_BYTES: Final = 256 * 1024 * 1024
MOST_DEPTH: Final = 900
WITHHELD: Final = {"seq", "prev", "hash"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What does not hold, and where: ``events[7]``, ``receipt.leaves[2]``, ``integrity.seal``."""

    place: str
    said: str

    def to_json(self) -> JsonObject:
        return {"place": self.place, "said": self.said}


class Link(NamedTuple):
    """An event in its chain; `body` is None where its text is withheld."""

    seq: JsonValue
    prev: JsonValue
    hash: JsonValue
    body: JsonObject | None


def links_of(events: Sequence[JsonValue]) -> tuple[list[Link], list[Fault]]:
    """The events as links, and those that are none."""
    links, faults = [], []
    for place, event in enumerate(events):
        link = _link(event)
        if link is None:
            faults.append(Fault(f"events[{place}]", "is not an event: no JSON object with seq and prev"))
        else:
            links.append(link)
    return links, faults


def _link(event: JsonValue) -> Link | None:
    if isinstance(event, dict):
        return Link(event["seq"], event["prev"], event["hash"], None) if event.keys() == WITHHELD else None
    if not isinstance(event, str):
        return None
    try:
        body = parse_json(event, max_bytes=MOST_BYTES, max_depth=MOST_DEPTH)
    except InvalidRequest:
        return None
    if not isinstance(body, dict) or not {"seq", "prev"} <= body.keys():
        return None
    return Link(body["seq"], body["prev"], hashlib.sha256(event.encode()).hexdigest(), body)


def chain_faults(links: Sequence[Link], *, count: JsonValue, head: JsonValue) -> list[Fault]:
    """Where the chain is broken; `head` is ``sha256:`` and the hash of the last of `count` events."""
    seqs: list[Any] = [link.seq for link in links]
    found = len(links)
    if seqs != [*range(found)] or found != count or not found:
        return [_misplaced(seqs, count)]
    wanted = [*(link.prev for link in links[1:]), str(head).removeprefix("sha256:")]
    broken = {seq for seq, (link, want) in enumerate(zip(links, wanted, strict=True)) if link.hash != want}
    if links[0].prev != NO_EVENT:
        broken.add(-1)
    return [Fault(f"events[{seq}]", "was changed: its neighbours name other hashes") for seq in _changed(broken)]


def _changed(broken: set[int]) -> list[int]:
    """The events that were changed, of those behind which the chain is broken (-1: before the first): one that fits
    neither neighbour, or the one before a single break."""
    alone = {max(seq, 0) for seq in broken if not broken & {seq - 1, seq + 1}}
    return sorted(alone | {seq for seq in broken if seq - 1 in broken})


def _misplaced(seqs: list[Any], count: JsonValue) -> Fault:
    """The first place at which another event stands than belongs there."""
    found = len(seqs)
    place = next((at for at, seq in enumerate(seqs) if seq != at), found)
    wanted = count if isinstance(count, int) else 0
    if found < wanted or not found:  # every run has events
        return Fault(f"events[{place}]", f"was removed: there are {found} events of {wanted}")
    if found > wanted:
        return Fault(f"events[{min(place, found - 1)}]", f"was added: there are {found} events of {wanted}")
    if {str(seq) for seq in seqs} == {str(at) for at in range(found)}:
        return Fault(f"events[{place}]", "was reordered: another event stands in its place")
    return Fault(f"events[{place}]", "was changed: it has the number of another event")
