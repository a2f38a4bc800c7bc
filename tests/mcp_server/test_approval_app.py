"""The page for approvals in clients that show pages: who is shown it, and that its buttons are plain tool calls."""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from mcp.client import advertise

from agent_graph.mcp_server.apps.serving import APPROVAL, EXTENSION, MIME, SHOWN_BY
from agent_graph.tools.deps import Deps
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import ERAS, Assistant, connected
from tests.mcp_server.test_elicitation import HUMAN, waiting

SHOWS = advertise(EXTENSION, {"mimeTypes": [MIME]})
SHOWS_OTHERS = advertise(EXTENSION, {"mimeTypes": ["text/html"]})


def showing(deps: Deps, era: str) -> AbstractAsyncContextManager[Assistant]:
    return connected(deps, era, extensions=[SHOWS])


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_shows_pages_finds_the_page_at_its_tools_and_reads_it(era: str) -> None:
    async with opened() as deps, showing(deps, era) as assistant:
        tools = (await assistant.client.list_tools()).tools
        pages = {tool.name: tool.meta["ui"]["resourceUri"] for tool in tools if tool.meta}
        assert pages == dict.fromkeys(SHOWN_BY, APPROVAL)
        assert APPROVAL in [str(one.uri) for one in (await assistant.client.list_resources()).resources]
        (page,) = (await assistant.client.read_resource(APPROVAL)).contents
        assert page.mime_type == MIME
        assert page.meta == {"ui": {"csp": {}, "prefersBorder": True}}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("extensions", [[], [SHOWS_OTHERS]])
async def test_other_clients_are_shown_nothing_of_it_and_have_the_text(era: str, extensions: list[Any]) -> None:
    async with opened() as deps, connected(deps, era, extensions=extensions) as assistant:
        assert not [tool for tool in (await assistant.client.list_tools()).tools if tool.meta]
        assert APPROVAL not in [str(one.uri) for one in (await assistant.client.list_resources()).resources]
        _, approval = await waiting(Tools(deps))
        found = await assistant.ok("graph_approval_get", approval_id=approval["approval_id"])
        assert found["approval"]["subject"] == "Dear Bob"


@pytest.mark.parametrize("era", ERAS)
async def test_the_answer_that_the_page_shows_is_the_same_text_as_ever(era: str) -> None:
    async with opened() as deps, showing(deps, era) as assistant:
        _, approval = await waiting(Tools(deps))
        found = await assistant.ok("graph_approval_get", approval_id=approval["approval_id"])
        assert found["approval"]["how_to_decide"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_button_is_a_plain_call_and_a_gate_closed_to_models_refuses_it(era: str) -> None:
    """Whoever renders the page can press its buttons, so a press proves no human."""
    async with opened() as deps, showing(deps, era) as assistant:
        tools = Tools(deps)
        _, open_gate = await waiting(tools)
        pressed = {"approval_id": open_gate["approval_id"], "decision": "approve", "decided_by": "Ada",
                   "decision_note": "", "subject_digest": open_gate["subject_digest"]}  # fmt: skip
        (vote,) = (await assistant.ok("graph_approval_decide", **pressed))["approval"]["votes"]
        assert vote["via"] == "assistant"
        _, closed = await waiting(tools, channels=HUMAN)
        pressed |= {"approval_id": closed["approval_id"], "subject_digest": closed["subject_digest"]}
        before = await tools.everything()
        envelope = await assistant.envelope("graph_approval_decide", **pressed)
        assert envelope["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
        assert "agent-graph approvals decide" in envelope["details"]["how_to_decide"]
        assert await tools.everything() == before


async def test_the_page_loads_nothing_and_makes_no_markup_of_what_it_is_given() -> None:
    async with opened() as deps, showing(deps, "auto") as assistant:
        (page,) = (await assistant.client.read_resource(APPROVAL)).contents
        assert not re.search(r"https?:|\bsrc=|<link|@import|url\(|fetch\(|XMLHttp|WebSocket", page.text)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", page.text)
        assert len(page.text) < 16_000
