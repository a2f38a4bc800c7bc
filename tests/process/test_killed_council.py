"""A council whose process is killed: the next start finishes it, and nothing that was answered is asked again."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.record import canonical_record
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import SystemClock
from agent_graph.engine.keys import keys_of
from agent_graph.store.sqlite import open_store
from tests.fakes.ollama_server import Gate, OllamaServer, answer, encoded, last_line, line, stream
from tests.specs import join, llm, spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]

DRIVER = Path(__file__).parent / "driver.py"
ROOT = Path(__file__).parents[2]
ANALYSTS = ("analyst one", "analyst two", "analyst three")
PROMPTS = ("split this", *ANALYSTS, "report on")
COUNCIL = spec(
    llm("split", "split this: {input}", output_key="plan"),
    *(llm(f"a{n}", f"{name}: {{plan}}", output_key=f"r{n}") for n, name in enumerate(ANALYSTS)),
    join("j", ["r0", "r1", "r2"], "all", "collect_array"), llm("end", "report on {all}", output_key="report"),
    edges="split>a0 split>a1 split>a2 a0>j a1>j a2>j j>end end>END", output_key="report", name="council",
)  # fmt: skip


class Program:
    """The driver as a child of ours."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def says(self, event: str) -> dict[str, Any]:
        """The next thing it says, which must be that event; of answers only who asks for them hears."""
        assert self._process.stdout is not None
        text = await self._process.stdout.readline()
        while event != "answered" and b'"answered"' in text:
            text = await self._process.stdout.readline()
        assert text, (await self._process.stderr.read()).decode() if self._process.stderr else "it ended"
        said: dict[str, Any] = json.loads(text)
        assert said["event"] == event, said
        return said

    async def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        self._process.kill()
        await self._process.wait()

    async def over(self) -> int:
        return await self._process.wait()


@asynccontextmanager
async def program(folder: Path, server: OllamaServer, *begin: str) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(DRIVER), str(folder), server.url, *begin, cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Program(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def replies(server: OllamaServer, held: dict[str, Gate]) -> None:
    """Every call answered; the first of each held one gets half of its answer and then waits."""
    for name, gate in held.items():
        server.on(name, stream(*encoded([line("half ")]), gate, *encoded([last_line()])), times=1)
    for number, name in enumerate(PROMPTS):
        server.on(name, answer(f"answer {number}", chunks=2))


def asked(server: OllamaServer) -> dict[str, int]:
    return {name: sum(request.prompt.startswith(name) for request in server.chats) for name in PROMPTS}


async def read(folder: Path, run_id: str) -> tuple[JsonObject, list[e.Event]]:
    """Canonical record and log of a run in a folder that nobody owns."""
    async with await open_store(folder / "agent-graph.db", ring=keys_of(folder)) as store:
        row = await store.runs.get(run_id)
        graph = await Catalog(store, clock=SystemClock(), limits=DEFAULTS).get(row.graph_id, row.graph_version)
        assert await store.runs.verify_chain(run_id) is None
        stored = await store.runs.events(run_id, limit=100_000)
    log = [e.Event(each.seq, each.at_ms, e.from_json(each.body)) for each in stored]
    return canonical_record(graph, log), log


@pytest.fixture
def council(tmp_path: Path) -> str:
    path = tmp_path / "council.json"
    path.write_text(json.dumps(COUNCIL), encoding="utf-8")
    return str(path)


POINTS = {
    "before the first analyst has answered": ANALYSTS,
    "after one has answered": ANALYSTS[1:],
    "after all have answered": ("report on",),
}


@pytest.mark.parametrize("in_flight", POINTS.values(), ids=POINTS)
async def test_a_killed_council_is_finished_and_pays_for_no_answer_twice(
    tmp_path: Path, council: str, in_flight: tuple[str, ...]
) -> None:
    held = {name: Gate() for name in in_flight}
    async with OllamaServer() as server:
        replies(server, held)
        async with program(tmp_path / "data", server, council, "why?") as first:
            await first.says("ready")
            run_id = (await first.says("started"))["run_id"]
            for gate in held.values():
                await gate.reached.wait()
            for _ in range(len(PROMPTS) - len(in_flight) - ("report on" not in in_flight)):
                await first.says("answered")
            await first.kill()
        assert asked(server) == {name: int(name in in_flight or known(name, in_flight)) for name in PROMPTS}
        async with program(tmp_path / "data", server) as second:
            await second.says("ready")
            assert (await second.says("ended"))["status"] == "completed"
            assert await second.over() == 0
        assert asked(server) == {name: 2 if name in in_flight else 1 for name in PROMPTS}
        record, log = await read(tmp_path / "data", run_id)
        attempts = {f.firing: f.attempt for f in (event.fact for event in log) if isinstance(f, e.NodeStarted)}
        repeated = {f"a{ANALYSTS.index(name)}#1" if name in ANALYSTS else "end#1" for name in in_flight}
        assert {firing for firing, attempt in attempts.items() if attempt == 2} == repeated
        assert max(attempts.values()) == 2
        async with program(tmp_path / "whole", server, council, "why?") as third:
            await third.says("ready")
            whole = (await third.says("started"))["run_id"]
            assert (await third.says("ended"))["status"] == "completed"
        assert (await read(tmp_path / "whole", whole))[0] == record


def known(name: str, in_flight: tuple[str, ...]) -> bool:
    """Asked and answered before the kill."""
    return PROMPTS.index(name) < PROMPTS.index(in_flight[0])


async def test_three_kills_in_a_row_lose_nothing(tmp_path: Path, council: str) -> None:
    gates = {name: Gate() for name in ("split this", "analyst two", "report on")}
    async with OllamaServer() as server:
        replies(server, gates)
        begin: tuple[str, ...] = (council, "why?")
        run_id = ""
        for gate in gates.values():
            async with program(tmp_path / "data", server, *begin) as killed:
                await killed.says("ready")
                run_id = (await killed.says("started"))["run_id"] if begin else run_id
                await gate.reached.wait()
                await killed.kill()
            begin = ()
        async with program(tmp_path / "data", server) as last:
            await last.says("ready")
            assert (await last.says("ended"))["status"] == "completed"
        counts = asked(server)
        assert counts["split this"] == counts["report on"] == 2
        assert counts["analyst two"] == 2
        assert max(counts.values()) == 2
        assert (await read(tmp_path / "data", run_id))[0]["status"] == "completed"


async def test_a_folder_has_one_owner(tmp_path: Path, council: str) -> None:
    gate = Gate()
    async with OllamaServer() as server:
        replies(server, {"split this": gate})
        async with program(tmp_path / "data", server, council, "why?") as owner:
            await owner.says("ready")
            await owner.says("started")
            await gate.reached.wait()
            async with program(tmp_path / "data", server, council, "why?") as other:
                assert (await other.says("refused"))["code"] == "DATA_DIR_LOCKED"
                assert await other.over() == 0
            gate.open()
            assert (await owner.says("ended"))["status"] == "completed"
        assert asked(server)["split this"] == 1
