"""Forms of answers with a real model, on Ollama's wire: what a node takes is what its schema says."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent_graph.core import events as e
from agent_graph.llm.embedded import EmbeddedClient
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.engine.room import Room, opened
from tests.live.ollama_wire import serving
from tests.live.weights import MODEL, models_dir, needs_the_embedded_model
from tests.specs import Json, llm, spec

pytestmark = needs_the_embedded_model

PERSON = {
    "type": "object", "required": ["name", "age"], "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "maxLength": 40}, "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
}  # fmt: skip


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    embedded = EmbeddedClient(models_dir())
    async with serving(embedded) as server:
        client = OllamaClient(parse_host(server.url))
        async with opened(client) as engine:
            yield engine
        await client.aclose()
    await embedded.aclose()


def asking(prompt: str, **config: object) -> Json:
    return spec(llm("a", prompt, model=MODEL, **config), edges="a>END")


async def test_a_node_gets_what_its_schema_says(room: Room) -> None:
    row = await room.run(asking("Invent a person.", output_schema=PERSON, max_tokens=80, seed=1))
    assert row.status == "completed", row.error
    (made,) = row.final_state
    assert isinstance(made, dict)
    assert set(made) == {"name", "age"}
    assert isinstance(made["age"], int)


async def test_an_answer_cut_in_the_middle_of_its_form_is_an_error_that_keeps_it(room: Room) -> None:
    sure = {"seed": 1, "temperature": 0}  # else it may begin with white space, and no more
    graph = asking("Invent a person.", output_schema=PERSON, max_tokens=6, retry={"max_attempts": 1}, **sure)
    row = await room.run(graph)
    assert row.error is not None
    assert (row.error["code"], row.error["details"]["reason"]) == ("MODEL_BAD_REPLY", "length")  # type: ignore[index,call-overload]  # JSON
    assert str(row.error["details"]["text"]).startswith("{")  # type: ignore[index,call-overload]  # JSON


async def test_a_seeded_answer_is_taken_again_without_a_call(room: Room) -> None:
    graph = asking("Name one fruit.", seed=3, max_tokens=8, cache=True)
    paid, again = await room.run(graph), await room.run(graph)
    assert again.final_state == paid.final_state
    assert (again.usage["llm_calls"], again.usage["cache_hits"]) == (0, 1)
    assert len(await room.facts(again.run_id, e.CacheHit)) == 1
