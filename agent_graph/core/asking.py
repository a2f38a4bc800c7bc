"""What a firing wants, as the fact that says so: an approval, a moment, a message, or frames for what is inside it."""

from __future__ import annotations

from typing import assert_never

from agent_graph.core import events as e
from agent_graph.core.effects import AskApproval, AwaitSignal, OpenFrames, Sleep
from agent_graph.core.firing import Firing
from agent_graph.core.jsonvalue import digest
from agent_graph.core.run import Run, approval_id


def asked(run: Run, firing: Firing, effect: AskApproval | Sleep | AwaitSignal | OpenFrames) -> e.Fact:
    """The fact after which the answer may come."""
    match effect:
        case AskApproval():
            return _open_gate(run, firing, effect)
        case Sleep(delay_ms, until_ms):
            return e.TimerSet(firing.path, delay_ms, until_ms)
        case AwaitSignal(name, buffer, expiry_ms):
            return e.SignalAwaited(firing.path, name, buffer, expiry_ms)
        case OpenFrames():
            return e.FramesOpened(firing.path, len(effect.inputs))
        case _:
            assert_never(effect)


def _open_gate(run: Run, firing: Firing, ask: AskApproval) -> e.ApprovalOpened:
    return e.ApprovalOpened(
        firing=firing.path, approval_id=approval_id(run.run_id, firing.path, ask.round),
        round=ask.round, prompt=ask.prompt, subject=ask.subject,
        subject_digest=digest(ask.subject), audience=ask.audience, allowed_decisions=ask.allowed_decisions,
        expiry_ms=ask.expiry_ms, quorum=ask.quorum, channels=ask.channels, self_approval=ask.self_approval,
        remind_ms=ask.remind_ms, subject_schema=ask.subject_schema or {},
    )  # fmt: skip
