"""A program killed while a tool works: what the tool did to the world is not done again behind anybody's back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]

PROGRAM = Path(__file__).parent / "tool_program.py"
ROOT = Path(__file__).parents[2]


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments], cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def says(program: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert program.stdout is not None
    assert program.stderr is not None
    line = program.stdout.readline()
    assert line, program.stderr.read().decode()
    said: dict[str, Any] = json.loads(line)
    return said


@pytest.mark.parametrize("idempotent", ["no", "yes"])
def test_a_tool_call_cut_by_a_kill_is_repeated_only_where_that_does_no_harm(tmp_path: Path, idempotent: str) -> None:
    ledger = tmp_path / "ledger"
    with started(str(tmp_path / "data"), str(ledger), "first", idempotent) as first:
        assert says(first) == {"event": "called"}
        first.kill()
    with started(str(tmp_path / "data"), str(ledger), "again", idempotent) as again:
        end = says(again)
        again.communicate(timeout=30)
        assert again.returncode == 0
    lines = ledger.read_text(encoding="utf-8").splitlines()
    if idempotent == "yes":
        assert (end["status"], end["calls"], len(lines)) == ("completed", 2, 2)
    else:
        assert (end["status"], end["error"]["code"], len(lines)) == ("failed", "TOOL_OUTCOME_UNKNOWN", 1)
        assert end["error"]["details"]["arguments"] == {"sum": 7}
