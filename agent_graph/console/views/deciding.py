"""Takes decisions: a vote as it is, or an edit, which is shown as a comparison before it counts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_graph.console.desk import Desk, Turned
from agent_graph.console.edits import compared, patch_between, value_of
from agent_graph.console.rendering import page, pretty
from agent_graph.console.views.approvals import approval_page, deciding
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact, json_equal, parse_json
from agent_graph.core.limits import Limits
from agent_graph.core.patch import PatchFailed, applied
from agent_graph.engine.approvers import Proof
from agent_graph.errors import AgentGraphError, ApprovalEditInvalid, ApprovalStale, InvalidArgument
from agent_graph.tools.deps import Caller, local_user

COPIES: Final = 16 * 1024 * 1024
FIELDS: Final = ("decision", "decision_note", "on_behalf_of", "subject_digest", "idempotency_key")


async def decided(desk: Desk, request: Request) -> Response:
    """Record the decision and show what came of it; refused, the page as it is now, with why."""
    approval_id = request.path_params["approval_id"]
    try:
        vote, decider = _vote(desk, approval_id), await _decider(desk)
        answer = await desk.ask("graph_approval_decide", vote, whole=True, caller=decider)
    except Turned as turned:
        return await approval_page(desk, approval_id, status=turned.status, code=turned.code, wrong=turned.message)
    except AgentGraphError as refusal:
        return await approval_page(
            desk, approval_id, status=refusal.http_status, code=refusal.code, wrong=refusal.message
        )
    desk.session.notice = _came_to(answer["approval"])
    return RedirectResponse(f"/approvals/{approval_id}", 303)


def _vote(desk: Desk, approval_id: str) -> dict[str, Any]:
    """The arguments of `graph_approval_decide`. Raises `InvalidArgument`."""
    form = desk.form
    if not form.get("decision"):
        raise InvalidArgument("choose a decision first; nothing was recorded", argument="decision")
    proved = form.get("approver", "").strip() if form.get("secret") else ""
    name = proved or desk.caller.principal or form.get("decided_by", "").strip()
    vote: dict[str, Any] = {field: form[field] for field in FIELDS if form.get(field)}
    vote |= {"approval_id": approval_id, "decided_by": name or local_user()}
    if form["decision"] == "edit":
        limits = desk.deps.limits
        vote["patch"] = parse_json(
            form.get("patch", ""), max_bytes=2 * limits.input_bytes, max_depth=limits.json_depth + 4
        )
    return vote


async def _decider(desk: Desk) -> Caller:
    """Who decides; with a secret of an approver, who they have proved to be. Raises `ApproverSecretWrong`."""
    name, secret = desk.form.get("approver", "").strip(), desk.form.get("secret", "")
    if not secret:
        return desk.caller
    proved = await desk.deps.approvers.prove(Proof(name, secret), now_ms=desk.deps.clock.now_ms())
    return replace(desk.caller, approver=proved)


def _came_to(approval: Any) -> str:
    if approval["status"] != "pending":
        return f"Decided: {approval['status'].replace('_', ' ')}."
    return f"Your vote is recorded; {approval['quorum']} people have to approve."


async def edited(desk: Desk, request: Request) -> Response:
    """The subject in a field to be changed; sent, what the change is, to be confirmed."""
    approval_id = request.path_params["approval_id"]
    approval = (await desk.ask("graph_approval_get", {"approval_id": approval_id}, whole=True))["approval"]
    about = await deciding(desk, approval)
    if about["lacks"] or "edit" not in approval["allowed_decisions"]:
        return await approval_page(
            desk, approval_id, status=409, code="APPROVAL_DECISION_NOT_ALLOWED", wrong="This cannot be edited here."
        )
    values = {"desk": desk, "approval": approval, "now_ms": desk.deps.clock.now_ms(), "wrong": "", "code": "", **about}
    typed = desk.form.get("subject")
    values |= {"typed": typed, "patch_typed": desk.form.get("patch", "")}
    if request.method == "GET":
        return page("edit.html", **values)
    try:
        if desk.form.get("again"):
            _check_same(desk, approval)
            return page("edit.html", **values)
        patch, after, lines = await asyncio.to_thread(_change, desk, approval)
    except AgentGraphError as refusal:
        values |= {"wrong": refusal.message, "code": refusal.code}
        return page("edit.html", http_status=refusal.http_status, **values)
    values["typed"] = pretty(after) if typed is None else typed
    return page("confirm.html", patch=compact(patch), steps=len(patch), lines=lines, **values)


def _check_same(desk: Desk, approval: Any) -> None:
    """Raises `ApprovalStale` where the subject is not the one that was edited."""
    if desk.form.get("subject_digest") != approval["subject_digest"]:
        message = "what is decided on has changed while you edited; below is your text, look at the new one first"
        raise ApprovalStale(message, subject_digest=approval["subject_digest"])


def _change(desk: Desk, approval: Any) -> tuple[Any, JsonValue, Any]:
    """The patch, the subject after it, and the comparison. Raises `InvalidArgument` where nothing was changed,
    `ApprovalEditInvalid` where the patch does not fit, and what `_check_same`, `value_of` and `parse_json` raise."""
    _check_same(desk, approval)
    before, form, limits = approval["subject"], desk.form, desk.deps.limits
    if "patch" in form:
        patch = _patch_of(form["patch"], limits)
    else:
        patch = patch_between(before, value_of(form.get("subject", ""), like=before, limits=limits))
    try:
        after = applied(before, patch, max_bytes=COPIES)
    except PatchFailed as failed:
        raise ApprovalEditInvalid(f"the patch does not fit what is decided on: {failed}") from None
    if json_equal(before, after):
        raise InvalidArgument("nothing was changed; to take it as it is, approve it", argument="subject")
    return patch, after, compared(before, after)


def _patch_of(typed: str, limits: Limits) -> list[JsonObject]:
    """Raises `InvalidArgument`, and what `parse_json` raises."""
    patch = parse_json(typed, max_bytes=2 * limits.input_bytes, max_depth=limits.json_depth + 4)
    if isinstance(patch, list):
        steps = [step for step in patch if isinstance(step, dict) and isinstance(step.get("path"), str)]
        if steps and len(steps) == len(patch):
            return steps
    raise InvalidArgument("a JSON Patch is an array of steps, each with op and path", argument="patch")
