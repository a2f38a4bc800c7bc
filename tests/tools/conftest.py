"""One opened folder a test, with the model that the test's module has."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent_graph.llm.base import ModelClient
from tests.fakes.opened import Tools, council, opened


@pytest.fixture
def model() -> ModelClient:
    return council()


@pytest.fixture
async def tools(model: ModelClient) -> AsyncIterator[Tools]:
    async with opened(model) as deps:
        yield Tools(deps)
