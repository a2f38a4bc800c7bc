"""Every run of a process: starts, drives, cancels, decides and wakes them; `drive` is the only way a run moves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.limits import Limits
from agent_graph.core.run import Run
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.commands import Command, Expire, Interrupt, Resume
from agent_graph.engine.intake import check_input
from agent_graph.engine.rows import run_row
from agent_graph.engine.runner import Runner, Shell
from agent_graph.errors import AgentGraphError, RunCapacity
from agent_graph.store.base import TERMINAL, AlreadyAnswered, Answered, Commit, RunRow

log = logging.getLogger(__name__)

UNFINISHED: Final = ("accepted", "running", "interrupted")
PAGE: Final = 200
LOOK_AGAIN_MS: Final = 30_000
"""The longest sleep before the clock is looked at again: a machine that slept wakes gates late, not never."""


class Supervisor:
    """Owns the runners of one data folder."""

    def __init__(self, shell: Shell, *, catalog: Catalog, limits: Limits) -> None:
        self.shell = shell
        self.catalog = catalog
        self._limits = limits
        self._runners: dict[str, Runner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._queue: deque[str] = deque()
        self._opening: dict[str, asyncio.Lock] = {}
        self._background: set[asyncio.Task[object]] = set()
        self._timer: asyncio.Task[None] | None = None
        self._stopping = False

    # -- starting --------------------------------------------------------------------------------------------------

    async def start(
        self, graph: Graph, value: JsonValue, *, thread_id: str = "", model: str = "", started_by: str = "",
        answer: Callable[[RunRow], Answered] | None = None,
    ) -> RunRow:  # fmt: skip
        """Accept a run and set it going; it is durable when this returns.

        `answer` makes the idempotency record that is stored with it. Raises what `check_input` raises, `RunCapacity`
        (then no run exists), `IdempotencyConflict` or `AlreadyAnswered`.
        """
        check_input(graph, value, limits=self._limits)
        if len(self._queue) >= self._limits.queued_runs:
            message = f"{len(self._queue)} runs wait for a place already; try again when some have ended"
            raise RunCapacity(message, queued=len(self._queue), active=len(self._tasks))
        now = self.shell.clock.now_ms()
        run_id = f"run-{now:011x}{secrets.token_hex(5)}"
        fact = e.RunAccepted(run_id, graph.name, graph.version, value, thread_id, model, started_by)
        event = e.Event(0, now, fact)
        run = evolve(graph, new_run(), event)
        row = run_row(graph, run, created_at_ms=now)
        answered = answer(row) if answer is not None else None
        await self.shell.store.runs.commit(Commit(row, 0, [event], create=True, answered=answered))
        self.shell.notify.committed(run_id, [event])
        if len(self._tasks) < self._limits.active_runs:
            self._set_going(Runner(self.shell, graph, run))
        else:
            self._queue.append(run_id)
        return row

    async def drive(self, run_id: str) -> Runner:
        """See to it that the run is being driven; harmless when it is, or has nothing to do."""
        async with self._opening.setdefault(run_id, asyncio.Lock()):
            runner = self._runners.get(run_id)
            if runner is None or runner.closed:
                graph, run = await self.fold(run_id)
                runner = Runner(self.shell, graph, run)
                self._set_going(runner)
        self._opening.pop(run_id, None)
        return runner

    async def fold(self, run_id: str) -> tuple[Graph, Run]:
        """The run as its log tells it, from the latest snapshot on. Raises `RunNotFound`, `StoreCorrupt`."""
        row = await self.shell.store.runs.get(run_id)
        graph = await self.catalog.get(row.graph_id, row.graph_version)
        snapshot, events = await self.shell.store.runs.load(run_id)
        run = checkpoint.load(graph, snapshot) if snapshot is not None else new_run()
        for event in events:
            evolve(graph, run, event)
        return graph, run

    def _set_going(self, runner: Runner) -> None:
        run_id = runner.run.run_id
        self._runners[run_id] = runner
        task = asyncio.create_task(runner.drive(), name=run_id)
        self._tasks[run_id] = task
        task.add_done_callback(lambda done: self._driven(run_id, runner, done))

    def _driven(self, run_id: str, runner: Runner, task: asyncio.Task[None]) -> None:
        if self._runners.get(run_id) is runner:
            del self._runners[run_id]
            self._tasks.pop(run_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            expected = isinstance(error, AgentGraphError | AlreadyAnswered)
            log.error("run %s stopped: %s", run_id, error, exc_info=None if expected else error)
        if self._queue and len(self._tasks) < self._limits.active_runs and not self._stopping:
            self._spawn(self.drive(self._queue.popleft()))

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # -- commands --------------------------------------------------------------------------------------------------

    async def ask(self, run_id: str, command: Command) -> Run:
        """Have the run's driver handle a command; what it changed is durable when this returns.

        Raises what the command refuses with (then nothing was changed), `RunNotFound`, or what the store raises.
        """
        while True:
            runner = await self.drive(run_id)
            if not runner.closed:  # closed since: it had nothing to do and went home between two awaits
                return await runner.ask(command)

    async def wait(
        self, run_id: str, *, timeout_ms: int, until: Callable[[RunRow], bool] = lambda row: row.status in TERMINAL
    ) -> RunRow:
        """The run's row as soon as `until` holds of it, or as it is after `timeout_ms`. Wakes by event, never polls."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            changed = self.shell.notify.changed(run_id)
            row = await self.shell.store.runs.get(run_id)
            left = deadline - asyncio.get_running_loop().time()
            if until(row) or left <= 0:
                return row
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), left)

    def load(self) -> dict[str, int]:
        """How many runs are being driven and how many wait for a place."""
        return {"active": len(self._tasks), "queued": len(self._queue)}

    # -- life ------------------------------------------------------------------------------------------------------

    async def recover(self) -> int:
        """Drive on every unfinished run of the folder; returns how many. Call once, at start-up, by the owner."""
        run_ids: list[str] = []
        cursor: str | None = None
        while True:
            rows, cursor = await self.shell.store.runs.list(statuses=UNFINISHED, limit=PAGE, cursor=cursor)
            run_ids += [row.run_id for row in rows]
            if cursor is None:
                break
        for run_id in reversed(run_ids):  # oldest first
            if len(self._tasks) < self._limits.active_runs:
                self._spawn(self._take_up(run_id))
            else:
                self._queue.append(run_id)
        self.watch_gates()
        return len(run_ids)

    async def _take_up(self, run_id: str) -> None:
        try:
            await self.ask(run_id, Resume())
        except AgentGraphError as error:
            log.error("run %s could not be taken up: %s", run_id, error.message)

    def watch_gates(self) -> None:
        """Expire approvals on time, whoever looks or not."""
        if self._timer is None:
            self._timer = asyncio.create_task(self._expire_gates())

    async def _expire_gates(self) -> None:
        notify, clock, approvals = self.shell.notify, self.shell.clock, self.shell.store.approvals
        while True:
            notify.gates.clear()
            found = await approvals.next_expiry()
            left = LOOK_AGAIN_MS if found is None else min(LOOK_AGAIN_MS, found[0] - clock.now_ms())
            if found is not None and left <= 0:
                try:
                    await self.ask(found[1], Expire())
                except AgentGraphError as error:
                    log.error("an approval of run %s could not be expired: %s", found[1], error.message)
                    left = LOOK_AGAIN_MS
                else:
                    continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(notify.gates.wait(), left / 1000)

    async def shutdown(self, reason: str) -> None:
        """Stop driving; what is in flight is closed and its run reads ``interrupted`` until it is driven again."""
        self._stopping = True
        tasks = [task for task in (self._timer, *self._background) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        driving = [*self._tasks.values()]
        for runner in [*self._runners.values()]:
            if not runner.closed:
                with contextlib.suppress(AgentGraphError):
                    await runner.ask(Interrupt(reason))
        await asyncio.gather(*driving, return_exceptions=True)
