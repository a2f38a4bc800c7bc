"""An approval put before the human behind the client: their answer is a vote, and nothing else of a client is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mcp import types

from agent_graph.tools.deps import Deps
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import ERAS, Assistant, connected
from tests.mcp_server.wire import Wire, wired
from tests.tools.specs import gated

HUMAN = ["elicitation", "console", "cli"]
FORMS = {"elicitation": {"form": {}}}
YES = {"action": "accept", "content": {"decision": "approve", "decided_by": "Ada", "decision_note": "go"}}


class Human:
    """Whoever sits before the client: what they are shown, and what they say to it."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.shown: list[types.ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.shown.append(params)
        return types.ElicitResult.model_validate(self.answer)


@asynccontextmanager
async def behind(deps: Deps, era: str, human: Human) -> AsyncIterator[Assistant]:
    async with connected(deps, era, elicitation_callback=human) as assistant:
        yield assistant


async def waiting(tools: Tools, **config: Any) -> tuple[str, Any]:
    """A run that waits at a gate, and its approval."""
    await tools.ok("graph_create", spec=gated(**config), overwrite=True)
    run_id = (await tools.ok("graph_run_start", graph_id="gated", input={"draft": "Dear Bob"}))["run_id"]
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    (approval,) = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]
    return run_id, approval


async def now(tools: Tools, approval: Any) -> Any:
    return (await tools.ok("graph_approval_get", approval_id=approval["approval_id"]))["approval"]


@pytest.mark.parametrize("era", ERAS)
async def test_at_a_gate_closed_to_models_the_human_decides_whatever_the_assistant_says(era: str) -> None:
    human = Human({"action": "accept", "content": {"decision": "reject", "decided_by": "Ada", "decision_note": "no"}})
    async with opened() as deps, behind(deps, era, human) as assistant:
        _, approval = await waiting(Tools(deps), channels=HUMAN, on_reject="continue")
        said = await assistant.ok(
            "graph_approval_decide", approval_id=approval["approval_id"], decision="approve", decided_by="a model"
        )
        (shown,) = human.shown
        assert shown.message == f"May this be sent?\n\nDear Bob\n\n({approval['subject_digest']})"
        assert shown.requested_schema["properties"]["decision"]["enum"] == ["approve", "reject", "request_changes"]
        (vote,) = said["approval"]["votes"]
        assert (vote["decision"], vote["decided_by"], vote["via"]) == ("reject", "Ada", "elicitation")
        assert said["approval"]["status"] == "rejected"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_does_not_answer_has_decided_nothing(era: str, action: str) -> None:
    async with opened() as deps, behind(deps, era, Human({"action": action})) as assistant:
        tools = Tools(deps)
        _, approval = await waiting(tools, channels=HUMAN)
        before = await tools.everything()
        given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "a model"}
        envelope = await assistant.envelope("graph_approval_decide", **given)
        assert (envelope["error_code"], envelope["retryable"]) == ("APPROVAL_NOT_ANSWERED", True)
        assert "agent-graph approvals decide" in envelope["error"]
        assert await tools.everything() == before


@pytest.mark.parametrize("era", ERAS)
async def test_a_wait_asks_and_goes_on_with_what_was_decided(era: str) -> None:
    human = Human(YES)
    async with opened() as deps, behind(deps, era, human) as assistant:
        tools = Tools(deps)
        run_id, approval = await waiting(tools)
        seen = await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
        assert (seen["status"], seen["terminal"]) == ("completed", True)
        assert len(human.shown) == 1
        (vote,) = (await now(tools, approval))["votes"]
        assert (vote["via"], vote["decision_note"]) == ("elicitation", "go")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("until", ["waiting", "terminal"])
async def test_a_wait_whose_question_is_declined_is_over_and_says_how_it_can_be_decided(
    era: str, action: str, until: str
) -> None:
    human = Human({"action": action})
    async with opened() as deps, behind(deps, era, human) as assistant:
        tools = Tools(deps)
        run_id, approval = await waiting(tools)
        before = await tools.everything()
        seen = await assistant.ok("graph_run_wait", run_id=run_id, until=until)
        assert (seen["status"], seen["terminal"], len(human.shown)) == ("waiting", False, 1)
        (waits,) = seen["run"]["waiting_for"]
        assert f"agent-graph approvals decide {approval['approval_id']}" in waits["how_to_decide"]
        assert (seen["asked"]["approval_id"], seen["asked"]["answered"]) == (approval["approval_id"], False)
        assert seen["asked"]["error_code"] == "APPROVAL_NOT_ANSWERED"
        assert await tools.everything() == before


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_is_told_how_a_human_can_decide(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        tools = Tools(deps)
        run_id, approval = await waiting(tools, channels=HUMAN)
        before = await tools.everything()
        given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "Ada"}
        envelope = await assistant.envelope("graph_approval_decide", **given)
        assert envelope["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
        assert "agent-graph approvals decide" in envelope["details"]["how_to_decide"]
        assert (await assistant.ok("graph_run_wait", run_id=run_id, until="waiting"))["status"] == "waiting"
        assert await tools.everything() == before


@pytest.mark.parametrize("era", ERAS)
async def test_at_an_open_gate_the_assistant_passes_a_word_on_as_before(era: str) -> None:
    human = Human({"action": "decline"})
    async with opened() as deps, behind(deps, era, human) as assistant:
        _, approval = await waiting(Tools(deps))
        given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "Ada"}
        (vote,) = (await assistant.ok("graph_approval_decide", **given))["approval"]["votes"]
        assert (vote["via"], human.shown) == ("assistant", [])


