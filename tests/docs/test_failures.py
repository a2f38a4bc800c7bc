"""The page on failures says of every class and every field of `retry` what the code does."""

from __future__ import annotations

import json
from dataclasses import asdict

from agent_graph.core.failure import ELSEWHERE, PASSING
from agent_graph.core.nodes.base import Retry
from agent_graph.engine.perform import CLASSES
from tests.docs.pages import ROOT, table

PAGE = ROOT / "docs" / "explanation" / "failures.md"


def test_every_class_is_there_with_what_becomes_of_it() -> None:
    _, rows = table(PAGE, "classes")
    said = {row[0].strip("`"): row for row in rows}
    assert {name for _, name in CLASSES} | {"refused", "invalid", "bug"} == said.keys()
    assert {name for name, row in said.items() if row[2] == "yes"} == PASSING
    assert {name for name, row in said.items() if row[3] == "yes"} == ELSEWHERE
    assert [name for name, row in said.items() if "interrupted" in row[4]] == ["unreachable"]


def test_every_field_of_retry_is_there_with_its_default() -> None:
    _, rows = table(PAGE, "retry")
    assert {row[0].strip("`"): json.loads(row[1].strip("`")) for row in rows} == asdict(Retry())
