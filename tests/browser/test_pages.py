"""Every page, in light and dark, wide and on a phone: what axe-core says, how it is built, whether it fits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent_graph.engine.approvers import Proof
from tests.browser.chromium import Person, axe, faults, too_wide, unshapely
from tests.browser.conftest import People
from tests.browser.graphs import ROUND, TALE, stopped, waiting
from tests.fakes.opened import Tools
from tests.fakes.writing import Writing
from tests.specs import gate, spec

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

LONG = "https://example.org/" + "unbroken" * 60
PHONE = {"width": 360, "height": 740}


async def filled(tools: Tools, model: Writing) -> list[str]:
    """Something of everything there is; the paths of its pages."""
    wide = {"draft": {"title": LONG, "lines": ["one", "two", LONG]}}
    await tools.deps.approvers.add(Proof("carla", "a secret of hers"), voucher=None, now_ms=0)
    one = await waiting(tools, wide, allowed_decisions=["approve", "reject", "request_changes", "edit"],
                        audience=["editors", "y" * 80])  # fmt: skip
    two = await waiting(tools, {"draft": LONG}, name="x" * 64, quorum=2, channels=["console", "cli"])
    edited = await waiting(tools, wide, allowed_decisions=["approve", "edit"])
    patch = [{"op": "replace", "path": "/title", "value": "Short"}]
    await tools.ok("graph_approval_decide", approval_id=edited["approval_id"], decision="edit", decided_by="w" * 60,
                   patch=patch, decision_note=LONG)  # fmt: skip
    await tools.ok("graph_create", spec=spec(gate("h", prompt=LONG), edges="h>END", name="no"))
    failed = await stopped(tools, await tools.run("no", {}))
    await tools.ok("graph_approval_decide", approval_id=failed["approval_id"], decision="reject", decided_by="Ada",
                   decision_note=LONG)  # fmt: skip
    await tools.ok("graph_create", spec=ROUND)
    waits = await stopped(tools, await tools.run("letter", LONG, thread_id="t" * 60))
    await tools.ok("graph_create", spec=TALE)
    running = await tools.run("tale", "a tale")
    await model.began.wait()
    approvals = [f"/approvals/{asked['approval_id']}" for asked in (one, two, edited, failed)]
    runs = [f"/runs/{run_id}" for run_id in (edited["run_id"], failed["run_id"], waits["run_id"], running)]
    return [
        "/login", "/approvals", "/approvals?status=all", "/approvals?graph=none", *approvals, f"{approvals[0]}/edit",
        "/log", "/log?graph=none", "/runs", "/runs?graph=none", *runs, f"{runs[0]}?from=3",
        "/graphs", "/graphs?query=none", "/graphs/letter", f"/graphs/{'x' * 64}",
        "/templates", "/templates?query=none", "/templates/council_deliberation", "/templates/map_reduce",
        "/runs/none", "/none",
    ]  # fmt: skip


async def each(ann: Person, paths: list[str]) -> AsyncIterator[str]:
    """Every page; after those that an address leads to, the ones that a form leads to."""
    for path in paths:
        await ann.go(path)
        yield path
    edit = next(path for path in paths if path.endswith("/edit"))
    await ann.go(edit)
    await ann.page.fill("#subject", "{")
    await ann.page.click("#compare")
    yield "an edit that is refused"
    await ann.page.fill("#subject", '{"title": "Other"}')
    await ann.page.click("#compare")
    yield "an edit to be confirmed"


async def opened(ann: Person) -> None:
    """What is folded away is there to be seen; of the events, which are alike, the first."""
    every = "details:not(.event details), .event:first-child details"
    await ann.page.evaluate("every => { for (const one of document.querySelectorAll(every)) one.open = true }", every)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_on_any_page_and_each_is_well_formed(
    people: People, tools: Tools, model: Writing, scheme: str
) -> None:
    paths = await filled(tools, model)
    ann = await people("ann", color_scheme=scheme, reduced_motion="reduce")
    await ann.context.add_init_script(axe())
    found: list[str] = []
    if scheme == "dark":  # the colours are other ones, and nothing else
        paths = [path for path in paths if "none" not in path]
    async for _ in each(ann, paths):
        await opened(ann)
        found += await faults(ann.page, *(["color-contrast"] if scheme == "dark" else []))
        found += await unshapely(ann.page)
    assert not found, "\n".join(found)
    model.end()


async def test_no_page_scrolls_sideways_on_a_phone(people: People, tools: Tools, model: Writing) -> None:
    paths = await filled(tools, model)
    ann = await people("ann", viewport=PHONE, device_scale_factor=2, is_mobile=True, has_touch=True)
    found: list[str] = []
    async for _ in each(ann, paths):
        await opened(ann)
        found += await too_wide(ann.page)
    assert not found, "\n".join(found)
    model.end()


async def test_what_is_touched_is_large_enough_for_a_finger(people: People, tools: Tools) -> None:
    asked = await waiting(tools, allowed_decisions=["approve", "reject", "edit"])
    ann = await people("ann", viewport=PHONE, is_mobile=True, has_touch=True)
    for path in ("/approvals", f"/approvals/{asked['approval_id']}"):
        await ann.go(path)
        assert not list(await faults(ann.page, "target-size")), path


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
async def test_nothing_moves_for_who_does_not_want_it(
    people: People, tools: Tools, model: Writing, motion: str, moves: bool
) -> None:
    await tools.ok("graph_create", spec=TALE)
    run_id = await tools.run("tale", "a tale")
    await model.began.wait()
    ann = await people("ann", reduced_motion=motion)
    await ann.go(f"/runs/{run_id}")
    await ann.sees("g.node-running")
    assert (await ann.page.evaluate("document.getAnimations().length") > 0) is moves
    model.end()
    await ann.sees("#standing .status-completed")
