"""The report of a run: one page that needs nothing else, in which all that was written is text and nothing is run."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agent_graph.console.desk import Turned
from agent_graph.console.report.gathering import Gathered
from agent_graph.console.report.making import as_page, made
from agent_graph.console.report.story import LEAST, TEXT, WHOLE, Room
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps
from tests.fakes.opened import Tools, opened
from tests.specs import Json, gate, llm, put, router, rule, spec
from tests.tools.specs import gated, keep

EVIL = (
    "</svg></pre></style></title><script>window.ran = 1</script><img src=x onerror=alert(1)>"
    "\" onmouseover='x' <a href=javascript:x>{{ 7*7 }}</a><base href=//evil.example><!-- <meta http-equiv=refresh "
    "content='0;url=//evil.example'> ]]> <link rel=stylesheet href=//evil.example/x.css>&lt;b&gt; <iframe srcdoc=x>"
)
PLAIN = "x" * len(EVIL)


def graph(text: str) -> Json:
    labelled = {"label": text, "description": text}
    nodes = [
        llm("say", "{input}", output_key="said") | labelled,
        gate("ask", prompt=text, subject_key="said", output_key="decision", audience=[text[:60]]) | labelled,
        router("way", rule("said", "contains", "nothing such", "z") | {"label": text}, default=["z"]) | labelled,
        put("z", done=text) | labelled,
    ]  # fmt: skip
    return spec(*nodes, edges="say>ask ask>way z>END", name="evil", description=text, output_key="done")


class Page(HTMLParser):
    """The elements of a page and the names of their attributes, in order; and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def asking(deps: Deps) -> Any:
    async def ask(tool: str, arguments: JsonObject) -> Any:
        return await registry.call(deps, tool, arguments, caller=Caller("cli"), whole=True)

    return ask


async def report(tools: Tools, run_id: str) -> tuple[str, Gathered]:
    return await made(asking(tools.deps), run_id, now_ms=tools.deps.clock.now_ms())


async def told(text: str, *, decided: bool = True) -> str:
    """The report of a run in which everything anybody can write is `text`."""

    async def answer(_call: Any) -> str:
        return text

    async with opened(ScriptedModel(answer)) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=graph(text))
        run_id = await tools.run("evil", {"q": text, "list": [text, 1]}, thread_id=text[:200])
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        if decided:
            (asked,) = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]
            await tools.ok("graph_approval_decide", approval_id=asked["approval_id"], decision="approve",
                           decided_by=text[:100], decision_note=text)  # fmt: skip
            await tools.ok("graph_run_wait", run_id=run_id)
        return (await report(tools, run_id))[0]


async def test_hostile_text_makes_no_element_and_no_attribute_that_plain_text_does_not() -> None:
    hostile, harmless = Page(await told(EVIL)), Page(await told(PLAIN))
    assert hostile.elements == harmless.elements
    assert hostile.text.count(EVIL) >= 6  # input, prompt, subject, note, answer, result: each as it was written
    assert len(hostile.elements) > 100


async def test_the_page_asks_for_nothing_and_runs_nothing() -> None:
    html = await told(EVIL)
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "link", "a", "form", "object", "embed", "base", "input", "image"}
    assert not [
        name for name, _ in page.attributes if name.startswith("on") or name in ("style", "src", "href", "srcset")
    ]
    addresses = {value for name, value in page.attributes if "//" in value and name != "content"}
    titles = {value for name, value in page.attributes if name in ("title", "aria-label")}
    assert addresses - titles == {"http://www.w3.org/2000/svg"}
    style = html[html.index("<style>") + 7 : html.index("</style>")]
    assert not re.search(r"url\(|@import|expression", style)
    known = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy == f"default-src 'none'; style-src 'sha256-{known}'; base-uri 'none'; form-action 'none'"


async def test_what_cannot_be_seen_is_marked_by_its_number() -> None:
    page = Page(await told("pay \u202e100\u2066 now\u200b"))
    assert "\u202e" not in page.text
    assert "U+202E" in page.text


async def test_a_run_that_goes_on_is_marked_as_not_ended() -> None:
    page = Page(await told(PLAIN, decided=False))
    assert "Not ended: this is how the run stood at" in page.text
    assert "The run has not ended; a receipt is made of one that has." in page.text
    assert "Nobody has voted." in page.text
    assert "Not ended" not in Page(await told(PLAIN)).text


async def test_large_texts_are_cut_and_say_so() -> None:
    async def answer(_call: Any) -> str:
        return "<b>" * 40_000

    async with opened(ScriptedModel(answer)) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=spec(llm("a", "go"), edges="a>END", name="large"))
        run = await tools.ended("large", {"q": "<i>" * 20_000})
        html, told_of = await report(tools, run["run_id"])
    text = Page(html).text
    assert "Cut: 20,000 of 120,000 characters." in text  # the result
    assert len(re.findall(r"Cut: the event that holds it has 24\d,\d{3} bytes", text)) == 1  # the step
    assert len(re.findall(r"Cut: the event that holds it has 6\d,\d{3} bytes", text)) == 1  # the input
    told_of.run["final_state"] = "<b>" * 1_700_000
    assert len(as_page(told_of, now_ms=0)) < 500_000


