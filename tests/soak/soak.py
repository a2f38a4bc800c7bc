"""Half an hour of mixed runs in one process, and whether it holds on to anything; no part of the test suite.

``python -m tests.soak.soak [--minutes 30] [--seed N] [--folder DIR]`` drives every shape of the chaos suite with a
scripted model that fails now and then: users start runs, read them, wait for them or cancel them, a bot decides what
waits, old runs are pruned, and the whole program is closed and opened again over and over, runs under way or not. It
prints a line a sample and at the end one JSON object; the exit code says whether the bounds held.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_graph.app import open_app
from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import Reply, ScriptedModel, last_user_message
from agent_graph.settings import load
from agent_graph.store.base import TERMINAL
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import call
from tests.process.shapes import PARTS, SHAPES, asks, decides, says
from tests.soak.figures import Held, growth, held
from tests.specs import gate, llm, node, spec, subgraph

import_module("agent_graph.tools.toolsets")
ME = Caller("assistant", "soak")
INNER = spec(
    asks("think", "input"), gate("look", output_key="said"), asks("sum", "think"),
    edges="think>look look>sum sum>END", output_key="sum", name="inner",
)  # fmt: skip
MAP = spec(
    node("map", "parallel", for_each={"path": "parts"}, graph_name="inner", output_key="all"), asks("end", "all"),
    edges="map>end end>END", output_key="end", name="map",
)  # fmt: skip
INSIDE = spec(
    subgraph("in", "inner"), llm("after", "after {input}", output_key="said"), edges="in>after after>END",
    output_key="said", name="inside",
)  # fmt: skip
GRAPHS = {"inner": INNER, **SHAPES, "map": MAP, "inside": INSIDE}
"""In the order in which they can be stored: what stands inside comes first."""
USERS = 16
ERAS = 20
"""How often the program is closed and opened again."""
MOST_ERA_S = 90.0
THINKS_S = (0.002, 0.03)
PAUSES_S = (0.2, 1.5)
"""Between two runs of one user."""
FAILS = 0.04
"""Calls that fail in passing."""
CANCELS = 0.15
"""Runs whose user thinks better of it."""
KEPT_RUNS = 150
PRUNES_S = 10.0
FORGETS = 3
"""Every so many prunings the rows go too, or they would grow by design."""
SAMPLES_S = 5.0
WARM_UP = 1 / 3
"""The part of the time that is not looked at."""
LOOKED_AT_S = 60
"""Growth in less time than this says nothing."""
RSS_GROWTH_BYTES = 2 * 2**20
FILE_GROWTH = 0.1
"""What the file may grow by of its own size, after pruning."""
FAILURES = ("MODEL_OVERLOADED", "MODEL_SERVER_ERROR", "MODEL_BAD_REPLY", "MODEL_TIMEOUT")


@dataclass
class Soak:
    """What was seen so far."""

    folder: Path
    until: float
    lot: random.Random
    begun: float = field(default_factory=time.monotonic)
    started: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    decided: int = 0
    eras: int = 0
    samples: list[Held] = field(default_factory=list)
    between: list[Held] = field(default_factory=list)
    """Looked at while no program is open."""
    file: list[tuple[int, int]] = field(default_factory=list)
    """(at_ms, bytes) after each pruning that forgot."""

    def at_ms(self) -> int:
        return int((time.monotonic() - self.begun) * 1000)

    async def answer(self, asked: CallModel) -> Reply:
        """What the model says, after a while; or that it cannot."""
        await asyncio.sleep(self.lot.uniform(*THINKS_S))
        if self.lot.random() < FAILS:
            code = self.lot.choice(FAILURES)
            return Reply(error={"code": code, "message": "now and then", "reason": "empty"})
        return Reply(text=says(last_user_message(asked)), chunks=3)

    async def ask(self, deps: Deps, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call, {} for a refusal, which is counted."""
        envelope: Any = await call(deps, tool, arguments, caller=ME)
        if envelope["ok"]:
            data: dict[str, Any] = envelope["data"]
            return data
        self.refused[envelope["error_code"]] += 1
        return {}

    # -- who is there ----------------------------------------------------------------------------------------------

    async def user(self, deps: Deps) -> None:
        """Starts runs, reads them, and waits for them or cancels them."""
        while True:
            await asyncio.sleep(self.lot.uniform(*PAUSES_S))
            self.started += 1
            begun = await self.ask(
                deps, "graph_run_start", graph_id=self.lot.choice(sorted(GRAPHS)),
                input={"tag": str(self.started), "parts": [{"tag": str(n), "input": "x" * 50} for n in range(4)]},
                idempotency_key=f"key-{self.started}",
            )  # fmt: skip
            run_id = begun.get("run_id")
            if run_id is None:
                continue
            if self.lot.random() < CANCELS:
                await asyncio.sleep(self.lot.uniform(0, 0.3))
                await self.ask(deps, "graph_run_cancel", run_id=run_id, reason="thought better of it")
            waited = await self.ask(deps, "graph_run_wait", run_id=run_id, timeout_ms=20_000)
            await self.read(deps, run_id)
            if waited.get("terminal"):
                self.ended[waited["status"]] += 1

    async def read(self, deps: Deps, run_id: str) -> None:
        """Everything there is to read of a run."""
        cursor = 0
        while page := await self.ask(deps, "graph_run_events", run_id=run_id, cursor=cursor, limit=50):
            cursor = page["next_cursor"]
            if not page["truncated"]:
                break
        await self.ask(deps, "graph_run_get", run_id=run_id, include_state=True)
        await self.ask(deps, "graph_run_state", run_id=run_id, include_history=True)
        await self.ask(deps, "graph_render", run_id=run_id)

    async def bot(self, deps: Deps) -> None:
        """Decides whatever waits, and sends the message that a run waits for."""
        while True:
            await asyncio.sleep(0.1)
            waiting = await self.ask(deps, "graph_run_list", status="waiting", graph_id="waiting")
            for run in waiting.get("runs", []):
                await self.ask(deps, "graph_run_signal", run_id=run["run_id"], name="go", payload={"by": "the bot"})
            for asked in (await self.ask(deps, "graph_approval_list")).get("approvals", []):
                decision = decides(asked["node_id"], asked["graph_id"])
                done = await self.ask(
                    deps, "graph_approval_decide", approval_id=asked["approval_id"], decision=decision, decided_by="Ada"
                )
                self.decided += bool(done)

    async def keeper(self, deps: Deps) -> None:
        """Prunes the records of old runs, and their rows now and then."""
        for turn in range(1_000_000):
            forget = turn % FORGETS == 0
            done = await self.ask(deps, "graph_store_prune", runs=KEPT_RUNS, forget=forget)
            if done and forget:
                self.file.append((self.at_ms(), done["file_bytes"]))
            await asyncio.sleep(PRUNES_S)

    async def watcher(self, model: ScriptedModel) -> None:
        """Takes the samples."""
        while True:
            await asyncio.sleep(SAMPLES_S)
            model.calls.clear()  # the fake's own memory
            self.samples.append(held(self.at_ms()))
            say(**asdict(self.samples[-1]), started=self.started, ended=self.ended.total(), eras=self.eras)

    # -- one after the other ---------------------------------------------------------------------------------------

    async def era(self, length_s: float) -> None:
        """Open the program, let everybody in, close it with runs under way."""
        settings = load({"data_dir": str(self.folder), "model": "scripted"}, environ={})
        model = ScriptedModel(self.answer)
        async with open_app(settings, recover=True, model=model) as deps:
            for graph in (*PARTS, *GRAPHS.values()):
                await self.ask(deps, "graph_create", spec=graph, overwrite=True)
            people = [self.bot(deps), self.keeper(deps), self.watcher(model), *(self.user(deps) for _ in range(USERS))]
            tasks = [asyncio.create_task(person) for person in people]
            done, _ = await asyncio.wait(tasks, timeout=length_s, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in done:
                task.result()
        self.eras += 1
        gc.collect()
        await asyncio.sleep(0)
        self.between.append(held(self.at_ms()))

    async def last(self) -> dict[str, int]:
        """See every run through that is left; how many runs have each status then."""
        settings = load({"data_dir": str(self.folder), "model": "scripted"}, environ={})
        async with open_app(settings, recover=True, model=ScriptedModel(self.answer)) as deps:
            bot = asyncio.create_task(self.bot(deps))
            async with asyncio.timeout(120):
                while set(counts := await deps.store.runs.counts()) - TERMINAL:  # noqa: ASYNC110  (many runs at once)
                    await asyncio.sleep(0.2)
            bot.cancel()
            return counts


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


def report(soak: Soak, left: dict[str, int]) -> dict[str, Any]:
    """The figures after the warm-up, and under `wrong` which bounds did not hold."""
    from_ms = int(soak.at_ms() * WARM_UP)
    late = [each for each in soak.samples if each.at_ms >= from_ms]
    file = [each for each in soak.file if each[0] >= from_ms]
    grown = {
        name: round(growth([(each.at_ms, getattr(each, name)) for each in late]), 1)
        for name in ("rss_bytes", "tasks", "threads", "descriptors")
    }
    file_grown = growth(file)
    leftovers = [
        {name: getattr(each, name) for name in ("tasks", "threads", "descriptors")} for each in soak.between[1:]
    ]
    long = soak.at_ms() - from_ms >= LOOKED_AT_S * 1000
    wrong = [
        said
        for said, is_wrong in (
            ("rss grows", long and grown["rss_bytes"] > RSS_GROWTH_BYTES),
            ("file grows", long and bool(file) and file_grown > FILE_GROWTH * file[0][1]),
            ("something is left when the program is closed", any(each != leftovers[0] for each in leftovers)),
            ("a bug was answered", soak.refused["INTERNAL"] > 0),
            ("a run has not ended", bool(set(left) - TERMINAL)),
        )
        if is_wrong
    ]
    return {
        "seconds": soak.at_ms() // 1000, "looked_at_seconds": (soak.at_ms() - from_ms) // 1000, "eras": soak.eras,
        "runs": soak.started, "ended": dict(soak.ended), "decided": soak.decided, "refused": dict(soak.refused),
        "grown": grown, "rss_last_bytes": soak.samples[-1].rss_bytes if soak.samples else 0,
        "file_bytes": [file[0][1], file[-1][1]] if file else [], "file_grown_bytes": round(file_grown),
        "between": [leftovers[0], leftovers[-1]] if leftovers else [], "left": left, "wrong": wrong,
    }  # fmt: skip


async def soak_for(seconds: float, *, folder: Path, seed: int, eras: int = ERAS) -> dict[str, Any]:
    """The report of a soak of that length."""
    soak = Soak(folder, time.monotonic() + seconds, random.Random(seed))
    while (rest := soak.until - time.monotonic()) > 0:
        await soak.era(min(rest, seconds / eras, MOST_ERA_S))
    return report(soak, await soak.last())


@contextlib.contextmanager
def _folder(named: str) -> Iterator[Path]:
    if named:
        yield Path(named)
        return
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        yield Path(made) / "data"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=20_261_130)
    parser.add_argument("--folder", default="", help="an empty one; a temporary one unless named")
    chosen = parser.parse_args()
    with _folder(chosen.folder) as folder:
        found = asyncio.run(soak_for(chosen.minutes * 60, folder=folder, seed=chosen.seed))
    say(**found)
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
