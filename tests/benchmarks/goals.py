"""What one run of the benchmark programs says of the goals: ``goals.py FILE.jsonl``, the file `run_all.py` wrote.

Every goal is a ratio of medians in that one file. A goal that is missed today has a second number, which it must not
go beyond: the exit code is 1 when it does, or when a goal that was met is missed. Read it on a quiet machine only.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

FULL, DELTA, SYNC = "sqlite-full", "sqlite-full-delta", "sqlite-sync"
"""The floor's ways and LangGraph's of making every step durable."""
LIMIT_MB = 50


@dataclass(frozen=True)
class Goal:
    """`most` is what is wanted at most; `today` the bound where that is not reached yet."""

    row: str
    said: str
    measured: float
    most: float
    today: float | None = None

    def line(self) -> str:
        met = "yes" if self.measured <= self.most else "**no**"
        return f"| {self.row} | {self.said} | {self.most:g} | {self.measured:.3g} | {met} |"

    @property
    def regressed(self) -> bool:
        return self.measured > max(self.most, self.today or 0)


class Run:
    """The measurements of one file, by row, peer and mode."""

    def __init__(self, path: Path) -> None:
        self.rows: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for line in path.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            self.rows[one["row"]][one["peer"], one.get("mode") or ""].append(one)

    def of(self, row: str, peer: str, mode: str = "", *, key: str = "seconds") -> float:
        """The median, NaN where nothing was measured."""
        found = [one[key] for one in self.rows[row][peer, mode] if isinstance(one.get(key), int | float)]
        return median(found) if found else float("nan")

    def ratio(self, row: str, mode: str, peer: str, of: str = "", *, key: str = "seconds") -> float:
        """Ours as a multiple of a peer's."""
        return self.of(row, "ours", mode, key=key) / self.of(row, peer, of, key=key)


def chains(run: Run) -> Iterator[Goal]:
    """W1 and W2."""
    row, small = "W1 chain 1000", run.of("W1 chain 100", "ours", "memory", key="us_per_step")
    yield Goal(row, "of LangGraph's time", run.ratio(row, "memory", "langgraph"), 0.06, 0.14)
    yield Goal(row, "of burr's time", run.ratio(row, "memory", "burr"), 1, 1.3)
    yield Goal(row, "of agno's time", run.ratio(row, "memory", "agno"), 1, 1.3)
    yield Goal(row, "of a step at 100 nodes", run.of(row, "ours", "memory", key="us_per_step") / small, 1.2)
    row = "W2 durable chain 1000"
    yield Goal(row, "full: of the floor's time", run.ratio(row, "full", "floor", FULL), 1.7, 1.9)
    yield Goal(row, "full: of LangGraph's time", run.ratio(row, "full", "langgraph", SYNC), 0.2)
    yield Goal(row, "normal: of the floor's time", run.ratio(row, "normal", "floor", "group-normal"), 1.5)
    yield Goal(row, "normal: of LangGraph's time", run.ratio(row, "normal", "langgraph", "sqlite-sync-normal"), 0.1)
    size = run.of(row, "ours", "full", key="db_bytes")
    yield Goal(row, "of the floor's database", run.ratio(row, "full", "floor", FULL, key="db_bytes"), 1.5)
    yield Goal(row, "of LangGraph's database", run.ratio(row, "full", "langgraph", SYNC, key="db_bytes"), 0.03)
    yield Goal(row, "of 100 nodes' database", size / run.of("W2 durable chain 100", "ours", "full", key="db_bytes"), 11)


def fans(run: Run) -> Iterator[Goal]:
    """W3: how long it takes when every branch takes 50 ms."""
    wanted = {10: (1.04, 1.1, 1.10, 1.2), 100: (1.10, 1.35, 1.20, 1.5), 1000: (1.6, 3.0, 2.0, 4.0)}
    for width, (most, today, durable, durable_today) in wanted.items():
        row = f"W3 fan-out {width}"
        yield Goal(row, "of 50 ms", run.of(row, "ours", "memory", key="makespan_x"), most, today)
        kept = f"{row} durable"
        yield Goal(kept, "of 50 ms", run.of(kept, "ours", "full", key="makespan_x"), durable, durable_today)
    for row, mode, of, most, today in (
        ("W3 fan-out 1000", "memory", "", 0.1, 0.35), ("W3 fan-out 1000 durable", "full", SYNC, 0.05, 0.16)
    ):  # fmt: skip
        beyond = (run.of(row, "ours", mode) - 0.05) / (run.of(row, "langgraph", of) - 0.05)
        yield Goal(row, "of LangGraph's time above 50 ms", beyond, most, today)


