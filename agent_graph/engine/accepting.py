"""Makes a run durable with its first events, in one transaction with all that is told of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_graph.core import events as e
from agent_graph.core.graph import Graph
from agent_graph.core.run import Run
from agent_graph.engine.rows import approval_row, run_row
from agent_graph.engine.shell import Shell
from agent_graph.store.base import Answered, Commit, RunRow


async def accepted(
    shell: Shell, graph: Graph, run: Run, log: Sequence[e.Event], answer: Callable[[RunRow], Answered] | None
) -> RunRow:
    """Store a run that is new: one event where it just starts, many where it is a fork, whose approvals come along.

    Of these only the ones that are open are told outside: the others were, when they were their origin's. Raises what
    the store raises.
    """
    row = run_row(graph, run, created_at_ms=run.accepted_at_ms)
    gates = [approval_row(graph, run, gate) for gate in run.gates.values()]
    open_ = {gate.approval_id for gate in run.open_approvals}
    asked = [one for one in log if isinstance(one.fact, e.ApprovalOpened) and one.fact.approval_id in open_]
    told = shell.announcer if asked else None
    notices = () if told is None else told.notices(graph, run, asked)
    answered = answer(row) if answer is not None else None
    await shell.store.runs.commit(
        Commit(row, 0, log, create=True, approvals=gates, answered=answered, notices=notices)
    )  # fmt: skip
    shell.notify.committed(row, log)
    if gates or row.wake_at_ms is not None:
        shell.notify.gates.set()
    if told is not None:
        told.written()
    return row
