"""The stored form of the event log: encoded once, each event holding the hash of the one before; no SQL.

An event is stored as the canonical JSON of its fact with ``seq``, ``at_ms`` and ``prev``, the SHA-256 (hex) of the
stored bytes of the event before it. The hash of the last one, the head, stands in the run's row: so the last event is
covered too, and appending reads none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from agent_graph.core.events import Event, NodeStarted, from_json, to_json
from agent_graph.core.jsonvalue import canonical_text, quoted
from agent_graph.errors import StoreCorrupt
from agent_graph.store.base import StoredEvent
from agent_graph.store.columns import json_object

NO_EVENT: Final = "0" * 64
"""The head of an empty log, hence ``prev`` of the first event."""

Stored: TypeAlias = tuple[int, bytes]
"""seq and bytes of one event as it lies in the database."""


def encode(events: Sequence[Event], *, seq: int, head: str) -> tuple[list[str], str]:
    """The stored texts of `events`, which follow event `seq` - 1 with hash `head`, and the new head.

    Raises ValueError when they are not numbered from `seq`.
    """
    stored = []
    for event in events:
        if event.seq != seq:
            raise ValueError(f"event {event.seq} stands where event {seq} belongs")
        text = _text(event, head)
        head = _hash(text.encode())
        stored.append(text)
        seq += 1
    return stored, head


def _text(event: Event, head: str) -> str:
    """The stored form of an event. Every other event of most logs says that a node starts, and nothing more: what
    `canonical` makes of that is written here by hand, in a fifth of the time."""
    fact = event.fact
    if isinstance(fact, NodeStarted) and fact.attempt == 1 and not fact.model:
        place = f'"prev":"{head}","seq":{event.seq},"type":"node_started"'
        return f'{{"at_ms":{event.at_ms},"firing":{quoted(fact.firing)},{place}}}'
    body = to_json(fact)
    body["seq"], body["at_ms"], body["prev"] = event.seq, event.at_ms, head
    return canonical_text(body)


def read(run_id: str, stored: Stored) -> StoredEvent:
    """The event as it lies there, before anything is known about its fact; raises `StoreCorrupt`."""
    seq, data = stored
    try:
        body = json_object(data)
    except StoreCorrupt as error:
        raise damaged(run_id, seq, "it cannot be read") from error
    at_ms = body.get("at_ms")
    if body.get("seq") != seq or not isinstance(at_ms, int):
        raise damaged(run_id, seq, "another event stands in its place")
    return StoredEvent(seq, at_ms, body)


def event_of(run_id: str, event: StoredEvent) -> Event:
    """The event with its fact; raises `StoreCorrupt` for a type or fields this program does not know."""
    try:
        return Event(event.seq, event.at_ms, from_json(event.body))
    except (KeyError, TypeError) as error:
        raise damaged(run_id, event.seq, f"its type or a field is unknown ({error})") from error


def first_damaged(events: Iterable[Stored], *, count: int, head: str, first: int = 0) -> int | None:
    """The seq of the first event of a log that is missing or is not what was written, else None.

    The log is whole from event `first` on; what was before is not looked at. Where two neighbours do not fit, the
    event that does not fit its other neighbour either is the changed one.
    """
    links = [link(seq, stored) for seq, stored in enumerate(events, first)]
    found = _first_damaged(links, count=count - first, head=head, whole=first == 0)
    return None if found is None else first + found


def _first_damaged(links: Sequence[tuple[str, str | None]], *, count: int, head: str, whole: bool) -> int | None:
    if len(links) > count:
        return count
    fits = [_fits(links, seq, head if seq + 1 == count else None) for seq in range(len(links))]
    for seq, (_, prev) in enumerate(links):
        if prev is None or (whole and seq == 0 and prev != NO_EVENT):
            return seq
        if not fits[seq]:
            following = seq + 1
            if following < len(links) and (links[following][1] is None or not fits[following]):
                return following
            return seq if following < len(links) or following == count else following
    return len(links) if len(links) < count else None


def check_tail(run_id: str, events: Sequence[tuple[StoredEvent, bytes]], *, head: str) -> None:
    """Raises `StoreCorrupt` unless the events hold together and end in `head`; what was before is not looked at."""
    for (_, data), (event, _) in pairwise(events):
        if _hash(data) != event.body.get("prev"):
            raise damaged(run_id, event.seq, "it does not follow the one before it")
    if events and _hash(events[-1][1]) != head:
        raise damaged(run_id, events[-1][0].seq, "it is not the one the run ends with")


def damaged(run_id: str, seq: int, why: str) -> StoreCorrupt:
    """The error for event `seq` of a run."""
    return StoreCorrupt(
        f"Event {seq} of run {run_id} is damaged: {why}. The run was left as it is: put a copy of the database "
        "back, or cancel the run and start another.",
        run_id=run_id,
        seq=seq,
        check="event chain",
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def link(seq: int, stored: Stored) -> tuple[str, str | None]:
    """An event's hash and its ``prev``; None when it cannot be read or is not the event that belongs here."""
    try:
        prev = read("", stored).body.get("prev") if stored[0] == seq else None
    except StoreCorrupt:
        prev = None
    return _hash(stored[1]), prev if isinstance(prev, str) else None


def _fits(links: Sequence[tuple[str, str | None]], seq: int, head: str | None) -> bool:
    """Whether what follows event `seq` names its hash: the next event or, behind the last one, the head."""
    wanted = head if head is not None else links[seq + 1][1] if seq + 1 < len(links) else None
    return links[seq][0] == wanted
