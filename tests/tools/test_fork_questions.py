"""graph_run_fork: placed gates, refused budgets and the versions of earlier forks, none of which a fork gets round."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import asked
from tests.fakes.opened import Tools
from tests.specs import gate, llm, router, rule, spec
from tests.tools.test_forking import CLOSED, HUMAN, decided, echoed, forked, guarded, settled, started

PLACED = spec(
    llm("a", "A {input}", output_key="ka"), gate("g"), llm("z", "Send {ka}", output_key="kz"),
    edges="a>g g>z z>END", name="placed", output_key="kz",
)  # fmt: skip
ELSEWHERE = spec(
    llm("a", "A {input}", output_key="ka"), gate("g"), llm("y", "Send {ka}", output_key="kz"),
    llm("z", "Send {ka}", output_key="kz"), router("r", rule("never", "eq", 1, "z"), default=["y"]),
    edges="a>g g>r z>END y>END", name="placed", output_key="kz",
)  # fmt: skip
"""Has the node before which a gate was placed, on a way that it never takes."""
BOUNDED = spec(
    llm("a", "A", output_key="ka"), llm("b", "Send", output_key="kb"), edges="a>b b>END", name="bounded",
    budgets={"max_llm_calls": 1, "on_budget": "pause"},
)  # fmt: skip


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(echoed)


async def stored(tools: Tools, document: Any) -> str:
    return str((await tools.ok("graph_create", spec=document, overwrite=True))["graph_version"])


async def forking_point(tools: Tools, run_id: str) -> int:
    """The seq of a fork's own first event."""
    events = (await tools.ok("graph_run_events", run_id=run_id))["events"]
    return max(int(event["seq"]) for event in events if event["type"] == "run_forked")


async def questions(tools: Tools, run_id: str) -> list[Any]:
    pending = (await settled(tools, run_id))["pending_approvals"]
    return [one for one in pending if one["node_path"] == "on_fork"]


# -- placed gates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("passed", [False, True], ids=["open", "decided"])
async def test_a_placed_gate_is_not_got_off_the_way_by_another_version(
    tools: Tools, model: ScriptedModel, *, passed: bool
) -> None:
    origin = await started(tools, PLACED, "q")
    await Tools(tools.deps, HUMAN).ok("graph_approval_request", run_id=origin, at="z", prompt="Really?", audience=["b"])
    if passed:
        await decided(tools, origin)
        await decided(tools, origin)
    sent, version = asked(model, "Send"), await stored(tools, ELSEWHERE)
    run = await forked(tools, origin, before="g", graph_version=version)
    (question,) = await questions(tools, run["run_id"])
    assert "Really?" in question["prompt"]
    assert question["subject"] == {"node_id": "z", "placed": "Really?", "changes": {"graph_version": version}}
    assert question["audience"] == ["b"]
    assert run["status"] == "waiting"
    await decided(tools, run["run_id"])
    await decided(tools, run["run_id"])
    assert (await settled(tools, run["run_id"]))["status"] == "completed"
    assert asked(model, "Send") == [sent[0] + 1]
    no = await forked(tools, origin, before="g", graph_version=version)
    await decided(tools, no["run_id"], "reject")
    ended = await settled(tools, no["run_id"])
    assert (ended["status"], ended["error"]["code"]) == ("failed", "APPROVAL_REJECTED")
    assert asked(model, "Send") == [sent[0] + 1]


async def test_a_placed_gate_that_was_decided_in_what_is_taken_over_is_asked_about_once(tools: Tools) -> None:
    origin = await started(tools, PLACED, "q")
    await Tools(tools.deps, HUMAN).ok("graph_approval_request", run_id=origin, at="z", prompt="Really?")
    await decided(tools, origin)
    await decided(tools, origin)
    again = {**PLACED, "nodes": [*PLACED["nodes"][:2], llm("z", "Send {ka}", output_key="kz", temperature=0.5)]}
    run = await forked(tools, origin, before="z", graph_version=await stored(tools, again))
    assert [one["subject"]["node_id"] for one in await questions(tools, run["run_id"])] == ["g", "z"]


# -- versions ----------------------------------------------------------------------------------------------------------


