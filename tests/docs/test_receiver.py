"""The receiver in docs/howto/get-notified.md is run: it takes what is genuine, once, and nothing else."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from agent_graph.connect.base import Letter
from agent_graph.connect.webhook import Webhook
from tests.docs.pages import PAGES, ROOT, blocks, marked

MARK = "run by tests/docs/test_receiver.py"
SECRET = "0123456789abcdef0123456789abcdef"
LETTER = Letter("run-1.7", b'{"type":"approval.opened","data":{"approval_id":"apr-1"}}')


def test_every_python_block_is_the_one_that_is_run() -> None:
    found = [block for page in PAGES for block in blocks(page) if block.language == "python"]
    assert [block.mark for block in found] == [MARK]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.process
async def test_the_receiver_takes_what_is_genuine_once_and_nothing_else(tmp_path: Path) -> None:
    program, port = tmp_path / "receiver.py", free_port()
    program.write_text(marked(ROOT / "docs" / "howto" / "get-notified.md", MARK), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "AGENT_GRAPH_NOTIFY_SECRET": SECRET, "PORT": str(port)},
    )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}/"
        genuine = Webhook(url, keys=[SECRET.encode()], timeout_ms=10_000, loopback=True)
        forged = Webhook(url, keys=[b"another" * 8], timeout_ms=10_000, loopback=True)
        old = Webhook(url, keys=[SECRET.encode()], timeout_ms=10_000, loopback=True, now_s=lambda: time.time() - 900)
        async with asyncio.timeout(15):
            while (receipt := await genuine.tell(LETTER)).state == "away":
                pass  # it is on its way up
        assert receipt.state == "delivered"
        assert (await genuine.tell(LETTER)).state == "delivered"
        assert (await forged.tell(LETTER)).said == "it answered 401"
        assert (await old.tell(LETTER)).said == "it answered 401"
    finally:
        process.kill()
        printed, _ = await process.communicate()
        for hook in (genuine, forged, old):
            await hook.aclose()
    assert printed == b"approval.opened apr-1\n"
