"""Drives one run: fold the log, decide, perform, commit, until nothing or only outside answers are left.

The only place that writes events of a run, one at a time, so commands and answers cannot race. An answer is committed
before anybody interprets it; a call is made only after the commit that started it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agent_graph.core import checkpoint
from agent_graph.core import events as e
from agent_graph.core.graph import Graph
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Perform, Record, decide, evolve
from agent_graph.engine.clock import Clock
from agent_graph.engine.commands import Command
from agent_graph.engine.limiter import Limiter
from agent_graph.engine.models import Models
from agent_graph.engine.notify import Notify
from agent_graph.engine.perform import call_model
from agent_graph.engine.rows import approval_row, run_row
from agent_graph.errors import AgentGraphError, StoreBusy
from agent_graph.store.base import AlreadyAnswered, Answered, Commit, Store

SNAPSHOT_EVENTS: Final = 64
"""Events between snapshots at least; more when the last snapshot was larger than what has been written since."""

_GATE_FACTS = (e.ApprovalOpened, e.ApprovalVoted, e.ApprovalDecided, e.ApprovalExpired, e.ApprovalWithdrawn)


@dataclass(frozen=True, slots=True)
class Shell:
    """What every runner of a process shares."""

    store: Store
    clock: Clock
    notify: Notify
    models: Models
    limiter: Limiter


@dataclass(frozen=True, slots=True)
class _Asked:
    command: Command
    reply: asyncio.Future[Run]


class Runner:
    """One run's driver. `drive` may be called again after it returned, here or elsewhere: it does no harm."""

    def __init__(self, shell: Shell, graph: Graph, run: Run) -> None:
        self.graph = graph
        self.run = run
        self.closed = False
        self._shell = shell
        self._inbox: asyncio.Queue[_Asked | e.Fact] = asyncio.Queue()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._unreached: e.NodeFailed | None = None
        self._pending: list[e.Event] = []
        self._touched: dict[str, None] = {}
        self._since_snapshot = 0
        self._snapshot_weight = 0

    async def ask(self, command: Command) -> Run:
        """Have a command handled; returns the fold after it is durable. Raises what the command refuses with."""
        reply: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait(_Asked(command, reply))
        return await reply

    def record(self, *facts: e.Fact) -> None:
        """Add facts to what the next commit writes."""
        for fact in facts:
            event = e.Event(self.run.seq, self._shell.clock.now_ms(), fact)
            evolve(self.graph, self.run, event)
            self._pending.append(event)
            if isinstance(fact, _GATE_FACTS):
                self._touched[fact.approval_id] = None

    async def drive(self) -> None:
        """Go on until the run has ended, is interrupted, or waits for somebody outside."""
        try:
            self._begin()
            await self._advance()
            while not self._is_idle():
                await self._take(await self._inbox.get())
                await self._advance()
        finally:
            self.closed = True
            await self._drop_calls()
            self._refuse_the_rest()

    def _begin(self) -> None:
        """Start an accepted run; take up one whose process ended, its calls in flight as new attempts."""
        run = self.run
        if run.cancel_reason is not None:
            return
        if run.lifecycle == "accepted":
            self.record(e.RunStarted())
        elif run.lifecycle == "running" and any(f.attempt > 0 and not f.approval_id for f in run.open.values()):
            self.record(e.RunInterrupted("the process that drove the run ended"), e.RunResumed())

    # -- the loop --------------------------------------------------------------------------------------------------

    def _is_idle(self) -> bool:
        """Nothing to hear and nothing in flight. No await between this and `closed`, so no command is missed."""
        if not self._inbox.empty() or self._tasks:
            return False
        if self._unreached is not None and not self.run.terminal:
            self._inbox.put_nowait(self._unreached)  # all others have been heard: now say that we cannot go on
            return False
        return True

    async def _take(self, item: _Asked | e.Fact) -> None:
        """Record one thing from outside and everything else that has come by now; then answer who asked."""
        replies: list[tuple[asyncio.Future[Run], Exception | None]] = []
        answered: Answered | None = None
        while True:
            if isinstance(item, _Asked):
                refusal = self._obey(item.command)
                answered = None if refusal or item.command.answer is None else item.command.answer(self.run)
                replies.append((item.reply, refusal))
            else:
                self._hear(item)
            if answered is not None or self._inbox.empty():
                break
            item = self._inbox.get_nowait()
        try:
            await self._commit(answered)
        except (AgentGraphError, AlreadyAnswered) as error:
            replies = [(reply, refusal or error) for reply, refusal in replies]
            raise
        finally:
            self._reply(replies)

    def _reply(self, replies: list[tuple[asyncio.Future[Run], Exception | None]]) -> None:
        for reply, refusal in replies:
            if reply.done():
                continue
            if refusal is None:
                reply.set_result(self.run)
            else:
                reply.set_exception(refusal)

    def _obey(self, command: Command) -> Exception | None:
        try:
            self.record(*command.facts(self.run, self._shell.clock.now_ms()))
        except AgentGraphError as refusal:
            return refusal
        return None

    def _hear(self, fact: e.Fact) -> None:
        """An effect's answer. A host that cannot be reached interrupts the run, it does not fail it."""
        assert isinstance(fact, e.ModelAnswered | e.NodeFailed)
        self._tasks.pop(fact.firing, None)
        if self.run.firing(fact.firing) is None or self.run.terminal:
            return  # cancelled meanwhile
        if not (isinstance(fact, e.NodeFailed) and fact.error.get("class") == "unreachable"):
            self.record(fact)
        elif self._unreached is None:
            self._unreached = fact  # answers still under way are waited for: they are paid for
        else:
            self._unreached = None
            self.record(e.RunInterrupted(str(fact.error["message"]), {**fact.error, "node_path": fact.firing}))

    async def _advance(self) -> None:
        """Record what may happen now, commit it round by round, start the calls each round allows."""
        run = self.run
        while True:
            performs: list[Perform] = []
            for action in decide(self.graph, run):
                if isinstance(action, Record):
                    self.record(action.fact)
                else:
                    run.hand_over(action.firing)
                    performs.append(action)
            if not self._pending and not performs:
                break
            await self._commit(None)
            for perform in performs:
                if perform.firing in run.out:
                    self._start(perform)
        if run.terminal or run.lifecycle == "interrupted":
            await self._drop_calls()
        else:
            await self._drop_calls(keep=run.out)

    async def _commit(self, answered: Answered | None) -> None:
        if not self._pending and answered is None:
            return
        run, pending = self.run, self._pending
        gates = [approval_row(self.graph, run, run.gates[name]) for name in self._touched]
        commit = Commit(
            run=run_row(self.graph, run, created_at_ms=run.accepted_at_ms),
            expected_seq=run.seq - len(pending), events=pending, create=bool(pending) and pending[0].seq == 0,
            snapshot=self._snapshot(len(pending)), approvals=gates, answered=answered,
        )  # fmt: skip
        self._pending, self._touched = [], {}
        await self._shell.store.runs.commit(commit)
        self._shell.notify.committed(run.run_id, pending)
        if gates:
            self._shell.notify.gates.set()

    def _snapshot(self, count: int) -> bytes | None:
        """A snapshot now and then: never one that weighs more than what it saves."""
        self._since_snapshot += count
        if self._since_snapshot < max(SNAPSHOT_EVENTS, self._snapshot_weight) or self.run.terminal:
            return None
        data = checkpoint.dump(self.run)
        self._since_snapshot = 0
        self._snapshot_weight = len(data) // 512  # events of about half a KiB: sizes grow geometrically
        return data

    # -- calls -----------------------------------------------------------------------------------------------------

    def _start(self, perform: Perform) -> None:
        self._tasks[perform.firing] = asyncio.create_task(self._perform(perform), name=perform.firing)

    async def _perform(self, perform: Perform) -> None:
        shell, run_id = self._shell, self.run.run_id
        on_delta: Callable[[str, str], None] = lambda kind, text: shell.notify.delta(  # noqa: E731
            run_id, perform.firing, kind=kind, text=text
        )
        fact = await call_model(
            perform, models=shell.models, limiter=shell.limiter, run_model=self.run.model, on_delta=on_delta
        )
        self._inbox.put_nowait(fact)

    async def _drop_calls(self, keep: Mapping[str, object] | None = None) -> None:
        """Close the calls nobody waits for any more, down to the socket."""
        dropped = [self._tasks.pop(path) for path in list(self._tasks) if keep is None or path not in keep]
        for task in dropped:
            task.cancel()
        await asyncio.gather(*dropped, return_exceptions=True)

    def _refuse_the_rest(self) -> None:
        while not self._inbox.empty():
            item = self._inbox.get_nowait()
            if isinstance(item, _Asked) and not item.reply.done():
                item.reply.set_exception(StoreBusy("the run was stopped before this was handled; try again"))
