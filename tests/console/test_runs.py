"""Looking at runs: lists with filters, one run as it stands, and as it goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent_graph.console import streaming
from agent_graph.console.desk import Desk
from agent_graph.console.sessions import Session
from agent_graph.console.streaming import Part, change_parts, run_parts
from agent_graph.console.views import runs
from agent_graph.errors import TooManyRequests
from agent_graph.tools.deps import Caller, Deps
from tests.console.browser import Browser
from tests.console.test_approving import approval, waiting
from tests.fakes.opened import Tools
from tests.tools.specs import echo, gated, keep

EVIL = "</title></svg><script>alert(1)</script>"


async def test_runs_are_listed_newest_first_and_filtered(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    waits = (await approval(tools, asked))["run_id"]
    await tools.ok("graph_create", spec=keep())
    done = (await tools.ended("keep", {"a": 1}))["run_id"]
    page = await ann.get("/runs")
    assert [link for link in page.links if link.startswith("/runs/")] == [f"/runs/{done}", f"/runs/{waits}"]
    for query, found in (("status=waiting", [waits]), ("graph=keep", [done]), ("status=failed", []),
                         ("thread=none", [])):  # fmt: skip
        page = await ann.get(f"/runs?{query}")
        assert [link for link in page.links if link.startswith("/runs/")] == [f"/runs/{one}" for one in found], query
    assert (await ann.get("/runs?status=nonsense")).text("code") == "INVALID_ARGUMENT"


async def test_a_run_is_given_as_a_report_to_who_sees_it(ann: Browser, bob: Browser, tools: Tools) -> None:
    run_id = (await approval(tools, await waiting(tools)))["run_id"]
    page = await ann.get(f"/runs/{run_id}/report")
    assert page.response.headers["content-disposition"] == f'attachment; filename="{run_id}.html"'
    assert page.text("not-ended").startswith("Not ended")
    assert (await bob.get(f"/runs/{run_id}/report")).text("code") == "RUN_NOT_FOUND"


async def test_the_list_is_paged(ann: Browser, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ROWS", 2)
    await tools.ok("graph_create", spec=keep())
    for number in range(3):
        await tools.ended("keep", {"n": number})
    page = await ann.get("/runs?graph=keep")
    following = next(link for link in page.links if "cursor=" in link)
    assert "graph=keep" in following
    assert len([link for link in (await ann.get(following)).links if link.startswith("/runs/")]) == 1


async def test_a_run_that_has_ended_shows_its_result_its_events_its_state_and_its_graph(
    ann: Browser, tools: Tools
) -> None:
    await tools.ok("graph_create", spec=echo())
    run = await tools.ended("echo", {"input": "a question"})
    page = await ann.get(f"/runs/{run['run_id']}")
    assert page.exact("result") == run["final_state"]
    assert "run completed" in page.text("events")
    assert "a question" in page.exact("state")
    assert "node-completed" in page.html
    assert "data-live" not in page.html


async def test_a_run_that_waits_leads_to_its_approval_and_is_followed(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    page = await ann.get(f"/runs/{run_id}")
    assert f"/approvals/{asked}" in page.links
    assert "node-waiting" in page.html
    assert f'data-live="/runs/{run_id}/live?from=' in page.html


async def test_what_is_used_is_set_against_the_budget(ann: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=gated())
    budgets = {"max_llm_calls": 5, "max_wall_clock_ms": 600_000}
    run_id = (await tools.ok("graph_run_start", graph_id="gated", input={"draft": "x"}, budgets=budgets))["run_id"]
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    page = await ann.get(f"/runs/{run_id}")
    assert page.text("budget").startswith("model calls 0 of 5 time ")
    assert page.text("budget").endswith("of 10 min")
    assert [about["max"] for tag, about in page.tags if tag == "progress"] == ["5", "600000"]


async def test_a_failed_run_says_why(ann: Browser, tools: Tools) -> None:
    asked = await waiting(tools)
    await ann.send(await ann.get(f"/approvals/{asked}"), "decide", decision="reject", decision_note="no")
    run_id = (await approval(tools, asked))["run_id"]
    await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
    page = await ann.get(f"/runs/{run_id}")
    assert "APPROVAL_REJECTED" in page.text("run-error")
    assert "APPROVAL_REJECTED" in (await ann.get("/runs?status=failed")).html


async def test_events_are_paged(ann: Browser, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "EVENTS", 2)
    await tools.ok("graph_create", spec=echo())
    run = await tools.ended("echo", {"input": "x"})
    page = await ann.get(f"/runs/{run['run_id']}")
    following = f"/runs/{run['run_id']}?from=2"
    assert following in page.links
    page = await ann.get(following)
    assert 'id="event-2"' in page.html
    assert 'id="event-1"' not in page.html
    assert (await ann.get(f"/runs/{run['run_id']}?from=nonsense")).status == 200


async def test_labels_that_look_like_markup_are_text_in_every_drawing(ann: Browser, tools: Tools) -> None:
    spec = gated("evil")
    spec["description"] = EVIL
    spec["nodes"][0] |= {"label": EVIL, "description": EVIL}
    await tools.ok("graph_create", spec=spec)
    run_id = await tools.run("evil", {"draft": EVIL})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    for path in ("/graphs", "/graphs/evil", f"/runs/{run_id}"):
        page = await ann.get(path)
        assert page.status == 200
        assert [tag for tag, _ in page.tags].count("script") == 1, path
        assert page.html.count("</svg>") <= 1, path


async def test_graphs_and_templates_are_listed(ann: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    assert "/graphs/echo" in (await ann.get("/graphs?query=ech")).links
    assert (await ann.get("/graphs?query=none")).text("none") == "No graphs match."
    page = await ann.get("/graphs/echo")
    assert "say" in page.text("nodes")
    assert (await ann.get("/graphs/none")).text("code") == "GRAPH_NOT_FOUND"
    page = await ann.get("/templates?query=council")
    assert "council_deliberation" in page.html
    assert "/templates/council_deliberation" in page.links


# -- as it goes on -------------------------------------------------------------------------------------------------


class Looking:
    """Somebody who looks at a page that goes on."""

    def __init__(self, deps: Deps, caller: Caller) -> None:
        self.allowed = True
        self.desk = Desk(deps, Session("k", "", "f", 0, 0), caller, self._still, asyncio.Event())

    async def _still(self) -> bool:
        return self.allowed


async def _standing() -> list[Part]:
    return [Part("standing", "as it stands")]


async def collected(parts: AsyncIterator[Part], *, until: str) -> list[Part]:
    """The parts up to the first of that name."""
    found = []
    async for part in parts:
        found.append(part)
        if part.name == until:
            return found
    raise AssertionError(found)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SOON_S", 0.0)
    monkeypatch.setattr(streaming, "KEEP_S", 0.01)


async def test_a_run_is_followed_to_its_end(deps: Deps, tools: Tools, at_once: None) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    parts = run_parts(Looking(deps, Caller("console")).desk, run_id, since=1, standing=_standing)
    first = await collected(parts, until="standing")
    assert [part.seq for part in first if part.name == "event"] == list(range(1, len(first)))
    await tools.ok("graph_approval_decide", approval_id=asked, decision="approve", decided_by="Ada")
    rest = await collected(parts, until="end")
    assert "run completed" in rest[-3].text
    assert rest[-2].name == "standing"


async def test_text_is_shown_as_it_is_written(deps: Deps, tools: Tools, at_once: None) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    parts = run_parts(Looking(deps, Caller("console")).desk, run_id, since=0, standing=_standing)
    await collected(parts, until="standing")
    deps.supervisor.shell.notify.delta(run_id, "say#1", kind="text", text="<b>\n")
    written = (await collected(parts, until="delta"))[-1]
    assert json.loads(written.text) == {"firing": "say#1", "kind": "text", "text": "<b>\n"}
    await parts.aclose()


async def test_of_a_pruned_run_is_shown_what_is_kept(ann: Browser, deps: Deps, tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    run = await tools.ended("echo", {"input": "x"})
    await Tools(deps, Caller("cli")).ok("graph_store_prune", run_ids=[run["run_id"]])
    page = await ann.get(f"/runs/{run['run_id']}")
    assert (page.status, page.exact("result")) == (200, run["final_state"])
    assert "was pruned" in page.html
    assert "cannot be drawn here" in page.html


async def test_a_browser_that_may_look_no_more_is_told_no_more(deps: Deps, tools: Tools, at_once: None) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    looking = Looking(deps, Caller("console"))
    parts = run_parts(looking.desk, run_id, since=0, standing=_standing)
    await collected(parts, until="standing")
    await collected(parts, until="")  # a sign of life
    looking.allowed = False
    assert [part.name for part in await collected(parts, until="gone")] == ["gone"]


async def test_another_principal_s_run_is_not_followed(deps: Deps, tools: Tools, at_once: None) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    desk = Looking(deps, Caller("console", principal="bob", scopes=frozenset({"runs:read"}))).desk
    assert [part.name async for part in run_parts(desk, run_id, since=0, standing=_standing)] == ["end"]


async def test_the_stream_of_a_run_that_has_ended_is_its_events_and_how_it_stands(ann: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    run = await tools.ended("echo", {"input": "x\ny"})
    answer = await ann.client.get(f"/runs/{run['run_id']}/live?from=0")
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = answer.text.strip().split("\n\n")[1:]
    kinds = [block.split("event: ")[1].split("\n")[0] for block in blocks]
    assert kinds[-5:] == ["standing", "outcome", "drawing", "receipt", "end"]
    assert kinds.count("event") == len((await tools.ok("graph_run_events", run_id=run["run_id"]))["events"])
    again = await ann.client.get(f"/runs/{run['run_id']}/live", headers={"last-event-id": "1"})
    assert "id: 2\n" in again.text
    assert "id: 1\n" not in again.text


async def test_a_stream_holds_nothing_a_line_end_could_break() -> None:
    sent = Part("event", "one\r\ntwo\rthree\n\nid: 9", 3).sent().decode()
    assert sent == "id: 3\nevent: event\ndata: one\ndata: two\ndata: three\ndata: \ndata: id: 9\n\n"


@pytest.mark.parametrize(("principal", "hears"), [("", True), ("bob", False)])
async def test_who_sees_an_approval_hears_that_it_came(
    deps: Deps, tools: Tools, at_once: None, principal: str, hears: bool
) -> None:
    looking = Looking(deps, Caller("console", principal=principal, scopes=frozenset({"runs:read"})))
    parts = change_parts(looking.desk, of="approvals")
    await anext(parts)
    await waiting(tools)
    heard: Any = await anext(parts)
    assert (heard.name == "changed") is hears
    looking.allowed = False
    assert [part.name async for part in parts] == ["gone"]
    assert deps.supervisor.shell.notify.listeners == ()


@pytest.mark.parametrize(("principal", "hears"), [("", True), ("bob", False)])
async def test_who_sees_a_run_hears_that_the_list_has_changed(
    deps: Deps, tools: Tools, at_once: None, principal: str, hears: bool
) -> None:
    await tools.ok("graph_create", spec=echo())
    looking = Looking(deps, Caller("console", principal=principal, scopes=frozenset({"runs:read"})))
    parts = change_parts(looking.desk, of="runs")
    await anext(parts)
    await tools.ended("echo", {"input": "x"})
    heard: Any = await anext(parts)
    assert (heard.name == "changed") is hears
    await parts.aclose()


async def test_the_page_of_an_approval_hears_of_its_own_run_alone(deps: Deps, tools: Tools, at_once: None) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    looking = Looking(deps, Caller("console"))
    parts = change_parts(looking.desk, of="approvals", run_id=run_id)
    await anext(parts)
    await waiting(tools)
    other: Any = await anext(parts)
    await tools.ok("graph_approval_decide", approval_id=asked, decision="approve", decided_by="Ada")
    own: Any = await anext(parts)
    assert (other.name, own.name) == ("", "changed")
    await parts.aclose()


async def test_a_session_has_so_many_pages_that_go_on_and_one_that_is_left_makes_room(
    deps: Deps, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "MOST", 1)
    desk = Looking(deps, Caller("console")).desk
    first: Any = streaming.changes(desk, of="approvals").body_iterator
    assert [await anext(first), await anext(first)] == [b"retry: 1000\n\n", b": still here\n\n"]
    with pytest.raises(TooManyRequests):
        streaming.changes(desk, of="approvals")
    await first.aclose()
    assert deps.supervisor.shell.notify.listeners == ()
    streaming.changes(desk, of="approvals")


async def test_when_the_server_stops_pages_that_go_on_end_at_once(deps: Deps, tools: Tools) -> None:
    asked = await waiting(tools)
    run_id = (await approval(tools, asked))["run_id"]
    looking = Looking(deps, Caller("console"))
    parts = run_parts(looking.desk, run_id, since=0, standing=_standing)
    changes = change_parts(looking.desk, of="approvals")
    await collected(parts, until="event")
    await anext(changes)
    looking.desk.over.set()
    assert "end" not in [part.name async for part in parts]
    assert [part async for part in changes] == []
