"""Our Ollama client, and the official one, with a real model on the other end of the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import ollama
import pytest

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelNotFound, ModelServerError
from agent_graph.llm.choose import choose_model
from agent_graph.llm.embedded import EmbeddedClient
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.fakes.ollama_server import OllamaServer
from tests.live.ollama_wire import serving
from tests.live.test_embedded import SCHEMA
from tests.live.weights import MODEL, models_dir, needs_the_embedded_model

pytestmark = needs_the_embedded_model


def ask(prompt: str, **fields: object) -> CallModel:
    return CallModel(({"role": "user", "content": prompt},), **fields)  # type: ignore[arg-type]


@pytest.fixture
async def embedded() -> AsyncIterator[EmbeddedClient]:
    client = EmbeddedClient(models_dir())
    yield client
    await client.aclose()


@pytest.fixture
async def server(embedded: EmbeddedClient) -> AsyncIterator[OllamaServer]:
    async with serving(embedded) as running:
        yield running


@pytest.fixture
async def client(server: OllamaServer) -> AsyncIterator[OllamaClient]:
    made = OllamaClient(parse_host(server.url))
    yield made
    await made.aclose()


async def test_text_streams_and_is_counted(client: OllamaClient) -> None:
    pieces: list[str] = []
    got = await client.chat(
        ask("Name one fruit.", options={"num_predict": 12}), lambda kind, piece: pieces.append(piece)
    )
    assert got.text == "".join(pieces)
    assert len(pieces) > 1
    assert got.performer == f"server:ollama/{MODEL}"
    assert got.prompt_tokens
    assert got.completion_tokens in range(1, 13)


async def test_the_only_model_is_chosen_and_a_missing_one_named(client: OllamaClient) -> None:
    assert (await choose_model(client)).model == MODEL
    with pytest.raises(ModelNotFound, match=MODEL):
        await client.chat(ask("Hi", model="absent"), lambda *_: None)


async def test_a_schema_is_followed_and_a_length_said(client: OllamaClient) -> None:
    got = await client.chat(ask("Invent a name.", format=SCHEMA), lambda *_: None)
    assert set(json.loads(got.text)) == {"name"}
    cut = await client.chat(ask("Count to fifty.", options={"num_predict": 3}), lambda *_: None)
    assert (cut.done_reason, cut.completion_tokens) == ("length", 3)


async def test_cancelling_a_call_ends_the_generation_behind_it(server: OllamaServer, client: OllamaClient) -> None:
    started = asyncio.Event()
    long = ask("Tell a very long story.", options={"num_predict": 4000, "seed": 3})
    task = asyncio.create_task(client.chat(long, lambda *_: started.set()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await (await server.arrived("story")).closed.wait()
    assert (await client.chat(ask("Hi", options={"num_predict": 2}), lambda *_: None)).completion_tokens


async def test_a_failure_of_the_model_is_an_error_and_no_answer(client: OllamaClient) -> None:
    with pytest.raises(ModelServerError, match="exceeds the available context"):
        await client.chat(ask("word " * 6000), lambda *_: None)


async def test_the_official_client_agrees(server: OllamaServer) -> None:
    client = ollama.AsyncClient(host=server.url)
    messages = [{"role": "user", "content": "Name one fruit."}]
    whole = await client.chat(MODEL, messages, options={"num_predict": 6})
    assert whole.message.content
    assert whole.eval_count in range(1, 7)
    parts = [part async for part in await client.chat(MODEL, messages, stream=True, options={"num_predict": 6})]
    assert parts[-1].done
    with pytest.raises(ollama.ResponseError) as refused:
        await client.chat(MODEL, [{"role": "user", "content": "word " * 6000}])
    assert refused.value.status_code == 400
    await client.close()
