"""Deciding in the console: what is shown is what is decided on, each way to decide, each refusal told on the page."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agent_graph.engine.approvers import Proof
from agent_graph.tools.deps import Caller, Deps
from tests.console.browser import Browser, House
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools
from tests.mcp_server.served import token_for
from tests.tools.specs import gated

DRAFT = {"draft": {"title": "Hello", "lines": ["one", "two"]}}
MARKUP = '</pre><script>alert(1)</script><img src=x onerror=alert(1)>\u202eevil "quoted" & more'


async def waiting(tools: Tools, value: Any = None, **config: Any) -> str:
    """A run that waits at its gate; returns the approval's id."""
    await tools.ok("graph_create", spec=gated(**config), overwrite=True)
    run_id = await tools.run("gated", DRAFT if value is None else value)
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    return str((await tools.ok("graph_approval_list", run_id=run_id))["approvals"][0]["approval_id"])


async def approval(tools: Tools, approval_id: str) -> Any:
    return (await tools.ok("graph_approval_get", approval_id=approval_id))["approval"]


async def test_the_inbox_leads_to_what_is_decided_on_whole_with_its_digest(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, {"draft": "x" * 40_000}, audience=["editors"], quorum=2)
    inbox = await ann.get("/")
    assert f"/approvals/{asked}" in inbox.links
    page = await ann.get(f"/approvals/{asked}")
    gate = await approval(tools, asked)
    assert page.exact("subject") == "x" * 40_000
    assert page.text("digest") == gate["subject_digest"]
    assert (page.text("audience"), page.text("quorum")) == ("editors", "2 people to approve")
    assert "2027-01-" in page.text("expires")


@pytest.mark.parametrize(
    ("decision", "came_to"),
    [("approve", "approved"), ("reject", "rejected"), ("request_changes", "changes_requested")],
)
async def test_a_decision_is_recorded_as_the_console_s_of_who_is_logged_in(
    ann: Browser, tools: Tools, decision: str, came_to: str
) -> None:
    asked = await waiting(tools)
    page = await ann.get(f"/approvals/{asked}")
    after = await ann.send(page, "decide", decision=decision, decision_note="why\nnot", decided_by="somebody else")
    assert after.status == 200
    assert came_to.replace("_", " ") in after.text("notice")
    gate = await approval(tools, asked)
    vote = gate["votes"][0]
    assert gate["status"] == came_to
    assert (vote["via"], vote["principal"], vote["decided_by"]) == ("console", "ann", "ann")
    assert (vote["decision_note"], vote["subject_digest"]) == ("why\nnot", gate["subject_digest"])
    history = await ann.get(f"/approvals?status={came_to}")
    assert f"/approvals/{asked}" in history.links
    assert "decide" not in after.forms


