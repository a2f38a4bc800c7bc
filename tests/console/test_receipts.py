"""The receipt on the page of a run: whether it holds, its digest, and the file others check it by."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from agent_graph.core.jsonvalue import canonical
from agent_graph.core.receipt_check import check
from agent_graph.engine.keys import open_keys
from tests.console.browser import Browser, served
from tests.console.test_approving import approval, waiting
from tests.fakes.opened import Tools, opened
from tests.mcp_server.served import token_for
from tests.tools.specs import echo, keep


async def test_the_page_of_a_run_that_has_ended_has_its_receipt_to_be_taken_away(ann: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=echo())
    run_id = (await tools.ended("echo", {"input": "x"}))["run_id"]
    page = await ann.get(f"/runs/{run_id}")
    assert page.text("receipt-verified") == "verified against what was sealed at its end"
    issued = await tools.ok("graph_run_receipt", run_id=run_id)
    assert page.text("receipt-digest") == issued["integrity"]["digest"]
    file = (await ann.get(f"/runs/{run_id}/receipt.json")).response
    assert file.headers["content-disposition"] == f'attachment; filename="{run_id}.receipt.json"'
    document = json.loads(file.content)
    assert file.content == canonical(document) + b"\n"
    assert document["integrity"]["bundle_digest"]
    assert not check(document, {}).faults


async def test_a_run_that_goes_on_and_a_folder_without_a_key_have_none(ann: Browser, tools: Tools) -> None:
    run_id = (await approval(tools, await waiting(tools)))["run_id"]
    assert 'id="receipt"' not in (await ann.get(f"/runs/{run_id}")).html
    page = await ann.get(f"/runs/{run_id}/receipt.json")
    assert (page.status, page.text("code")) == (409, "RECEIPT_NOT_READY")
    async with opened(keys=open_keys(None, now_ms=0, keyless=True)) as deps, served(deps) as house:
        keyless = Tools(deps)
        await keyless.ok("graph_create", spec=keep())
        run_id = (await keyless.ended("keep", {"a": 1}))["run_id"]
        async with house.browser() as browser:
            await browser.log_in(await token_for(deps, "ann", "admin"))
            page = await browser.get(f"/runs/{run_id}")
            assert (page.status, page.text("receipt")) == (200, "")


async def test_another_principal_takes_no_receipt(bob: Browser, tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run_id = (await tools.ended("keep", {"a": 1}))["run_id"]
    page = await bob.get(f"/runs/{run_id}/receipt.json")
    assert (page.status, page.text("code")) == (404, "RUN_NOT_FOUND")


async def test_a_log_somebody_has_changed_is_said_in_place_of_the_receipt(tmp_path: Path) -> None:
    async with opened(folder=tmp_path) as deps, served(deps) as house, house.browser() as browser:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=keep())
        run_id = (await tools.ended("keep", {"a": 1}))["run_id"]
        with sqlite3.connect(tmp_path / "agent-graph.db") as another:
            another.execute("UPDATE runs SET seal = NULL WHERE run_id = ?", (run_id,))
        another.close()
        await browser.log_in(await token_for(deps, "ann", "admin"))
        page = await browser.get(f"/runs/{run_id}")
        assert page.text("receipt-code") == "RECEIPT_INTEGRITY_FAILURE", page.text("receipt")
        assert page.text("receipt-digest") == ""
        taken = await browser.get(f"/runs/{run_id}/receipt.json")
        assert (taken.status >= 400, taken.text("code")) == (True, "RECEIPT_INTEGRITY_FAILURE")
