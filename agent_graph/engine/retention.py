"""Deletes the records of old runs as a policy says.

What lives, waits or is pinned stays, and no graph is ever touched: however long nobody runs it, it can be run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.engine.clock import Clock
from agent_graph.errors import AgentGraphError
from agent_graph.store.base import Ended, Space, Store

log = logging.getLogger(__name__)

DAY_MS: Final = 24 * 60 * 60 * 1000
BATCH: Final = 50
"""Runs deleted in one transaction: commits pass between two batches."""
LOOK_AGAIN_MS: Final = 60 * 60 * 1000
"""Between two passes of the policy."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Whose record goes; each bound that is not 0 makes runs go, the first to end first."""

    days: int = 0
    """Runs that ended more than so many days ago."""
    runs: int = 0
    """All but the so many that ended last."""
    bytes: int = 0
    """As many as it takes for what is in use of the database file to be no more than this."""

    @property
    def keeps_all(self) -> bool:
        """No bound is set."""
        return not (self.days or self.runs or self.bytes)


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs whose records would go and what they weigh, by run id; and captured sources that no run cites then."""

    runs: tuple[Ended, ...]
    weights: tuple[int, ...]
    witnesses: tuple[tuple[str, int], ...] = ()
    """Ids and bytes."""
    held: int = 0
    """Sources that are as old and stay, for a run that stays cites them."""

    @property
    def bytes(self) -> int:
        return sum(self.weights) + sum(size for _, size in self.witnesses)


async def plan(store: Store, policy: Policy, *, now_ms: int, run_ids: Sequence[str] = (), forget: bool = False) -> Plan:
    """What pruning by `policy` would take now, and of the runs named in `run_ids` all that may go.

    With `forget`, runs whose record is gone already are looked at too. Changes nothing.
    """
    ended = [run for run in await store.retention.ended() if forget or not run.pruned]
    kept_by_count = max(0, len(ended) - policy.runs) if policy.runs else 0
    too_old_ms = now_ms - policy.days * DAY_MS if policy.days else -1
    excess = (await store.retention.space()).used_bytes - policy.bytes if policy.bytes else 0
    chosen: list[Ended] = []
    weights: list[int] = []
    for place, run in enumerate(ended):
        if place < kept_by_count or run.finished_at_ms < too_old_ms or excess > 0 or run.run_id in run_ids:
            chosen.append(run)
            weights.append(await store.retention.weigh(run.run_id))
            excess -= weights[-1]
    if not policy.days:
        return Plan(tuple(chosen), tuple(weights))
    going = [run.run_id for run in chosen]
    return Plan(tuple(chosen), tuple(weights), *await store.witnesses.idle(before_ms=too_old_ms, going=going))


@dataclass(frozen=True, slots=True)
class Pruned:
    """Whose records and which captured sources went, and what is left."""

    runs: tuple[str, ...]
    witnesses: tuple[str, ...]
    space: Space


async def prune(store: Store, planned: Plan, *, forget: bool = False) -> Pruned:
    """Delete what was planned, and give the room back to the file system.

    A run that was pinned meanwhile stays, and a source that is cited by now. Raises what the store raises; what was
    deleted by then is deleted.
    """
    done: list[str] = []
    sources: list[str] = []
    run_ids = [run.run_id for run in planned.runs]
    for start in range(0, len(run_ids), BATCH):
        done += await store.retention.prune(run_ids[start : start + BATCH], forget=forget)
    witness_ids = [witness_id for witness_id, _ in planned.witnesses]
    for start in range(0, len(witness_ids), BATCH):
        sources += await store.witnesses.prune(witness_ids[start : start + BATCH])
    await store.retention.compact()
    return Pruned(tuple(done), tuple(sources), await store.retention.space())


class Retention:
    """Applies the policy of a data folder at once and every hour, in the process that owns it."""

    def __init__(self, store: Store, clock: Clock, policy: Policy) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._timer: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Start; without a policy nothing is done."""
        if self._timer is None and not self._policy.keeps_all:
            self._timer = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """End; a deletion under way is finished or undone."""
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)

    async def apply(self) -> tuple[str, ...]:
        """One pass; the runs whose records went."""
        planned = await plan(self._store, self._policy, now_ms=self._clock.now_ms())
        if not planned.runs and not planned.witnesses:
            return ()
        done = await prune(self._store, planned)
        log.info("%d records of runs and %d sources were pruned, %d bytes", len(done.runs), len(done.witnesses),
                 planned.bytes)  # fmt: skip
        return done.runs

    async def _watch(self) -> None:
        while True:
            try:
                await self.apply()
            except AgentGraphError as error:
                log.error("the policy of retention could not be applied: %s", error.message)
            await asyncio.sleep(LOOK_AGAIN_MS / 1000)