async def test_a_fork_of_a_fork_before_its_beginning_is_still_in_another_version(
    tools: Tools, model: ScriptedModel
) -> None:
    origin = await started(tools, guarded(quorum=2), {"topic": "t"})
    (ask,) = (await tools.ok("graph_approval_list", run_id=origin))["approvals"]
    for name in ("Ada", "Bob"):
        await tools.ok("graph_approval_decide", approval_id=ask["approval_id"], decision="approve", decided_by=name)
    await settled(tools, origin)
    changed = guarded(quorum=2)
    changed["nodes"][2] = llm("send", "Evil {text}", output_key="sent")
    version = await stored(tools, changed)
    first = await forked(tools, origin, before="send", graph_version=version)
    assert first["status"] == "waiting"
    at = await forking_point(tools, first["run_id"]) - 1
    second = await forked(tools, first["run_id"], at=at)
    third = await forked(tools, second["run_id"], at=await forking_point(tools, second["run_id"]) - 1)
    for run in (second, third):
        (question,) = await questions(tools, run["run_id"])
        assert question["subject"]["changes"] == {"graph_version": version}
        assert question["quorum"] == 2
    assert asked(model, "Evil") == [0]
    own = (await tools.ok("graph_run_get", run_id=origin))["graph_version"]
    back = await forked(tools, second["run_id"], at=at, graph_version=own)
    assert back["status"] == "completed", "it goes on in the version in which it was decided"
    assert (asked(model, "Evil"), asked(model, "Send")) == ([0], [2])


# -- budgets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["", "reject"], ids=["open", "rejected"])
async def test_a_budget_that_nobody_raised_is_asked_about_wherever_the_run_is_forked(
    tools: Tools, model: ScriptedModel, decision: str
) -> None:
    origin = await started(tools, BOUNDED, {})
    if decision:
        await decided(tools, origin, decision)
    for seq in range(8):
        run = await forked(tools, origin, at=seq)
        (question,) = await questions(tools, run["run_id"])
        assert run["status"] == "waiting"
        assert question["subject"]["node_id"] == "on_budget"
        assert question["subject"]["subject"]["budget"] == "max_llm_calls"
        assert asked(model, "Send") == [0]
    again = await forked(tools, run["run_id"], at=await forking_point(tools, run["run_id"]) - 2)
    assert len(await questions(tools, again["run_id"])) == 1, "a fork of the fork asks it too"
    beside = await forked(tools, run["run_id"], at=await forking_point(tools, run["run_id"]))
    assert len(await questions(tools, beside["run_id"])) == 1, "and no more than once"
    await decided(tools, run["run_id"], "reject")
    assert (await settled(tools, run["run_id"]))["status"] == "failed"
    assert asked(model, "Send") == [0]
    after = await forked(tools, run["run_id"], at=3)
    assert len(await questions(tools, after["run_id"])) == 1, "nor does a rejected question go away"
    await decided(tools, after["run_id"])
    assert asked(model, "Send") == [1]


async def test_a_budget_that_was_raised_is_not_asked_about(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, BOUNDED, {})
    await decided(tools, origin)
    assert (await settled(tools, origin))["status"] == "completed"
    run = await forked(tools, origin, before="b")
    assert (run["status"], asked(model, "Send")) == ("completed", [2])


async def test_a_budget_that_ended_a_run_without_a_question_is_the_forks_own(tools: Tools) -> None:
    free = {name: value for name, value in BOUNDED.items() if name != "budgets"}
    await stored(tools, free)
    made = await tools.ok("graph_run_start", graph_id="bounded", input={}, budgets={"max_llm_calls": 1})
    assert (await settled(tools, made["run_id"]))["error"]["code"] == "BUDGET_EXHAUSTED"
    assert (await forked(tools, made["run_id"], failed=True))["status"] == "completed", "nobody was ever asked"


async def test_what_a_closed_gate_is_asked_and_what_a_budget_is_asked_stand_beside_each_other(tools: Tools) -> None:
    document = guarded(channels=CLOSED)
    document["budgets"] = {"max_llm_calls": 1, "on_budget": "pause"}
    origin = await started(tools, document, {"topic": "t"})
    await decided(tools, origin)
    run = await forked(tools, origin, before="send")
    asks = await questions(tools, run["run_id"])
    assert [(one["subject"]["node_id"], one["channels"]) for one in asks] == [("ok", CLOSED), ("on_budget", [])]
