"""The page of the MCP App in a sandboxed frame of real Chromium, before a host that passes its calls to the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.async_api import Browser, FrameLocator, Page

from agent_graph.mcp_server.apps.serving import page as app_page
from tests.browser.chromium import program
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import Assistant, connected
from tests.mcp_server.test_elicitation import HUMAN, now, waiting
from tests.tools.specs import gated

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120),
    pytest.mark.skipif(program() is None, reason="there is no Chromium on this machine"),
]  # fmt: skip

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'none'; base-uri 'none'"
)
"""What the extension has a host put around a page that asks for no other origin."""
HOST = """<!DOCTYPE html><body><iframe id="app" sandbox="allow-scripts" style="width:100%;height:800px"></iframe>
<script>
const frame = document.getElementById("app");
window.addEventListener("message", async (event) => {
  if (event.source !== frame.contentWindow) return;
  const answer = await window.heard(event.data);
  if (answer) frame.contentWindow.postMessage(answer, "*");
});
</script></body>"""
HOSTILE = "<script>parent.alert(1)</script><img src=x onerror=parent.alert(2)></pre></svg> pay \u202eevE"


@dataclass
class Host:
    """Passes tool calls on, and keeps what it was told beside."""

    page: Page
    assistant: Assistant
    told: list[Any] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def app(self) -> FrameLocator:
        return self.page.frame_locator("#app")

    async def heard(self, message: Any) -> Any:
        """The answer to a request of the page's; None to what is none."""
        method, params = message.get("method"), message.get("params", {})
        if method == "ui/initialize":
            assert params["protocolVersion"] == "2026-01-26"
            result: Any = {"protocolVersion": "2026-01-26", "hostContext": {"theme": "dark"}, "hostCapabilities": {},
                           "hostInfo": {"name": "a test", "version": "1"}}  # fmt: skip
        elif method == "tools/call":
            called = await self.assistant.client.call_tool(params["name"], params["arguments"])
            result = called.model_dump(by_alias=True, mode="json")
        else:
            self.told.append(message)
            result = {}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result} if "id" in message else None

    async def tell(self, method: str, **more: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": more}
        await self.page.evaluate("(message) => frame.contentWindow.postMessage(message, '*')", message)

    async def show(self, tool: str, **arguments: Any) -> None:
        """Have the page show what a tool answers."""
        called = await self.assistant.client.call_tool(tool, arguments)
        await self.tell("ui/notifications/tool-result", **called.model_dump(by_alias=True, mode="json"))


@asynccontextmanager
async def hosted(chromium: Browser, assistant: Assistant) -> AsyncIterator[Host]:
    context = await chromium.new_context()
    context.set_default_timeout(8_000)
    host = Host(await context.new_page(), assistant)

    async def dialog(one: Any) -> None:
        host.faults.append(f"dialog {one.message}")
        await one.dismiss()

    context.on("dialog", dialog)
    context.on("console", lambda said: host.faults.append(said.text))
    context.on("weberror", lambda bug: host.faults.append(str(bug.error)))
    context.on("request", lambda request: host.faults.append(f"asked for {request.url}"))
    await host.page.expose_function("heard", host.heard)
    await host.page.set_content(HOST)
    html = app_page().replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">')
    async with host.page.expect_console_message(lambda said: said.text == "ready"):
        await host.page.evaluate(
            """(html) => {
                window.addEventListener("message", (event) => {
                    if (event.data.method === "ui/notifications/initialized") console.log("ready");
                });
                frame.srcdoc = html;
            }""",
            html,
        )
    host.faults.clear()
    yield host
    await context.close()
    assert host.faults == []


async def test_a_subject_is_shown_whole_and_as_text_whatever_is_in_it(chromium: Browser) -> None:
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        tools = Tools(deps)
        await waiting(tools, prompt="<b>May</b> this be sent?")
        run_id = await tools.run("gated", {"draft": HOSTILE})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        await host.show("graph_approval_list")
        await host.app.locator("article").nth(1).wait_for()
        assert await host.app.locator("h2").first.inner_text() == "<b>May</b> this be sent?"
        shown = await host.app.locator("pre").nth(1).inner_text()
        assert shown == HOSTILE.replace("\u202e", "[U+202E]")
        assert await host.app.locator("article :is(b, img, script, svg)").count() == 0


async def test_a_button_decides_by_a_plain_call_and_says_what_came_of_it(chromium: Browser) -> None:
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        tools = Tools(deps)
        _, approval = await waiting(tools)
        await host.show("graph_approval_get", approval_id=approval["approval_id"])
        await host.app.get_by_label("Your name").fill("Ada")
        await host.app.get_by_label("Note").fill("go")
        await host.app.get_by_role("button", name="Approve").click()
        await host.app.get_by_text("It is approved.").wait_for()
        (vote,) = (await now(tools, approval))["votes"]
        assert (vote["decision"], vote["decided_by"], vote["via"]) == ("approve", "Ada", "assistant")
        assert (vote["decision_note"], vote["subject_digest"]) == ("go", approval["subject_digest"])
        assert await host.app.get_by_role("button").count() == 0
        (context,) = [one for one in host.told if one["method"] == "ui/update-model-context"]
        assert approval["approval_id"] in context["params"]["content"][0]["text"]


async def test_without_a_name_nothing_is_sent(chromium: Browser) -> None:
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        tools = Tools(deps)
        _, approval = await waiting(tools)
        await host.show("graph_approval_get", approval_id=approval["approval_id"])
        await host.app.get_by_role("button", name="Approve").click()
        assert (await now(tools, approval))["status"] == "pending"


async def test_at_a_gate_closed_to_models_there_is_no_button_but_the_way_to_decide(chromium: Browser) -> None:
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        _, approval = await waiting(Tools(deps), channels=HUMAN)
        await host.show("graph_approval_get", approval_id=approval["approval_id"])
        await host.app.get_by_text("agent-graph approvals decide").wait_for()
        assert await host.app.get_by_role("button").count() == 0


async def test_a_press_that_comes_too_late_is_told_with_its_code(chromium: Browser) -> None:
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        tools = Tools(deps)
        _, approval = await waiting(tools)
        await host.show("graph_approval_get", approval_id=approval["approval_id"])
        await tools.ok(
            "graph_approval_decide", approval_id=approval["approval_id"], decision="approve", decided_by="Bob"
        )
        await host.app.get_by_label("Your name").fill("Ada")
        await host.app.get_by_role("button", name="Reject").click()
        await host.app.get_by_text("APPROVAL_ALREADY_DECIDED").wait_for()


async def test_a_subject_that_was_cut_cannot_be_decided_here(chromium: Browser) -> None:
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated())
        run_id = await tools.run("gated", {"draft": "x" * 100_000})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        await host.show("graph_approval_list", run_id=run_id)
        await host.app.get_by_text("too long to be shown whole").wait_for()
        assert await host.app.get_by_role("button").count() == 0


