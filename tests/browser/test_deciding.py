"""Deciding in a real browser: each decision, an edit, two who are there at once, a gate whose time ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_graph.engine.approvers import Proof
from tests.browser.chromium import Person
from tests.browser.conftest import People
from tests.browser.graphs import DRAFT, approval, waiting
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools

ANY = ["approve", "reject", "edit"]
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]


async def choose(person: Person, decision: str, note: str = "") -> None:
    await person.page.check(f"#decision-{decision}")
    await person.page.fill("#decision_note", note)


@pytest.mark.parametrize(
    ("decision", "came_to"),
    [("approve", "approved"), ("reject", "rejected"), ("request_changes", "changes requested")],
)
async def test_a_decision_is_taken_from_the_inbox_to_the_record(
    ann: Person, tools: Tools, decision: str, came_to: str
) -> None:
    asked = await waiting(tools)
    await ann.go("/")
    await ann.page.get_by_role("link", name="May this be sent?").click()
    assert '"lines": [' in await ann.page.inner_text("#subject")
    await choose(ann, decision, "so be it")
    await ann.page.click("#record")
    await ann.sees("#notice", f"Decided: {came_to}.")
    said = decision.replace("_", " ")
    assert await ann.reads("#outcome") == f"Decision {said} By ann (console) At 2027-01-15 08:00:00 UTC Note so be it"
    gate = await approval(tools, asked["approval_id"])
    vote: Any = gate["votes"][0]
    assert (vote["via"], vote["principal"], vote["decision_note"]) == ("console", "ann", "so be it")
    assert vote["subject_digest"] == asked["subject_digest"]
    assert await ann.page.locator("#decide").count() == 0


async def test_without_a_choice_the_browser_itself_asks_for_one(ann: Person, tools: Tools) -> None:
    asked = await waiting(tools)
    await ann.go(f"/approvals/{asked['approval_id']}")
    await ann.page.click("#record")
    assert await ann.page.evaluate("document.querySelector('#decision-approve').validity.valueMissing")
    assert (await approval(tools, asked["approval_id"]))["votes"] == []


async def test_an_edit_is_shown_as_a_comparison_and_goes_on_changed(ann: Person, tools: Tools) -> None:
    asked = await waiting(tools, allowed_decisions=ANY)
    await ann.go(f"/approvals/{asked['approval_id']}")
    await ann.page.click("#edit")
    text = await ann.page.input_value("#subject")
    await ann.page.fill("#subject", text.replace('"two"', '"zwei",\n    "drei"'))
    await ann.page.click("#compare")
    assert (await ann.page.locator(".diff .removed .line").all_inner_texts()) == ['    "two"']
    assert (await ann.page.locator(".diff .added .line").all_inner_texts()) == ['    "zwei",', '    "drei"']
    assert (await approval(tools, asked["approval_id"]))["votes"] == []
    await ann.page.click("#again")
    assert '"drei"' in await ann.page.input_value("#subject")
    await ann.page.click("#compare")
    await ann.page.fill("#decision_note", "more of it")
    await ann.page.click("#confirm")
    await ann.sees("#notice", "Decided: approved.")
    await ann.sees(".diff .added", '"zwei"')
    gate = await approval(tools, asked["approval_id"])
    assert gate["subject"] == {"title": "Hello", "lines": ["one", "zwei", "drei"]}
    assert gate["original_subject"] == DRAFT["draft"]
    waited = await tools.ok("graph_run_wait", run_id=asked["run_id"], timeout_ms=10_000)
    assert waited["run"]["status"] == "completed"


async def test_what_is_no_json_is_told_and_kept(ann: Person, tools: Tools) -> None:
    asked = await waiting(tools, allowed_decisions=ANY)
    await ann.go(f"/approvals/{asked['approval_id']}/edit")
    await ann.page.fill("#subject", '{"title": ')
    await ann.page.click("#compare")
    await ann.sees("#wrong")
    assert await ann.page.input_value("#subject") == '{"title": '


async def test_of_two_browsers_that_decide_at_once_one_wins_and_the_other_sees_who(
    people: People, tools: Tools
) -> None:
    asked = await waiting(tools)
    both = [await people("ann"), await people("bob")]
    for person, decision in zip(both, ("approve", "reject"), strict=True):
        await person.go(f"/approvals/{asked['approval_id']}")
        await choose(person, decision, f"says {decision}")
    await asyncio.gather(*(person.page.click("#record") for person in both))
    for person in both:
        await person.sees("#outcome")
    won = [person for person in both if await person.page.locator("#notice").count()]
    lost = [person for person in both if await person.page.locator("#wrong").count()]
    assert len(won) == len(lost) == 1
    gate = await approval(tools, asked["approval_id"])
    winner: Any = gate["votes"]
    assert len(winner) == 1
    assert await lost[0].reads("#code") == "APPROVAL_ALREADY_DECIDED"
    assert winner[0]["decided_by"] in await lost[0].reads("#wrong")
    assert f"By {winner[0]['decided_by']} (console)" in await lost[0].reads("#outcome")
    assert f"says {winner[0]['decision']}" in await lost[0].reads("#outcome")


async def test_who_has_the_page_open_is_told_that_somebody_else_decided(people: People, tools: Tools) -> None:
    asked = await waiting(tools)
    ann, bob = await people("ann"), await people("bob")
    await ann.go(f"/approvals/{asked['approval_id']}")
    await choose(ann, "reject", "half a thought")
    await bob.go(f"/approvals/{asked['approval_id']}")
    await choose(bob, "approve")
    await bob.page.click("#record")
    await ann.sees("#news", "Something happened to it.")
    assert await ann.page.input_value("#decision_note") == "half a thought"
    await ann.page.click("#news a")
    await ann.sees("#outcome", "bob (console)")


async def test_the_inbox_gets_and_loses_its_lines_while_it_is_looked_at(
    ann: Person, tools: Tools, hands: Hands
) -> None:
    await ann.go("/approvals")
    await ann.sees("#none", "Nothing waits for a decision.")
    await ann.mark()
    first = await waiting(tools, name="first", expiry_ms=60_000)
    await ann.sees(f"a[href='/approvals/{first['approval_id']}']")
    await ann.sees(".meta", "expires in 1 min")
    hands.at_ms += 60_000
    tools.deps.supervisor.shell.notify.gates.set()
    await ann.sees("#none", "Nothing waits for a decision.")
    assert await ann.still_here()


async def test_an_approval_whose_time_ends_while_it_is_looked_at_says_so_and_takes_no_decision(
    ann: Person, tools: Tools, hands: Hands
) -> None:
    asked = await waiting(tools, expiry_ms=60_000)
    await ann.go(f"/approvals/{asked['approval_id']}")
    run = await ann.tab()
    await run.go(f"/runs/{asked['run_id']}")
    await ann.page.bring_to_front()
    await choose(ann, "approve")
    hands.at_ms += 60_000
    tools.deps.supervisor.shell.notify.gates.set()
    await ann.sees("#news", "Something happened to it.")
    await ann.page.click("#record")
    await ann.sees("#wrong")
    assert await ann.reads("#code") == "APPROVAL_EXPIRED"
    await ann.sees("#outcome", "Nobody decided: it is expired since 2027-01-15 08:01:00 UTC.")
    await run.page.bring_to_front()
    await run.sees("#standing .status-failed")
    await run.sees("#run-error", "APPROVAL_EXPIRED")


async def test_a_gate_closed_to_models_wants_the_secret_of_an_approver(ann: Person, tools: Tools) -> None:
    await tools.deps.approvers.add(Proof("carla", "a secret of hers"), voucher=None, now_ms=0)
    asked = await waiting(tools, channels=["console", "cli"])
    await ann.go(f"/approvals/{asked['approval_id']}")
    await choose(ann, "approve")
    await ann.page.select_option("#approver", "carla")
    await ann.page.fill("#secret", "no secret of hers")
    await ann.page.click("#record")
    await ann.sees("#wrong")
    assert await ann.page.input_value("#secret") == ""
    await ann.page.check("#decision-approve")
    await ann.page.select_option("#approver", "carla")
    await ann.page.fill("#secret", "a secret of hers")
    await ann.page.click("#record")
    await ann.sees("#outcome", "carla (console)")


async def test_without_its_script_the_console_decides_just_as_well(people: People, tools: Tools) -> None:
    asked = await waiting(tools)
    ann = await people("ann", java_script_enabled=False)
    await ann.go(f"/approvals/{asked['approval_id']}")
    await choose(ann, "approve")
    await ann.page.click("#record")
    await ann.sees("#notice", "Decided: approved.")
