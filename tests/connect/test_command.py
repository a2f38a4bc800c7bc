"""The command hook: no shell, JSON on stdin, bounded in time and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from agent_graph.connect.base import Letter, Receipt
from agent_graph.connect.command import CommandHook

LETTER = Letter("run-1.7", json.dumps({"type": "run.ended"}).encode())
pytestmark = pytest.mark.process


async def told(*argv: str, timeout_ms: int = 10_000, environ: dict[str, str] | None = None) -> Receipt:
    return await CommandHook(argv, timeout_ms=timeout_ms, environ=environ or dict(os.environ)).tell(LETTER)


async def test_the_program_reads_the_notice_and_its_id(tmp_path: Path) -> None:
    code = f"""
import os, pathlib, sys
pathlib.Path({str(tmp_path / "got")!r}).write_text(os.environ["AGENT_GRAPH_NOTICE_ID"] + sys.stdin.read())
"""
    assert (await told(sys.executable, "-c", code)).state == "delivered"
    assert (tmp_path / "got").read_text() == "run-1.7" + LETTER.body.decode()


async def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    code = f"import sys,pathlib; pathlib.Path({str(tmp_path / 'got')!r}).write_text(sys.argv[1])"
    evil = f"$(touch {tmp_path}/evil); `id` | cat"
    assert (await told(sys.executable, "-c", code, evil)).state == "delivered"
    assert (tmp_path / "got").read_text() == evil
    assert not (tmp_path / "evil").exists()


async def test_what_it_ends_with_and_says_last_is_told() -> None:
    receipt = await told(sys.executable, "-c", "import sys; print('no\\nroom', file=sys.stderr); sys.exit(3)")
    assert (receipt.state, receipt.said) == ("refused", "it ended with 3: no room")


async def test_a_program_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    code = f"""
import subprocess, sys, time
held = open({str(tmp_path / "held")!r}, "wb")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], pass_fds=[held.fileno()])
held.write(b"both")
held.flush()
time.sleep(600)
"""
    nobody_holds_it = asyncio.create_task(asyncio.to_thread((tmp_path / "held").read_bytes))
    receipt = await told(sys.executable, "-c", code, timeout_ms=1_500)
    assert (receipt.state, receipt.said) == ("refused", "it did not end within 1500 ms, and was killed")
    assert await nobody_holds_it == b"both"


async def test_whatever_it_writes_is_read_and_thrown_away() -> None:
    code = "import sys; [sys.stdout.write('x' * 65536) or sys.stderr.write('y' * 65536) for _ in range(200)]"
    assert (await told(sys.executable, "-c", code)).state == "delivered"


async def test_a_program_need_not_read() -> None:
    big = Letter("run-1.7", b"x" * 1_000_000)
    hook = CommandHook([sys.executable, "-c", "pass"], timeout_ms=10_000, environ=os.environ)
    assert (await hook.tell(big)).state == "delivered"


async def test_a_program_that_is_not_there_is_said() -> None:
    receipt = await told("there-is-no-such-program")
    assert receipt.state == "away"
    assert "cannot be started" in receipt.said


async def test_keys_of_the_server_are_not_handed_on() -> None:
    code = "import os, sys; sys.exit('OPENAI_API_KEY' in os.environ or 'AGENT_GRAPH_NOTIFY_SECRET' in os.environ)"
    environ = {**os.environ, "OPENAI_API_KEY": "sk", "AGENT_GRAPH_NOTIFY_SECRET": "s"}
    assert (await told(sys.executable, "-c", code, environ=environ)).state == "delivered"
