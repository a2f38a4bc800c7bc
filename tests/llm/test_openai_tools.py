"""Tools on OpenAI's wire: called in pieces, with arguments as text, answered by id."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelBadReply
from agent_graph.llm.hosts import parse_openai
from agent_graph.llm.openai_compatible import OpenAIClient
from tests.fakes.connection import CITY
from tests.fakes.openai_server import DONE, OpenAIServer, chunk, events, told, whole
from tests.llm.conftest import Ask

TOOL = {"name": "forecast", "connection": "weather", "tool": "forecast", "description": "Weather.", "parameters": CITY}


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[OpenAIClient]:
    made = OpenAIClient(parse_openai(server.url), model="fake", max_reply_bytes=10_000)
    yield made
    await made.aclose()


def piece(index: int, arguments: Any, *, call_id: str = "", name: str = "") -> dict[str, Any]:
    named = {"name": name} if name else {}
    called = {"id": call_id, "type": "function"} if call_id else {}
    return chunk(tool_calls=[{"index": index, **called, "function": {**named, "arguments": arguments}}])


async def test_calls_come_in_pieces_and_are_put_together_by_their_index(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    parts = [
        chunk("Let me see."), piece(0, "", call_id="c1", name="forecast"), piece(1, "{}", call_id="c2", name="tides"),
        piece(0, '{"city": "Os'), piece(0, 'lo", "n": 1000000000000000000000000000001}'), chunk(finish="tool_calls"),
    ]  # fmt: skip
    server.default = told(*events(parts), DONE)
    got = await client.chat(ask(tools=(TOOL,)), lambda *_: None)
    assert (got.text, got.done_reason) == ("Let me see.", "tool_calls")
    assert got.tool_calls == (
        {"id": "c1", "name": "forecast", "arguments": {"city": "Oslo", "n": 10**30 + 1}},
        {"id": "c2", "name": "tides", "arguments": {}},
    )
    function = {"name": "forecast", "description": "Weather.", "parameters": CITY}
    assert server.chats[0].body["tools"] == [{"type": "function", "function": function}]


async def test_results_go_back_under_the_names_of_the_wire(server: OpenAIServer, client: OpenAIClient) -> None:
    said = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f", "arguments": {"a": 1}}]}
    odd = {"role": "assistant", "content": "", "tool_calls": [{"id": "d", "name": "f", "arguments": "not json"}]}
    result = {"role": "tool", "content": "rain", "call_id": "c", "name": "f"}
    await client.chat(CallModel((said, result, odd), tools=(TOOL,)), lambda *_: None)  # type: ignore[arg-type]
    first, answer, second = server.chats[0].body["messages"]
    assert first["tool_calls"] == [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]
    assert answer == {"role": "tool", "content": "rain", "tool_call_id": "c"}
    assert second["tool_calls"][0]["function"]["arguments"] == "not json"


@pytest.mark.parametrize(
    ("arguments", "read"),
    [({"a": 1}, {"a": 1}), ("", {}), (None, {}), ('{"a": ', '{"a": '), ('{"a": NaN}', '{"a": NaN}'), ("[1]", [1])],
)
async def test_arguments_that_are_no_json_stay_the_text_they_are(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, arguments: Any, read: Any
) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}, "odd"]
    server.default = whole("", finish="tool_calls", tool_calls=calls)
    assert (await client.chat(ask(), lambda *_: None)).tool_calls == ({"id": "c", "name": "f", "arguments": read},)


async def test_calls_are_bounded_and_json(server: OpenAIServer, client: OpenAIClient, ask: Ask) -> None:
    server.default = told(*events([piece(0, "x" * 6_000), piece(0, "x" * 6_000)]), DONE)
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "too_large"
    many = [piece(index, "") for index in range(300)]
    server.default = told(*events(many), DONE)
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "too_large"
    server.default = told(b"data: " + json.dumps(piece(0, {"a": float("nan")})).encode() + b"\n\n", DONE)
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "not_json"
