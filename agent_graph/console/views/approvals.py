"""What waits for a decision, what was decided, and one approval with all that it is about."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from agent_graph.console.desk import Desk
from agent_graph.console.edits import compared
from agent_graph.console.forms import nonce
from agent_graph.console.rendering import page
from agent_graph.console.streaming import APPROVALS, changes
from agent_graph.tools.deps import local_user

STATUSES: Final = ("pending", "approved", "rejected", "changes_requested", "expired", "withdrawn", "all")
ROWS: Final = 50


async def inbox(desk: Desk, request: Request) -> Response:
    """The approvals with a status: pending, unless another is asked for."""
    asked = request.query_params
    status = asked.get("status", "pending")
    graph, audience = asked.get("graph", ""), asked.get("audience", "")
    found = await desk.ask(
        "graph_approval_list",
        {"status": status, "graph_id": graph, "audience": audience, "limit": ROWS, "cursor": asked.get("cursor", "")},
    )
    return page(
        "approvals.html", desk=desk, approvals=found["approvals"], cursor=found["next_cursor"], status=status,
        statuses=STATUSES, graph=graph, audience=audience, now_ms=desk.deps.clock.now_ms(),
        first=not asked.get("cursor"),
    )  # fmt: skip


async def live(desk: Desk, request: Request) -> Response:
    """A stream that says when what waits has changed."""
    return changes(desk, of=APPROVALS, run_id=request.query_params.get("run", ""))


async def shown(desk: Desk, request: Request) -> Response:
    """One approval, with the form to decide it."""
    return await approval_page(desk, request.path_params["approval_id"])


async def approval_page(
    desk: Desk, approval_id: str, *, status: int = 200, code: str = "", wrong: str = ""
) -> Response:
    """The page as things are now; `wrong` is what was refused just before, what was typed is kept."""
    approval = (await desk.ask("graph_approval_get", {"approval_id": approval_id}, whole=True))["approval"]
    changed = None
    if "original_subject" in approval:
        changed = compared(approval["original_subject"], approval["subject"])
    return page(
        "approval.html", http_status=status, desk=desk, approval=approval, changed=changed, code=code, wrong=wrong,
        typed=desk.form, now_ms=desk.deps.clock.now_ms(), **await deciding(desk, approval),
    )  # fmt: skip


async def deciding(desk: Desk, approval: Any) -> dict[str, Any]:
    """What a form to decide this approval needs: whether it can be decided here, why not, and whose secret it wants."""
    channels = approval["channels"]
    lacks = ""
    if approval["status"] != "pending":
        lacks = "decided"
    elif channels and "console" not in channels:
        lacks = "channel"
    elif not desk.caller.may("approvals:decide"):
        lacks = "scope"
    closed = bool(channels) and "assistant" not in channels
    approvers = await desk.deps.approvers.names() if closed and not lacks else ()
    return {
        "lacks": lacks, "approvers": approvers, "me": desk.caller.principal or local_user(),
        "nonce": nonce(),
    }  # fmt: skip
