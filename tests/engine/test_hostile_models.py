"""A model client that answers what no log can hold fails its call, and nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.effects import ModelAnswer
from agent_graph.errors import ModelServerError
from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import opened
from tests.specs import llm, spec

GRAPH = spec(llm("draft"), edges="draft>END")
HALF = "half \ud800"


def answered(**fields: Any) -> ModelAnswer:
    return ModelAnswer(**({"text": "fine", "model": "m", "performer": "server:test/m"} | fields))


@pytest.mark.parametrize("name", ["text", "thinking", "model", "done_reason", "performer", "model_digest"])
async def test_an_answer_that_is_no_json_is_a_bad_reply(tmp_path: Path, name: str) -> None:
    async def answer(_call: Any) -> ModelAnswer:
        return answered(**{name: HALF})

    async with opened(ScriptedModel(answer), tmp_path) as room:
        row = await room.run(GRAPH)
        assert (row.status, row.error and row.error["code"]) == ("failed", "MODEL_BAD_REPLY")
        assert await room.store.runs.verify_chain(row.run_id) is None


@pytest.mark.parametrize("details", [{}, {"body": HALF}])
async def test_an_error_that_is_no_json_keeps_its_code(tmp_path: Path, details: dict[str, str]) -> None:
    async def answer(_call: Any) -> str:
        raise ModelServerError(HALF, **details)

    async with opened(ScriptedModel(answer), tmp_path) as room:
        row = await room.run(GRAPH)
        assert (row.status, row.error and row.error["code"]) == ("failed", "MODEL_SERVER_ERROR")
        assert row.error
        assert str(row.error["message"]).startswith("half")


async def test_a_bug_whose_words_are_no_json_is_told(tmp_path: Path) -> None:
    async def answer(_call: Any) -> str:
        raise LookupError(HALF)

    async with opened(ScriptedModel(answer), tmp_path) as room:
        row = await room.run(GRAPH)
        assert (row.status, row.error and row.error["code"]) == ("failed", "INTERNAL")
