"""Kill -9 at random moments, over and over: nothing is lost, nothing that was committed is done again.

Each process is a child of ours and is killed alone. The seed of what is drawn by lot is printed: with it a failure
repeats as far as timing lets it.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.record import canonical_record
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import SystemClock
from agent_graph.engine.keys import keys_of
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.store.sqlite import open_store
from tests.engine.room import Room, opened
from tests.fakes.ollama_server import OllamaServer, Request, Response, encoded, error, last_line, line, stream
from tests.process.shapes import FLAKY, PARTS, SHAPES, decides, says, tells
from tests.sizes import size

pytestmark = [pytest.mark.process, pytest.mark.slow]

KILLS = size(20, 200)
SEED = 20_261_130
PROGRAM = Path(__file__).parent / "chaos_program.py"
ROOT = Path(__file__).parents[2]
THINKS_S = (0.01, 0.08)
"""How long the model takes for an answer, in a stream of four pieces."""
LIVES_S = (0.0, 0.6)
"""How long a process lives after it owns the folder, or, dying young, after its start."""
DIE_YOUNG = 0.25
PATIENCE_S = 60


@dataclass
class Batch:
    """Runs that are seen through together, each killed with all the others."""

    folder: Path
    tags: list[str]
    kills: int = 0
    run_ids: dict[str, str] = field(default_factory=dict)
    """By tag, as the first process that knew it said."""


class Chaos:
    """Sees batches through, and kills while it may."""

    def __init__(self, url: str, *, most: int, seed: int) -> None:
        self.killed = 0
        self.while_starting = 0
        self.lots = random.Random(seed)
        self._url = url
        self._most = most

    async def see_through(self, batch: Batch) -> None:
        """Start process after process until one sees all runs end."""
        while not await self._process(batch):
            pass

    async def _process(self, batch: Batch) -> bool:
        """Whether it saw the end of all runs before its own."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), str(batch.folder), self._url, *batch.tags, cwd=ROOT,
            env={"PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        ready = asyncio.Event()
        ended = asyncio.create_task(_hear(process, batch, ready))
        try:
            await self._live(ended, ready)
            if not ended.done():
                process.kill()
                self.killed += 1
                batch.kills += 1
            said = await ended
            err = (await process.stderr.read()).decode() if process.stderr is not None else ""
            assert await process.wait() in (0, -9), err
            return said == len(batch.tags) and process.returncode == 0
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _live(self, ended: asyncio.Task[int], ready: asyncio.Event) -> None:
        """Return when its time is over, or it is."""
        if self.killed >= self._most:
            await asyncio.wait({ended}, timeout=PATIENCE_S)
            assert ended.done(), "a process that nobody kills does not see the end"
            return
        life_s = self.lots.uniform(*LIVES_S)
        if self.lots.random() < DIE_YOUNG:
            self.while_starting += 1
        else:
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait({ended, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        await asyncio.wait({ended}, timeout=life_s)


async def _hear(process: asyncio.subprocess.Process, batch: Batch, ready: asyncio.Event) -> int:
    """Follow what a process says to its end; how many runs it saw end."""
    assert process.stdout is not None
    ends = 0
    while text := await process.stdout.readline():
        if not text.endswith(b"\n"):
            break
        said = json.loads(text)
        if said["event"] == "ready":
            ready.set()
        elif said["event"] == "started":
            first = batch.run_ids.setdefault(said["tag"], said["run_id"])
            assert said["run_id"] == first, "a run that was accepted is another one now"
        else:
            assert (said["event"], said["status"]) == ("ended", "completed"), said
            ends += 1
    return ends


@dataclass
class Tally:
    """What the runs of all batches add up to."""

    runs: int = 0
    firings: int = 0
    calls: int = 0
    more: int = 0
    """Calls made again, each a new attempt."""


async def check(batch: Batch, server: OllamaServer, room: Room, tally: Tally) -> None:
    """Every run is there, whole, and the same as one that nobody disturbed."""
    calls = Counter(request.prompt.partition(" ")[0] for request in server.chats)
    async with await open_store(batch.folder / "agent-graph.db", ring=keys_of(batch.folder)) as store:
        catalog = Catalog(store, clock=SystemClock(), limits=DEFAULTS)
        assert sum((await store.runs.counts()).values()) == len(batch.tags)
        for tag in batch.tags:
            answered = await store.requests.get(tag)
            assert answered is not None
            assert answered.run_id == batch.run_ids[tag]
            row = await store.runs.get(answered.run_id)
            assert row.status == "completed"
            assert await store.runs.verify_chain(row.run_id) is None
            stored = await store.runs.events(row.run_id, limit=100_000)
            log = [e.Event(each.seq, each.at_ms, e.from_json(each.body)) for each in stored]
            graph = await catalog.get(row.graph_id, row.graph_version)
            assert canonical_record(graph, log) == await undisturbed(room, tag), tag
            _once_each(tag, log, calls[tag], batch.kills, tally)


def _once_each(tag: str, log: list[e.Event], calls: int, kills: int, tally: Tally) -> None:
    """No firing ended twice, no answer came twice; what was called again is a further attempt, one for each kill."""
    facts = [event.fact for event in log]
    ends = Counter(fact.firing for fact in facts if isinstance(fact, e.NodeFinished))
    answers = Counter(fact.firing for fact in facts if isinstance(fact, e.ModelAnswered))
    assert set(ends.values()) == {1}, tag
    assert set(answers.values()) <= {1}, tag
    attempts = Counter(fact.firing for fact in facts if isinstance(fact, e.NodeStarted))
    starts = sum(attempts[firing] for firing in answers)
    failures = Counter(fact.firing for fact in facts if isinstance(fact, e.NodeFailed | e.NodeRetried))
    assert max(attempts.values()) <= 1 + kills + max(failures.values(), default=0), tag
    assert len(answers) <= calls <= starts, (tag, len(answers), calls, starts)
    tally.runs += 1
    tally.firings += len(ends)
    tally.calls += calls
    tally.more += calls - len(answers) - sum(failures.values())


async def undisturbed(room: Room, tag: str) -> JsonObject:
    """The canonical record of the same run in a process that nobody kills."""
    shape = tag.partition("-")[0]
    for graph in PARTS:
        await room.create(graph)
    run_id = await room.start(SHAPES[shape], {"tag": tag})

    def rests(row: Any) -> bool:
        return row.status in ("waiting", "completed")

    while (await room.supervisor.wait(run_id, timeout_ms=10_000, until=rests)).status == "waiting":
        for gate in await room.pending(run_id):
            await room.decide(gate["approval_id"], decides(gate["node_id"], shape))
        for wait in (await room.data("graph_run_get", run_id=run_id))["waiting_for"]:
            if wait["kind"] == "signal":
                await room.call("graph_run_signal", run_id=run_id, name=wait["name"], payload=tells(wait["name"]))
        await asyncio.sleep(0)  # one that waits for the clock waits on
    return await room.record(run_id)


async def at_once(call: CallModel) -> str:
    return says(str(call.messages[-1]["content"]))


def thinking(lots: random.Random) -> Any:
    """A model that takes its time over each piece of a stream, and fails a flaky node once."""
    failed: set[str] = set()

    async def respond(request: Request) -> Response:
        if f" {FLAKY}:" in request.prompt and request.prompt not in failed:
            failed.add(request.prompt)
            return error(500, "out of breath")
        text = says(request.prompt)
        pieces = encoded([*(line(text[start : start + 4]) for start in range(0, len(text), 4)), last_line()])
        pause_s = lots.uniform(*THINKS_S) / len(pieces)

        async def streamed() -> AsyncIterator[bytes]:
            for piece in pieces:
                await asyncio.sleep(pause_s)
                yield piece

        return stream(streamed)

    return respond


@pytest.mark.timeout(60 + 6 * KILLS)
async def test_whatever_is_killed_is_finished_as_if_nothing_had_happened(tmp_path: Path) -> None:
    lots = random.Random(SEED)
    tally = Tally()
    began = time.monotonic()
    async with OllamaServer(responder=thinking(lots)) as server, opened(ScriptedModel(at_once)) as room:
        chaos = Chaos(server.url, most=KILLS, seed=SEED)
        number, rows = 0, 0
        while chaos.killed < KILLS:
            batch = Batch(tmp_path / f"batch-{number}", [f"{shape}-{number}" for shape in SHAPES])
            before = chaos.killed
            await chaos.see_through(batch)
            rows += chaos.killed - before >= 3
            await check(batch, server, room, tally)
            number += 1
    print(
        f"seed {SEED}: {chaos.killed} kills ({chaos.while_starting} processes died young), {number} batches, "
        f"{rows} of them killed three times or more in a row, {tally.runs} runs, {tally.firings} firings, "
        f"{tally.calls} calls of which {tally.more} were made again; 0 lost, 0 repeated; "
        f"{time.monotonic() - began:.0f} s"
    )
    assert rows
