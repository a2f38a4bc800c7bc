"""Tools on Ollama's wire: offered as functions, called with objects, answered by id."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelBadReply, ModelRefused
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.fakes.connection import CITY
from tests.fakes.ollama_server import Model, OllamaServer, encoded, last_line, line, stream, tool_calls
from tests.llm.conftest import Ask

TOOL = {"name": "forecast", "connection": "weather", "tool": "forecast", "description": "Weather.", "parameters": CITY}
ABLE = Model("able:latest", ("completion", "tools"))


def ask_with_tools(*more: dict[str, Any]) -> CallModel:
    return CallModel(({"role": "user", "content": "weather?"}, *more), model="able", tools=(TOOL,))  # type: ignore[arg-type]


async def test_a_call_is_read_with_its_id_and_its_arguments_as_an_object() -> None:
    async with OllamaServer(ABLE) as server:
        server.default = tool_calls(("call_7", "forecast", {"city": "Oslo", "n": 10**30}), text="Let me see.")
        client = OllamaClient(parse_host(server.url))
        got = await client.chat(ask_with_tools(), lambda *_: None)
        await client.aclose()
    assert got.tool_calls == ({"id": "call_7", "name": "forecast", "arguments": {"city": "Oslo", "n": 10**30}},)
    assert got.text == "Let me see."
    function = {"name": "forecast", "description": "Weather.", "parameters": CITY}
    assert server.chats[0].body["tools"] == [{"type": "function", "function": function}]


async def test_results_go_back_under_the_names_of_the_wire() -> None:
    said = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "forecast", "arguments": {}}]}
    result = {"role": "tool", "content": "rain", "call_id": "c", "name": "forecast"}
    async with OllamaServer(ABLE) as server:
        client = OllamaClient(parse_host(server.url))
        await client.chat(ask_with_tools(said, result), lambda *_: None)
        await client.aclose()
    assert server.chats[0].body["messages"][1:] == [
        {"role": "assistant", "content": "",
         "tool_calls": [{"id": "c", "function": {"name": "forecast", "arguments": {}}}]},
        {"role": "tool", "content": "rain", "tool_call_id": "c", "tool_name": "forecast"},
    ]  # fmt: skip


@pytest.mark.parametrize("calls", ["x", [1], [{"function": 7}], [{}], None])
async def test_what_is_no_call_is_passed_over(server: OllamaServer, client: OllamaClient, ask: Ask, calls: Any) -> None:
    odd = line("hi")
    odd["message"]["tool_calls"] = calls
    server.default = stream(*encoded([odd, last_line()]))
    got = await client.chat(ask(), lambda *_: None)
    assert (got.text, got.tool_calls) == ("hi", ())


@pytest.mark.parametrize("arguments", ["NaN", '"half \\ud800"', '{"\\ud800": 1}'])
async def test_arguments_that_are_no_json_are_a_bad_reply(
    server: OllamaServer, client: OllamaClient, ask: Ask, arguments: str
) -> None:
    said = '{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":%s}}]},"done":false}\n'
    server.default = stream((said % arguments).encode(), *encoded([last_line()]))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "not_json"


async def test_calls_without_end_are_bounded(server: OllamaServer, ask: Ask) -> None:
    client = OllamaClient(parse_host(server.url), model="fake", max_reply_bytes=10_000)
    server.default = tool_calls(*(("c", "f", {"x": "y" * 1_000}) for _ in range(20)))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    await client.aclose()
    assert caught.value.details["reason"] == "too_large"


async def test_a_model_that_calls_no_tools_is_not_asked(server: OllamaServer, client: OllamaClient, ask: Ask) -> None:
    with pytest.raises(ModelRefused, match="does not call tools"):
        await client.chat(ask(tools=(TOOL,)), lambda *_: None)
    assert server.chats == []
