"""What is sealed when a run ends: the head of its chain, which commits to every event; nothing else of a receipt.

It stands apart from the receipt because it is made on the way of a commit, where a receipt is only made when asked for.
"""

from __future__ import annotations

from typing import Final

from agent_graph.core.jsonvalue import JsonObject

SEAL: Final = "agent-graph-seal-v1"
LATE_SEAL: Final = "agent-graph-late-seal-v1"


def seal_body(*, run_id: str, status: str, events: int, head: str, sealed_at_ms: int, late: bool = False) -> JsonObject:
    """The value that is sealed; `head` is ``sha256:<hex>``.

    `late` is for a run that had ended before anything was sealed: such a seal vouches for nothing before it was made.
    """
    return {
        "kind": LATE_SEAL if late else SEAL, "run_id": run_id, "status": status, "events": events,
        "head": head, "sealed_at_ms": sealed_at_ms,
    }  # fmt: skip