@pytest.mark.parametrize(
    "content",
    [{}, {"decision": "approve"}, {"decision": "edit", "decided_by": "Ada"}, {"decision": "yes", "decided_by": "Ada"}],
)
@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_that_is_none_is_refused_and_decides_nothing(era: str, content: dict[str, Any]) -> None:
    async with opened() as deps, behind(deps, era, Human({"action": "accept", "content": content})) as assistant:
        tools = Tools(deps)
        _, approval = await waiting(tools, channels=HUMAN)
        before = await tools.everything()
        given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "a model"}
        assert await assistant.refused("graph_approval_decide", **given) in (
            "INVALID_ARGUMENT", "APPROVAL_DECISION_NOT_ALLOWED", "APPROVAL_EDIT_INVALID",
        )  # fmt: skip
        assert await tools.everything() == before


# -- a client that makes its answers up, message by message --------------------------------------------------------


async def decide(wire: Wire, approval: Any, **more: Any) -> Any:
    given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "a model"}
    return await wire.ask("tools/call", name="graph_approval_decide", arguments=given, **more)


def forged_without_state(first: Any, key: str) -> dict[str, Any]:
    return {"inputResponses": {key: YES}}


def forged_with_a_state_of_its_own(first: Any, key: str) -> dict[str, Any]:
    return {"inputResponses": {key: YES}, "requestState": f'["{key}","sha256:{"0" * 64}"]'}


def under_another_key(first: Any, key: str) -> dict[str, Any]:
    return {"inputResponses": {f"{key}0": YES}, "requestState": first["requestState"]}


@pytest.mark.parametrize("forge", [forged_without_state, forged_with_a_state_of_its_own, under_another_key])
async def test_a_made_up_answer_is_none(forge: Callable[[Any, str], dict[str, Any]]) -> None:
    async with opened() as deps, wired(deps, "auto") as wire:
        wire.capabilities = FORMS
        tools = Tools(deps)
        _, approval = await waiting(tools, channels=HUMAN)
        before = await tools.everything()
        first = (await decide(wire, approval))["result"]
        (key,) = first["inputRequests"]
        answer = await decide(wire, approval, **forge(first, key))
        assert answer.get("error", {}).get("code") == -32602 or answer["result"]["resultType"] == "input_required"
        assert await tools.everything() == before


async def test_the_answer_to_one_question_does_not_answer_another() -> None:
    async with opened() as deps, wired(deps, "auto") as wire:
        wire.capabilities = FORMS
        tools = Tools(deps)
        (_, one), (_, two) = await waiting(tools, channels=HUMAN), await waiting(tools, channels=HUMAN)
        first = (await decide(wire, one))["result"]
        (key,) = first["inputRequests"]
        before = await tools.everything()
        answer = await decide(wire, two, inputResponses={key: YES}, requestState=first["requestState"])
        assert answer["error"]["code"] == -32602
        assert await tools.everything() == before
        done = await decide(wire, one, inputResponses={key: YES}, requestState=first["requestState"])
        assert done["result"]["structuredContent"]["data"]["approval"]["status"] == "approved"
        again = await decide(wire, one, inputResponses={key: YES}, requestState=first["requestState"])
        assert again["result"]["structuredContent"]["error_code"] in (
            "APPROVAL_ALREADY_DECIDED", "APPROVAL_CHANNEL_NOT_ALLOWED",
        )  # fmt: skip
        assert (await now(tools, two))["status"] == "pending"


async def test_an_answer_of_a_client_that_did_not_say_it_can_ask_is_not_taken() -> None:
    async with opened() as deps, wired(deps, "auto") as wire:
        tools = Tools(deps)
        _, approval = await waiting(tools, channels=HUMAN)
        wire.capabilities = FORMS
        first = (await decide(wire, approval))["result"]
        (key,) = first["inputRequests"]
        wire.capabilities = {}
        before = await tools.everything()
        answer = await decide(wire, approval, inputResponses={key: YES}, requestState=first["requestState"])
        assert answer["result"]["structuredContent"]["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
        assert await tools.everything() == before


async def test_a_subject_too_long_to_be_shown_whole_is_asked_about_elsewhere() -> None:
    human = Human(YES)
    async with opened() as deps, behind(deps, "legacy", human) as assistant:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated(channels=HUMAN))
        run_id = (await tools.ok("graph_run_start", graph_id="gated", input={"draft": "x" * 20_001}))["run_id"]
        assert (await assistant.ok("graph_run_wait", run_id=run_id, until="waiting"))["status"] == "waiting"
        assert human.shown == []


class Absent(Human):
    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.shown.append(params)
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_human_who_does_not_come_back_holds_a_call_no_longer_than_any_other() -> None:
    """Up to 2025-11-25: since then no call is open while a human reads."""
    async with opened() as whole:
        deps = replace(whole, limits=replace(whole.limits, wait_ms=1_500))
        async with behind(deps, "legacy", Absent(YES)) as assistant:
            tools = Tools(deps)
            run_id, approval = await waiting(tools, channels=HUMAN)
            before = await tools.everything()
            seen = await assistant.ok("graph_run_wait", run_id=run_id)
            assert (seen["status"], seen["asked"]["error_code"]) == ("waiting", "APPROVAL_NOT_ANSWERED")
            given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "a model"}
            assert await assistant.refused("graph_approval_decide", **given) == "APPROVAL_NOT_ANSWERED"
            assert await tools.everything() == before
