"""Every run of a process: starts, drives, cancels, decides and wakes them; `drive` is the only way a run moves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from agent_graph.core import events as e
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import Limits, recorded
from agent_graph.core.run import Run
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.engine.accepting import accepted
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.commands import Command, Resume
from agent_graph.engine.expiry import Expiry
from agent_graph.engine.intake import admitted, new_id
from agent_graph.engine.journal import Folded, Journal, fold_loaded
from agent_graph.engine.redaction import clean_command
from agent_graph.engine.runner import Runner
from agent_graph.engine.shell import Shell, set_aside, set_aside_with, write_off
from agent_graph.engine.turns import Turns
from agent_graph.errors import AgentGraphError, Corrupt, RunCapacity, RunTerminal, StoreBusy, StoreCorrupt
from agent_graph.store.base import TERMINAL, AlreadyAnswered, Answered, RunRow

log = logging.getLogger(__name__)
T = TypeVar("T")

UNFINISHED: Final = ("accepted", "running", "interrupted")
PAGE: Final = 200
ENDED: Final = "the process that drove the run ended"
EXPECTED: Final = (AgentGraphError, AlreadyAnswered)


class Supervisor:
    """Owns the runners of one data folder."""

    def __init__(self, shell: Shell, *, catalog: Catalog, limits: Limits) -> None:
        self.shell = shell
        self.catalog = catalog
        self._limits = limits
        self._runners: dict[str, Runner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._queue: dict[str, None] = {}
        """Runs that wait for a place, first come, first served."""
        self._coming = 0
        """Runs on the way from the queue to a driver."""
        self._resuming: set[str] = set()
        """Runs taken from the queue, until their driver has heard that it is to go on."""
        self._starting = 0
        self._keys: set[str] = set()
        """Idempotency keys of the runs that are being accepted."""
        self._turns = Turns()
        """Whose turn it is to find or make a run's driver: two drivers of one run must never be."""
        self._background: set[asyncio.Task[Any]] = set()
        self._expiry = Expiry(shell, self.ask)
        self._stopping = False

    # -- starting --------------------------------------------------------------------------------------------------

    async def start(
        self, graph: Graph, value: JsonValue, *, thread_id: str = "", model: str = "", started_by: str = "",
        principal: str = "", started_as: str = "", budgets: JsonObject | None = None, policy: JsonObject | None = None,
        answer: Callable[[RunRow], Answered] | None = None, key: str = "",
    ) -> RunRow:  # fmt: skip
        """Accept a run and set it going; it is durable when this returns.

        `answer` makes the record of the idempotency `key` that is stored with it; `budgets` tighten the graph's own;
        `policy` is kept as the fact has it. What the input holds of secrets is taken out.
        Raises what `check` and `check_capacity` raise (then no run exists), `IdempotencyConflict`, `AlreadyAnswered`.
        """
        value, bounds = self._admitted(graph, value, budgets)
        now, limits = self.shell.clock.now_ms(), recorded(self._limits)
        fact = e.RunAccepted(
            new_id(now), graph.name, graph.version, value, thread_id, model, started_by, limits, bounds, policy or {},
            principal, started_as,
        )  # fmt: skip
        event = e.Event(0, now, fact)
        return await self.begin(graph, evolve(graph, new_run(), event), [event], answer=answer, key=key)

    async def begin(
        self, graph: Graph, run: Run, log: Sequence[e.Event], *, answer: Callable[[RunRow], Answered] | None = None,
        key: str = "",
    ) -> RunRow:  # fmt: skip
        """Accept a run with its first events, whose fold `run` is, and set it going; else as `start`."""
        twin = key in self._keys  # the store will say which run the first of them made
        if not twin:
            self.check_capacity()
            self._keys |= {key} - {""}
        self._starting += 1
        # A task of its own: a caller that gives up half-way must not leave a run that nobody drives.
        return await asyncio.shield(self._spawn(self._accept(graph, run, log, answer, "" if twin else key)))

    def check(self, graph: Graph, value: JsonValue, *, budgets: JsonObject | None) -> JsonObject:
        """The bounds a run would start with beside the graph's own. Raises what `intake` and `budgets.tightened`
        raise; changes nothing."""
        return self._admitted(graph, value, budgets)[1]

    def _admitted(self, graph: Graph, value: JsonValue, budgets: JsonObject | None) -> tuple[JsonValue, JsonObject]:
        return admitted(graph, value, budgets=budgets, limits=self._limits, shell=self.shell)

    def check_capacity(self) -> None:
        """Raises `RunCapacity` when there is no room for one more run, `StoreBusy` when the program is stopping."""
        if self._stopping:
            raise StoreBusy("the program is stopping; try again when it is there again")
        waiting = len(self._queue) + self._starting - max(0, self._limits.active_runs - self._active())
        if waiting >= self._limits.queued_runs:
            message = f"{len(self._queue)} runs wait for a place already; try again when some have ended"
            raise RunCapacity(message, queued=len(self._queue), active=self._active())

    async def _accept(
        self, graph: Graph, run: Run, log: Sequence[e.Event], answer: Callable[[RunRow], Answered] | None, key: str
    ) -> RunRow:
        try:
            row = await accepted(self.shell, graph, run, log, answer)
        finally:
            self._starting -= 1
            self._keys.discard(key)
        if self._stopping:
            return row  # durable, and driven by the next process
        if self._queue or self._active() >= self._limits.active_runs:
            self._queue[row.run_id] = None
        else:
            self._set_going(graph, Folded(run, len(log), 0, row))
        return row

    def _active(self) -> int:
        return len(self._tasks) + self._coming

    async def drive(self, run_id: str) -> Runner:
        """See to it that the run is being driven; harmless when it is, or has nothing to do."""
        async with self._turns.of(run_id):
            return await self._runner(run_id)

    async def _runner(self, run_id: str) -> Runner:
        """The run's driver, found or made. Only with the run's turn; no await after it was looked at."""
        runner = self._runners.get(run_id)
        if runner is None or runner.closed:
            graph, folded = await self._folded(run_id)
            if self._stopping:
                raise StoreBusy("the program is stopping; try again when it is there again")
            runner = self._set_going(graph, folded)
        return runner

    async def fold(self, run_id: str) -> tuple[Graph, Run]:
        """The run as its log tells it, from the latest snapshot on. Raises `RunNotFound`, `StoreCorrupt`."""
        graph, folded = await self._folded(run_id)
        return graph, folded.run

    async def _folded(self, run_id: str) -> tuple[Graph, Folded]:
        snapshot, events, row = await self.shell.store.runs.load(run_id)
        graph = await self.catalog.get(row.graph_id, row.graph_version)
        return graph, await fold_loaded(self.shell.store, graph, run_id, snapshot, events)

    def _set_going(self, graph: Graph, folded: Folded) -> Runner:
        run_id = folded.run.run_id
        runner = Runner(self.shell, Journal(self.shell, graph, folded), held=lambda: run_id in self._queue)
        self._runners[run_id] = runner
        task = asyncio.create_task(runner.drive(), name=run_id)
        self._tasks[run_id] = task
        task.add_done_callback(lambda done: self._driven(run_id, runner, done))
        return runner

    def _driven(self, run_id: str, runner: Runner, task: asyncio.Task[None]) -> None:
        if self._runners.get(run_id) is runner:
            del self._runners[run_id]
            self._tasks.pop(run_id, None)
            if runner.run.terminal:
                self._queue.pop(run_id, None)  # it was ended while it waited: its place in the queue is free
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("run %s stopped: %s", run_id, error, exc_info=None if isinstance(error, EXPECTED) else error)
            code = error.code if isinstance(error, AgentGraphError) else "INTERNAL"
            body: JsonObject = {"code": code, "message": f"the driver of the run stopped: {error}"}
            self._spawn(self._set_aside(run_id, "the driver of the run stopped", body))
        self._pump()

    async def _set_aside(self, run_id: str, reason: str, error: JsonObject) -> None:
        """Say of a run that nobody drives that it is interrupted."""
        async with self._turns.of(run_id):
            runner = self._runners.get(run_id)
            if runner is not None and not runner.closed:
                return
            try:
                graph, folded = await self._folded(run_id)
                journal = Journal(self.shell, graph, folded)
                if journal.run.lifecycle == "running" and journal.run.status != "waiting":
                    journal.record(e.RunInterrupted(reason, error))
                    await journal.commit()
                elif journal.run.lifecycle == "accepted" and error:
                    await set_aside_with(self.shell, run_id, error)
            except AgentGraphError as refusal:  # its log cannot be read, or not be written to
                await set_aside(self.shell, run_id, refusal)
                raise

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, EXPECTED):
            log.error("a bug of ours, in the background", exc_info=error)

    # -- the queue -------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Give free places to those who wait for one."""
        while self._queue and not self._stopping and self._active() < self._limits.active_runs:
            run_id = next(iter(self._queue))
            del self._queue[run_id]
            self._coming += 1
            self._resuming.add(run_id)
            self._spawn(self._take_up(run_id))

    async def _take_up(self, run_id: str) -> None:
        """Drive a run on that nobody drives."""
        try:
            async with self._turns.of(run_id):
                try:
                    reply = (await self._runner(run_id)).ask(Resume())
                finally:
                    self._coming -= 1  # from here on its driver counts
            await reply
        except RunTerminal:
            pass  # somebody ended it while it waited
        except AgentGraphError as error:
            log.error("run %s could not be taken up: %s", run_id, error.message)
            if isinstance(error, Corrupt):
                await set_aside(self.shell, run_id, error)
        finally:
            self._resuming.discard(run_id)
            self._pump()

    # -- commands --------------------------------------------------------------------------------------------------

    async def ask(self, run_id: str, command: Command) -> Run:
        """Have the run's driver handle a command; what it changed is durable when this returns.

        Raises what the command refuses with (then nothing was changed), `RunNotFound`, or what the store raises.
        A command is obeyed even when whoever asked has gone.
        """
        async with self._turns.of(run_id):
            reply = (await self._runner(run_id)).ask(clean_command(self.shell.redactor, command))
        return await reply

    async def write_off(self, run_id: str, damage: StoreCorrupt, reason: str, answered: Answered | None) -> None:
        """Cancel a run whose log cannot be read, by its row alone. Raises `damage` when somebody drives it after all,
        and what the store raises."""
        async with self._turns.of(run_id):
            runner = self._runners.get(run_id)
            if runner is not None and not runner.closed:
                raise damage
            self._queue.pop(run_id, None)
            await write_off(self.shell, run_id, damage, reason=reason, answered=answered)

    async def wait(
        self, run_id: str, *, timeout_ms: int, until: Callable[[RunRow], bool] = lambda row: row.status in TERMINAL
    ) -> RunRow:
        """The run's row as soon as `until` holds of it, or as it is after `timeout_ms`. Wakes by event, never polls."""
        runs = self.shell.store.runs
        with self.shell.notify.expect(run_id, until) as reached:  # before looking, so that no commit is missed
            runner = self._runners.get(run_id)
            row = None if runner is None or timeout_ms <= 0 else runner.row  # who drives it need not be looked up
            if row is None:
                row = await runs.get(run_id)
            if until(row) or timeout_ms <= 0:
                return row
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_ms / 1000):  # not `wait_for`: before 3.12 it can swallow a cancel
                    return await reached
        return await runs.get(run_id)

    def load(self) -> dict[str, int]:
        """How many runs are being driven and how many wait for a place."""
        return {"active": self._active(), "queued": len(self._queue)}

    def drives(self, run_id: str) -> bool:
        """Whether the run is being moved by this process, or about to be."""
        if run_id in self._queue or run_id in self._resuming:
            return True
        runner = self._runners.get(run_id)
        return runner is not None and not runner.closed and runner.run.lifecycle != "interrupted"

    async def rest(self) -> None:
        """Return when no run is being driven and none waits for a place."""
        while going := [*self._tasks.values(), *self._background]:
            await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)

    # -- life ------------------------------------------------------------------------------------------------------

    async def recover(self, *, resume: bool = True) -> int:
        """Take over the unfinished runs of the folder; returns how many. Call once, at start-up, by the owner.

        They are driven on, as places allow. What is not driven at once and reads ``running`` is honestly
        ``interrupted``; with `resume` false that is all that happens.
        """
        running: list[str] = []
        found = 0
        cursor: str | None = None
        rows: list[RunRow] = []
        while True:
            page, cursor = await self.shell.store.runs.list(statuses=UNFINISHED, limit=PAGE, cursor=cursor)
            rows += page
            if cursor is None:
                break
        for row in reversed(rows):  # oldest first
            found += 1
            if resume:
                self._queue[row.run_id] = None
        self._pump()
        running = [row.run_id for row in rows if row.status == "running" and (not resume or row.run_id in self._queue)]
        for run_id in running:
            with contextlib.suppress(AgentGraphError):
                await self._set_aside(run_id, ENDED, {})
        self.watch_gates()
        return found

    def watch_gates(self) -> None:
        """Wake runs on time, whoever looks or not."""
        self._expiry.watch()

    def halt(self, loss: AgentGraphError) -> None:
        """Close what is in flight: the store takes nothing any more. The runs read ``interrupted`` here."""
        for runner in [*self._runners.values()]:
            if not runner.closed:
                runner.stop(loss.message)

    async def shutdown(self, reason: str) -> None:
        """Stop driving; what is in flight is closed and its run reads ``interrupted`` until it is driven again."""
        self._stopping = True
        await self._expiry.stop()
        for runner in [*self._runners.values()]:
            if not runner.closed:
                runner.stop(reason)
        while left := {*self._tasks.values(), *self._background}:
            await asyncio.wait(left)
