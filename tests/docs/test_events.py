"""The page of events names kinds and fields that there are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from agent_graph.core.events import FACTS


def test_every_kind_and_field_of_the_page_of_events_is_there(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([a-z_]+)` \| [^|]* \|([^|]*)\|$", page.partition("<!-- table: events -->")[2], re.MULTILINE
    )
    assert len(rows) > 30
    for name, said in rows:
        known = {field.name for field in fields(FACTS[name])}  # type: ignore[arg-type]  # every fact is a dataclass
        named = re.findall(r"`([a-z_]+)`", said.partition(":")[0])
        assert set(named) <= known, name
