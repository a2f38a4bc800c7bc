"""From the login to a decision without a mouse: all of it can be reached, seen and pressed."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Person
from tests.browser.conftest import People
from tests.browser.graphs import approval, waiting
from tests.browser.site import Site
from tests.fakes.opened import Tools
from tests.mcp_server.served import token_for

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

WHERE = """() => {
  const at = document.activeElement;
  const style = getComputedStyle(at.closest(".row-head") ? at.closest(".row") : at.closest(".choice") || at);
  const shown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [at.id || at.textContent.trim().slice(0, 40) || at.tagName, shown || at.id === "main" || at === document.body];
}"""


async def tab_to(person: Person, name: str, *, most: int = 40) -> list[str]:
    """Press Tab until that is reached; all that was passed. Where one is can be seen each time."""
    passed: list[str] = []
    while len(passed) < most:
        await person.page.keyboard.press("Tab")
        where, shown = await person.page.evaluate(WHERE)
        assert shown, f"{where} has the focus and does not show it"
        passed.append(where)
        if where == name:
            return passed
    raise AssertionError(passed)


async def test_a_decision_without_a_mouse(people: People, tools: Tools, site: Site) -> None:
    asked = await waiting(tools, allowed_decisions=["approve", "reject", "edit"])
    ann = await people()
    await ann.go("/")
    keys = ann.page.keyboard
    await ann.sees("#token:focus")
    await keys.type(await token_for(site.deps, "ann", "admin"))
    await keys.press("Enter")
    await ann.sees("#log-out")
    assert await tab_to(ann, "Skip to the content") == ["Skip to the content"]
    await keys.press("Enter")
    passed = await tab_to(ann, "May this be sent?")
    assert "log-out" not in passed
    await keys.press("Enter")
    await ann.sees("#subject")
    await tab_to(ann, "decision-approve")
    await keys.press("ArrowDown")
    assert await ann.page.is_checked("#decision-reject")
    await tab_to(ann, "decision_note")
    await keys.type("not like this")
    await tab_to(ann, "record")
    await keys.press("Enter")
    await ann.sees("#notice", "Decided: rejected.")
    gate = await approval(tools, asked["approval_id"])
    assert [(vote["decision"], vote["decision_note"]) for vote in gate["votes"]] == [("reject", "not like this")]


async def test_an_edit_without_a_mouse(ann: Person, tools: Tools) -> None:
    asked = await waiting(tools, {"draft": "Dear Bob"}, allowed_decisions=["approve", "edit"])
    await ann.go(f"/approvals/{asked['approval_id']}")
    keys = ann.page.keyboard
    await tab_to(ann, "edit")
    await keys.press("Enter")
    await ann.sees("#edit-form")
    await tab_to(ann, "subject")
    await keys.press("Control+A")
    await keys.type("Dear Ada")
    await tab_to(ann, "compare")
    await keys.press("Enter")
    await ann.sees("#confirm-form")
    await tab_to(ann, "confirm")
    await keys.press("Enter")
    await ann.sees("#notice", "Decided: approved.")
    assert (await approval(tools, asked["approval_id"]))["subject"] == "Dear Ada"


async def test_what_comes_by_itself_takes_the_place_from_nobody(ann: Person, tools: Tools) -> None:
    first = await waiting(tools, name="first")
    await ann.go("/approvals")
    await tab_to(ann, "May this be sent?")
    await waiting(tools, name="second")
    await ann.sees("#news", "Load it anew")
    assert (
        await ann.page.evaluate("document.activeElement.getAttribute('href')") == f"/approvals/{first['approval_id']}"
    )
