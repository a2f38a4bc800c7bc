"""Runs started from a page, and lists that keep up with them; and that the watch over all pages is not blind."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Person
from tests.browser.conftest import People
from tests.browser.graphs import TALE
from tests.fakes.opened import Tools
from tests.fakes.writing import Writing
from tests.tools.specs import echo, keep

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]


async def test_a_council_is_started_from_its_template_and_seen_to_its_end(ann: Person, tools: Tools) -> None:
    await ann.go("/templates?query=parallel")
    await ann.page.click("a[href='/templates/parallel_council']")
    await ann.sees("#drawing svg")
    assert await ann.page.input_value("#input")
    await ann.page.fill("#input", "Is it <b>sound</b>?")
    await ann.page.get_by_role("button", name="Store the graph and start a run").click()
    await ann.sees("#notice", "The run was started.")
    await ann.sees("#standing .status-completed")
    await ann.sees("#result", "Looks sound.")
    (run,) = (await tools.ok("graph_run_list"))["runs"]
    assert ann.page.url.endswith(f"/runs/{run['run_id']}")


async def test_a_form_that_is_sent_twice_starts_one_run(ann: Person, tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    await ann.go("/graphs/echo")
    await ann.page.fill("#input", "once")
    await ann.page.get_by_role("button", name="Start").dblclick()
    await ann.sees("#standing .status-completed")
    await ann.page.go_back()
    assert len((await tools.ok("graph_run_list"))["runs"]) == 1


async def test_a_field_of_a_schema_is_asked_for_and_checked(ann: Person, tools: Tools) -> None:
    schema = {
        "type": "object", "required": ["amount"],
        "properties": {"amount": {"type": "integer", "minimum": 1}, "why": {"type": "string", "maxLength": 50}},
    }  # fmt: skip
    await tools.ok("graph_create", spec=keep() | {"input_schema": schema})
    await ann.go("/graphs/keep")
    await ann.page.get_by_label("Amount").fill("0")
    await ann.page.get_by_role("button", name="Start").click()
    assert await ann.page.evaluate("document.querySelector('[name=\"p.amount\"]').validity.rangeUnderflow")
    await ann.page.get_by_label("Amount").fill("3")
    await ann.page.get_by_role("button", name="Start").click()
    await ann.sees("#standing .status-completed")
    assert (await tools.ok("graph_run_list"))["runs"][0]["status"] == "completed"


async def test_the_list_of_runs_keeps_up_with_them(ann: Person, tools: Tools, model: Writing) -> None:
    await tools.ok("graph_create", spec=TALE)
    await ann.go("/runs")
    await ann.sees("#none")
    await ann.mark()
    await tools.run("tale", "a tale")
    await ann.sees("#list .status-running")
    model.end()
    await ann.sees("#list .status-completed")
    assert await ann.still_here()


async def test_what_no_page_may_do_is_seen_when_one_does_it(people: People) -> None:
    eve = await people()
    await eve.go("/login")
    await eve.page.evaluate("""() => {
      const image = document.createElement("img");
      image.src = "http://evil.example/x.png";
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(image, script);
      alert("seen?");
    }""")
    await eve.page.evaluate("fetch('/nothing.js').then((answer) => answer.text())")
    found = eve.watch.faults()
    assert await eve.page.evaluate("window.ran === undefined")
    assert found["dialogs"] == ["seen?"]
    assert "Content Security Policy" in " ".join(found["said"])
    assert [text for text in found["broken"] if text.startswith("404 ")]
    assert all("evil.example" in url for url in found.get("outside", []))
    for texts in (eve.watch.dialogs, eve.watch.said, eve.watch.broken, eve.watch.outside):
        texts.clear()


async def test_a_page_reaches_no_other_server_even_where_the_policy_would_let_it(people: People) -> None:
    eve = await people(bypass_csp=True)
    await eve.go("/login")
    failed = await eve.page.evaluate("fetch('http://evil.example/').then(() => false, () => true)")
    assert failed
    assert eve.watch.faults()["outside"] == ["http://evil.example/"]
    for texts in (eve.watch.said, eve.watch.broken, eve.watch.outside):
        texts.clear()
