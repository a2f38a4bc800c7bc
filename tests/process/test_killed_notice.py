"""A process killed between an event and the telling of it: the next one tells, and says that it is the same."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_graph.engine.keys import keys_of
from agent_graph.store.sqlite import open_store
from tests.fakes.receiver import HANGS, SECRET, Receiver, receiving

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

PROGRAM = Path(__file__).parent / "notices_program.py"
ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def killed(folder: Path, receiver: Receiver, *begin: str) -> AsyncIterator[None]:
    """The program, which is killed when the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), str(folder), receiver.url, SECRET, *begin, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def test_a_notice_that_was_not_taken_when_the_process_was_killed_is_told_by_the_next(tmp_path: Path) -> None:
    async with receiving() as receiver:
        receiver.answers.append(HANGS)
        async with killed(tmp_path, receiver, "run"):
            await receiver.heard(1)
        async with killed(tmp_path, receiver):
            first, second = await receiver.heard(2)
        assert first.json == second.json
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert second.json["type"] == "approval.opened"
    async with await open_store(tmp_path / "agent-graph.db", ring=keys_of(tmp_path)) as store:
        [approval] = (await store.approvals.list())[0]
        assert approval.status == "pending"
        assert approval.approval_id == second.json["data"]["approval_id"]
