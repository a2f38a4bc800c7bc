"""A run looked at while it goes on, without loading its page anew; and what a page does when its server or its session
goes."""

from __future__ import annotations

import pytest

from agent_graph.tools.deps import Caller
from tests.browser.chromium import Person
from tests.browser.graphs import ROUND, TALE, approval, come_true, followed, stopped, waiting
from tests.browser.site import Site
from tests.fakes.opened import Tools
from tests.fakes.writing import Writing
from tests.mcp_server.served import token_for

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]


async def told(tools: Tools, model: Writing) -> str:
    """A run whose model is in the middle of its answer."""
    await tools.ok("graph_create", spec=TALE)
    run_id = await tools.run("tale", "a tale")
    await model.began.wait()
    return run_id


async def test_a_run_goes_on_before_ones_eyes(ann: Person, tools: Tools, model: Writing) -> None:
    await tools.ok("graph_create", spec=ROUND)
    await tools.ok("graph_create", spec=TALE)
    run_id = await tools.run("letter", "to Ada")
    gate = await stopped(tools, run_id)
    await ann.go(f"/runs/{run_id}")
    await ann.mark()
    await ann.sees("g.node-completed", "draft")
    await ann.sees("g.node-waiting", "ask")
    assert await ann.page.locator(".way.taken").count() == 2
    events = await ann.page.locator(".event").count()
    await ann.sees("#pending a")
    vote = {"approval_id": gate["approval_id"], "decision": "approve", "decided_by": "Ada"}
    await Tools(tools.deps, Caller("cli")).ok("graph_approval_decide", **vote)
    await ann.sees("#standing .status-completed")
    await ann.sees("g.node-completed", "send")
    assert await ann.page.locator("g.node-completed").count() == 3
    assert await ann.page.locator(".way.taken").count() == 4
    assert await ann.page.locator(".event").count() > events
    await ann.sees("#result", "Looks sound.")
    assert await ann.still_here()
    seen = await ann.page.locator(".event").evaluate_all("all => all.map(one => one.id)")
    assert seen == [f"event-{number}" for number in range(len(seen))]


async def test_text_appears_as_the_model_writes_it(ann: Person, tools: Tools, model: Writing) -> None:
    run_id = await told(tools, model)
    await ann.go(f"/runs/{run_id}")
    await ann.mark()
    await ann.sees("g.node-running", "tell")
    await followed(tools, run_id)
    model.write(" a <b>time</b> there")  # the last word is held back until it is whole
    await ann.sees("#texts pre", " a <b>time</b>")
    model.write(" was a king ")
    await ann.sees("#texts pre", "a <b>time</b> there was a king")
    model.end()
    await ann.sees("#standing .status-completed")
    await ann.sees("#result", "Once upon a <b>time</b> there was a king")
    assert await ann.page.locator("#streamed").is_hidden()
    assert await ann.still_here()


async def test_a_run_that_is_cancelled_while_it_is_looked_at_says_so_and_is_followed_no_longer(
    ann: Person, tools: Tools, model: Writing
) -> None:
    run_id = await told(tools, model)
    await ann.go(f"/runs/{run_id}")
    await ann.sees("#standing .status-running")
    await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
    await ann.sees("#standing .status-cancelled")
    await ann.sees("g.node-cancelled", "tell")
    assert await ann.page.text_content("#live-status") == "The run is cancelled."
    asked = len(ann.watch.asked)
    await ann.page.wait_for_timeout(100)
    assert len(ann.watch.asked) == asked
    await ann.page.reload()
    assert not [path for path in ann.watch.asked[asked:] if "/live" in path]


async def test_a_page_outlives_its_server(ann: Person, tools: Tools, site: Site, model: Writing) -> None:
    run_id = await told(tools, model)
    await ann.go(f"/runs/{run_id}")
    await ann.sees("#standing .status-running")
    await site.stop()
    await site.start()  # nobody is logged in any more
    await ann.sees("#stale", "This page is kept up to date no longer.")
    assert await ann.page.locator("#stale[role=alert]").count() == 1
    await ann.page.click("#stale a")
    await ann.page.fill("#token", await token_for(site.deps, "bea", "admin"))
    await ann.page.click("#log-in")
    await ann.sees("#standing .status-running")
    assert ann.page.url == f"{site.url}/runs/{run_id}"
    model.end()
    await ann.sees("#standing .status-completed")
    ann.watch.forgive("net::ERR_", "401 ")


async def test_a_connection_that_was_lost_is_taken_up_again_where_it_was(
    ann: Person, tools: Tools, site: Site, model: Writing
) -> None:
    run_id = await told(tools, model)
    await ann.go(f"/runs/{run_id}")
    await ann.sees("g.node-running")
    await ann.mark()
    await site.stop()
    model.end()
    await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
    await site.start(keep=True)
    await ann.sees("#standing .status-completed")
    assert await ann.still_here()
    seen = await ann.page.locator(".event").evaluate_all("all => all.map(one => one.id)")
    assert seen == [f"event-{number}" for number in range(len(seen))]
    ann.watch.forgive("net::ERR_")


async def test_the_inbox_catches_up_with_what_it_missed(ann: Person, tools: Tools, site: Site) -> None:
    await ann.go("/approvals")
    await ann.sees("#none")
    await site.stop()
    asked = await waiting(tools)
    await site.start(keep=True)
    await ann.sees(f"a[href='/approvals/{asked['approval_id']}']")
    ann.watch.forgive("net::ERR_")


async def test_a_tab_says_at_once_that_another_has_logged_out(ann: Person, tools: Tools) -> None:
    asked = await waiting(tools)
    run, other = await ann.tab(), await ann.tab()
    await run.go(f"/runs/{asked['run_id']}")
    await other.go("/runs")
    await ann.page.bring_to_front()
    await ann.go(f"/approvals/{asked['approval_id']}")
    await ann.page.check("#decision-approve")
    await other.page.evaluate("document.querySelector('form.who').submit()")  # behind, as another window would
    for page in (ann, run):
        await page.sees("#stale", "You are logged out.")
    await ann.page.click("#record")
    await ann.sees("#code", "ACCESS_TOKEN_INVALID")
    assert (await approval(tools, asked["approval_id"]))["votes"] == []
    await run.page.click("#stale a")
    await run.sees("#token")
    ann.watch.forgive("401 ")


async def test_the_back_button_shows_nothing_to_who_has_logged_out(ann: Person, tools: Tools) -> None:
    asked = await waiting(tools, {"draft": "for my eyes only"})
    await ann.go("/approvals")
    await ann.go(f"/approvals/{asked['approval_id']}")
    await ann.sees("#subject", "for my eyes only")
    await ann.page.click("#log-out")
    await ann.sees("#token")
    for _ in range(2):
        await ann.page.go_back()
        await ann.sees("#token")
        assert "for my eyes only" not in await ann.page.content()


async def test_a_page_that_is_not_in_front_holds_no_connection(ann: Person, tools: Tools) -> None:
    notify = tools.deps.supervisor.shell.notify
    await ann.go("/approvals")
    await come_true(lambda: len(notify.listeners) == 1)
    await ann.page.evaluate("""() => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
      document.dispatchEvent(new Event("visibilitychange"));
    }""")
    await come_true(lambda: not notify.listeners)
    asked = await waiting(tools)
    await ann.page.evaluate("""() => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => false });
      document.dispatchEvent(new Event("visibilitychange"));
    }""")
    await ann.sees(f"a[href='/approvals/{asked['approval_id']}']")
