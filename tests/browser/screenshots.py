"""The pictures of the console that the docs show: ``python -m tests.browser.screenshots``."""

from __future__ import annotations

import asyncio
import base64
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from agent_graph.engine.approvers import Approvers
from agent_graph.tools.deps import Deps
from tests.browser.chromium import Person, Watch, started
from tests.browser.graphs import followed, stopped
from tests.browser.site import Site
from tests.fakes.opened import Tools, opened
from tests.fakes.writing import Writing
from tests.mcp_server.served import token_for
from tests.specs import Json, gate, join, llm, node, put, spec

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"
MOST_BYTES = 120_000
WIDE = {"width": 1120, "height": 790}
PHONE = {"width": 390, "height": 780}

PLAN = """Move the team's services into one repository over two weeks.

1. Freeze merges on Friday evening, and import all histories.
2. Build and test only what a change touches.
3. Keep the old repositories readable for a year."""
LETTER = {
    "to": "all teams", "subject": "One repository from the 15th on",
    "lines": ["Merges stop on Friday at 18:00.", "Everything is open again on Monday.", "Questions: build@example.org"],
}  # fmt: skip


def council() -> Json:
    """A question, two who look at the plan, and a person who decides."""
    seats = [{"id": "risks", "entry": "risks"}, {"id": "costs", "entry": "costs"}]
    return spec(
        llm("plan", "Plan: {input}", output_key="plan") | {"label": "Write the plan"},
        node("seats", "parallel", join="brought", branches=seats) | {"label": "Ask the council"},
        llm("risks", "What can go wrong? {plan}", output_key="risks") | {"label": "Look for risks"},
        llm("costs", "What does it cost? {plan}", output_key="costs") | {"label": "Count the costs"},
        join("brought", mode="all_success") | {"label": "Bring together"},
        gate("gate", prompt="Shall the repositories be merged as planned?", subject_key="plan", quorum=2,
             audience=["release board"], output_key="decision") | {"label": "The board decides"},
        llm("report", "Report slowly: {plan}", output_key="report") | {"label": "Write the report"},
        edges="plan>seats risks>brought costs>brought brought>gate gate>report report>END",
        name="merge_repositories", output_key="report",
        description="A plan, looked at from two sides, and decided on by two of the release board.",
    )  # fmt: skip


def mail() -> Json:
    return spec(
        gate("gate", prompt="May this be sent to everybody?", subject_key="draft", output_key="decision",
             allowed_decisions=["approve", "reject", "request_changes", "edit"]) | {"label": "Release"},
        put("send", sent=True) | {"label": "Send it"}, edges="gate>send send>END", name="announcement",
    )  # fmt: skip


@asynccontextmanager
async def house() -> AsyncIterator[tuple[Site, Writing]]:
    model = Writing(PLAN)
    with tempfile.TemporaryDirectory() as folder:
        async with opened(model) as deps:
            site = Site(_with_approvers(deps, Path(folder)))
            await site.start()
            yield site, model
            model.end()
            await site.stop()


def _with_approvers(deps: Deps, folder: Path) -> Deps:
    return replace(deps, approvers=Approvers(folder))


async def come(browser: Browser, site: Site, name: str, **options: Any) -> Person:
    context = await browser.new_context(locale="en-GB", timezone_id="UTC", device_scale_factor=2, **options)
    person = Person(context, await context.new_page(), Watch(site.url))
    await person.log_in(await token_for(site.deps, name, "admin"))
    return person


async def keep(page: Page, name: str, *, height: int = 0) -> None:
    """The window as it is, or its upper part, as WebP, which the browser itself makes of a PNG."""
    size = page.viewport_size
    assert size is not None
    clip: Any = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"]}
    await page.bring_to_front()
    picture = base64.b64encode(await page.screenshot(animations="disabled", clip=clip)).decode()
    drawn = await page.context.new_page()
    url: str = await drawn.evaluate(
        """async (picture) => {
          const image = new Image();
          image.src = "data:image/png;base64," + picture;
          await image.decode();
          const canvas = new OffscreenCanvas(image.width, image.height);
          canvas.getContext("2d").drawImage(image, 0, 0);
          const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.86 });
          const bytes = new Uint8Array(await blob.arrayBuffer());
          return btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));
        }""",
        picture,
    )
    await drawn.close()
    made = base64.b64decode(url)
    assert len(made) < MOST_BYTES, f"{name} has {len(made)} bytes"
    await asyncio.to_thread((FOLDER / f"console-{name}.webp").write_bytes, made)
    print(f"{name}: {len(made) // 1024} KB")


async def taken() -> None:
    """All pictures, in place of those that are there."""
    async with house() as (site, model), started() as browser:
        tools = site.tools
        merging, announced = await filled(tools)
        ann = await come(browser, site, "ann", viewport=WIDE, color_scheme="light")
        await ann.go("/approvals")
        await keep(ann.page, "inbox", height=530)
        await ann.go(f"/approvals/{announced['approval_id']}")
        await ann.page.click("#edit")
        await ann.page.fill("#subject", (await ann.page.input_value("#subject")).replace("Monday", "Monday at 8:00"))
        await ann.page.click("#compare")
        await keep(ann.page, "edit")
        await ann.go(f"/approvals/{merging['approval_id']}")
        await ann.page.check("#decision-approve")
        await keep(ann.page, "approval")
        phone = await come(browser, site, "pia", viewport=PHONE, color_scheme="dark", is_mobile=True, has_touch=True)
        await phone.go(f"/approvals/{announced['approval_id']}")
        await keep(phone.page, "phone")
        for voter in ("ann", "bob"):
            vote = {"approval_id": merging["approval_id"], "decision": "approve", "decided_by": voter}
            await tools.ok("graph_approval_decide", **vote)
        await model.began.wait()
        dan = await come(browser, site, "dan", viewport=WIDE | {"height": 1130}, color_scheme="dark")
        await dan.go(f"/runs/{merging['run_id']}")
        await followed(tools, merging["run_id"])
        model.write("The board approved the plan. Merges stop on Friday at 18:00, ")
        await dan.sees("#texts pre", "The board")
        await keep(dan.page, "run")


async def filled(tools: Tools) -> tuple[Json, Json]:
    """Two that wait."""
    await tools.ok("graph_create", spec=council())
    await tools.ok("graph_create", spec=mail())
    merging = await stopped(tools, await tools.run("merge_repositories", "Should we have one repository?"))
    announced = await stopped(tools, await tools.run("announcement", {"draft": LETTER}, thread_id="release-15"))
    return merging, announced


if __name__ == "__main__":
    asyncio.run(taken())
