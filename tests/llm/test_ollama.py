"""A call to Ollama as it should go: what is sent, what comes back, what is shown on the way."""

from __future__ import annotations

import pytest

from agent_graph.errors import ModelNotConfigured, ModelUnreachable
from agent_graph.llm.base import ModelInfo
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.fakes.ollama_server import DIGEST, Model, OllamaServer, Response, answer, encoded, last_line, line, stream
from tests.llm.conftest import Ask, Heard


async def test_an_answer_has_text_counts_and_where_it_came_from(
    server: OllamaServer, client: OllamaClient, ask: Ask, heard: Heard
) -> None:
    server.on("capital", answer("Paris, I think.", chunks=3))
    got = await client.chat(ask("capital of France", model="Fake"), heard)
    assert (got.text, got.thinking, got.done_reason) == ("Paris, I think.", "", "stop")
    assert (got.prompt_tokens, got.completion_tokens, got.total_ms, got.load_ms) == (11, 7, 2500, 500)
    assert (got.model, got.performer, got.model_digest) == ("fake", "server:ollama/fake", DIGEST)
    assert got.warnings == ()
    assert heard.of("text") == got.text
    assert len(heard.pieces) == 3


async def test_the_request_says_all_that_the_node_said(server: OllamaServer, client: OllamaClient, ask: Ask) -> None:
    schema = {"type": "object"}
    call = ask(format=schema, options={"num_ctx": 8192, "seed": 1}, keep_alive="10m", think=False)
    await client.chat(call, lambda *_: None)
    assert server.chats[0].body == {
        "model": "fake",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "truncate": False,
        "shift": False,
        "format": schema,
        "options": {"num_ctx": 8192, "seed": 1},
        "keep_alive": "10m",
        "think": False,
    }


