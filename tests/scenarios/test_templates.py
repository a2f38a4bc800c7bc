"""Templates as a user gets them: made a graph by the tool, run with a scripted model, and cut in the middle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Room, opened

Says = Callable[[str, CallModel], Any]


def smallest(schema: dict[str, Any]) -> Any:
    """A value that fits a template's schema."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: smallest(rule) for name, rule in schema["properties"].items()}
        case "array":
            return [smallest(schema["items"]) for _ in range(schema.get("minItems", 1))]
        case "boolean":
            return True
    return "x" * schema.get("minLength", 1)


def model() -> ScriptedModel:
    """Answers whatever is asked in the form asked for."""

    async def answer(call: CallModel) -> Any:
        return json.dumps(smallest(call.format)) if isinstance(call.format, dict) else "a fine text"

    return ScriptedModel(answer, parallel=8)


async def made(room: Room, template_id: str, **params: Any) -> str:
    given = {"template_id": template_id, "name": "mine", "params": params, "register": True}
    await room.data("graph_template_instantiate", **given)
    value = INPUTS.get(template_id, "A question?")
    return str((await room.data("graph_run_start", graph_id="mine", input=value))["run_id"])


INPUTS: dict[str, Any] = {"map_reduce": {"task": "Describe.", "items": ["a", "b", "c"]}}
CASES: list[tuple[str, dict[str, Any], int, set[str]]] = [
    ("ranked_council", {}, 7, {"answer", "vote"}),
    ("ranked_council", {"order_swap": True, "method": "condorcet"}, 10, {"answer", "vote", "order_check"}),
    ("debate", {"rounds": 3}, 7, {"verdict", "transcript"}),
    ("review_with_changes", {"approvals": 3}, 4, {"draft", "decision", "reviews"}),
    ("map_reduce", {}, 4, {"answer", "parts", "findings"}),
    ("extract_then_verify", {}, 2, {"checked", "verdict"}),
]


@pytest.mark.parametrize(("template_id", "params", "calls", "members"), CASES)
async def test_a_template_is_made_a_graph_and_run_through_the_tools(
    template_id: str, params: dict[str, Any], calls: int, members: set[str]
) -> None:
    asked = model()
    async with opened(asked) as room:
        row = await room.ended(await made(room, template_id, **params))
        warnings = await room.facts(row.run_id, e.Warned)
    assert row.status == "completed", row.error
    assert isinstance(row.final_state[0], dict)  # type: ignore[index]  # it has one
    assert set(row.final_state[0]) == members  # type: ignore[index]  # it has one
    assert len(asked.calls) == calls
    assert warnings == []


@pytest.mark.parametrize(("template_id", "params", "calls", "members"), CASES)
async def test_a_run_cut_after_its_first_answer_goes_on_without_asking_again(
    template_id: str, params: dict[str, Any], calls: int, members: set[str], tmp_path: Path
) -> None:
    first = model()
    answered = 0

    async def one(call: CallModel) -> Any:
        nonlocal answered
        answered += 1
        if answered > 1:
            return Reply(error={"code": "MODEL_UNREACHABLE", "message": "nobody answers"})
        return json.dumps(smallest(call.format)) if isinstance(call.format, dict) else "a fine text"

    async with opened(ScriptedModel(one), tmp_path) as room:
        run_id = await made(room, template_id, **params)
        await room.reaches(run_id, "interrupted")
    async with opened(first, tmp_path) as room:
        row = await room.ended(run_id)
        cut = await room.record(run_id)
    assert set(row.final_state[0]) == members  # type: ignore[arg-type, index]  # it has one, an object
    assert len(first.calls) == calls - 1
    async with opened(model()) as room:
        whole = await made(room, template_id, **params)
        await room.ended(whole)
        assert await room.record(whole) == cut