def test_a_report_that_is_full_gives_each_text_a_little_room_still() -> None:
    room = Room()
    cut = [room.shown("x" * (2 * TEXT)) for _ in range(WHOLE // TEXT + 3)]
    assert [len(one.value) for one in cut[-3:]] == [LEAST] * 3
    assert room.shown("short").note == ""


async def test_the_report_tells_votes_steps_budget_and_input() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated(quorum=2))
        run_id = await tools.run("gated", {"draft": "Dear Dana"}, budgets={"max_nodes": 9})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        (asked,) = (await tools.ok("graph_approval_list"))["approvals"]
        for name in ("Kim", "Ann"):
            await tools.ok("graph_approval_decide", approval_id=asked["approval_id"], decision="approve",
                           decided_by=name, decision_note=f"so says {name}")  # fmt: skip
        await tools.ok("graph_run_wait", run_id=run_id)
        html, told_of = await report(tools, run_id)
    text = Page(html).text
    assert told_of.ended
    for said in ("Dear Dana", "so says Kim", "so says Ann", "2 had to approve", "gate#1", "of 9", "went by approve"):
        assert said in text, said


async def test_a_pruned_run_says_what_is_gone_and_one_that_is_not_there_is_refused() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=keep())
        run = await tools.ended("keep", {"a": 1})
        await deps.store.retention.prune([run["run_id"]])
        text = Page((await report(tools, run["run_id"]))[0]).text
        assert "Events of this run were pruned" in text
        assert "It is not drawn: RUN_PRUNED" in text
        with pytest.raises(Turned) as turned:
            await report(tools, "run-0")
        assert turned.value.code == "RUN_NOT_FOUND"


def test_a_long_run_tells_its_beginning_and_how_much_is_left_out() -> None:
    events: list[Any] = [{"type": "run_accepted", "at_ms": 0, "input": "x"}]
    for number in range(700):
        path = f"n#{number}"
        events.append({"type": "node_started", "firing": path, "node_id": "n", "at_ms": number, "attempt": 1})
        done = {"type": "node_finished", "firing": path, "node_id": "n", "at_ms": number + 1}
        events.append({**done, "output": [number]})
        events.append(done)
    run = {"run_id": "run-1", "graph_id": "g", "graph_version": "sha256:0", "thread_id": "", "status": "completed",
           "started_at_ms": 0, "finished_at_ms": 9, "usage": {}, "budget": {}, "final_state": None}  # fmt: skip
    text = Page(as_page(Gathered(run, events, 12_345, False, [], no_receipt="none"), now_ms=10)).text
    assert "12,345 events more" in text
    assert "200 later steps are left out" in text
    assert "550 later steps are not drawn" in text


def test_the_receipt_is_told_with_what_it_does_not_prove() -> None:
    receipt = {
        "receipt": {
            "sealed": {"sealed_at_ms": 5, "key_id": "hmac:1", "seal": "hmac-sha256:2", "late": False},
            "chain": {"events": 4, "head": "sha256:3"}, "merkle": {"leaves": 2, "root": "sha256:4"},
            "not_proven": ["that a model was called", EVIL],
        },
        "integrity": {"verified": True, "digest": "sha256:5"},
    }  # fmt: skip
    run = {"run_id": "run-1", "graph_id": "g", "graph_version": "sha256:0", "thread_id": "", "status": "failed",
           "started_at_ms": 0, "finished_at_ms": 9, "usage": {}, "budget": {},
           "error": {"code": "MODEL_BAD_REPLY", "message": EVIL}}  # fmt: skip
    html = as_page(Gathered(run, [], 0, False, [], receipt=receipt), now_ms=10)
    page = Page(html)
    for said in ("sha256:5", "hmac:1", "sha256:3", "sha256:4", "that a model was called", "proves nothing by itself"):
        assert said in page.text
    assert page.text.count(EVIL) == 2
    assert "script" not in {tag for tag, _ in page.elements}


async def test_a_run_whose_record_was_changed_says_so_before_all_else(tmp_path: Path) -> None:
    async with opened(folder=tmp_path) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=keep())
        run_id = (await tools.ended("keep", {"a": 1}))["run_id"]
        html, told_of = await report(tools, run_id)
        assert told_of.receipt["integrity"]["verified"]
        assert "doubtful" not in html
        with sqlite3.connect(tmp_path / "agent-graph.db") as connection:
            changed = "UPDATE events SET body = replace(body, '\"a\":1', '\"a\":2')"
            assert connection.execute(changed).rowcount > 0
        connection.close()
        html, told_of = await report(tools, run_id)
    assert told_of.doubtful
    page = Page(html)
    assert "rely on none of it" in page.text
    assert page.text.index("rely on none of it") < page.text.index("Result")
