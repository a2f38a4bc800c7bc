"""Puts an approval before the human behind the client in the middle of a call; what they answer is a vote of theirs.

`graph_approval_decide` asks at a gate that takes no word of a model, `graph_run_wait` when its run waits for a person.
Up to 2025-11-25 the server asks the client by a request of its own; since 2026-07-28 the call is answered with the
question, and made again with the answer and the sealed state that says which question it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcp import MCPError, types

from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.core.events import Event
from agent_graph.core.jsonvalue import compact
from agent_graph.errors import ApprovalNotAnswered, ApprovalSelfDecision
from agent_graph.mcp_server.calling import Context
from agent_graph.mcp_server.tasks import asking
from agent_graph.mcp_server.tasks.serving import SINCE, asks
from agent_graph.store.base import RunRow
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps, Progress
from agent_graph.tools.registry import Envelope

DECIDE: Final = "graph_approval_decide"
WAIT: Final = "graph_run_wait"
STALE: Final = "APPROVAL_STALE"
SETTLED: Final = (
    "APPROVAL_ALREADY_DECIDED", "APPROVAL_ALREADY_VOTED", "APPROVAL_EXPIRED", "APPROVAL_WITHDRAWN", STALE,
)  # fmt: skip
"""Refusals of a vote that came too late: a wait goes on after them."""
OPENS: Final = (e.ApprovalOpened, e.ApprovalVoted)
"""After these there may be something to ask, or something else than before."""
TIMEOUT_MS: Final = 30_000
"""As the tool has it where none is given."""
UNDECIDED: Final = (
    "the person behind this client was asked, and the approval is not decided; run.waiting_for says how it can be: tell"
    " them, and do not wait again before somebody has"
)
NO_TIME_S: Final = 1.0
"""Seconds in which nobody reads a question and answers it."""


async def call(
    context: Context, deps: Deps, params: types.CallToolRequestParams, *, caller: Caller
) -> Envelope | types.InputRequiredResult:
    """A tool's envelope, or the question that comes before it. Only a client that says it can ask is ever asked, and
    only what its human may decide."""
    given = params.arguments or {}
    if caller.progress is not None:
        caller = replace(caller, progress=_rising(caller.progress))
    talk = _Talk(context, deps, params, caller, asyncio.get_running_loop().time() + deps.limits.wait_ms / 1000)
    if params.name in (DECIDE, WAIT) and asks(context) and caller.may("approvals:decide"):
        return await (_decided(talk) if params.name == DECIDE else _waited(talk))
    return await registry.call(deps, params.name, given, caller=caller)


def _rising(tell: Progress) -> Progress:
    """A call may wait several times, and its progress only rises."""
    told = 0

    async def on(count: int, message: str) -> None:
        nonlocal told
        told = max(told + 1, count)
        await tell(told, message)

    return on


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
    if not closed or approval["status"] != "pending" or not await _askable(talk, approval):
        return await registry.call(talk.deps, DECIDE, given, caller=talk.caller)
    response = talk.answer_to(approval) or await talk.ask(approval)
    if isinstance(response, types.InputRequiredResult):
        return response
    return await talk.vote(approval, response)


async def _waited(talk: _Talk) -> Envelope | types.InputRequiredResult:
    """Wait, and ask at once about whatever is pending or opens meanwhile: each approval once in a call, and again only
    when somebody has changed what it is about."""
    given = dict(talk.params.arguments or {})
    if given.get("until") == "event":
        return await talk.tool(WAIT, given)
    opened = asyncio.Event()

    def hear(row: RunRow, events: Sequence[Event]) -> None:
        if row.run_id == given.get("run_id") and any(isinstance(event.fact, OPENS) for event in events):
            opened.set()

    stop = talk.deps.supervisor.shell.notify.listen(hear)
    try:
        return await _asking(talk, given, opened)
    finally:
        stop()


async def _asking(talk: _Talk, given: dict[str, Any], opened: asyncio.Event) -> Envelope | types.InputRequiredResult:
    wait_ms = given.get("timeout_ms")
    until = asyncio.get_running_loop().time() + (wait_ms if isinstance(wait_ms, int) else TIMEOUT_MS) / 1000
    asked: set[str] = set()
    left = given  # the first wait is the one that was asked for, right or wrong
    while True:
        opened.clear()
        approval = await _pending(talk, given, passing_over=asked)
        if approval is None:
            envelope = await _unless(opened, talk, left)
            if envelope is not None:
                return envelope
            left = {**given, "timeout_ms": _left_ms(min(until, talk.until))}
            continue
        response = talk.answer_to(approval) or await talk.ask(approval)
        if isinstance(response, types.InputRequiredResult):
            return response
        voted = await talk.vote(approval, response)
        code, left = voted.get("error_code"), {**given, "timeout_ms": _left_ms(min(until, talk.until))}
        if code in (ApprovalNotAnswered.code, ApprovalSelfDecision.code):
            return await _undecided(talk, given, approval, voted)
        if not voted["ok"] and code not in SETTLED:
            return voted
        if code != STALE:
            asked.add(approval["approval_id"])


async def _unless(opened: asyncio.Event, talk: _Talk, given: Mapping[str, Any]) -> Envelope | None:
    """The wait; None when an approval was opened before it was over."""
    wait = asyncio.create_task(talk.tool(WAIT, given))
    alarm = asyncio.create_task(opened.wait())
    try:
        await asyncio.wait({wait, alarm}, return_when=asyncio.FIRST_COMPLETED)
        return wait.result() if wait.done() and not opened.is_set() else None
    finally:
        for task in (wait, alarm):
            task.cancel()
        await asyncio.gather(wait, alarm, return_exceptions=True)


async def _undecided(talk: _Talk, given: Mapping[str, Any], approval: Any, refused: Envelope) -> Envelope:
    """The run as it is now, and that its human was asked in vain."""
    envelope = await talk.tool(WAIT, {**given, "until": "waiting", "timeout_ms": 0})
    if envelope["ok"]:
        seen: Any = envelope["data"]
        seen["asked"] = {
            "approval_id": approval["approval_id"], "answered": False, "error_code": refused["error_code"],
            "note": UNDECIDED,
        }  # fmt: skip
    return envelope


def _left_ms(until: float) -> int:
    return max(0, int((until - asyncio.get_running_loop().time()) * 1000))


async def _pending(talk: _Talk, given: Mapping[str, Any], *, passing_over: Container[str]) -> Any:
    """The first approval of the run that this human can be asked about; None without one."""
    found: Any = await talk.tool("graph_approval_list", {"run_id": given.get("run_id")})
    for row in found["data"]["approvals"] if found["ok"] else ():
        if row["approval_id"] not in passing_over and await _askable(talk, row):
            return row
    return None


async def _askable(talk: _Talk, approval: Any) -> bool:
    return asking.can_be_asked(approval) and await asking.may_answer(talk.deps, approval, talk.caller)
