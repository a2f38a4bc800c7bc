"""Ten who decide at once, by three doors: an assistant's tool, the command line through the owner, the console."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent_graph.app import open_app
from agent_graph.settings import load
from agent_graph.tools.deps import Deps
from agent_graph.tools.socket_client import Owner
from tests.cli.terminal import environment
from tests.console.browser import OTHERS, Browser, House, Page, served
from tests.console.test_approving import waiting
from tests.fakes.opened import Tools
from tests.mcp_server.served import BASE, HEADERS, call, envelope, token_for
from tests.sizes import size

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

Told = tuple[bool, str]
"""Whether the vote won, and what was said to who cast it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def deps(folder: Path) -> AsyncIterator[Deps]:
    async with open_app(load({"data_dir": str(folder)}, environ={})) as opened:
        yield opened


async def by_assistant(house: House, token: str, vote: dict[str, Any]) -> Told:
    transport = httpx2.ASGITransport(house.app, client=("203.0.113.7", 4711))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE, headers=HEADERS) as client:
        answer = envelope(await call(client, "graph_approval_decide", vote, token=token))
    return bool(answer["ok"]), json.dumps(answer)


async def by_owner(folder: Path, vote: dict[str, Any]) -> Told:
    answer: Any = await Owner(folder, "test").call("graph_approval_decide", vote)
    return bool(answer["ok"]), json.dumps(answer)


async def by_command(folder: Path, vote: dict[str, Any]) -> Told:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent_graph", "approvals", "decide", vote["approval_id"], vote["decision"],
        "--by", vote["decided_by"], "--json", env=environment(folder), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode in (0, 1), err
    return process.returncode == 0, out.decode()


async def by_console(browser: Browser, page: Page, vote: dict[str, Any]) -> Told:
    page = await browser.send(page, "decide", decision=vote["decision"])
    return page.status == 200, f"{page.text('code')} {page.text('wrong')} {page.text('notice')}"


async def later(vote: Awaitable[Told], turns: int) -> Told:
    """Casts the vote when others have had so many turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return await vote


@pytest.mark.parametrize("shell", ["the socket", "processes"])
async def test_of_ten_over_three_doors_one_wins_and_nine_are_told_who(
    deps: Deps, tools: Tools, folder: Path, shell: str
) -> None:
    tokens = [await token_for(deps, f"P{number}", *OTHERS, "admin") for number in range(10)]
    command = by_owner if shell == "the socket" else by_command
    won = set()
    async with served(deps) as house, house.browser() as one, house.browser() as two, house.browser() as three:
        browsers = {1: one, 4: two, 7: three}
        for number, browser in browsers.items():
            await browser.log_in(tokens[number])
        for turn in range(size(9, 90) if shell == "the socket" else 1):
            asked = await waiting(tools, on_reject="continue")
            votes = [
                {"approval_id": asked, "decision": ("approve", "reject")[number % 2], "decided_by": f"P{number}"}
                for number in range(10)
            ]
            pages = {number: await browser.get(f"/approvals/{asked}") for number, browser in browsers.items()}
            deciding = [
                by_console(browsers[number], pages[number], vote) if number in browsers
                else by_assistant(house, tokens[number], vote) if number % 3 == 0 else command(folder, vote)
                for number, vote in enumerate(votes)
            ]  # fmt: skip
            told = await asyncio.gather(
                *(later(one, 0 if number % 3 == turn % 3 else turn * 8) for number, one in enumerate(deciding))
            )
            gate = (await tools.ok("graph_approval_get", approval_id=asked))["approval"]
            (vote,) = gate["votes"]
            assert [wins for wins, _ in told].count(True) == 1
            for wins, said in told:
                assert wins or ("APPROVAL_ALREADY_DECIDED" in said and vote["decided_by"] in said)
            waited = await tools.ok("graph_run_wait", run_id=gate["run_id"], timeout_ms=10_000)
            assert waited["run"]["status"] == "completed"
            assert len([event for event in waited["events"] if event["type"] == "approval_decided"]) == 1
            number = int(vote["decided_by"][1:])
            door = "console" if number in browsers else "assistant" if number % 3 == 0 else "cli"
            assert vote["via"] == door
            won.add(door)
    assert len(won) > 1 or shell == "processes"
