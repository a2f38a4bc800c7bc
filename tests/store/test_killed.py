"""A process killed while it writes: what is left is a prefix of what it wrote, with all it was told is durable."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agent_graph.store.sqlite import open_store

pytestmark = pytest.mark.process

ROUNDS = 20 if os.environ.get("AGENT_GRAPH_TEST_SIZE") == "full" else 4
RUNS = 3

WRITER = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from agent_graph.store.base import Commit
    from agent_graph.store.sqlite import open_store
    from tests.store.rows import approval, begin, step

    async def write(store, run_id):
        seq = 1
        while True:
            made = step(seq, run_id, note=seq)
            gate = approval(f"{run_id}/{seq}", run_id=run_id)
            snapshot = str(seq + 2).encode() if seq % 4 == 1 else None
            await store.runs.commit(Commit(made.run, seq, made.events, snapshot=snapshot, approvals=[gate]))
            seq += 2
            print(run_id, seq, flush=True)

    async def main(path):
        store = await open_store(path)
        ids = [f"run-{number}" for number in range(int(sys.argv[2]))]
        await begin(store, *ids)
        await asyncio.gather(*(write(store, run_id) for run_id in ids))

    asyncio.run(main(Path(sys.argv[1])))
    """
)


def write_and_kill(path: Path, *, after: int) -> dict[str, int]:
    """What a writer said was durable before it was killed while it wrote on: events by run."""
    root = Path(__file__).parents[2]
    arguments = [sys.executable, "-c", WRITER, str(path), str(RUNS)]
    writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=root)
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(after)]
    writer.send_signal(signal.SIGKILL)
    lines += writer.communicate()[0].splitlines(keepends=True)
    said = [line.split() for line in lines if line.endswith("\n")]
    return {run_id: int(seq) for run_id, seq in said}


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_a_killed_writer_leaves_a_prefix(path: Path, seed: int) -> None:
    durable = write_and_kill(path, after=random.Random(seed).randint(1, 60))
    async with await open_store(path) as store:
        rows, _ = await store.runs.list()
        assert len(rows) == RUNS
        for row in rows:
            assert row.seq >= durable.get(row.run_id, 1)
            assert row.seq % 2 == 1  # each commit whole
            assert await store.runs.verify_chain(row.run_id) is None
            stored = await store.runs.events(row.run_id, limit=10**6)
            assert [event.seq for event in stored] == list(range(row.seq))
            approvals, _ = await store.approvals.list(run_id=row.run_id, limit=10**6)
            assert [one.approval_id for one in approvals] == [f"{row.run_id}/{seq}" for seq in range(1, row.seq, 2)]
            snapshot, log, _ = await store.runs.load(row.run_id)
            assert int(snapshot or b"0") + len(log) == row.seq
