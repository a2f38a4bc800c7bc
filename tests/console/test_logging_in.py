"""Who gets in, for how long, and what every answer tells the browser it may do."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.console import sessions
from agent_graph.console.sessions import IDLE_MS, LINK_MS, LONGEST_MS
from agent_graph.tools.deps import Deps
from tests.console.browser import OTHERS, Browser, House, served
from tests.console.test_approving import approval, waiting
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools
from tests.mcp_server.served import token_for

PAGES = ("/approvals", "/log", "/log.csv", "/log.json", "/runs", "/graphs", "/templates", "/templates/debate",
         "/approvals/live", "/runs/live")  # fmt: skip
NEVER = "apr-not-there"


async def test_without_a_login_every_page_leads_to_it_and_nothing_is_shown(stranger: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    for path in (*PAGES, f"/approvals/{asked}", f"/approvals/{NEVER}", f"/runs/{run_id}", f"/runs/{run_id}/live",
                 "/graphs/gated"):  # fmt: skip
        answer = await stranger.client.get(path)
        assert (answer.status_code, answer.text) == (303, ""), path
        assert answer.headers["location"].startswith("/login?next="), path


async def test_without_a_login_nothing_is_decided(stranger: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    page = await stranger.post(f"/approvals/{asked}", {"decision": "approve", "form_key": ""})
    assert (page.status, page.text("code")) == (401, "ACCESS_TOKEN_INVALID")
    assert (await approval(tools, asked))["votes"] == []


async def test_a_token_of_the_server_is_what_logs_in_and_leads_where_one_wanted_to_go(
    stranger: Browser, deps: Deps
) -> None:
    page = await stranger.get("/runs?status=failed")
    after = await stranger.send(page, "login", token=await token_for(deps, "ann", *OTHERS))
    assert after.response.url.path == "/runs"
    assert after.response.url.query == b"status=failed"


@pytest.mark.parametrize("token", ["", "x", "agt_0123456789ab_secret"])
async def test_what_is_no_token_logs_nobody_in(stranger: Browser, token: str) -> None:
    page = await stranger.send(await stranger.get("/login"), "login", token=token)
    assert page.status == 401
    assert page.text("wrong")
    assert (await stranger.client.get("/approvals")).status_code == 303


@pytest.mark.parametrize(
    "following",
    [
        "//evil.example", "https://evil.example/", "/\\evil.example", "/mcp", "/logout", "/approvals//evil",
        "/runs\r\nset-cookie: x=y", "javascript:alert(1)",
    ],
)  # fmt: skip
async def test_logging_in_leads_to_pages_of_ours_alone(stranger: Browser, deps: Deps, following: str) -> None:
    page = await stranger.get("/login")
    page.forms["login"]["next"] = following
    answer = await stranger.client.post(
        "/login", data={**page.forms["login"], "token": await token_for(deps, "ann", *OTHERS)}
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/approvals")


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_pages(stranger: Browser, deps: Deps) -> None:
    page = await stranger.get("/login")
    fields = {**page.forms["login"], "token": await token_for(deps, "ann", *OTHERS)}
    answer = await stranger.client.post("/login", data=fields)
    cookie = answer.headers.get_list("set-cookie")[0].lower()
    assert cookie.startswith("agent_graph_session_8765=")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "secure" not in cookie
    assert fields["token"] not in str(answer.headers)


async def test_over_tls_the_cookie_is_for_tls_alone(deps: Deps) -> None:
    async with served(deps, allowed_hosts="graphs.example") as house, house.browser() as browser:
        page = await browser.get("/login")
        about = {"host": "graphs.example", "origin": "https://graphs.example"}
        key = page.forms["login"]["form_key"]
        about["cookie"] = f"agent_graph_login={key}"
        token = await token_for(deps, "ann", *OTHERS)
        answer = await browser.client.post("/login", data={"form_key": key, "token": token}, headers=about)
    assert answer.status_code == 303, answer.text
    assert "; secure" in answer.headers.get_list("set-cookie")[0].lower()


async def test_a_login_form_of_another_page_logs_nobody_in(stranger: Browser, deps: Deps) -> None:
    token = await token_for(deps, "ann", *OTHERS)
    for fields in ({"token": token}, {"token": token, "form_key": "x"}):
        page = await stranger.post("/login", fields)
        assert (page.status, page.text("code")) == (403, "FORM_NOT_VALID")
    await stranger.get("/login")
    page = await stranger.post("/login", {"token": token, "form_key": "x"})
    assert (page.status, page.text("code")) == (403, "FORM_NOT_VALID")
    assert (await stranger.client.get("/approvals")).status_code == 303


@pytest.mark.parametrize("key", [None, "", "wrong", "of another"])
async def test_a_form_without_the_session_s_key_does_nothing(
    ann: Browser, bob: Browser, tools: Tools, key: str | None
) -> None:
    asked = await waiting(tools)
    fields = {"decision": "approve"} if key is None else {"decision": "approve", "form_key": key}
    if key == "of another":
        fields["form_key"] = (await bob.get("/approvals")).forms["/logout"]["form_key"]
    for path in (f"/approvals/{asked}", f"/approvals/{asked}/edit", "/logout"):
        page = await ann.post(path, fields)
        assert (page.status, page.text("code")) == (403, "FORM_NOT_VALID"), path
    assert (await approval(tools, asked))["votes"] == []
    assert (await ann.client.get("/approvals")).status_code == 200


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "application/json", 400),
        (b"x" * 3_000, "application/x-www-form-urlencoded", 413),
        (b"a=%ff", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a=" for _ in range(400)), "application/x-www-form-urlencoded", 400),
    ],
    ids=["no form", "too large", "not UTF-8", "too many fields"],
)
async def test_what_is_no_form_is_refused(deps: Deps, body: bytes, kind: str, status: int) -> None:
    async with served(deps, body_bytes="2000") as house, house.browser() as browser:
        await browser.log_in(await token_for(deps, "ann", "admin"))
        answer = await browser.client.post(f"/approvals/{NEVER}", content=body, headers={"content-type": kind})
    assert answer.status_code == status


async def test_logging_out_ends_the_session(ann: Browser) -> None:
    page = await ann.get("/approvals")
    held = dict(ann.client.cookies)
    assert (await ann.send(page, "/logout")).response.url.path == "/login"
    ann.client.cookies.update(held)
    assert (await ann.client.get("/approvals")).status_code == 303


async def test_a_session_nobody_uses_ends_and_none_lasts_for_ever(ann: Browser, hands: Hands) -> None:
    for _ in range(LONGEST_MS // (IDLE_MS - 1)):
        hands.at_ms += IDLE_MS - 1
        assert (await ann.client.get("/approvals")).status_code == 200
    hands.at_ms += IDLE_MS - 1
    assert (await ann.client.get("/approvals")).status_code == 303


async def test_a_session_that_was_idle_has_to_log_in_again(ann: Browser, hands: Hands) -> None:
    hands.at_ms += IDLE_MS
    assert (await ann.client.get("/approvals")).status_code == 303


async def test_a_token_that_is_revoked_ends_its_session(ann: Browser, tools: Tools, deps: Deps) -> None:
    from agent_graph.tools.deps import Caller

    asked = await waiting(tools)
    page = await ann.get(f"/approvals/{asked}")
    await Tools(deps, Caller("cli")).ok("graph_token_revoke", name="ann")
    late = await ann.send(page, "decide", decision="approve")
    assert (late.status, late.text("code")) == (401, "ACCESS_TOKEN_INVALID")
    assert (await approval(tools, asked))["votes"] == []


async def test_a_link_logs_the_local_user_in_once(house: House, stranger: Browser, hands: Hands) -> None:
    link = f"/login?link={house.served.sessions.link()}"
    looked_at = await stranger.get(link)  # by whatever follows links
    assert (await stranger.client.get("/approvals")).status_code == 303
    assert (await stranger.send(looked_at, "login")).response.url.path == "/approvals"
    async with house.browser() as other:
        again = await other.send(await other.get(link), "login")
        assert (again.status, "used already" in again.text("wrong")) == (401, True)
        late = f"/login?link={house.served.sessions.link()}"
        hands.at_ms += LINK_MS
        assert (await other.send(await other.get(late), "login")).status == 401
        assert (await other.client.get("/approvals")).status_code == 303


@pytest.mark.parametrize(("terminal", "host", "told"), [(True, "127.0.0.1", True), (False, "127.0.0.1", False),
                                                        (True, "192.0.2.1", False)])  # fmt: skip
async def test_a_link_is_told_to_a_terminal_of_this_machine_alone(
    deps: Deps, monkeypatch: pytest.MonkeyPatch, terminal: bool, host: str, told: bool
) -> None:
    from agent_graph.console import serving

    monkeypatch.setattr(serving.sys.stderr, "isatty", lambda: terminal, raising=False)
    async with served(deps, host=host) as house:
        said = house.served.remarks("http://127.0.0.1:8765")
    assert said[0] == "console at http://127.0.0.1:8765/ (log in with a token)"
    assert any("/login?link=" in line for line in said) is told


async def test_more_sessions_than_there_may_be_end_the_one_used_least_lately(
    house: House, deps: Deps, ann: Browser, bob: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST", 2)
    assert (await ann.client.get("/approvals")).status_code == 200
    async with house.browser() as third:
        await third.log_in(await token_for(deps, "cid", *OTHERS))
        assert [(await each.client.get("/approvals")).status_code for each in (ann, bob, third)] == [200, 303, 200]


async def test_a_token_opens_so_many_sessions_and_takes_none_from_others(
    house: House, deps: Deps, ann: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "OF_ONE", 2)
    token = await token_for(deps, "cid", *OTHERS)
    async with house.browser() as one, house.browser() as two, house.browser() as three:
        for browser in (one, two, three):
            await browser.log_in(token)
        found = [(await browser.client.get("/approvals")).status_code for browser in (one, two, three, ann)]
    assert found == [303, 200, 200, 200]


async def test_who_asks_too_often_is_told_so(deps: Deps) -> None:
    async with served(deps, rate="60") as house, house.browser() as browser:
        answers = [(await browser.client.get("/login")).status_code for _ in range(6)]
    assert answers == [200] * 4 + [429] * 2


# -- what a browser is told ----------------------------------------------------------------------------------------

POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
}  # fmt: skip


def hardened(answer: Any) -> None:
    """Its policy lets in nothing but what this server gives, and nothing in it needs more."""
    said = {part.strip() for part in answer.headers["content-security-policy"].split(";")}
    assert said == POLICY, answer.url
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    for inline in ("<style", " style=", "<script>", " onclick=", "javascript:", "http://", "//cdn"):
        assert inline not in answer.text.replace("http://www.w3.org/2000/svg", ""), (answer.url, inline)


async def test_every_page_is_strict_about_where_anything_comes_from(
    ann: Browser, stranger: Browser, tools: Tools
) -> None:
    asked = await waiting(tools, allowed_decisions=["approve", "edit"])
    run_id = (await approval(tools, asked))["run_id"]
    paths = ["/", *PAGES[:-2], f"/approvals/{asked}", f"/approvals/{asked}/edit", f"/runs/{run_id}", "/graphs/gated",
             f"/approvals/{NEVER}", "/runs/run-x", "/graphs/none", "/static/none",
             "/approvals?status=nonsense"]  # fmt: skip
    for path in paths:
        hardened(await ann.client.get(path))
    for path in ("/", "/login", "/login?link=x", "/approvals"):
        hardened(await stranger.client.get(path))
    page = await ann.get(f"/approvals/{asked}/edit")
    hardened((await ann.send(page, "edit-form", subject='{"a": 1}')).response)
    hardened((await ann.post(f"/approvals/{asked}", {})).response)
    for name in ("console.css", "console.js", "mark.svg"):
        answer = await stranger.client.get(f"/static/{name}")
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff")


async def test_every_page_has_a_title_a_language_one_heading_and_labels(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools, allowed_decisions=["approve", "edit"], channels=["console"])
    run_id = (await approval(tools, asked))["run_id"]
    for path in ("/approvals", f"/approvals/{asked}", f"/approvals/{asked}/edit", "/log", "/runs", f"/runs/{run_id}",
                 "/graphs", "/graphs/gated", "/templates", "/templates/ranked_council", "/login",
                 "/approvals/none"):  # fmt: skip
        page = await ann.get(path)
        tags = page.tags
        assert ("html", {"lang": "en"}) in tags, path
        assert [tag for tag, _ in tags].count("h1") == 1, path
        assert "<title>" in page.html, path
        labelled = {about.get("for") for tag, about in tags if tag == "label"}
        named = [
            about["id"]
            for tag, about in tags
            if tag in ("input", "select", "textarea") and about.get("type") != "hidden" and "hidden" not in about
        ]
        assert set(named) <= labelled, path
        ids = [about["id"] for _, about in tags if "id" in about]
        assert len(ids) == len(set(ids)), path


async def test_pages_of_another_name_of_the_machine_are_not_served(stranger: Browser) -> None:
    answer = await stranger.client.get("/approvals", headers={"host": "evil.example"})
    assert answer.status_code == 421
