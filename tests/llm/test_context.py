"""How much of a prompt a model reads: the context is asked for where it is needed, and a cut prompt is noticed."""

from __future__ import annotations

import base64

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelRefused
from agent_graph.llm.context import is_too_narrow, needed, unread, widened
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.fakes.ollama_server import Model, OllamaServer, answer, error, page
from tests.fakes.pictures import PNG, PNG_BYTES
from tests.llm.conftest import Ask

LONG = "Some analyst says this and that. " * 1_000


async def chats(model: Model, *calls: CallModel, prompt_tokens: int = 30_000) -> list[dict[str, object]]:
    """The options of each call, as they reached the host."""
    async with OllamaServer(model) as server:
        server.default = answer("fine", prompt=prompt_tokens)
        client = OllamaClient(parse_host(server.url), model=model.name)
        for call in calls:
            assert (await client.chat(call, lambda *_: None)).warnings == ()
        await client.aclose()
        return [chat.body.get("options", {}) for chat in server.chats]


async def test_a_long_prompt_gets_the_context_it_needs_and_a_short_one_the_usual(ask: Ask) -> None:
    model = Model("fake:latest", context=131_072)
    assert await chats(model, ask("hello"), ask(LONG), ask(LONG * 4)) == [{}, {"num_ctx": 16_384}, {"num_ctx": 65_536}]


async def test_the_context_is_never_more_than_the_models_own(ask: Ask) -> None:
    assert await chats(Model("fake:latest", context=8_192), ask(LONG)) == [{"num_ctx": 8_192}]
    assert await chats(Model("fake:latest", context=2_048), ask(LONG)) == [{}]


async def test_where_the_host_does_not_tell_or_the_node_does_nothing_is_added(ask: Ask) -> None:
    assert await chats(Model("fake:latest"), ask(LONG)) == [{}]
    model = Model("fake:latest", context=131_072)
    assert await chats(model, ask(LONG, options={"num_ctx": 4_096})) == [{"num_ctx": 4_096}]


async def test_what_the_models_own_file_asks_for_is_enough_where_it_is(ask: Ask) -> None:
    model = Model("fake:latest", context=131_072, parameters='stop "x"\nnum_ctx                        32768')
    assert await chats(model, ask(LONG), ask(LONG * 4)) == [{}, {"num_ctx": 65_536}]


@pytest.mark.parametrize(("loaded", "asked"), [(32_768, 32_768), (4_096, 16_384), (0, 16_384), (262_144, 16_384)])
async def test_what_the_model_is_loaded_with_is_kept_where_it_is_enough(ask: Ask, loaded: int, asked: int) -> None:
    """Another size would make the host load it anew; more than it can read is nonsense."""
    assert await chats(Model("fake:latest", context=131_072, loaded=loaded), ask(LONG)) == [{"num_ctx": asked}]


async def test_a_host_that_does_not_say_what_is_loaded_is_asked_for_what_is_needed(ask: Ask) -> None:
    for said in (error(404, "no such route"), page('{"models": [7, {"name": "fake:latest", "context_length": "x"}]}')):
        async with OllamaServer(Model("fake:latest", context=131_072)) as server:
            server.routes["/api/ps"] = said
            server.default = answer("fine", prompt=30_000)
            client = OllamaClient(parse_host(server.url), model="fake")
            await client.chat(ask(LONG), lambda *_: None)
            await client.aclose()
        assert server.chats[0].body["options"] == {"num_ctx": 16_384}


def test_an_answer_takes_room_too() -> None:
    call = CallModel(({"role": "user", "content": "x" * 300},), options={"num_predict": 10_000})
    assert needed(call) == 100 + 8 + 10_000
    assert is_too_narrow(call, limit=131_072)
    assert widened(call, limit=131_072).options["num_ctx"] == 16_384
    shown = CallModel(({"role": "user", "content": "\u6f22" * 10, "images": [PNG, PNG]},))
    assert needed(shown) == 15 + 8 + 2 * 1_024 + 1_024


@pytest.mark.parametrize(
    ("characters", "read", "warned"),
    [(120_000, 2_050, True), (120_000, 30_000, False), (120_000, None, False), (120_000, 0, False), (3_000, 5, False)],
)
def test_a_count_that_cannot_be_the_whole_prompt_is_noticed(characters: int, read: int | None, warned: bool) -> None:
    found = unread(CallModel(({"role": "user", "content": "x" * characters},)), read)
    assert bool(found) is warned
    if warned:
        assert found[0]["code"] == "PROMPT_TRUNCATED"
        assert found[0]["details"] == {"prompt_tokens": 2_050, "characters": 120_000}
        assert "options.num_ctx makes room" in str(found[0]["message"])


async def test_OL05_a_refusal_that_names_the_limit_is_shown_with_its_text(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.default = error(400, "the prompt is longer than the context: 30000 > 4096")
    with pytest.raises(ModelRefused, match="30000 > 4096"):
        await client.chat(ask(LONG), lambda *_: None)
    assert len(server.chats) == 1


# Pictures on the wire


async def test_pictures_reach_the_host_as_base64_without_their_type(ask: Ask) -> None:
    async with OllamaServer(Model("eyes:latest", ("completion", "vision"))) as server:
        client = OllamaClient(parse_host(server.url), model="eyes")
        await client.chat(CallModel(({"role": "user", "content": "see", "images": [PNG]},)), lambda *_: None)
        await client.aclose()
    (message,) = server.chats[0].body["messages"]
    assert message == {"role": "user", "content": "see", "images": [base64.b64encode(PNG_BYTES).decode()]}


async def test_a_model_that_does_not_see_is_not_asked(server: OllamaServer, client: OllamaClient) -> None:
    with pytest.raises(ModelRefused, match="does not see pictures"):
        await client.chat(CallModel(({"role": "user", "content": "see", "images": [PNG]},)), lambda *_: None)
    assert server.chats == []
