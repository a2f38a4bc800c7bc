"""Drives one run: decide, perform, commit, until nothing or only outside answers are left.

Answers and commands come in by two queues and are handled one after the other, so they cannot race. An answer is
committed before anybody interprets it; a call is made only after the commit that started it. When the store refuses a
commit, the fold is read anew and the driver tries again; answers it has heard are kept meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeGuard

from agent_graph.core import events as e
from agent_graph.core import failure, spending, waits
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallTool, CheckEvidence
from agent_graph.core.run import Run
from agent_graph.core.scheduler import Action, Perform, Record, calls_unheard_of, decide
from agent_graph.engine.commands import Command, Interrupt
from agent_graph.engine.evidence import check_evidence
from agent_graph.engine.journal import Journal
from agent_graph.engine.perform import call_model, failure_of_a_bug
from agent_graph.engine.redaction import Live, clean_fact
from agent_graph.engine.shell import Shell, set_aside
from agent_graph.engine.tool_calls import call_tool
from agent_graph.errors import (
    AgentGraphError,
    IdempotencyConflict,
    InternalError,
    SequenceConflict,
    StoreBusy,
    StoreFull,
)
from agent_graph.store.base import AlreadyAnswered, RunRow

log = logging.getLogger(__name__)

PASSING: Final = (StoreBusy, StoreFull, SequenceConflict)
"""Refusals of the store after which trying again can help."""
FIRST_PAUSE_MS: Final = 250
LONGEST_PAUSE_MS: Final = 15_000
LOOK_AGAIN_MS: Final = 30_000
"""The longest sleep between two attempts before the clock is looked at again, should the machine have slept."""
TURN_S: Final = 0.001
"""What one may keep the loop for without a commit, which is where others get their turn."""


@dataclass(frozen=True, slots=True)
class _Asked:
    command: Command
    reply: asyncio.Future[Run]


class Runner:
    """One run's driver. `held` says whether the run waits for a place and is not to be started yet."""

    def __init__(self, shell: Shell, journal: Journal, *, held: Callable[[], bool] = lambda: False) -> None:
        self.closed = False
        self._shell = shell
        self._journal = journal
        self._held = held
        self._wake = asyncio.Event()
        self._asked: deque[_Asked] = deque()
        self._heard: list[e.Fact] = []
        """Answers that are not durable yet."""
        self._calls: dict[str, asyncio.Task[e.Fact]] = {}
        self._unreached: e.NodeFailed | None = None
        self._begun = False
        self._due = False
        """`decide` has something new to look at."""
        self._stopping = False
        self._turn_ends = 0.0
        """Until when steps may be committed together; 0 while there is one."""

    @property
    def run(self) -> Run:
        return self._journal.run

    @property
    def row(self) -> RunRow | None:
        """The run's row as it was committed last; None where only the store knows it."""
        return self._journal.row

    def ask(self, command: Command) -> asyncio.Future[Run]:
        """Have a command handled; gives the fold once it is durable, or what the command refuses with."""
        reply: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(command, reply))
        self._wake.set()
        return reply

    def stop(self, reason: str) -> None:
        """Go home as soon as that is recorded; what is in flight is closed."""
        self._stopping = True
        self.ask(Interrupt(reason)).add_done_callback(lambda reply: reply.cancelled() or reply.exception())

    async def drive(self) -> None:
        """Go on until the run has ended, is interrupted, or waits for somebody outside."""
        pause_ms = FIRST_PAUSE_MS
        try:
            while not self._is_done():  # no await between this and `closed`, so no command is missed
                try:
                    await self._turn()
                    pause_ms = FIRST_PAUSE_MS
                except PASSING as refusal:
                    if self._stopping:
                        raise
                    self._journal.row = None
                    log.warning("run %s waits for the store: %s", self.run.run_id, refusal.message)
                    if not isinstance(refusal, SequenceConflict):
                        self._refuse_the_rest(refusal)  # what was heard comes first, and may wait for hours
                    if isinstance(refusal, StoreFull):
                        await set_aside(self._shell, self.run.run_id, refusal)  # until a commit goes well again
                    self._wake.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause_ms / 1000):  # see `Supervisor.wait`
                            await self._wake.wait()
                    pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)
        finally:
            self.closed = True
            self._refuse_the_rest()
            await self._drop_calls()

    # -- the loop --------------------------------------------------------------------------------------------------

    def _is_done(self) -> bool:
        if self._heard or self._asked or self._due or self._journal.stale:
            return False
        if self._stopping or self.run.terminal or self.run.lifecycle == "interrupted":
            return True
        if self._calls or self._unreached is not None:
            return False
        if not self._begun:
            return self._held()
        return not self.run.pausing and not self._over()  # who waits for longer is woken by `expiry`

    async def _turn(self) -> None:
        """Do one thing: what was heard first, it is paid for; then commands; then what follows from them."""
        if self._journal.stale:
            await self._journal.catch_up((*self._calls, *(getattr(fact, "firing", "") for fact in self._heard)))
            self._begun, self._due = False, False
        if self._heard:
            await self._hear()
        elif self._asked:
            await self._obey(self._asked.popleft())
        elif self._unreached is not None and not self._calls:
            await self._give_up(self._unreached)
        elif not self._begun and self._unreached is None:
            self._begin()
        elif over := self._over():
            self._journal.record(*over)
            self._due = True
        elif self._due:
            self._due = False
            await self._advance()
        else:
            self._wake.clear()
            await self._sleep()

    def _over(self) -> tuple[e.Fact, ...]:
        """What the clock has ended; before a run is interrupted nothing new is begun, and only its own time ends it."""
        now_ms = self._journal.now_ms()
        if self._unreached is None:
            return waits.due(self.run, now_ms)
        return spending.overdue(self.run, now_ms)

    async def _sleep(self) -> None:
        """Until something is heard or asked, or the clock ends what some firing waits for."""
        next_ms = waits.next_due_ms(self.run) if self._unreached is None else spending.deadline_ms(self.run)
        if next_ms is None:
            await self._wake.wait()
            return
        left_ms = min(max(1, next_ms - self._journal.now_ms()), LOOK_AGAIN_MS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_ms / 1000):
                await self._wake.wait()

    def _begin(self) -> None:
        """Start an accepted run; take up one whose process ended, its calls in flight as new attempts."""
        run, self._begun, self._due = self.run, True, True
        if run.cancel_reason is not None:
            return
        if run.lifecycle == "accepted":
            self._journal.record(e.RunStarted())
        elif calls_unheard_of(run):
            self._journal.record(e.RunInterrupted("the process that drove the run ended"), e.RunResumed())

    async def _hear(self) -> None:
        """Commit the answers that have come. A host that cannot be reached, whatever was tried, interrupts the run; it
        does not fail it."""
        facts = tuple(self._heard)
        for fact in facts:
            assert isinstance(fact, e.ModelAnswered | e.CacheHit | e.ToolAnswered | e.EvidenceChecked | e.NodeFailed)
            if self.run.firing(fact.firing) is None or self.run.terminal:
                continue  # cancelled meanwhile
            following = failure.follow_up(self.run, fact) if _failed(fact) else fact
            if _failed(following) and following.error.get("class") == "unreachable":
                self._unreached = self._unreached or following  # answers under way are waited for: they are paid for
            else:
                self._journal.record(following)
        await self._journal.commit()
        del self._heard[: len(facts)]
        self._due = True

    async def _obey(self, asked: _Asked) -> None:
        """Commit what a command changes and tell who asked, whatever happens."""
        command, reply, journal = asked.command, asked.reply, self._journal
        refusal: Exception = InternalError("a bug of ours stopped the run before this was handled; the log has more")
        try:
            try:
                facts = command.facts(self.run, journal.now_ms())
            except AgentGraphError as wrong:
                refusal = wrong
                return
            journal.record(*facts)
            answered = None if command.answer is None else command.answer(self.run)
            try:
                await journal.commit(answered)
            except (AlreadyAnswered, IdempotencyConflict) as earlier:
                refusal = earlier  # the run has no part in it
                return
            except AgentGraphError as trouble:
                refusal = trouble
                raise
            if not reply.done():
                reply.set_result(self.run)
            self._due = self._due or bool(facts)
        finally:
            if not reply.done():
                reply.set_exception(refusal)

    async def _give_up(self, unreached: e.NodeFailed) -> None:
        error = unreached.error
        if self.run.lifecycle == "running":
            body = {**error, "node_path": unreached.firing}
            self._journal.record(e.RunInterrupted(str(error["message"]), body))
        await self._journal.commit()
        self._unreached, self._due = None, True

    async def _advance(self) -> None:
        """Record what may happen now and start the calls it allows. Starts ride on the commit that enabled them; an end
        of a firing is committed before anything is made of it, but by steps without calls while commits are shared."""
        if self._unreached is not None:
            if not self.run.ending and not self.run.stands_still:
                return  # nothing new is begun before the run is interrupted
            self._unreached = None
        journal = self._journal
        performs: list[Perform] = []
        while True:
            if self.run.ledger is not None:
                journal.record(*spending.overdue(self.run, journal.now_ms()))
            actions = decide(journal.graph, self.run)
            if not actions or (journal.finishes and _finish(actions) and not self._shares(performs)):
                await journal.commit()
                self._turn_ends = 0.0
                self._start(performs)
                performs = []
                if self._asked or self._heard:
                    self._due = bool(actions)
                    break
            if not actions:
                break
            journal.record(*[action.fact for action in actions if type(action) is Record])
            for action in actions:
                if type(action) is Perform:
                    self.run.hand_over(action.firing)
                    performs.append(action)
        stopped = self.run.terminal or self.run.lifecycle == "interrupted"
        await self._drop_calls(keep={} if stopped else self.run.out)

    def _shares(self, performs: list[Perform]) -> bool:
        """Whether the step just recorded may be committed together with what follows from it: no call waits for it."""
        if performs or not self._shell.store.runs.shares:
            return False
        now = time.monotonic()
        self._turn_ends = self._turn_ends or now + TURN_S
        return now < self._turn_ends

    # -- calls -----------------------------------------------------------------------------------------------------

    def _start(self, performs: list[Perform]) -> None:
        for perform in performs:
            if perform.firing in self.run.out:
                task = asyncio.create_task(self._call(perform), name=perform.firing)
                earlier = self._calls.pop(perform.firing, None)
                self._calls[perform.firing] = task
                if earlier is not None:  # interrupted and resumed in one breath
                    earlier.cancel()
                task.add_done_callback(lambda done, perform=perform: self._returned(perform, done))  # type: ignore[misc]  # mypy cannot infer a default's type

    async def _call(self, perform: Perform) -> e.Fact:
        shell, run_id = self._shell, self.run.run_id

        def show(kind: str, text: str) -> None:
            shell.notify.delta(run_id, perform.firing, kind=kind, text=text)

        if isinstance(perform.effect, CallTool):
            fact: e.Fact = await call_tool(perform, perform.effect, connections=shell.connections)
        elif isinstance(perform.effect, CheckEvidence):
            fact = await check_evidence(perform, perform.effect, shell=shell, run=self.run)
        else:
            live = Live(shell.redactor, show)
            fact = await call_model(perform, perform.effect, shell=shell, run=self.run, on_delta=live)
            live.close()
        return clean_fact(shell.redactor, fact)

    def _returned(self, perform: Perform, task: asyncio.Task[e.Fact]) -> None:
        """A call is over. One that ended by itself is always heard of, even when a bug ended it."""
        bug = None if task.cancelled() else task.exception()
        if self._calls.get(perform.firing) is not task:
            return  # dropped
        del self._calls[perform.firing]
        if bug is not None or task.cancelled():
            log.error("the call of %s in run %s ended by a bug", perform.firing, self.run.run_id, exc_info=bug)
            self._heard.append(clean_fact(self._shell.redactor, failure_of_a_bug(perform, bug)))
        else:
            self._heard.append(task.result())
        self._wake.set()

    async def _drop_calls(self, keep: Mapping[str, object] | None = None) -> None:
        """Close the calls nobody waits for any more, down to the socket."""
        dropped = [self._calls.pop(path) for path in list(self._calls) if keep is None or path not in keep]
        for task in dropped:
            task.cancel()
        if dropped:
            await asyncio.gather(*dropped, return_exceptions=True)

    def _refuse_the_rest(self, refusal: AgentGraphError | None = None) -> None:
        for asked in self._asked:
            if not asked.reply.done():
                stopped = StoreBusy("the run was stopped before this was handled; try again")
                asked.reply.set_exception(refusal or stopped)
        self._asked.clear()


def _failed(fact: e.Fact) -> TypeGuard[e.NodeFailed]:
    return isinstance(fact, e.NodeFailed)


def _finish(actions: Sequence[Action]) -> bool:
    """Whether some firing ends."""
    for action in actions:  # noqa: SIM110  (a plain loop takes half the time)
        if type(action) is Record and isinstance(action.fact, e.ENDS):
            return True
    return False
