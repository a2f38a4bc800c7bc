"""What an assistant does from a template to a result, with every tool of the default toolset called on the way."""

from __future__ import annotations

from typing import Any, Protocol

from agent_graph.tools.toolsets import shown

CORE = tuple(tool.name for tool in shown(["core"]))
"""The tools an assistant is shown when nothing else is set."""
PAID = {
    "name": "paid", "entry": "payment", "edges": [{"from": "payment", "to": "END"}],
    "nodes": [{"id": "payment", "type": "signal", "config": {"output_key": "payment"}}],
}  # fmt: skip


class Assistant(Protocol):
    """Whoever calls tools and is told the ``data`` of an answer, or the code of a refusal."""

    async def ok(self, tool: str, /, **arguments: Any) -> Any: ...

    async def refused(self, tool: str, /, **arguments: Any) -> str: ...


async def walk(assistant: Assistant) -> set[str]:
    """A council from template to result; a gated action approved and another rejected. Returns the tools called."""
    called: set[str] = set()

    async def ok(tool: str, /, **arguments: Any) -> Any:
        called.add(tool)
        return await assistant.ok(tool, **arguments)

    assert any(row["template_id"] == "council_deliberation" for row in (await ok("graph_template_list"))["templates"])
    await ok("graph_template_instantiate", template_id="council_deliberation", name="council", register=True)
    await ok("graph_create", template={"id": "approval_gated_action", "name": "gated"})
    assert [row["graph_id"] for row in (await ok("graph_list"))["graphs"]] == ["council", "gated"]
    assert (await ok("graph_inspect", graph_id="council"))["entry"] == "coordinator"

    run_id = (await ok("graph_run_start", graph_id="council", input="Should we?"))["run_id"]
    waited = await ok("graph_run_wait", run_id=run_id)
    assert waited["status"] == "completed", waited
    run = await ok("graph_run_get", run_id=run_id)
    assert (run["final_state"], run["usage"]["llm_calls"]) == ("The report: go ahead.", 5)
    events = (await ok("graph_run_events", run_id=run_id))["events"]
    assert sum(event["type"] == "model_answered" for event in events) == 5
    first = next(n for n, event in enumerate(events) if event["type"] == "node_finished" and "analyst" in str(event))
    begun = [event["node_id"] for event in events[:first] if event["type"] == "node_started"]
    assert {"analyst_0", "analyst_1", "analyst_2"} <= set(begun), "all had started before the first had finished"
    assert (await ok("graph_run_state", run_id=run_id, path="/final_report"))["value"] == "The report: go ahead."

    for decision, outcome in (("approve", "approve"), ("reject", "reject")):
        gated = (await ok("graph_run_start", graph_id="gated", input="Tell Dana that it will be late."))["run_id"]
        assert (await ok("graph_run_wait", run_id=gated, until="waiting"))["status"] == "waiting"
        (approval,) = (await ok("graph_approval_list", run_id=gated))["approvals"]
        assert approval["subject"] == "Dear Dana, it will be late."
        approval_id = approval["approval_id"]
        assert (await ok("graph_approval_get", approval_id=approval_id))["approval"] == approval
        await ok("graph_approval_decide", approval_id=approval_id, decision=decision, decided_by="Ada")
        assert (await ok("graph_run_wait", run_id=gated))["status"] == "completed"
        assert outcome in str((await ok("graph_run_get", run_id=gated))["final_state"])
        drawn = await ok("graph_render", run_id=gated)
        assert drawn["text"].startswith("flowchart")

    assert (await ok("graph_policy_check", graph_id="council"))["decision"] == "allow"
    assert (await ok("graph_render", graph_id="council"))["text"].startswith("flowchart")
    waiting = (await ok("graph_run_start", graph_id="gated", input="Another."))["run_id"]
    await ok("graph_run_cancel", run_id=waiting, reason="enough")
    assert (await ok("graph_run_wait", run_id=waiting))["status"] == "cancelled"
    await ok("graph_create", spec=PAID)
    paid = (await ok("graph_run_start", graph_id="paid", input={}))["run_id"]
    assert (await ok("graph_run_wait", run_id=paid, until="waiting"))["run"]["waiting_for"][0]["name"] == "payment"
    placed = await ok("graph_approval_request", run_id=paid, at="payment", prompt="May it begin?")
    assert placed["stopped"] == []  # it has begun already
    assert (await ok("graph_run_resume", run_id=paid))["resumed"] is False
    assert (await ok("graph_run_signal", run_id=paid, name="payment", payload={"amount": 3}))["delivered"] is True
    assert (await ok("graph_run_wait", run_id=paid))["run"]["final_state"] == {"amount": 3}
    executed = await ok("graph_execute", graph_id="council", input="Should we?")
    assert (executed["status"], executed["final_state"]) == ("completed", "The report: go ahead.")
    called.add("graph_run_checkpoint")  # none of these runs is long enough for one
    assert await assistant.refused("graph_run_checkpoint", run_id=run_id) == "CHECKPOINT_NOT_FOUND"
    seen = await ok("graph_source_witness_capture", locator="https://example.org/a", content="It will be late.")
    again = await ok("graph_source_witness_get", witness_id=seen["witness_id"])
    assert again["witness_id"] == seen["witness_id"]
    assert (await ok("graph_run_receipt", run_id=run_id))["integrity"]["verified"] is True
    (version,) = (await ok("graph_template_outcomes", template_id="council_deliberation"))["versions"]
    assert (version["completed"], version["per_run"]["llm_calls"]) == (2, 5.0)
    assert (await ok("graph_template_candidates", state="not_yet"))["candidates"][0]["graph_id"] == "paid"
    assert len((await ok("graph_run_list"))["runs"]) == 6
    assert (await ok("graph_status"))["provider"]["ok"] is True
    return called
