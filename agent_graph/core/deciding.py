"""How a person can decide an approval, in words they or their assistant can act on; decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

OTHERS: Final = (
    "; not whoever started the run (self_approval is false): another person, through another program than the one that"
    " started it, or logged in as themselves"
)


def how_to_decide(
    approval_id: str,
    *,
    channels: Sequence[str],
    decisions: Sequence[str],
    console: str = "",
    self_approval: bool = True,
) -> str:
    """The ways that are open, the most direct first; `channels` () = all, `console` is the address it is served at.
    Without `self_approval` it says that somebody else than the starter has to."""
    open_to = channels or ("assistant", "console", "cli")
    ways = []
    if "assistant" in open_to:
        ways.append(f"ask your human, then call graph_approval_decide with approval_id {approval_id}")
    if "elicitation" in open_to:
        ways.append("the client asks its human itself, where it can (elicitation): call graph_approval_decide")
    if "console" in open_to and console:
        ways.append(f"in the console: {console.rstrip('/')}/approvals/{approval_id}")
    if "cli" in open_to:
        ways.append(f"on a terminal: agent-graph approvals decide {approval_id} {'|'.join(decisions)}")
    if not ways:
        ways.append("in the console: agent-graph serve")
    said = "; or ".join(ways) + ("" if self_approval else OTHERS)
    if channels and "assistant" not in channels:
        return f"a person has to decide, and no model can for them: {said}"
    return said
