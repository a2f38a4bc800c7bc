"""graph_approval_request: a gate of one's own before a node of a live run, durable like everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.held import Held
from tests.fakes.opened import Tools, opened
from tests.tools.specs import echo, gated, keep


def two() -> dict[str, Any]:
    spec = echo("two")
    spec["nodes"].append({"id": "after", "type": "llm", "config": {"prompt": "{said}", "output_key": "more"}})
    return {**spec, "edges": [{"from": "say", "to": "after"}], "output_key": "more"}


async def _placed(tools: Tools, held: Held, **more: Any) -> tuple[str, Any]:
    await tools.ok("graph_create", spec=two())
    run_id = await tools.run("two", "x")
    await held.asked.wait()
    answer = await tools.ok("graph_approval_request", run_id=run_id, at="after", prompt="May it?", **more)
    held.go.set()
    return run_id, answer


@pytest.mark.parametrize(("decision", "status"), [("approve", "completed"), ("reject", "failed")])
async def test_the_run_waits_there_and_goes_on_as_the_person_says(decision: str, status: str) -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        run_id, answer = await _placed(tools, held, audience=["legal"])
        assert answer == {
            "run_id": run_id, "at": "after", "stopped": [], "run": {"run_id": run_id, "status": "running"},
        }  # fmt: skip
        assert (await tools.ok("graph_run_wait", run_id=run_id, until="waiting"))["status"] == "waiting"
        (asks,) = (await tools.ok("graph_approval_list", audience="legal"))["approvals"]
        assert (asks["prompt"], asks["node_id"], asks["subject"]["node_type"]) == ("May it?", "after", "llm")
        await tools.ok("graph_approval_decide", approval_id=asks["approval_id"], decision=decision, decided_by="Ada")
        ended = await tools.ok("graph_run_wait", run_id=run_id)
        assert ended["status"] == status
        kinds = [event["type"] for event in (await tools.ok("graph_run_events", run_id=run_id))["events"]]
        assert kinds.count("gate_placed") == 1
        assert kinds.count("model_answered") == (2 if status == "completed" else 1)


async def test_it_outlives_the_process(tmp_path: Path) -> None:
    held = Held()
    async with opened(held.model, folder=tmp_path) as deps:
        run_id, _ = await _placed(Tools(deps), held)
        await Tools(deps).ok("graph_run_wait", run_id=run_id, until="waiting")
    async with opened(held.model, folder=tmp_path) as deps:
        tools = Tools(deps)
        (asks,) = (await tools.ok("graph_approval_list"))["approvals"]
        await tools.ok("graph_approval_decide", approval_id=asks["approval_id"], decision="approve", decided_by="Ada")
        assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "completed"


async def test_it_expires_on_time() -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        run_id, _ = await _placed(tools, held, expiry_ms=1)
        ended = await tools.ok("graph_run_wait", run_id=run_id)
        assert (ended["status"], ended["run"]["error"]["code"]) == ("failed", "APPROVAL_EXPIRED")


async def test_the_same_key_places_one_gate() -> None:
    held = Held()
    async with opened(held.model) as deps:
        tools = Tools(deps)
        run_id, first = await _placed(tools, held, idempotency_key="k")
        call = {"run_id": run_id, "at": "after", "prompt": "May it?", "idempotency_key": "k"}
        assert await tools.ok("graph_approval_request", **call) == first
        refusal = await tools.envelope("graph_approval_request", **{**call, "at": "say"})
        assert refusal["error_code"] == "IDEMPOTENCY_CONFLICT"
        kinds = [event["type"] for event in (await tools.ok("graph_run_events", run_id=run_id))["events"]]  # type: ignore[index,call-overload]
        assert kinds.count("gate_placed") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"run_id": "run-none"}, "RUN_NOT_FOUND"),
        ({"at": "nowhere"}, "INVALID_ARGUMENT"),
        ({"prompt": ""}, "INVALID_ARGUMENT"),
        ({"allowed_decisions": []}, "INVALID_ARGUMENT"),
        ({"allowed_decisions": ["edit"]}, "INVALID_ARGUMENT"),
        ({"expiry_ms": 0}, "INVALID_ARGUMENT"),
        ({"audience": "legal"}, "INVALID_ARGUMENT"),
    ],
)
async def test_it_refuses_and_changes_nothing(tools: Tools, arguments: dict[str, Any], code: str) -> None:
    await tools.ok("graph_create", spec=gated())
    run_id = await tools.run("gated", {"draft": "x"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    call = {"run_id": run_id, "at": "gate", "prompt": "May it?", **arguments}
    assert (await tools.refused("graph_approval_request", **call))["error_code"] == code


async def test_a_run_that_has_ended_is_refused(tools: Tools) -> None:
    await tools.ok("graph_create", spec=keep())
    run = await tools.ended("keep")
    refusal = await tools.refused("graph_approval_request", run_id=run["run_id"], at="pass", prompt="x")
    assert refusal["error_code"] == "RUN_TERMINAL"