async def test_a_form_without_a_decision_decides_nothing(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    page = await ann.send(await ann.get(f"/approvals/{asked}"), "decide", decision_note="keep this")
    assert (page.status, page.text("code")) == (400, "INVALID_ARGUMENT")
    assert page.forms["decide"]["decision_note"] == "keep this"
    assert (await approval(tools, asked))["votes"] == []


async def test_a_form_sent_twice_is_one_vote(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, quorum=2)
    page = await ann.get(f"/approvals/{asked}")
    for _ in range(2):
        assert (await ann.send(page, "decide", decision="approve")).status == 200
    assert len((await approval(tools, asked))["votes"]) == 1


async def test_of_two_browsers_that_race_one_decides_and_the_other_is_shown_what_was_decided(
    ann: Browser, house: House, deps: Deps, tools: Tools
) -> None:
    asked = await waiting(tools)
    async with house.browser() as other:
        await other.log_in(await token_for(deps, "cid", "admin"))
        pages = [await browser.get(f"/approvals/{asked}") for browser in (ann, other)]
        sent = await asyncio.gather(
            ann.send(pages[0], "decide", decision="approve"), other.send(pages[1], "decide", decision="reject")
        )
    assert sorted(page.status for page in sent) == [200, 409]
    late = next(page for page in sent if page.status == 409)
    assert late.text("code") == "APPROVAL_ALREADY_DECIDED"
    gate = await approval(tools, asked)
    assert gate["decision"]["by"] in late.text("outcome")
    assert len(gate["votes"]) == 1


async def test_a_subject_that_was_edited_meanwhile_is_shown_again_before_it_is_decided(
    ann: Browser, tools: Tools, deps: Deps
) -> None:
    asked = await waiting(tools, quorum=2, allowed_decisions=["approve", "edit"])
    page = await ann.get(f"/approvals/{asked}")
    other = Tools(deps, Caller("cli", principal="cid"))
    patch = [{"op": "replace", "path": "/title", "value": "Changed"}]
    await other.ok("graph_approval_decide", approval_id=asked, decision="edit", decided_by="cid", patch=patch)
    stale = await ann.send(page, "decide", decision="approve")
    assert (stale.status, stale.text("code")) == (409, "APPROVAL_STALE")
    assert "Changed" in stale.exact("subject")
    assert len((await approval(tools, asked))["votes"]) == 1
    assert (await ann.send(stale, "decide", decision="approve")).status == 200
    assert (await approval(tools, asked))["status"] == "approved"


async def test_an_expired_approval_says_so_and_takes_nothing(ann: Browser, tools: Tools, hands: Hands) -> None:
    asked = await waiting(tools, expiry_ms=60_000)
    page = await ann.get(f"/approvals/{asked}")
    hands.at_ms += 61_000
    late = await ann.send(page, "decide", decision="approve")
    assert (late.status, late.text("code")) == (409, "APPROVAL_EXPIRED")
    assert "expired" in late.text("outcome")
    assert (await approval(tools, asked))["votes"] == []


async def test_a_gate_that_does_not_take_the_console_s_word_says_which_it_takes(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, channels=["cli"])
    page = await ann.get(f"/approvals/{asked}")
    assert f"agent-graph approvals decide {asked}" in page.text("lacks")
    assert "decide" not in page.forms
    key = page.forms["/logout"]["form_key"]
    forced = await ann.post(f"/approvals/{asked}", {"form_key": key, "decision": "approve"})
    assert (forced.status, forced.text("code")) == (403, "APPROVAL_CHANNEL_NOT_ALLOWED")
    assert (await approval(tools, asked))["votes"] == []


async def test_at_a_gate_closed_to_models_an_approver_s_secret_is_asked_for(
    ann: Browser, tools: Tools, deps: Deps, hands: Hands
) -> None:
    await deps.approvers.add(Proof("ada", "correct horse"), voucher=None, now_ms=hands.at_ms)
    asked = await waiting(tools, channels=["console"])
    page = await ann.get(f"/approvals/{asked}")
    assert ("input", "password") in {(tag, about.get("type", "")) for tag, about in page.tags}
    without = await ann.send(page, "decide", decision="approve")
    assert (without.status, without.text("code")) == (403, "APPROVER_REQUIRED")
    wrong = await ann.send(page, "decide", decision="approve", approver="ada", secret="wrong horse")
    assert (wrong.status, wrong.text("code")) == (403, "APPROVER_SECRET_WRONG")
    assert "wrong horse" not in wrong.html
    assert (await approval(tools, asked))["votes"] == []
    right = await ann.send(page, "decide", decision="approve", approver="ada", secret="correct horse")
    assert right.status == 200, right.html
    gate = await approval(tools, asked)
    assert gate["status"] == "approved"
    assert (gate["votes"][0]["decided_by"], gate["votes"][0]["principal"]) == ("ada", "ann")


async def test_an_open_gate_asks_for_no_secret(ann: Browser, tools: Tools, deps: Deps, hands: Hands) -> None:
    await deps.approvers.add(Proof("ada", "correct horse"), voucher=None, now_ms=hands.at_ms)
    page = await ann.get(f"/approvals/{await waiting(tools)}")
    assert "approver" not in page.forms["decide"]


# -- edit ----------------------------------------------------------------------------------------------------------

EDITABLE: dict[str, Any] = {"allowed_decisions": ["approve", "edit"]}


async def test_an_edit_is_shown_as_a_change_and_then_goes_on_as_a_patch(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, **EDITABLE)
    page = await ann.get(f"/approvals/{asked}/edit")
    typed = json.loads(page.forms["edit-form"]["subject"])
    assert typed == DRAFT["draft"]
    typed["lines"] = ["one", "2", "three"]
    shown = await ann.send(page, "edit-form", subject=json.dumps(typed))
    patch = [
        {"op": "replace", "path": "/lines/1", "value": "2"}, {"op": "add", "path": "/lines/-", "value": "three"},
    ]  # fmt: skip
    assert json.loads(shown.exact("patch")) == patch
    assert (await approval(tools, asked))["votes"] == []
    again = await ann.send(shown, "again-form")
    assert json.loads(again.forms["edit-form"]["subject"]) == typed
    done = await ann.send(shown, "confirm-form", decision_note="better so")
    assert done.status == 200, done.html
    gate = await approval(tools, asked)
    assert (gate["status"], gate["subject"], gate["votes"][0]["patch"]) == ("approved", typed, patch)
    assert "+ added: " in done.html.replace('<span class="sr">', " ").replace("</span>", "")


async def test_an_edit_can_be_typed_as_a_patch(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, **EDITABLE)
    page = await ann.get(f"/approvals/{asked}/edit")
    patch = [{"op": "test", "path": "/title", "value": "Hello"}, {"op": "remove", "path": "/lines/0"}]
    shown = await ann.send(page, "patch-form", patch=json.dumps(patch))
    assert json.loads(shown.exact("patch")) == patch
    assert json.loads((await ann.send(shown, "again-form")).forms["edit-form"]["subject"])["lines"] == ["two"]
    assert (await approval(tools, asked))["votes"] == []
    await ann.send(shown, "confirm-form")
    gate = await approval(tools, asked)
    assert (gate["subject"], gate["votes"][0]["patch"]) == ({"title": "Hello", "lines": ["two"]}, patch)


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ("{", "INPUT_INVALID"), ("[]", "INVALID_ARGUMENT"), ("{}", "INVALID_ARGUMENT"),
        ('[{"op": "add"}]', "INVALID_ARGUMENT"),
        ('[{"op": "remove", "path": "/none"}]', "APPROVAL_EDIT_INVALID"), ('[{"path": ""}]', "APPROVAL_EDIT_INVALID"),
        ('[{"op": "test", "path": "/title", "value": "Hello"}]', "INVALID_ARGUMENT"),
    ],
)  # fmt: skip
async def test_a_patch_that_does_not_fit_is_told_and_kept(ann: Browser, tools: Tools, patch: str, code: str) -> None:
    asked = await waiting(tools, **EDITABLE)
    page = await ann.send(await ann.get(f"/approvals/{asked}/edit"), "patch-form", patch=patch)
    assert (page.status, page.text("code")) == (400, code), page.html
    assert page.forms["patch-form"]["patch"] == patch
    assert (await approval(tools, asked))["votes"] == []


