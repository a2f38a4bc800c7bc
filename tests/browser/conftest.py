"""One Chromium for all tests, a served console and the windows of those who look at it for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from agent_graph.engine.approvers import Approvers
from agent_graph.tools.deps import Deps
from tests.browser.chromium import WAIT_MS, Person, Watch, program, started
from tests.browser.site import Site
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools, opened
from tests.fakes.writing import Writing
from tests.mcp_server.served import token_for

People: TypeAlias = Callable[..., Awaitable[Person]]
SCOPES = ("runs:read", "runs:write", "approvals:decide", "admin")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    if program() is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    async with started() as browser:
        yield browser


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def model() -> Writing:
    return Writing()


@pytest_asyncio.fixture(loop_scope="session")
async def deps(hands: Hands, model: Writing, tmp_path: Path) -> AsyncIterator[Deps]:
    async with opened(model, clock=hands) as found:
        yield replace(found, approvers=Approvers(tmp_path))


@pytest_asyncio.fixture(loop_scope="session")
async def site(deps: Deps) -> AsyncIterator[Site]:
    served = Site(deps)
    await served.start()
    yield served
    await served.stop()


@pytest.fixture
def tools(site: Site) -> Tools:
    return site.tools


@pytest_asyncio.fixture(loop_scope="session")
async def people(site: Site, chromium: Browser) -> AsyncIterator[People]:
    """Opens a window each for those who look; at the end none of their pages has done what no page may."""
    windows: list[Person] = []

    async def come(name: str = "", **options: Any) -> Person:
        """`name` has logged in; "" has not."""
        context = await chromium.new_context(locale="en-GB", timezone_id="UTC", **options)
        context.set_default_timeout(WAIT_MS)
        watch = Watch(site.url)
        watch.attach(context)
        person = Person(context, await context.new_page(), watch)
        windows.append(person)
        if name:
            await person.log_in(await token_for(site.deps, name, *SCOPES))
        return person

    yield come
    for person in windows:
        await person.context.close()
    assert [person.watch.faults() for person in windows] == [{}] * len(windows)


@pytest_asyncio.fixture(loop_scope="session")
async def ann(people: People) -> Person:
    """Sees everything, and decides."""
    return await people("ann")
