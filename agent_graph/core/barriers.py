"""Gates that are placed before a node while its run is under way: who is stopped there, what is asked, who may go on.

::

    gate_placed --> a firing of the node that has not begun is barred: it holds no place and wants no step of its own
                    barred --approval_opened--> asks --approve--> cleared: it begins like any other
                                                 +--reject, expired--> it fails, whatever its `on_error` says

A gate stays: every firing of the node that comes later asks anew, so an old yes lets nobody else pass. What has begun
is not stopped. The folds here are those of `core.folds`' table, or called by them.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_graph.core import events as e
from agent_graph.core.effects import ApprovalAnswer
from agent_graph.core.firing import Firing
from agent_graph.core.graph import Graph
from agent_graph.core.issues import suggest
from agent_graph.core.jsonvalue import JsonObject, digest
from agent_graph.core.nesting import whole
from agent_graph.core.places import enter, free, give
from agent_graph.core.run import Run, approval_id
from agent_graph.core.view import View
from agent_graph.errors import InvalidArgument, RunTerminal

DECISIONS = ("approve", "reject")


def place(
    graph: Graph, run: Run, node: str, *, prompt: str, expiry_ms: int, audience: Sequence[str] = (),
    decisions: Sequence[str] = DECISIONS, by: str = "", via: str = "",
) -> e.GatePlaced:  # fmt: skip
    """The fact that places a gate before `node`, in whichever graph of the run's it is.

    Raises `RunTerminal`, or `InvalidArgument` when no node has that id; then nothing is to be recorded.
    """
    if run.terminal or run.ending:
        ending = run.lifecycle if run.terminal else "about to end"
        raise RunTerminal(f"run {run.run_id} is {ending}; nothing begins there any more", status=run.lifecycle)
    known = sorted({one.id for inner in whole(graph) for one in inner.nodes})
    if node not in known:
        raise InvalidArgument(f"no node of this graph is {node!r}{suggest(node, known)}", argument="at", known=known)
    return e.GatePlaced(node, prompt, expiry_ms, tuple(audience), tuple(dict.fromkeys(decisions)), by, via)


def barred(run: Run, node: str) -> list[str]:
    """The firings of a node that are stopped and are about to ask; paths."""
    return [path for path, firing in run.open.items() if firing.barred and firing.declared.id == node]


def asked(run: Run, firing: Firing) -> list[e.Fact]:
    """What a barred firing has to say: that it asks, or that it may not pass."""
    if firing.refusal is not None:
        failed = e.NodeFailed(firing.path, firing.refusal, 1)
        return [failed] if firing.attempt else [e.NodeStarted(firing.path, 1), failed]
    gate = run.barriers[firing.declared.id]
    subject: JsonObject = {
        "node_id": firing.declared.id, "node_type": firing.declared.type, "current": View(firing).current,
    }  # fmt: skip
    opened = e.ApprovalOpened(
        firing=firing.path, approval_id=approval_id(run.run_id, firing.path, 0), round=0,
        prompt=gate.prompt, subject=subject,
        subject_digest=digest(subject), audience=gate.audience, allowed_decisions=gate.allowed_decisions,
        expiry_ms=gate.expiry_ms,
    )  # fmt: skip
    return [opened]


# -- folds ---------------------------------------------------------------------------------------------------------


def placed(_graph: Graph, run: Run, _event: e.Event, fact: e.GatePlaced) -> None:
    """Firings of the node that wait for a place, or for their first step, are stopped."""
    run.barriers[fact.node] = fact
    for firing in [*run.queue.values(), *run.open.values()]:
        if firing.declared.id != fact.node or firing.attempt or firing.cleared or firing.barred:
            continue
        if run.queue.pop(firing.path, None) is None:
            free(run, firing)
        firing.barred = True
        run.open[firing.path] = firing
    give(run)


def answered(run: Run, firing: Firing, answer: ApprovalAnswer) -> None:
    """A person has decided, or nobody has in time."""
    if answer.decision == "approve":
        firing.barred, firing.cleared = False, True
        enter(run, firing)
        give(run)
        return
    name = firing.declared.id
    if answer.decision == "expired":
        code, message = "APPROVAL_EXPIRED", f'the approval before "{name}" expired before it was decided'
    else:
        code, message = "APPROVAL_REJECTED", f'"{name}" was not let begin: rejected by {answer.by or "a person"}'
    firing.refusal = {"code": code, "message": message, "class": "refused"}
    run.open[firing.path] = firing
