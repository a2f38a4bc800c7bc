"""Whatever a graph, a model or a person writes is text on every page: nothing of it runs, loads or leads away."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.browser.chromium import Person
from tests.browser.conftest import People
from tests.browser.graphs import followed, stopped
from tests.browser.site import Site
from tests.fakes.opened import Tools
from tests.fakes.writing import Writing
from tests.mcp_server.served import token_for
from tests.specs import Json, gate, llm, put, spec

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

EVILS = (
    "<script>window.ran = 1; alert(1)</script>",
    "</svg><script>window.ran = 2</script>",
    "</title></textarea></pre></style></script><script>window.ran = 3</script>",
    "<img src=x onerror='window.ran = 4'><iframe src='javascript:parent.ran = 5'></iframe>",
    "<svg onload='window.ran = 6'><a xlink:href='javascript:window.ran = 7'>",
    '" onmouseover="window.ran = 8" autofocus onfocus="window.ran = 9" x="',
    "javascript:window.ran = 10",
    "[click](javascript:window.ran=11) {{ 7 * 7 }} ${7*7} <base href=//evil.example> &lt;b&gt;",
    "<link rel=stylesheet href=//evil.example/x.css><meta http-equiv=refresh content='0;url=//evil.example'>",
    "<form action=//evil.example><input name=token></form>",
)
EVIL = " ".join(EVILS)
ONE = EVIL[:2_000]


def graph() -> Json:
    labelled = {"label": "</svg><script>ran=12</script>", "description": ONE}
    nodes = [
        llm("say", "Say it: {input}", output_key="said") | labelled,
        gate("ask", prompt=ONE, subject_key="said", output_key="decision", audience=["<b>editors"],
             allowed_decisions=["approve", "reject", "edit"]) | labelled,
        llm("tell", "Tell slowly", output_key="tale") | labelled,
        put("z", done=EVIL) | labelled,
    ]  # fmt: skip
    return spec(*nodes, edges="say>ask ask>tell tell>z z>END", name="evil", description=ONE)


async def harmless(person: Person, path: str) -> None:
    """The page as it stands, then with everything pointed at that can be."""
    if path:
        await person.go(path)
    page = person.page
    assert await page.evaluate("window.ran === undefined"), page.url
    assert await page.locator("script").count() == 1, page.url
    made = "img[src=x], iframe, base, link[href*='//evil'], meta[http-equiv], form[action*='//evil']"
    assert await page.locator(made).count() == 0
    links = await page.locator("a").evaluate_all("all => all.map(one => one.href.baseVal ?? one.href)")
    assert not [link for link in links if not link.startswith(person.watch.url)], links
    on = "[onerror], [onload], [onfocus], [onmouseover]"
    assert await page.locator(on).count() == 0
    await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert await page.evaluate("window.ran === undefined"), page.url


async def test_nothing_that_looks_like_markup_does_anything_on_any_page(
    ann: Person, tools: Tools, model: Writing
) -> None:
    model.answer = EVIL
    await tools.ok("graph_create", spec=graph())
    run_id = await tools.run("evil", {"input": EVIL}, thread_id="<img src=x onerror=ran=13>")
    asked = (await stopped(tools, run_id))["approval_id"]
    for path in ("/approvals", f"/approvals/{asked}", "/runs", f"/runs/{run_id}", "/graphs", "/graphs/evil",
                 "/log", "/templates"):  # fmt: skip
        await harmless(ann, path)
    await ann.go(f"/approvals/{asked}")
    assert ONE[:40] in await ann.page.title()
    await ann.go(f"/approvals/{asked}/edit")
    await harmless(ann, "")
    assert await ann.page.input_value("#subject") == EVIL
    await ann.page.fill("#subject", EVIL + "\n" + EVIL)
    await ann.page.click("#compare")
    await harmless(ann, "")
    await ann.page.fill("#decision_note", EVIL)
    await ann.page.click("#confirm")
    await ann.sees("#notice")
    await harmless(ann, "")
    await model.began.wait()
    run = f"/runs/{run_id}"
    await ann.go(run)
    await followed(tools, run_id)
    model.write(EVIL)
    await ann.sees("#texts pre", EVILS[0])
    await harmless(ann, "")
    model.end()
    await ann.sees("#standing .status-completed")
    await ann.sees(".event", "run completed")
    await harmless(ann, "")
    for path in ("/log", "/approvals?status=all", "/runs?status=completed", run):
        await harmless(ann, path)
    assert json.loads(await ann.page.inner_text("#state"))["done"] == EVIL


async def test_a_login_leads_to_no_other_server(people: People, site: Site) -> None:
    ann, token = await people(), await token_for(site.deps, "ann", "admin")
    for following in (
        "//evil.example/", "javascript:alert(1)", "/approvals/%2e%2e//evil.example", "https://evil.example",
        "/%5Cevil.example", "/approvals%0d%0aset-cookie:a=b", "/runs/..%2f..%2f%2fevil.example",
    ):  # fmt: skip
        await ann.context.clear_cookies()
        await ann.go(f"/login?next={following}")
        await ann.page.fill("#token", token)
        await ann.page.click("#log-in")
        await ann.sees("#log-out")
        assert ann.page.url == f"{site.url}/approvals", following


async def test_what_stands_in_the_address_is_text_too(ann: Person) -> None:
    for name in ("status", "graph", "audience"):
        await harmless(ann, f"/approvals?{name}={quote(EVIL[:60])}")
    for path in ("/approvals/", "/runs/", "/runs?graph=", "/graphs?query=", "/log?run=", "/"):
        await harmless(ann, f"{path}{quote('<script>ran=1</script>')}")


async def test_a_failure_told_by_a_server_of_models_is_text_too(ann: Person, tools: Tools) -> None:
    await tools.ok("graph_create", spec=spec(gate("h"), edges="h>END", name="no"))
    run_id = await tools.run("no", {})
    asked = await stopped(tools, run_id)
    vote = {"approval_id": asked["approval_id"], "decision": "reject", "decided_by": "<b>me", "decision_note": ONE}
    await tools.ok("graph_approval_decide", **vote)
    await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
    for path in (f"/runs/{run_id}", "/runs?status=failed", f"/approvals/{asked['approval_id']}", "/log"):
        await harmless(ann, path)
