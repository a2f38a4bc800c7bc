"""A file that one process holds, by either kind of lock; the same program runs here and where there is no `fcntl`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.elsewhere_process import LONGEST_S, ROOT, environment

HOLDS = """
import os, sys
from agent_graph.system import locks
path = sys.argv[1]
held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
assert locks.free(held) and locks.free(held)
assert locks.take(held)
os.lseek(held, 0, os.SEEK_SET)
os.write(held, b"mine")
print(f"held by {locks._whole and 'flock' or 'a byte'}", flush=True)
sys.stdin.read()
"""
OTHERS = """
import os, sys, threading
from agent_graph.system import locks
descriptor = os.open(sys.argv[1], os.O_RDWR)
assert not locks.free(descriptor)
assert not locks.take(descriptor)
os.lseek(descriptor, 0, os.SEEK_SET)
assert os.read(descriptor, 10) == b"mine", "what it says is read all the same"
print("refused", flush=True)
locks.wait(descriptor)
print("waited", flush=True)
again = os.open(sys.argv[1], os.O_RDWR)
assert not locks.free(again)
os.close(descriptor)
assert locks.free(again)
assert locks.take(again)
"""


def started(program: str, path: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", program, str(path)], text=True, env=env, **pipes)


@pytest.mark.parametrize("kind", ["flock", "a byte"])
def test_a_file_is_held_by_one_process_until_that_is_killed(kind: str, tmp_path: Path) -> None:
    env = environment()
    if kind == "flock":
        env["PYTHONPATH"] = str(ROOT)
    path = tmp_path / "lock"
    with started(HOLDS, path, env) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == f"held by {kind}\n"
        with started(OTHERS, path, env) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "refused\n"
            holder.kill()
            said, _ = other.communicate(timeout=LONGEST_S)
    assert (said, other.returncode) == ("waited\n", 0)
    assert path.read_bytes() == b"mine"