async def test_only_the_host_is_listened_to(chromium: Browser) -> None:
    """A message from another window, the page's own included, changes nothing."""
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        forged = {"jsonrpc": "2.0", "method": "ui/notifications/tool-cancelled", "params": {}}
        frame = next(one for one in host.page.frames if one.parent_frame is not None)
        await frame.evaluate("(message) => window.postMessage(message, '*')", forged)
        await host.show("graph_approval_list")
        await host.app.get_by_text("Nothing waits for a decision.").wait_for()
        await host.tell("ui/notifications/tool-cancelled")
        await host.app.get_by_text("The call was cancelled.").wait_for()


async def test_the_host_hears_how_large_the_page_is_and_that_it_may_be_taken_down(chromium: Browser) -> None:
    async with opened() as deps, connected(deps) as assistant, hosted(chromium, assistant) as host:
        await waiting(Tools(deps))
        await host.show("graph_approval_list")
        await host.app.locator("article").wait_for()
        sizes = [one["params"] for one in host.told if one["method"] == "ui/notifications/size-changed"]
        assert sizes
        assert all(size["height"] > 0 for size in sizes)
        await host.page.evaluate(
            """() => new Promise((done) => {
                window.addEventListener("message", (event) => event.data.id === "bye" && done());
                frame.contentWindow.postMessage(
                    {jsonrpc: "2.0", id: "bye", method: "ui/resource-teardown", params: {reason: "over"}}, "*");
            })"""
        )
