"""The official `ollama` client takes our scripted server for an Ollama: what passes here tests our client fairly."""

from __future__ import annotations

from collections.abc import AsyncIterator

import ollama
import pytest

from agent_graph.core.effects import CallModel
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.fakes.connection import CITY
from tests.fakes.ollama_server import DIGEST, Model, OllamaServer, answer, busy, encoded, line, stream, tool_calls
from tests.fakes.pictures import PNG, PNG_BYTES

HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer("fake:latest", Model("deep:1b", ("completion", "thinking"))) as running:
        yield running


@pytest.fixture
async def official(server: OllamaServer) -> AsyncIterator[ollama.AsyncClient]:
    client = ollama.AsyncClient(host=server.url)
    yield client
    await client.close()


async def test_it_lists_shows_and_sees_what_is_loaded(official: ollama.AsyncClient) -> None:
    assert [model.model for model in (await official.list()).models] == ["fake:latest", "deep:1b"]
    assert (await official.list()).models[0].digest == DIGEST
    assert (await official.show("deep:1b")).capabilities == ["completion", "thinking"]
    assert (await official.ps()).models[0].context_length == 4096


async def test_it_reads_a_whole_answer(server: OllamaServer, official: ollama.AsyncClient) -> None:
    server.on("hello", answer("Hello to you", chunks=4, thinking="polite", out=5))
    got = await official.chat("deep:1b", HELLO, think=True)
    assert (got.message.content, got.message.thinking) == ("Hello to you", "polite")
    assert (got.done, got.done_reason, got.prompt_eval_count, got.eval_count) == (True, "stop", 11, 5)


async def test_it_reads_a_streamed_answer(server: OllamaServer, official: ollama.AsyncClient) -> None:
    server.on("hello", answer("Hello to you", chunks=4, reason="length"))
    parts = [part async for part in await official.chat("Fake", HELLO, stream=True)]
    assert "".join(part.message.content or "" for part in parts) == "Hello to you"
    assert [part.done for part in parts] == [False] * 4 + [True]
    assert parts[-1].done_reason == "length"


async def test_it_reads_tool_calls_and_sends_pictures(server: OllamaServer, official: ollama.AsyncClient) -> None:
    server.default = tool_calls(("call_7", "forecast", {"city": "Oslo"}))
    server.models = [Model("able:latest", ("completion", "tools", "vision"))]
    tool = {"type": "function", "function": {"name": "forecast", "description": "Weather.", "parameters": CITY}}
    got = await official.chat(
        "able", [{"role": "user", "content": "see", "images": [PNG_BYTES]}], tools=[tool], stream=False
    )
    (wanted,) = got.message.tool_calls or ()
    assert (wanted.function.name, wanted.function.arguments) == ("forecast", {"city": "Oslo"})
    theirs = server.chats[0].body
    client = OllamaClient(parse_host(server.url))
    offered = {"name": "forecast", "connection": "c", "tool": "t", "description": "Weather.", "parameters": CITY}
    message = {"role": "user", "content": "see", "images": [PNG]}
    await client.chat(CallModel((message,), model="able", tools=(offered,)), lambda *_: None)  # type: ignore[arg-type]
    await client.aclose()
    ours = server.chats[1].body
    assert ours["messages"] == theirs["messages"]
    assert ours["tools"][0]["function"]["name"] == theirs["tools"][0]["function"]["name"]


async def test_it_loads_and_unloads(official: ollama.AsyncClient) -> None:
    assert (await official.chat("fake", [])).done_reason == "load"
    assert (await official.chat("fake", [], keep_alive=0)).done_reason == "unload"


@pytest.mark.parametrize(
    ("model", "think", "status", "text"),
    [
        ("gone", None, 404, "model 'gone' not found"),
        ("fake", True, 400, '"fake" does not support thinking'),
        ("deep:1b", None, 503, "server busy, please try again.  maximum pending requests exceeded"),
    ],
)
async def test_it_reads_the_errors(
    server: OllamaServer, official: ollama.AsyncClient, model: str, think: bool | None, status: int, text: str
) -> None:
    server.on("hello", busy())
    with pytest.raises(ollama.ResponseError) as caught:
        await official.chat(model, HELLO, think=think)
    assert (caught.value.status_code, caught.value.error) == (status, text)


async def test_it_reads_an_error_in_the_middle(server: OllamaServer, official: ollama.AsyncClient) -> None:
    server.on("hello", stream(*encoded([line("Hel"), {"error": "gone"}])))
    with pytest.raises(ollama.ResponseError, match="gone"):
        async for _ in await official.chat("fake", HELLO, stream=True):
            pass


async def test_the_plain_routes_answer(server: OllamaServer) -> None:
    import httpx2

    async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as http:
        assert (await http.get("/")).text == "Ollama is running"
        assert (await http.head("/")).status_code == 200
        assert (await http.get("/api/version")).json() == {"version": "0.12.0"}
        assert (await http.post("/api/chat")).json() == {"error": "missing request body"}
        assert (await http.post("/api/chat", content=b"{")).status_code == 400
        assert (await http.post("/api/chat", json={"messages": []})).json() == {"error": "model is required"}
        assert (await http.get("/api/none")).status_code == 404
