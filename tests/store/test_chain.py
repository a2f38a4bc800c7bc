"""The stored form of an event is the canonical JSON of its fact and place, whoever writes it."""

from __future__ import annotations

import pytest

from agent_graph.core.events import Event, Fact, NodeFinished, NodeStarted, to_json
from agent_graph.core.jsonvalue import canonical
from agent_graph.store.chain import NO_EVENT, encode

PATHS = ["draft#1", "map#2[3]/draft#1", 'quote " and back\\slash#1', "ünï\u2028漢\U0001f600#1", "nul \u0000 tab \t#1"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "make",
    [NodeStarted, lambda path: NodeStarted(path, 2), lambda path: NodeStarted(path, 1, "other"), NodeFinished],
)
def test_every_event_is_stored_as_canonical_json(make: type[NodeStarted], path: str) -> None:
    fact: Fact = make(path)
    [text], _ = encode([Event(7, 1_700_000_000_000, fact)], seq=7, head=NO_EVENT)
    place = {"seq": 7, "at_ms": 1_700_000_000_000, "prev": NO_EVENT}
    assert text.encode() == canonical({**to_json(fact), **place})


def test_a_path_that_no_text_can_hold_is_stored_by_neither() -> None:
    for fact in (NodeStarted("\ud800#1"), NodeStarted("\ud800#1", 2)):
        with pytest.raises(ValueError, match="surrogates not allowed"):
            encode([Event(0, 1, fact)], seq=0, head=NO_EVENT)
