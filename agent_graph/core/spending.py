"""What a run's budgets let it do: grants, refusals, the question for more; facts to record, and changes nothing.

Engine.md 6. A call is granted before it is made: what it may take is held, and settled when its answer, or its failure,
is recorded. A call made again after its process ended is still the one that was granted. What does not fit waits while
calls in flight may leave room, and is refused when they cannot.
"""

from __future__ import annotations

from typing import Final

from agent_graph.core import events as e
from agent_graph.core.budgets import (
    LLM_CALLS,
    NODES,
    ON_BUDGET,
    TOKENS,
    WALL_CLOCK,
    Ledger,
    wanted_tokens,
)
from agent_graph.core.effects import CallModel
from agent_graph.core.firing import Firing
from agent_graph.core.jsonvalue import JsonObject, digest
from agent_graph.core.run import Run, approval_id

EXPIRY_MS: Final = 7 * 86_400_000
"""How long somebody has to answer what the run asks; as at any gate."""
EXHAUSTED: Final = "BUDGET_EXHAUSTED"


def outstanding(ledger: Ledger) -> list[e.Fact]:
    """What follows of itself from what was recorded, before anything else: calls to settle, a transfer to tell of."""
    return [*ledger.due.values(), *ledger.untold]


def asking(run: Run, ledger: Ledger) -> e.ApprovalOpened | None:
    """The question for more, if it is to be asked now."""
    if not ledger.refused or ledger.asked_at_ms is not None:
        return None
    name, number = ledger.refused, ledger.round + 1
    more = ledger.sizes[name]
    subject: JsonObject = {"budget": name, "max": ledger.most[name], "further": more, "used": ledger.told()}
    return e.ApprovalOpened(
        firing=ON_BUDGET, approval_id=approval_id(run.run_id, ON_BUDGET, number), round=number,
        subject=subject, subject_digest=digest(subject),
        prompt=f"The run has used up its {name} of {ledger.most[name]}. Approve {more} more, or reject and it fails.",
        audience=(), allowed_decisions=("approve", "reject"), expiry_ms=EXPIRY_MS,
        remind_ms=EXPIRY_MS // 10,
    )  # fmt: skip


def for_node(ledger: Ledger, firing: Firing) -> e.BudgetGranted | e.BudgetRefused | None:
    """What a firing needs before its first step; None when it may take it."""
    if NODES not in ledger.most or firing.attempt or firing.path in ledger.entered:
        return None
    if ledger.left(NODES):
        return e.BudgetGranted(firing.path, nodes=1)
    return ledger.refuse(NODES, 1, firing=firing.path, attempt=1)


def for_call(
    ledger: Ledger, firing: Firing, call: CallModel, *, attempt: int
) -> e.BudgetGranted | e.BudgetRefused | bool:
    """What a firing needs before a call: a fact to record first, True when it may make it, False when it has to wait
    for what calls in flight leave."""
    path = firing.path
    if path in ledger.held or not (LLM_CALLS in ledger.most or TOKENS in ledger.most):
        return True
    if not ledger.left(LLM_CALLS):
        return ledger.refuse(LLM_CALLS, 1, firing=path, attempt=attempt)
    needed, wanted = wanted_tokens(call) if TOKENS in ledger.most else (0, 0)
    left = ledger.left(TOKENS)
    if needed <= left:
        return e.BudgetGranted(path, attempt, llm_calls=1, tokens=min(wanted, left))
    if needed <= left + sum(ledger.held.values()) and needed <= ledger.most[TOKENS] - ledger.spent - ledger.kept:
        return False
    return ledger.refuse(TOKENS, needed, firing=path, attempt=attempt)


def cut_off(ledger: Ledger | None, firing: Firing) -> list[e.Fact]:
    """How the call of a firing that is cancelled is settled."""
    if ledger is None or firing.path not in ledger.held:
        return []
    return [e.BudgetSettled(firing.path, firing.attempt, held=ledger.held[firing.path])]


def deadline_ms(run: Run) -> int | None:
    """When the run's time is over, if that is to be looked at: not while it asks for more, stands aside, or ends."""
    ledger = run.ledger
    if ledger is None or run.lifecycle != "running" or run.ending:
        return None
    return None if ledger.refused else ledger.deadline_ms


def overdue(run: Run, now_ms: int) -> tuple[e.BudgetRefused, ...]:
    """The refusal of a run whose time is over."""
    ledger, at_ms = run.ledger, deadline_ms(run)
    if ledger is None or at_ms is None or now_ms < at_ms:
        return ()
    most = ledger.most[WALL_CLOCK]
    refusal = ledger.refuse(WALL_CLOCK, 0, firing="", attempt=1, used=most + now_ms - at_ms)
    return (refusal,)


def error_of(run: Run, refusal: e.BudgetRefused) -> JsonObject:
    """The error of a run that fails of a refusal."""
    name, most = refusal.budget, refusal.most
    details: JsonObject = {"budget": name, "max": most}
    profile = run.ledger.by_policy.get(name) if run.ledger is not None else None
    bound = f"{name} of {most}" + (f", set by the policy {profile}," if profile else "")
    if name == WALL_CLOCK:
        message = f"the run took longer than its {bound}".rstrip(",")
    elif name == TOKENS:
        message = f"a call that may take {refusal.wanted} tokens would go over the run's {bound}".rstrip(",")
        details["wanted"] = refusal.wanted
    else:
        message = f"the run's {bound} is used up"
    return _error(run, message, details, refusal.firing)


def unraised(run: Run, ledger: Ledger, said: str) -> JsonObject:
    """The error of a run that asked for more and did not get it."""
    name = ledger.refused
    message = f"the run has used up its {name} of {ledger.most[name]}, and that more be granted {said}"
    return _error(run, message, {"budget": name, "max": ledger.most[name]}, next(iter(ledger.parked), ""))


def _error(run: Run, message: str, details: JsonObject, path: str) -> JsonObject:
    body: JsonObject = {"code": EXHAUSTED, "message": message, "class": "refused", "details": details}
    firing = run.firing(path) if path else None
    return body if firing is None else {**body, "node_id": firing.declared.id, "node_path": path}