@pytest.mark.parametrize("text", ["one\ntwo\n", "\nbegins with a new line", "one\r\ntwo\r\n", " spaces \n\n"])
async def test_a_text_comes_back_from_the_browser_as_it_went(ann: Browser, tools: Tools, text: str) -> None:
    asked = await waiting(tools, {"draft": text}, **EDITABLE)
    page = await ann.get(f"/approvals/{asked}/edit")
    same = await ann.send(page, "edit-form")
    assert (same.status, "nothing was changed" in same.text("wrong")) == (400, True)
    more = await ann.send(page, "edit-form", subject=page.forms["edit-form"]["subject"] + "end")
    await ann.send(more, "confirm-form")
    assert (await approval(tools, asked))["subject"] == text + "end"


async def test_what_is_no_json_is_told_and_kept(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, **EDITABLE)
    page = await ann.send(await ann.get(f"/approvals/{asked}/edit"), "edit-form", subject='{"title": ')
    assert page.status == 400
    assert page.forms["edit-form"]["subject"] == '{"title": '
    assert (await approval(tools, asked))["votes"] == []


async def test_an_edit_that_does_not_fit_the_schema_is_refused(ann: Browser, tools: Tools) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    asked = await waiting(tools, subject_schema=schema, **EDITABLE)
    shown = await ann.send(await ann.get(f"/approvals/{asked}/edit"), "edit-form", subject='{"title": 3}')
    refused = await ann.send(shown, "confirm-form")
    assert (refused.status, refused.text("code")) == (400, "APPROVAL_EDIT_INVALID")
    assert (await approval(tools, asked))["votes"] == []


async def test_what_changed_while_somebody_edited_is_said_and_their_text_kept(
    ann: Browser, tools: Tools, deps: Deps
) -> None:
    asked = await waiting(tools, quorum=2, **EDITABLE)
    page = await ann.get(f"/approvals/{asked}/edit")
    shown = await ann.send(page, "edit-form", subject='{"title": "mine"}')
    other = Tools(deps, Caller("cli", principal="cid"))
    patch = [{"op": "replace", "path": "/title", "value": "Changed"}]
    await other.ok("graph_approval_decide", approval_id=asked, decision="edit", decided_by="cid", patch=patch)
    for stale in (
        await ann.send(page, "edit-form", subject='{"title": "mine"}'), await ann.send(shown, "again-form"),
    ):  # fmt: skip
        assert (stale.status, stale.forms["edit-form"]["subject"]) == (409, '{"title": "mine"}')
    refused = await ann.send(shown, "confirm-form")
    assert (refused.status, refused.text("code")) == (409, "APPROVAL_STALE")
    assert len((await approval(tools, asked))["votes"]) == 1


