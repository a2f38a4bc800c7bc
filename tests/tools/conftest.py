"""One opened folder a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.opened import Tools, opened


@pytest.fixture
async def tools() -> AsyncIterator[Tools]:
    async with opened() as deps:
        yield Tools(deps)