def states(run: Run) -> Iterator[Goal]:
    """W4 to W7."""
    row = "W4 200 runs x 10"
    yield Goal(row, "of the floor's time", run.ratio(row, "full", "floor", "group-full"), 2.5, 5)
    yield Goal(row, "of LangGraph's time", run.ratio(row, "full", "langgraph", SYNC), 0.04, 0.07)
    yield Goal(row, "commits a step", run.of(row, "ours", "full", key="commits") / 2000, 0.1)
    row = "W5 growing 200 x 10 KB"
    yield Goal(row, "of the floor's time", run.ratio(row, "full", "floor", DELTA), 2, 2.2)
    yield Goal(row, "of LangGraph's time", run.ratio(row, "full", "langgraph", SYNC), 0.09)
    yield Goal(row, "of the floor's database", run.ratio(row, "full", "floor", DELTA, key="db_bytes"), 1.5)
    yield Goal(row, "of LangGraph's database", run.ratio(row, "full", "langgraph", SYNC, key="db_bytes"), 0.015)
    yield Goal(row, "ms to read it back", run.of(row, "ours", "full", key="fold_ms"), 50)
    row = "W6 loop 1000"
    yield Goal(row, "of LangGraph's time", run.ratio(row, "memory", "langgraph"), 0.05, 0.1)
    yield Goal(row, "of agno's time", run.ratio(row, "memory", "agno"), 1, 2.2)
    row = "W7 build 10000"
    yield Goal(row, "of LangGraph's time", run.ratio(row, "", "langgraph"), 0.35, 0.7)
    yield Goal(row, "of 1000 nodes' time", run.of(row, "ours") / run.of("W7 build 1000", "ours"), 20)


def processes(run: Run) -> Iterator[Goal]:
    """W8, W10 and memory."""
    row = "W8 approval, 2nd process"
    yield Goal(row, "resume: of the floor's time", run.ratio(row, "full", "floor", FULL), 4, 4.5)
    yield Goal(row, "wall: of the floor's", run.ratio(row, "full", "floor", FULL, key="wall_s"), 3)
    yield Goal(row, "wall: of LangGraph's", run.ratio(row, "full", "langgraph", SYNC, key="wall_s"), 0.32)
    kills = run.rows["W10 kill -9"]["ours", "full"]
    if kills:
        again = sum(one.get("rerun_completed", 1) for one in kills)
        yield Goal("W10 kill -9", f"nodes run again in {len(kills)} kills", again, 0)
        yield Goal("W10 kill -9", "runs that did not end", sum(not one.get("finished") for one in kills), 0)
    peaks = {
        row: max(
            (one.get("rss_mb", 0.0) for (peer, _), ones in every.items() if peer == "ours" for one in ones), default=0
        )
        for row, every in run.rows.items()
        if row < "W7"
    }
    if peaks:
        most = max(peaks, key=peaks.__getitem__)
        yield Goal(most, "MB of memory, the most of W1 to W6", peaks[most], LIMIT_MB, 58)


PARTS: tuple[Callable[[Run], Iterator[Goal]], ...] = (chains, fans, states, processes)


def main(path: str) -> int:
    run = Run(Path(path))
    goals = [goal for part in PARTS for goal in part(run) if goal.measured == goal.measured]  # NaN: not measured
    print("| workload | what | goal: at most | measured | met |\n|---|---|---|---|---|")
    print("\n".join(goal.line() for goal in goals))
    worse = [goal for goal in goals if goal.regressed]
    for goal in worse:
        print(f"worse than before: {goal.row}, {goal.said}: {goal.measured:.3g}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
