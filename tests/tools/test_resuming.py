"""graph_run_resume: an interrupted run goes on at once, a live one is left alone, an ended one is refused."""

from __future__ import annotations

import asyncio

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelUnreachable
from agent_graph.llm.scripted import ScriptedModel
from tests.fakes.held import Held
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, gated


class Host:
    """A model host that is away until it is not."""

    def __init__(self) -> None:
        self.there = False
        self.asked = 0
        self.model = ScriptedModel(self._answer)

    async def _answer(self, call: CallModel) -> str:
        self.asked += 1
        if not self.there:
            raise ModelUnreachable("nobody answers")
        return "back"


async def test_an_interrupted_run_goes_on_at_once() -> None:
    host = Host()
    async with opened(host.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo")
        assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "interrupted"
        host.there = True
        answer = await tools.ok("graph_run_resume", run_id=run_id)
        assert answer == {"run_id": run_id, "resumed": True, "status": "running"}
        assert (await tools.ok("graph_run_wait", run_id=run_id))["run"]["final_state"] == "back"


async def test_on_a_live_run_it_changes_nothing_and_says_so() -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        await tools.ok("graph_create", spec=gated())
        running = await tools.run("echo")
        await held.asked.wait()
        waiting = await tools.run("gated", {"draft": "x"})
        await tools.ok("graph_run_wait", run_id=waiting, until="waiting")
        for run_id, status in ((running, "running"), (waiting, "waiting")):
            before = await tools.everything()
            answer = await tools.ok("graph_run_resume", run_id=run_id)
            assert answer == {"run_id": run_id, "resumed": False, "status": status}
            assert await tools.everything() == before
        held.go.set()


async def test_reproduction_16_once_consumed_is_consumed(tools: Tools) -> None:
    await tools.ok("graph_create", spec=gated())
    run_id = await tools.run("gated", {"draft": "x"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    (gate,) = (await tools.ok("graph_approval_list"))["approvals"]
    await tools.ok("graph_approval_decide", approval_id=gate["approval_id"], decision="approve", decided_by="Ada")
    assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "completed"
    for _ in range(2):
        refusal = await tools.refused("graph_run_resume", run_id=run_id)
        assert (refusal["error_code"], refusal["details"]["status"]) == ("RUN_TERMINAL", "completed")
    refusal = await tools.refused(
        "graph_approval_decide", approval_id=gate["approval_id"], decision="approve", decided_by="Ada"
    )
    assert refusal["error_code"] == "APPROVAL_ALREADY_DECIDED"
    events = (await tools.ok("graph_run_events", run_id=run_id))["events"]
    assert [event["type"] for event in events].count("node_finished") == 1


async def test_the_same_key_resumes_once_and_answers_the_same() -> None:
    host = Host()
    async with opened(host.model) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        run_id = await tools.run("echo")
        await tools.ok("graph_run_wait", run_id=run_id)
        host.there = True
        answers = await asyncio.gather(
            *(tools.ok("graph_run_resume", run_id=run_id, idempotency_key="k") for _ in range(3))
        )
        assert answers == [{"run_id": run_id, "resumed": True, "status": "running"}] * 3
        await tools.ok("graph_run_wait", run_id=run_id)
        assert await tools.ok("graph_run_resume", run_id=run_id, idempotency_key="k") == answers[0]
        refusal = await tools.refused("graph_run_resume", run_id="run-none", idempotency_key="k")
        assert refusal["error_code"] == "IDEMPOTENCY_CONFLICT"
        events = (await tools.ok("graph_run_events", run_id=run_id))["events"]
        assert [event["type"] for event in events].count("run_resumed") == 1


async def test_an_unknown_run_is_not_found(tools: Tools) -> None:
    assert (await tools.refused("graph_run_resume", run_id="run-none"))["error_code"] == "RUN_NOT_FOUND"
    assert (await tools.refused("graph_run_resume"))["error_code"] == "INVALID_ARGUMENT"
