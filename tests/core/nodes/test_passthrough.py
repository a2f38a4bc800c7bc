"""`passthrough` does nothing."""

from __future__ import annotations

from agent_graph.core.effects import Done
from agent_graph.core.nodes import passthrough
from tests.core.nodes.seen import Seen, found, node, step


def test_it_writes_nothing_and_follows_every_out_edge() -> None:
    assert step(node("passthrough"), Seen()) == Done()


def test_it_reads_writes_and_chooses_nothing() -> None:
    config = passthrough.Config()
    assert not passthrough.CHOOSES
    assert found("passthrough") == []
    assert [*passthrough.targets(config), *passthrough.reads(config), *passthrough.writes("n", config)] == []
    assert not passthrough.writes_current(config)
