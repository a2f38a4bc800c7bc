"""One store per test, once in memory and once in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_graph.store.sqlite import SqliteStore, open_store


@pytest.fixture(params=["memory", "file"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(":memory:" if request.param == "memory" else tmp_path / "data" / "agent-graph.db")
    yield opened
    await opened.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "agent-graph.db"
