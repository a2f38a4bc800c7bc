"""The one way to call a tool: idempotency, unknown tools, bugs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from agent_graph.tools import registry
from tests.fakes.opened import Tools
from tests.tools.specs import echo, gated, keep


async def test_an_unknown_tool_is_refused_with_the_one_that_was_meant(tools: Tools) -> None:
    refusal = await tools.refused("graph_run_start_now")
    assert refusal["error_code"] == "TOOL_NOT_FOUND"
    assert "graph_run_start" in refusal["error"]


async def _args(tools: Tools, name: str) -> dict[str, Any]:
    await tools.ok("graph_create", spec=echo())
    match name:
        case "graph_create":
            return {"spec": keep()}
        case "graph_run_start":
            return {"graph_id": "echo", "input": "x"}
        case "graph_template_instantiate":
            return {"template_id": "parallel_council", "name": "mine", "register": True}
    await tools.ok("graph_create", spec=gated())
    run_id = await tools.run("gated", {"draft": "x"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    if name == "graph_run_cancel":
        return {"run_id": run_id, "reason": "enough"}
    approval = (await tools.ok("graph_approval_list"))["approvals"][0]
    return {"approval_id": approval["approval_id"], "decision": "approve", "decided_by": "Ada"}


OTHER = {
    "graph_create": {"spec": keep("another")},
    "graph_run_start": {"input": "y"},
    "graph_template_instantiate": {"name": "another"},
    "graph_run_cancel": {"reason": "another"},
    "graph_approval_decide": {"decided_by": "Bob"},
}


@pytest.mark.parametrize("name", OTHER)
async def test_the_same_key_gives_the_same_answer_and_does_nothing_again(tools: Tools, name: str) -> None:
    arguments = await _args(tools, name)
    first = await tools.envelope(name, **arguments, idempotency_key="k1")
    assert first["ok"], first
    if "run_id" in first:
        await tools.ok("graph_run_wait", run_id=first["run_id"])
    before = await tools.everything()
    assert await tools.envelope(name, **arguments, idempotency_key="k1") == first
    assert await tools.everything() == before


@pytest.mark.parametrize("name", OTHER)
async def test_the_same_key_with_other_arguments_is_a_conflict(tools: Tools, name: str) -> None:
    arguments = await _args(tools, name)
    first = await tools.envelope(name, **arguments, idempotency_key="k1")
    if "run_id" in first:
        await tools.ok("graph_run_wait", run_id=first["run_id"])
    refusal = await tools.refused(name, **{**arguments, **OTHER[name]}, idempotency_key="k1")
    assert refusal["error_code"] == "IDEMPOTENCY_CONFLICT"


@pytest.mark.parametrize("name", OTHER)
async def test_two_racing_calls_with_one_key_do_it_once(tools: Tools, name: str) -> None:
    arguments = await _args(tools, name)
    runs, _ = await tools.deps.store.runs.list(limit=200)
    envelopes = await asyncio.gather(*(tools.envelope(name, **arguments, idempotency_key="k1") for _ in range(5)))
    assert all(envelope == envelopes[0] for envelope in envelopes), envelopes
    assert envelopes[0]["ok"]
    after, _ = await tools.deps.store.runs.list(limit=200)
    assert len(after) == len(runs) + (name == "graph_run_start")


async def test_a_refused_call_does_not_use_its_key_up(tools: Tools) -> None:
    refusal = await tools.refused("graph_run_start", graph_id="echo", idempotency_key="k1")
    assert refusal["error_code"] == "GRAPH_NOT_FOUND"
    await tools.ok("graph_create", spec=echo())
    await tools.ok("graph_run_start", graph_id="echo", idempotency_key="k1")


async def test_a_bug_is_told_by_an_incident_that_the_log_explains(
    tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    await tools.deps.store.aclose()
    with caplog.at_level(logging.ERROR):
        envelope: Any = await tools.envelope("graph_list")
    assert envelope["ok"] is False
    if envelope["error_code"] == "INTERNAL":
        assert envelope["details"]["incident"] in caplog.text


async def test_a_bug_in_a_tool_leaks_nothing(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    class Nothing(registry.BaseModel):
        pass

    @registry.tool("broken", Nothing, title="t", description="d", read_only=True)
    async def broken(call: Any) -> Any:
        raise KeyError("the password is swordfish")

    try:
        envelope: Any = await tools.envelope("broken")
    finally:
        del registry.TOOLS["broken"]
    assert (envelope["error_code"], envelope["retryable"]) == ("INTERNAL", False)
    assert "swordfish" not in str(envelope)
    assert envelope["details"]["incident"] in caplog.text
    assert "swordfish" in caplog.text


async def test_every_fault_of_the_arguments_is_told_at_once(tools: Tools) -> None:
    refusal = await tools.refused("graph_approval_decide", decision="maybe", decided_by="")
    assert [fault["argument"] for fault in refusal["details"]["faults"]] == ["approval_id", "decision", "decided_by"]


async def test_arguments_that_are_too_long_to_repeat_are_not_repeated(tools: Tools) -> None:
    from agent_graph.core.jsonvalue import size

    refusal = await tools.refused("graph_list", **{"x" * 500_000: 1})
    assert refusal["error_code"] == "UNKNOWN_ARGUMENT"
    assert size(refusal) <= 30_000
