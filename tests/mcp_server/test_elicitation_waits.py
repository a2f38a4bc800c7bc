"""A wait that asks: at once, once, of who may decide, and what follows when somebody else is quicker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import types

from tests.fakes.held import Held
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import ERAS
from tests.mcp_server.test_elicitation import HUMAN, YES, Human, behind, now, waiting
from tests.mcp_server.wire import wired
from tests.tools.specs import gated

LONG_MS = 40_000
"""Longer than a test lives: what waits so long was not meant to."""
pytestmark = pytest.mark.parametrize("era", ERAS)


class Reader(Human):
    """Something happens while they read."""

    def __init__(self, answer: dict[str, Any], meanwhile: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(answer)
        self.meanwhile: Callable[[], Awaitable[Any]] | None = meanwhile

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return await super().__call__(context, params)


def beside(name: str = "beside") -> dict[str, Any]:
    """A gate, and a model beside it."""
    return {
        "spec_version": "2", "name": name, "entry": "fork",
        "nodes": [
            {"id": "fork", "type": "passthrough"},
            {"id": "say", "type": "llm", "config": {"prompt": "{input}", "output_key": "said"}},
            {"id": "gate", "type": "human_approval", "config": {"prompt": "May it?", "output_key": "decision"}},
        ],
        "edges": [{"from": "fork", "to": "say"}, {"from": "fork", "to": "gate"}], "output_key": "decision",
    }  # fmt: skip


# -- when ----------------------------------------------------------------------------------------------------------


async def test_a_wait_for_the_end_asks_at_once_about_what_is_pending(era: str) -> None:
    human = Human(YES)
    async with opened() as deps, behind(deps, era, human) as assistant:
        run_id, approval = await waiting(Tools(deps))
        seen = await assistant.ok("graph_run_wait", run_id=run_id, timeout_ms=LONG_MS)
        assert (seen["status"], len(human.shown)) == ("completed", 1)
        (vote,) = (await now(Tools(deps), approval))["votes"]
        assert vote["via"] == "elicitation"


async def test_it_asks_as_soon_as_a_gate_opens_although_the_run_goes_on_beside_it(era: str) -> None:
    held = Held()

    async def let_go() -> None:  # the model answers only after the human was asked
        held.go.set()

    human = Reader(YES, let_go)
    async with opened(held.model) as deps, behind(deps, era, human) as assistant:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=beside())
        run_id = await tools.run("beside", "x")
        assert (await assistant.ok("graph_run_wait", run_id=run_id, timeout_ms=LONG_MS))["status"] == "completed"
        assert len(human.shown) == 1


# -- whom ----------------------------------------------------------------------------------------------------------


async def test_who_started_the_run_is_not_asked_where_they_may_not_decide_and_is_told_who_can(era: str) -> None:
    human = Human(YES)
    async with opened() as deps, behind(deps, era, human) as assistant:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated(self_approval=False, channels=HUMAN))
        run_id = (await assistant.ok("graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        seen = await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
        assert (seen["status"], human.shown) == ("waiting", [])
        (waits,) = seen["run"]["waiting_for"]
        assert "another person" in waits["how_to_decide"]
        before = await tools.everything()
        given = {"approval_id": waits["approval_id"], "decision": "approve", "decided_by": "Ada"}
        envelope = await assistant.envelope("graph_approval_decide", **given)
        assert "another person" in envelope["details"]["how_to_decide"]
        assert (human.shown, await tools.everything()) == ([], before)


async def test_another_program_s_human_is_asked_there(era: str) -> None:
    human = Human(YES)
    async with opened() as deps, behind(deps, era, human) as assistant:
        run_id, _ = await waiting(Tools(deps), self_approval=False)  # started by a program of another name
        assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
        assert len(human.shown) == 1


async def test_a_quorum_is_asked_once_in_a_call_and_told_who_has_approved(era: str) -> None:
    human = Human(YES)
    async with opened() as deps, behind(deps, era, human) as assistant:
        tools = Tools(deps)
        run_id, approval = await waiting(tools, quorum=2)
        seen = await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
        assert (seen["status"], len(human.shown)) == ("waiting", 1)
        assert "so far: nobody" in human.shown[0].message
        seen = await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
        assert (seen["status"], len((await now(tools, approval))["votes"])) == ("waiting", 1), "Ada again counts once"
        assert "so far: Ada" in human.shown[1].message
        human.answer = {"action": "accept", "content": {"decision": "approve", "decided_by": "Bob"}}
        assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
        assert [vote["decided_by"] for vote in (await now(tools, approval))["votes"]] == ["Ada", "Bob"]


# -- and what happens meanwhile ------------------------------------------------------------------------------------


async def test_what_was_edited_while_the_human_read_is_put_before_them_anew(era: str) -> None:
    async with opened() as deps:
        tools = Tools(deps)

        async def edit() -> None:
            patch = [{"op": "replace", "path": "", "value": "Dear Eve"}]
            given = {"approval_id": approval["approval_id"], "decision": "edit", "decided_by": "Bob", "patch": patch}
            await tools.ok("graph_approval_decide", **given)

        human = Reader(YES, edit)
        async with behind(deps, era, human) as assistant:
            run_id, approval = await waiting(tools, quorum=2, allowed_decisions=["approve", "edit", "reject"])
            assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
            first, second = (shown.message for shown in human.shown)
            assert "Dear Bob" in first
            assert "Dear Eve" in second
            assert "so far: Bob" in second
            votes = (await now(tools, approval))["votes"]
            assert [(vote["decided_by"], vote["via"]) for vote in votes] == [
                ("Bob", "assistant"),
                ("Ada", "elicitation"),
            ]
            assert votes[0]["subject_digest"] == votes[1]["subject_digest"] != approval["subject_digest"]


async def test_a_wait_goes_on_when_somebody_else_was_quicker(era: str) -> None:
    async with opened() as deps:
        tools = Tools(deps)

        async def decide() -> None:
            given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "Bob"}
            await tools.ok("graph_approval_decide", **given)

        async with behind(deps, era, Reader(YES, decide)) as assistant:
            run_id, approval = await waiting(tools)
            assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
            (vote,) = (await now(tools, approval))["votes"]
            assert vote["decided_by"] == "Bob"


async def test_two_gates_are_asked_about_one_after_the_other(era: str) -> None:
    human = Human(YES)
    async with opened() as deps, behind(deps, era, human) as assistant:
        tools = Tools(deps)
        spec = gated("two")
        spec["nodes"].append({**spec["nodes"][0], "id": "again"})
        spec["edges"] = [{"from": "gate", "to": "again"}]
        await tools.ok("graph_create", spec=spec)
        run_id = await tools.run("two", {"draft": "x"})
        assert (await assistant.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
        assert len(human.shown) == 2


async def test_an_answer_nobody_asked_for_is_none(era: str) -> None:
    """Of a client that did not say it can ask: it is sent no question, and what it sends as an answer is no vote."""
    async with opened() as deps, wired(deps, era) as wire:
        tools = Tools(deps)
        _, approval = await waiting(tools, channels=HUMAN)
        before = await tools.everything()
        given = {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "a model"}
        key = f"{approval['approval_id']}#0"
        more = {"inputResponses": {key: YES}} if era == "auto" else {}
        answer = await wire.ask("tools/call", name="graph_approval_decide", arguments=given, **more)
        assert answer["result"]["structuredContent"]["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
        await wire.reply(1, YES)
        await wire.ask("tools/call", name="graph_run_wait", arguments={"run_id": approval["run_id"], "timeout_ms": 0})
        assert not [message for message in wire.seen if message.get("method") == "elicitation/create"]
        assert await tools.everything() == before
