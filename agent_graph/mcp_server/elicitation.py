"""Puts an approval before the human behind the client in the middle of a call; what they answer is a vote of theirs.

`graph_approval_decide` asks at a gate that takes no word of a model, `graph_run_wait` when its run waits for a person.
Up to 2025-11-25 the server asks the client by a request of its own; since 2026-07-28 the call is answered with the
question, and made again with the answer and the sealed state that says which question it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp import MCPError, types

from agent_graph.core.jsonvalue import compact
from agent_graph.errors import ApprovalNotAnswered
from agent_graph.mcp_server.calling import Context
from agent_graph.mcp_server.tasks import asking
from agent_graph.mcp_server.tasks.serving import SINCE, asks
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.registry import Envelope

DECIDE: Final = "graph_approval_decide"
WAIT: Final = "graph_run_wait"
SETTLED: Final = ("APPROVAL_ALREADY_DECIDED", "APPROVAL_ALREADY_VOTED", "APPROVAL_EXPIRED", "APPROVAL_WITHDRAWN")
"""Refusals of a vote that came too late: a wait goes on after them."""
NO_TIME_S: Final = 1.0
"""Seconds in which nobody reads a question and answers it."""


async def call(
    context: Context, deps: Deps, params: types.CallToolRequestParams, *, caller: Caller
) -> Envelope | types.InputRequiredResult:
    """A tool's envelope, or the question that comes before it. Only a client that says it can ask is ever asked, and
    only what its human may decide."""
    given = params.arguments or {}
    talk = _Talk(context, deps, params, caller, asyncio.get_running_loop().time() + deps.limits.wait_ms / 1000)
    if params.name in (DECIDE, WAIT) and asks(context) and caller.may("approvals:decide"):
        return await (_decided(talk) if params.name == DECIDE else _waited(talk))
    return await registry.call(deps, params.name, given, caller=caller)


@dataclass(frozen=True, slots=True)
class _Talk:
    """One call of a client that can ask its human."""

    context: Context
    deps: Deps
    params: types.CallToolRequestParams
    caller: Caller
    until: float
    """The loop's time at which the call is answered, whoever has answered by then."""

    @property
    def modern(self) -> bool:
        return self.context.protocol_version >= SINCE

    async def tool(self, name: str, given: Mapping[str, Any]) -> Envelope:
        return await registry.call(self.deps, name, given, caller=self.caller)

    async def ask(self, approval: Any) -> object:
        """What the human answered, None where nobody did in time; or the question as the result of this call."""
        question: Any = asking.question(approval)["params"]
        if self.modern:
            return types.InputRequiredResult.model_validate({
                "inputRequests": {asking.key_of(approval): asking.question(approval)},
                "requestState": _state(approval),
            })  # fmt: skip
        left = self.until - asyncio.get_running_loop().time()
        if left < NO_TIME_S:
            return None
        try:
            async with asyncio.timeout(left):
                result = await self.context.session.elicit_form(
                    question["message"], question["requestedSchema"], related_request_id=self.context.request_id
                )
        except (TimeoutError, MCPError):  # nobody was there, or the client could not ask after all
            return None
        return result.model_dump(by_alias=True, mode="json")

    def answer_to(self, approval: Any) -> object:
        """What came with this call as the answer to the question about `approval` as it is now; None without one."""
        responses = self.params.input_responses
        if not responses or self.params.request_state != _state(approval):
            return None
        response = responses.get(asking.key_of(approval))
        return None if response is None else response.model_dump(by_alias=True, mode="json")

    async def vote(self, approval: Any, response: object) -> Envelope:
        given = asking.vote(approval, response)
        if given is None:
            message = (
                "the person behind this client was asked, and gave no decision; the approval stays pending:"
                f" {approval['how_to_decide']}"
            )
            return registry.failure(ApprovalNotAnswered(message, approval_id=approval["approval_id"]))
        return await registry.call(self.deps, DECIDE, given, caller=replace(self.caller, via=asking.VIA))


def _state(approval: Any) -> str:
    """Which question it was; the server's own seal is around it, so that no client can make one."""
    return compact([asking.key_of(approval), approval["subject_digest"]])


async def _decided(talk: _Talk) -> Envelope | types.InputRequiredResult:
    """At a gate closed to models the human decides, whatever the call says; elsewhere the call relays their word."""
    given = talk.params.arguments or {}
    found: Any = await talk.tool("graph_approval_get", {"approval_id": given.get("approval_id")})
    approval: Any = found["data"]["approval"] if found["ok"] else {"channels": []}
    closed = approval["channels"] and "assistant" not in approval["channels"]
    if not closed or approval["status"] != "pending" or not asking.can_be_asked(approval):
        return await registry.call(talk.deps, DECIDE, given, caller=talk.caller)
    response = talk.answer_to(approval) or await talk.ask(approval)
    if isinstance(response, types.InputRequiredResult):
        return response
    return await talk.vote(approval, response)


async def _waited(talk: _Talk) -> Envelope | types.InputRequiredResult:
    given = dict(talk.params.arguments or {})
    answered = await _pending(talk, given) if talk.params.input_responses else None
    if answered is not None and (response := talk.answer_to(answered)) is not None:
        refused = await talk.vote(answered, response)
        if not refused["ok"]:
            late = refused["error_code"] in (*SETTLED, ApprovalNotAnswered.code)
            return await talk.tool(WAIT, given) if late else refused
    envelope = await talk.tool(WAIT, given)
    seen: Any = envelope.get("data")
    if not envelope["ok"] or seen["run"]["status"] != "waiting" or given.get("until") == "event":
        return envelope
    approval = await _pending(talk, given)
    if approval is None:
        return envelope
    response = await talk.ask(approval)
    if isinstance(response, types.InputRequiredResult):
        return response
    voted = await talk.vote(approval, response)
    if not voted["ok"]:
        return envelope if voted["error_code"] in (*SETTLED, ApprovalNotAnswered.code) else voted
    left_ms = int((talk.until - asyncio.get_running_loop().time()) * 1000)
    return await talk.tool(WAIT, {**given, "timeout_ms": max(0, min(left_ms, given.get("timeout_ms", left_ms)))})


async def _pending(talk: _Talk, given: Mapping[str, Any]) -> Any:
    """The first approval of the run that can be asked about; None without one."""
    found: Any = await talk.tool("graph_approval_list", {"run_id": given.get("run_id")})
    rows = found["data"]["approvals"] if found["ok"] else []
    return next((row for row in rows if asking.can_be_asked(row)), None)
