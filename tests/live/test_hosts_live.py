"""Two named hosts, one on each wire, with a real model behind both: structure, streaming and hanging up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import open_app
from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelRefused
from agent_graph.llm.embedded import EmbeddedClient
from agent_graph.llm.hosts import parse_openai
from agent_graph.llm.openai_compatible import OpenAIClient
from agent_graph.settings import load
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.opened import Tools
from tests.live import ollama_wire, openai_wire
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
async def openai(embedded: EmbeddedClient) -> AsyncIterator[OpenAIServer]:
    async with openai_wire.serving(embedded) as running:
        yield running


@pytest.fixture
async def ollama(embedded: EmbeddedClient) -> AsyncIterator[OllamaServer]:
    async with ollama_wire.serving(embedded) as running:
        yield running


@pytest.fixture
async def client(openai: OpenAIServer) -> AsyncIterator[OpenAIClient]:
    made = OpenAIClient(parse_openai(openai.url))
    yield made
    await made.aclose()


async def test_text_streams_and_is_counted(client: OpenAIClient) -> None:
    pieces: list[str] = []
    got = await client.chat(ask("Name one fruit.", options={"num_predict": 12}), lambda _, piece: pieces.append(piece))
    assert got.text == "".join(pieces)
    assert len(pieces) > 1
    assert got.performer == f"server:openai_compatible/{MODEL}"
    assert got.prompt_tokens
    assert got.completion_tokens in range(1, 13)


async def test_a_schema_is_followed_and_a_length_said(client: OpenAIClient) -> None:
    got = await client.chat(ask("Invent a name.", format=SCHEMA), lambda *_: None)
    assert set(json.loads(got.text)) == {"name"}
    cut = await client.chat(ask("Count to fifty.", options={"num_predict": 3}), lambda *_: None)
    assert (cut.done_reason, cut.completion_tokens) == ("length", 3)


async def test_cancelling_a_call_closes_the_socket_and_ends_the_generation(
    openai: OpenAIServer, client: OpenAIClient
) -> None:
    started = asyncio.Event()
    long = ask("Tell a very long story.", options={"num_predict": 4000, "seed": 3})
    task = asyncio.create_task(client.chat(long, lambda *_: started.set()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await (await openai.arrived("story")).closed.wait()
    assert (await client.chat(ask("Hi", options={"num_predict": 2}), lambda *_: None)).completion_tokens


async def test_a_prompt_that_does_not_fit_is_refused(client: OpenAIClient) -> None:
    with pytest.raises(ModelRefused, match="exceeds the available context"):
        await client.chat(ask("word " * 6000), lambda *_: None)


def spec(prompt: str, **config: Any) -> dict[str, Any]:
    """The same question to a model at each of two hosts, brought together."""
    asked = {"type": "llm", "prompt": prompt, "config": config}
    nodes = [{"id": host, "model": f"{host}/{MODEL}", **asked} for host in ("one", "two")]
    fork = {"id": "fork", "type": "passthrough"}
    join = {"id": "both", "type": "join", "config": {"inputs": ["one", "two"], "output": "both"}}
    edges = [("fork", "one"), ("fork", "two"), ("one", "both"), ("two", "both"), ("both", "END")]
    return {
        "name": "asking", "entry": "fork", "output_key": "both", "nodes": [fork, *nodes, join],
        "edges": [{"from": source, "to": target} for source, target in edges],
    }  # fmt: skip


async def test_a_graph_asks_two_hosts_and_cancelling_it_hangs_up_at_both(
    tmp_path: Path, ollama: OllamaServer, openai: OpenAIServer
) -> None:
    (tmp_path / "settings.toml").write_text(
        f'[hosts.one]\nkind = "ollama"\nurl = "{ollama.url}"\n'
        f'[hosts.two]\nkind = "openai_compatible"\nurl = "{openai.url}"\n',
        encoding="utf-8",
    )
    async with open_app(load(environ={"AGENT_GRAPH_DATA_DIR": str(tmp_path)})) as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=spec("Invent a name.", output_schema=SCHEMA))
        ended = await tools.ended("asking")
        assert ended["status"] == "completed", ended
        assert [set(answer) for answer in ended["final_state"]] == [{"name"}, {"name"}]
        assert (len(ollama.chats), len(openai.chats)) == (1, 1)

        await tools.ok("graph_create", spec=spec("Tell a long story.", max_tokens=4000), overwrite=True)
        run_id = await tools.run("asking")
        calls = [await ollama.arrived("story"), await openai.arrived("story")]
        await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
        for each in calls:
            await each.closed.wait()
        assert (await tools.ok("graph_run_get", run_id=run_id))["status"] == "cancelled"
