"""What somebody may try against the console; each time nothing is changed, and what is wrong is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_graph.console import streaming
from agent_graph.console.sessions import IDLE_MS
from agent_graph.engine import approvers
from agent_graph.engine.approvers import Proof
from agent_graph.tools.deps import Caller, Deps
from tests.console.browser import OTHERS, Browser, House, served
from tests.console.test_approving import approval, waiting
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools
from tests.mcp_server.served import BASE, token_for
from tests.tools.specs import keep

FOREIGN = {
    "another server": {"origin": "https://evil.example"},
    "another port of this machine": {"origin": "http://127.0.0.1:3000"},
    "no origin of its own": {"origin": "null"},
    "as the browser says": {"sec-fetch-site": "cross-site"},
    "another port, as the browser says": {"sec-fetch-site": "same-site"},
}


@pytest.mark.parametrize("about", FOREIGN.values(), ids=list(FOREIGN))
async def test_a_form_of_a_page_of_another_server_does_nothing_even_with_the_right_key(
    ann: Browser, tools: Tools, about: dict[str, str]
) -> None:
    await tools.ok("graph_create", spec=keep())
    asked = await waiting(tools)
    page = await ann.get(f"/approvals/{asked}")
    fields = {**page.forms["decide"], "decision": "approve", "input": "x"}
    for path in (f"/approvals/{asked}", "/graphs/keep", "/templates/debate", "/logout"):
        answer = await ann.client.post(path, data=fields, headers=about)
        assert answer.status_code == 403, path
        assert "ORIGIN_NOT_ALLOWED" in answer.text
    assert (await approval(tools, asked))["votes"] == []
    assert len((await tools.ok("graph_run_list"))["runs"]) == 1
    assert (await ann.client.get("/approvals")).status_code == 200


async def test_a_page_that_may_use_mcp_may_not_send_forms(deps: Deps, tools: Tools) -> None:
    asked = await waiting(tools)
    async with served(deps, allowed_origins="https://app.example") as house, house.browser() as browser:
        await browser.log_in(await token_for(deps, "ann", "admin"))
        fields = {**(await browser.get(f"/approvals/{asked}")).forms["decide"], "decision": "approve"}
        answer = await browser.client.post(
            f"/approvals/{asked}", data=fields, headers={"origin": "https://app.example"}
        )
        assert (answer.status_code, "ORIGIN_NOT_ALLOWED" in answer.text) == (403, True)
        login = (await browser.get("/login")).forms["login"] | {"token": await token_for(deps, "bob", *OTHERS)}
        answer = await browser.client.post("/login", data=login, headers={"origin": "https://app.example"})
        assert answer.status_code == 403
    assert (await approval(tools, asked))["votes"] == []


async def test_a_decision_sent_again_is_the_same_and_a_new_one_too_late(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    page = await ann.get(f"/approvals/{asked}")
    for _ in range(2):
        assert (await ann.send(page, "decide", decision="approve")).status == 200
    turned = await ann.send(page, "decide", decision="reject")
    assert turned.status == 409, turned.html
    late = await ann.send(page, "decide", decision="reject", idempotency_key="another")
    assert (late.status, late.text("code")) == (409, "APPROVAL_ALREADY_DECIDED")
    gate = await approval(tools, asked)
    assert (gate["status"], len(gate["votes"])) == ("approved", 1)


async def test_the_form_of_one_approval_does_not_decide_another(ann: Browser, tools: Tools) -> None:
    harmless, other = await waiting(tools, {"draft": "harmless"}), await waiting(tools, {"draft": "other"})
    fields = {**(await ann.get(f"/approvals/{harmless}")).forms["decide"], "decision": "approve"}
    page = await ann.post(f"/approvals/{other}", fields)
    assert (page.status, page.text("code")) == (409, "APPROVAL_STALE")
    assert "other" in page.exact("subject")
    for asked in (harmless, other):
        assert (await approval(tools, asked))["votes"] == []


async def test_secrets_cannot_be_tried_for_long(
    ann: Browser, bob: Browser, tools: Tools, deps: Deps, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvers, "_COST", {"n": 2**4, "r": 8, "p": 1})
    await deps.approvers.add(Proof("ada", "correct horse"), voucher=None, now_ms=hands.at_ms)
    asked = await waiting(tools, channels=["console"])
    page = await ann.get(f"/approvals/{asked}")
    for number in range(approvers.FREE_TRIES):
        wrong = await ann.send(page, "decide", decision="approve", approver="ada", secret=f"guess {number}")
        assert (wrong.status, wrong.text("code")) == (403, "APPROVER_SECRET_WRONG")
    right = {"decision": "approve", "approver": "ada", "secret": "correct horse"}
    locked = await ann.send(page, "decide", **right)
    assert (locked.text("code"), "try again in 60 s" in locked.text("wrong")) == ("APPROVER_SECRET_WRONG", True)
    assert (await approval(tools, asked))["votes"] == []
    hands.at_ms += approvers.LOCKED_MS
    assert (await ann.send(page, "decide", **right)).status == 200
    assert (await approval(tools, asked))["status"] == "approved"


async def test_a_form_sent_after_the_session_was_over_does_nothing(ann: Browser, tools: Tools, hands: Hands) -> None:
    asked = await waiting(tools)
    page = await ann.get(f"/approvals/{asked}")
    hands.at_ms += IDLE_MS
    late = await ann.send(page, "decide", decision="approve")
    assert (late.status, late.text("code")) == (401, "ACCESS_TOKEN_INVALID")
    assert (await approval(tools, asked))["votes"] == []


async def test_of_a_token_that_is_revoked_open_pages_end(
    house: House, deps: Deps, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "KEEP_S", 0.02)
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    async with house.browser() as cid:
        await cid.log_in(await token_for(deps, "cid", "admin"))
        opened = [asyncio.create_task(_read(cid, path)) for path in (f"/runs/{run_id}/live?from=0", "/approvals/live")]
        await asyncio.wait(opened, timeout=0.2)
        assert not any(one.done() for one in opened)
        await Tools(deps, Caller("cli")).ok("graph_token_revoke", name="cid")
        for text in await asyncio.wait_for(asyncio.gather(*opened), 10):
            assert text.rstrip().endswith("event: gone\ndata:"), text
        refused = await cid.client.get(f"/runs/{run_id}/live?from=0")
        assert refused.status_code == 303


async def _read(browser: Browser, path: str) -> str:
    return (await browser.client.get(path)).text


async def test_a_session_cookie_of_another_making_is_none(stranger: Browser, house: House) -> None:
    for held in ("", "x", "0" * 43, "é" * 3):
        about: Any = {"cookie": f"agent_graph_session_8765={held}".encode()}
        answer = await stranger.client.get(f"{BASE}/approvals", headers=about)
        assert answer.status_code == 303
