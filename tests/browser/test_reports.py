"""The report of a run in a real browser, as a file: it loads nothing, runs nothing, and axe-core has nothing to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser

from agent_graph.console.report.making import made
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller
from tests.browser.chromium import Person, Watch, faults, too_wide, unshapely
from tests.browser.graphs import stopped
from tests.browser.test_hostile_texts import EVIL, graph
from tests.fakes.opened import Tools
from tests.fakes.writing import Writing

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]


async def written(tools: Tools, run_id: str) -> str:
    """The report."""

    async def ask(tool: str, arguments: JsonObject) -> Any:
        return await registry.call(tools.deps, tool, arguments, caller=Caller("cli"), whole=True)

    return (await made(ask, run_id, now_ms=tools.deps.clock.now_ms()))[0]


async def test_a_report_of_hostile_texts_is_a_page_like_any_other(
    tools: Tools, model: Writing, chromium: Browser, tmp_path: Path
) -> None:
    model.answer = EVIL
    await tools.ok("graph_create", spec=graph())
    run_id = await tools.run("evil", {"q": EVIL}, thread_id=EVIL[:100])
    await stopped(tools, run_id)
    file = tmp_path / "report.html"
    file.write_text(await written(tools, run_id), encoding="utf-8")
    address = file.as_uri()
    watch = Watch(address)
    for scheme, width in (("light", 1280), ("dark", 360)):
        context = await chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
        watch.attach(context)
        person = Person(context, await context.new_page(), watch)
        await person.page.goto(address)
        page = person.page
        assert await page.evaluate("window.ran === undefined")
        assert await page.locator("script, img, iframe, a, link, form, base, object").count() == 0
        assert await page.evaluate("getComputedStyle(document.querySelector('.panel')).borderTopWidth") == "1px"
        assert await faults(page) == []
        assert [fault for fault in await unshapely(page) if "something inline" not in fault] == []
        assert [fault for fault in await too_wide(page) if "timeline" not in fault] == []
        await context.close()
    assert watch.outside == [address, address]
    assert (watch.dialogs, watch.broken) == ([], [])