async def test_a_gate_that_takes_no_edit_offers_none(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    assert f"/approvals/{asked}/edit" not in (await ann.get(f"/approvals/{asked}")).links
    refused = await ann.get(f"/approvals/{asked}/edit")
    assert (refused.status, refused.text("code")) == (409, "APPROVAL_DECISION_NOT_ALLOWED")


# -- who ------------------------------------------------------------------------------------------------------------


async def test_another_principal_sees_nothing_and_decides_nothing(bob: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    gate = await approval(tools, asked)
    assert (await bob.get("/approvals")).text("none") == "Nothing waits for a decision."
    assert (await bob.get("/runs")).text("none") == "No runs match."
    for path in (f"/approvals/{asked}", f"/approvals/{asked}/edit", f"/runs/{gate['run_id']}",
                 f"/runs/{gate['run_id']}/live"):  # fmt: skip
        page = await bob.get(path)
        assert page.status == 404, path
        assert "Hello" not in page.html
    key = (await bob.get("/approvals")).forms["/logout"]["form_key"]
    forced = await bob.post(f"/approvals/{asked}", {"form_key": key, "decision": "approve"})
    assert (forced.status, forced.text("code")) == (404, "APPROVAL_NOT_FOUND")
    assert asked not in (await bob.get("/log.csv")).html
    assert (await approval(tools, asked))["votes"] == []


async def test_who_may_not_decide_is_shown_no_form_and_refused(house: House, deps: Deps, tools: Tools) -> None:
    reader = Tools(deps, Caller("assistant", principal="eve"))
    asked = await waiting(reader)
    async with house.browser() as eve:
        await eve.log_in(await token_for(deps, "eve", "runs:read"))
        page = await eve.get(f"/approvals/{asked}")
        assert "approvals:decide" in page.text("lacks")
        key = page.forms["/logout"]["form_key"]
        forced = await eve.post(f"/approvals/{asked}", {"form_key": key, "decision": "approve"})
    assert (forced.status, forced.text("code")) == (403, "INSUFFICIENT_SCOPE")
    assert (await approval(tools, asked))["votes"] == []


async def test_the_local_user_decides_by_the_name_they_give(house: House, stranger: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    page = await stranger.get(f"/login?link={house.served.sessions.link()}")
    assert (await stranger.send(page, "login")).status == 200
    await stranger.send(await stranger.get(f"/approvals/{asked}"), "decide", decision="approve", decided_by="Ada")
    vote = (await approval(tools, asked))["votes"][0]
    assert (vote["decided_by"], vote["via"], vote.get("principal", "")) == ("Ada", "console", "")


async def test_what_others_have_written_is_text_and_what_cannot_be_seen_is_marked(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, {"draft": MARKUP}, prompt=MARKUP, audience=[MARKUP], quorum=2)
    gate = await approval(tools, asked)
    page = await ann.get(f"/approvals/{asked}")
    await ann.send(page, "decide", decision="approve", decision_note=MARKUP)
    for path in ("/approvals", f"/approvals/{asked}", f"/approvals?audience={MARKUP[:20]}", "/log", "/runs",
                 f"/runs/{gate['run_id']}"):  # fmt: skip
        page = await ann.get(path)
        assert page.status == 200, path
        scripts = [about for tag, about in page.tags if tag == "script"]
        assert scripts == [{"src": "/static/console.js", "defer": ""}], path
        assert {about["src"] for tag, about in page.tags if tag == "img"} <= {"/static/mark.svg"}, path
        assert "\u202e" not in page.html, path
    assert "U+202E" in (await ann.get(f"/approvals/{asked}")).text("subject")


async def test_the_log_can_be_kept_as_csv_and_json(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    await ann.send(await ann.get(f"/approvals/{asked}"), "decide", decision="approve", decision_note="=1+1")
    page = await ann.get("/log")
    assert "decided: approve by ann" in " ".join(page.html.replace("<strong>", "").replace("</strong>", "").split())
    csv = await ann.get("/log.csv")
    assert csv.response.headers["content-type"] == "text/csv; charset=utf-8"
    assert "'=1+1" in csv.html
    assert [line["what"] for line in json.loads((await ann.get("/log.json")).html)] == ["opened", "voted", "decided"]
    assert json.loads((await ann.get("/log.json?graph=another")).html) == []


async def test_the_list_is_paged(ann: Browser, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_graph.console.views import approvals

    monkeypatch.setattr(approvals, "ROWS", 1)
    first, second = await waiting(tools), await waiting(tools)
    page = await ann.get("/approvals")
    assert f"/approvals/{first}" in page.links
    following = next(link for link in page.links if "cursor=" in link)
    page = await ann.get(following)
    assert f"/approvals/{second}" in page.links
    assert f"/approvals/{first}" not in page.links