async def test_the_request_says_nothing_that_the_node_did_not_say(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    await client.chat(ask(), lambda *_: None)
    assert set(server.chats[0].body) == {"model", "messages", "stream", "truncate", "shift"}


async def test_OL01_a_model_that_can_think_is_told_not_to_unless_the_node_asks(ask: Ask) -> None:
    async with OllamaServer(Model("deep:latest", ("completion", "thinking"))) as server:
        client = OllamaClient(parse_host(server.url))
        for think in (None, True, "high", None):
            await client.chat(ask(model="deep", think=think), lambda *_: None)
        await client.aclose()
    assert [chat.body["think"] for chat in server.chats] == [False, True, "high", False]
    assert sum(request.path == "/api/show" for request in server.requests) == 1


@pytest.mark.parametrize("reason", ["stop", "length"])
async def test_OL01_thinking_is_kept_apart_from_an_empty_text(
    server: OllamaServer, client: OllamaClient, ask: Ask, heard: Heard, reason: str
) -> None:
    server.on("plan", answer("", thinking="so the plan is...", reason=reason))
    got = await client.chat(ask("plan", format="json"), heard)
    assert (got.text, got.thinking, got.done_reason) == ("", "so the plan is...", reason)
    assert heard.pieces == [("thinking", "so the plan is...")]


@pytest.mark.parametrize("text", ["The plan is to fir", '{"a": [1,2'])
async def test_OL09_an_answer_cut_by_length_says_so_and_is_counted(
    server: OllamaServer, client: OllamaClient, ask: Ask, text: str
) -> None:
    server.on("plan", answer(text, reason="length", out=16))
    got = await client.chat(ask("plan", options={"num_predict": 16}), lambda *_: None)
    assert (got.text, got.done_reason, got.completion_tokens) == (text, "length", 16)


async def test_counts_the_host_leaves_out_are_unknown_or_zero(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.on("hello", stream(*encoded([line("x"), {"done": True}])))
    got = await client.chat(ask(), lambda *_: None)
    assert (got.text, got.model, got.done_reason) == ("x", "fake", "stop")
    assert (got.prompt_tokens, got.completion_tokens, got.total_ms, got.load_ms) == (None, 0, 0, 0)


async def test_nonsense_in_place_of_a_count_or_a_text_is_not_taken(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    odd = last_line(prompt_eval_count=-1, eval_count=True, load_duration="long") | {"message": "none", "model": 7}
    server.on("hello", stream(*encoded([{"message": {"content": ["x"], "thinking": None}}, odd])))
    got = await client.chat(ask(), lambda *_: None)
    assert (got.text, got.model) == ("", "fake")
    assert (got.prompt_tokens, got.completion_tokens, got.load_ms) == (None, 0, 0)


async def test_an_option_nobody_knows_is_warned_about(server: OllamaServer, client: OllamaClient, ask: Ask) -> None:
    got = await client.chat(ask(options={"temprature": 1, "min_p": 0.1}), lambda *_: None)
    assert [w["code"] for w in got.warnings] == ["OPTION_UNKNOWN"]
    assert "temprature" in str(got.warnings[0]["message"])


async def test_a_path_before_the_api_is_kept(ask: Ask) -> None:
    async with OllamaServer(prefix="/ollama0") as server:
        client = OllamaClient(parse_host(server.url + "/"))
        assert (await client.chat(ask(model="fake"), lambda *_: None)).text == "A fine answer."
        await client.aclose()


@pytest.mark.parametrize("form", ["0.0.0.0:{}", "127.0.0.1:{}", "http://127.0.0.1:{}/", "localhost:{}", ":{}"])
async def test_OL10_each_form_of_the_address_reaches_the_server(server: OllamaServer, ask: Ask, form: str) -> None:
    client = OllamaClient(parse_host(form.format(server.port)), model="fake")
    assert (await client.chat(ask(), lambda *_: None)).text == "A fine answer."
    await client.aclose()


async def test_installed_models_are_listed_in_the_hosts_order() -> None:
    async with OllamaServer(Model("b:1b", ("completion", "vision")), "a:latest") as server:
        client = OllamaClient(parse_host(server.url))
        listed = await client.models()
        await client.aclose()
    assert listed == (
        ModelInfo("b:1b", DIGEST, 98_362_432, ("completion", "vision")),
        ModelInfo("a:latest", DIGEST, 98_362_432, ("completion",)),
    )


async def test_a_call_that_names_no_model_uses_an_installed_one(ask: Ask) -> None:
    async with OllamaServer("only:1b") as server:
        client = OllamaClient(parse_host(server.url))
        got = await client.chat(ask(), lambda *_: None)
        server.models.clear()
        with pytest.raises(ModelNotConfigured):
            await client.chat(ask(), lambda *_: None)
        await client.aclose()
    assert server.chats[0].body["model"] == "only:1b"
    assert got.text == "A fine answer."


async def test_one_connection_serves_one_call_after_another(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    for _ in range(5):
        await client.chat(ask(), lambda *_: None)
    assert len(server.chats) == 5
    assert server.connections == 1


async def test_a_host_that_is_gone_is_unreachable(server: OllamaServer, ask: Ask) -> None:
    client = OllamaClient(parse_host("127.0.0.1:9"), model="fake")
    with pytest.raises(ModelUnreachable) as called:
        await client.chat(ask(), lambda *_: None)
    with pytest.raises(ModelUnreachable) as listed:
        await client.models()
    await client.aclose()
    for caught in (called, listed):
        assert caught.value.code == "MODEL_UNREACHABLE"
        assert "http://127.0.0.1:9 does not answer" in caught.value.message
        assert caught.value.details["reason"] == "connect"


async def test_a_host_that_knows_only_the_chat_route_is_enough(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    for path in ("/api/show", "/api/tags"):
        server.routes[path] = Response((b"404 page not found",), 404)
    got = await client.chat(ask(), lambda *_: None)
    await client.chat(ask(), lambda *_: None)
    assert (got.text, got.model_digest) == ("A fine answer.", "")
    assert sum(request.path == "/api/show" for request in server.requests) == 1
