"""Two thousand runs at once: each is accepted and ends, those beyond are refused without a trace, and memory stays."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment
from tests.sizes import size

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(180)]

RUNS, BEYOND = size(400, 2_000), 50
PROGRAM = Path(__file__).parent / "crowd_program.py"
MOST_OVER_IDLE = 150 * 2**20


async def test_runs_started_at_once_are_all_accepted_and_all_end(tmp_path: Path) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), str(tmp_path / "data"), str(RUNS), str(BEYOND), env=environment(tmp_path),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await program.communicate()
    assert program.returncode == 0
    found = json.loads(out)
    print(found)
    assert found["accepted"] == {"ok": RUNS}
    assert found["load"] == {"active": 64, "queued": RUNS - 64}
    assert found["refused"] == {"RUN_CAPACITY": BEYOND}
    assert found["rows"] == RUNS + 1, "a refused start leaves no row"
    assert found["same"], "a key that is known has its answer whatever the crowd"
    assert found["counts"] == {"completed": RUNS + 1}
    assert found["load_after"] == {"active": 0, "queued": 0}
    assert found["over_idle_bytes"] <= MOST_OVER_IDLE


async def test_runs_that_waited_when_the_process_was_killed_are_driven_or_cancelled_by_the_next(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    first = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), folder, str(RUNS), "-", env=environment(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert first.stdout is not None
    assert json.loads(await first.stdout.readline()) == {"started": RUNS, "load": {"active": 64, "queued": RUNS - 64}}
    first.kill()
    await first.communicate()
    second = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), folder, env=environment(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await second.communicate()
    found = json.loads(out)
    assert found["cancelled"] > 0
    assert found["counts"]["cancelled"] <= found["cancelled"]  # one may have ended by then
    assert sum(found["counts"].values()) == RUNS
    assert set(found["counts"]) == {"completed", "cancelled"}
    assert found["load"] == {"active": 0, "queued": 0}
