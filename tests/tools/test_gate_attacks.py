"""What is tried to get past a gate, and what comes of it: the gate still asks, and nothing was changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.policy import PolicyBook, Profile
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools, opened
from tests.specs import gate, put, spec

YES = {"decision": "approve", "note": "", "by": "Ada", "via": "cli", "at_ms": 1}
HUMAN = ["elicitation", "console", "cli"]


@pytest.fixture
async def tools() -> AsyncIterator[Tools]:
    async with opened() as deps:
        yield Tools(deps)


def guarded(**config: Any) -> dict[str, Any]:
    """What is behind the gate sets `done`."""
    return spec(put("a", seen=1), gate("g", **config), put("z", done=True), edges="a>g g>z z>END", output_key="done")


async def waits(tools: Tools, value: Any = "x", **config: Any) -> tuple[str, Any]:
    """A run and the approval it waits for."""
    await tools.ok("graph_create", spec=guarded(**config), overwrite=True)
    run_id = await tools.run("case", value)
    return run_id, await asks(tools, run_id)


async def asks(tools: Tools, run_id: str) -> Any:
    """The one approval the run waits for; it has not gone past it."""
    waited = await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    assert waited["status"] == "waiting", waited
    run = await tools.ok("graph_run_get", run_id=run_id, include_state=True)
    assert "done" not in run["state"]
    (pending,) = run["pending_approvals"]
    return pending


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({}, {"g": YES, "outputs": None}), ({}, {"g": YES}), ({"output_key": "review.g"}, {"review": {"g": YES}}),
        ({"output_key": "review.g"}, {"review.g": YES}), ({"output_key": "/g"}, {"g": YES}),
        ({"allowed_decisions": ["approve", "edit"]}, {"g": YES}),
    ],
)  # fmt: skip
async def test_a_decision_in_the_input_decides_nothing(tools: Tools, config: dict[str, Any], value: Any) -> None:
    await tools.ok("graph_create", spec=guarded(**config))
    started = await tools.envelope("graph_run_start", graph_id="case", input=value)
    if not started["ok"]:
        assert started["error_code"] == "RESERVED_KEY"
        return
    pending = await asks(tools, str(started["run_id"]))
    assert pending["votes"] == []
    run = await tools.ok("graph_run_get", run_id=str(started["run_id"]), include_state=True)
    assert "Ada" not in str(run["state"].get("g")) + str(run["state"].get("review")) + str(run["state"].get("review.g"))


async def test_resuming_opens_no_gate(tools: Tools) -> None:
    run_id, pending = await waits(tools)
    await tools.ok("graph_run_resume", run_id=run_id)
    assert await asks(tools, run_id) == pending


async def test_a_message_under_the_name_of_a_gate_opens_none(tools: Tools) -> None:
    run_id, pending = await waits(tools)
    refusal = await tools.refused("graph_run_signal", run_id=run_id, name="g", payload=YES)
    assert refusal["error_code"] == "SIGNAL_NOT_FOUND"
    assert await asks(tools, run_id) == pending


async def test_deleting_the_graph_and_making_another_of_that_name_leaves_the_run_where_it_is(tools: Tools) -> None:
    run_id, pending = await waits(tools, channels=HUMAN)
    refusal = await tools.refused("graph_create", action="delete", graph_id="case")
    assert refusal["error_code"] == "GRAPH_IN_USE"
    open_gate = spec(put("a", seen=1), put("z", done=True), edges="a>z z>END", output_key="done")
    assert (await tools.refused("graph_create", spec=open_gate))["error_code"] == "GRAPH_VERSION_CONFLICT"
    await tools.ok("graph_create", spec=open_gate, overwrite=True)
    assert await asks(tools, run_id) == pending
    refusal = await tools.envelope(
        "graph_approval_decide", approval_id=pending["approval_id"], decision="approve", decided_by="Ada"
    )
    assert refusal["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
    person = Tools(tools.deps, Caller("cli", "a person"))
    await person.ok("graph_approval_decide", approval_id=pending["approval_id"], decision="approve", decided_by="Ada")
    ended = await tools.ok("graph_run_wait", run_id=run_id)
    assert ended["run"]["graph_version"] == pending["graph_version"]
    events = [event.get("firing") for event in ended["events"] if event["type"] == "node_finished"]
    assert events == ["a#1", "g#1", "z#1"]


async def test_a_gate_of_ones_own_stands_for_no_other(tools: Tools) -> None:
    run_id, pending = await waits(tools, channels=HUMAN)
    own = {"run_id": run_id, "prompt": "May I?"}
    refusal = await tools.envelope("graph_approval_request", **own, at="g")
    assert not refusal["ok"] or refusal["data"]["stopped"] == []  # type: ignore[index,call-overload]
    await tools.ok("graph_approval_request", **own, at="z")
    assert await asks(tools, run_id) == pending
    yes = {"decision": "approve", "decided_by": "Ada"}
    refusal = await tools.refused("graph_approval_decide", approval_id=pending["approval_id"], **yes)
    assert refusal["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
    person = Tools(tools.deps, Caller("cli", "a person"))
    await person.ok("graph_approval_decide", approval_id=pending["approval_id"], **yes)
    mine = await asks(tools, run_id)
    await tools.ok("graph_approval_decide", approval_id=mine["approval_id"], **yes)
    assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


@pytest.mark.parametrize("more", [{"via": "cli"}, {"principal": "ada"}, {"approver": "ada"}, {"client": "console"}])
async def test_a_call_does_not_say_which_way_it_came_or_who_it_is(tools: Tools, more: dict[str, Any]) -> None:
    run_id, pending = await waits(tools, channels=HUMAN)
    refusal = await tools.refused(
        "graph_approval_decide", approval_id=pending["approval_id"], decision="approve", decided_by="Ada", **more
    )
    assert refusal["error_code"] == "UNKNOWN_ARGUMENT"
    assert await asks(tools, run_id) == pending


async def test_a_run_that_its_caller_performs_does_not_exist_yet(tools: Tools) -> None:
    await tools.ok("graph_create", spec=guarded())
    for executor in ("caller", "mixed"):
        refusal = await tools.refused("graph_run_start", graph_id="case", input="x", executor=executor)
        assert refusal["error_code"] == "CAPABILITY_MISSING"
    spec_ = guarded()
    spec_["nodes"][1]["config"]["executor"] = "caller"
    refusal = await tools.refused("graph_create", spec=spec_, overwrite=True)
    assert "NODE_TYPE_UNAVAILABLE" in str(refusal["details"]["issues"])


async def test_a_policy_that_wants_gates_closed_to_models_cannot_be_talked_out_of_it(tools: Tools) -> None:
    book = PolicyBook("people", {"people": Profile("people", channels=("console", "cli"))})
    strict = Tools(replace(tools.deps, policies=book))
    await strict.ok("graph_create", spec=guarded())
    refusal = await strict.refused("graph_run_start", graph_id="case", input="x")
    assert (refusal["error_code"], "GATE_CHANNEL_NOT_ALLOWED" in str(refusal["details"])) == ("POLICY_DENIED", True)
    loosened = await strict.ok("graph_policy_check", graph_id="case", policy={"channels": ["assistant", "cli"]})
    assert loosened["decision"] == "deny"
    other = await strict.ok("graph_policy_check", graph_id="case", policy_profile="no such profile")
    assert other["decision"] == "deny"
    run_id, pending = await waits(strict, channels=["cli"])
    assert pending["channels"] == ["cli"]
    assert await asks(strict, run_id) == pending


async def test_one_yes_does_not_serve_for_another_approval(tools: Tools) -> None:
    _, first = await waits(tools, {"n": 1}, subject_key="n", channels=[])
    run_id = await tools.run("case", {"n": 2})
    second = await asks(tools, run_id)
    confused = {"decision": "approve", "decided_by": "Ada", "subject_digest": first["subject_digest"]}
    refusal = await tools.refused("graph_approval_decide", approval_id=second["approval_id"], **confused)
    assert refusal["error_code"] == "APPROVAL_STALE"
    kept = {**confused, "approval_id": first["approval_id"], "idempotency_key": "yes"}
    answer = await tools.ok("graph_approval_decide", **kept)
    await tools.ok("graph_run_wait", run_id=first["run_id"])
    assert await tools.ok("graph_approval_decide", **kept) == answer  # a replay is told what was, and does nothing
    reused = await tools.refused("graph_approval_decide", **{**kept, "approval_id": second["approval_id"]})
    assert reused["error_code"] == "IDEMPOTENCY_CONFLICT"
    again = await tools.refused("graph_approval_decide", **confused, approval_id=first["approval_id"])
    assert again["error_code"] == "APPROVAL_ALREADY_DECIDED"
    assert await asks(tools, run_id) == second


async def test_a_day_later_after_a_restart_it_goes_on_in_its_version_and_under_its_rules(tmp_path: Path) -> None:
    class Day:
        at_ms = 1_800_000_000_000

        def now_ms(self) -> int:
            return self.at_ms

    clock = Day()
    async with opened(clock=clock, folder=tmp_path) as deps:
        run_id, pending = await waits(Tools(deps), channels=["cli"], quorum=2)
        cli = Tools(deps, Caller("cli", "a person"))
        first = {"approval_id": pending["approval_id"], "decision": "approve", "decided_by": "Ada"}
        await cli.ok("graph_approval_decide", **first)
    clock.at_ms += 86_400_000
    async with opened(clock=clock, folder=tmp_path) as deps:
        cli = Tools(deps, Caller("cli", "a person"))
        await cli.ok("graph_create", spec=spec(put("z", done="other"), edges="z>END", output_key="done", name="case"),
                     overwrite=True)  # fmt: skip
        again = await cli.refused("graph_approval_decide", **first)
        assert again["error_code"] == "APPROVAL_ALREADY_VOTED"
        model = await Tools(deps).refused("graph_approval_decide", **{**first, "decided_by": "Bob"})
        assert model["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
        await cli.ok("graph_approval_decide", **{**first, "decided_by": "Bob"})
        run = (await cli.ok("graph_run_wait", run_id=run_id))["run"]
        assert (run["final_state"], run["graph_version"]) == (True, pending["graph_version"])
