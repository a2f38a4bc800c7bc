"""One opened folder a test, the console over it, and people in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_graph.engine.approvers import Approvers
from agent_graph.tools.deps import Deps
from tests.console.browser import OTHERS, Browser, House, served
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools, opened
from tests.mcp_server.served import token_for


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def deps(hands: Hands, tmp_path: Path) -> AsyncIterator[Deps]:
    async with opened(clock=hands) as found:
        yield replace(found, approvers=Approvers(tmp_path))


@pytest.fixture
async def tools(deps: Deps) -> Tools:
    return Tools(deps)


@pytest.fixture
async def house(deps: Deps) -> AsyncIterator[House]:
    async with served(deps) as found:
        yield found


@pytest.fixture
async def stranger(house: House) -> AsyncIterator[Browser]:
    """Nobody has logged in."""
    async with house.browser() as browser:
        yield browser


@pytest.fixture
async def ann(house: House, deps: Deps) -> AsyncIterator[Browser]:
    """Who sees everybody's, and decides."""
    async with house.browser() as browser:
        await browser.log_in(await token_for(deps, "ann", "admin"))
        yield browser


@pytest.fixture
async def bob(house: House, deps: Deps) -> AsyncIterator[Browser]:
    """Who sees what is his own."""
    async with house.browser() as browser:
        await browser.log_in(await token_for(deps, "bob", *OTHERS))
        yield browser
