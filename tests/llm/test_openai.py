"""A call on OpenAI's wire as it should go: what is sent, what comes back, what is shown on the way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.errors import (
    ModelBadReply,
    ModelNotConfigured,
    ModelNotFound,
    ModelOverloaded,
    ModelRefused,
    ModelServerError,
    ModelTimeout,
    ModelUnreachable,
    Upstream,
)
from agent_graph.llm.base import ModelInfo
from agent_graph.llm.hosts import parse_openai
from agent_graph.llm.openai_compatible import OpenAIClient
from tests.fakes.ollama_server import Gate, Response, page
from tests.fakes.openai_server import (
    DONE,
    EVENTS,
    OpenAIServer,
    chunk,
    events,
    refused,
    said,
    told,
    usage,
    whole,
)
from tests.llm.conftest import Ask, Heard

SECRET = "k-77-never-told"


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[OpenAIClient]:
    made = OpenAIClient(parse_openai(server.url), model="fake")
    yield made
    await made.aclose()


async def test_an_answer_has_text_counts_and_where_it_came_from(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, heard: Heard
) -> None:
    server.on("capital", said("Paris, I think.", chunks=3, thinking="France..."))
    got = await client.chat(ask("capital of France"), heard)
    assert (got.text, got.thinking, got.done_reason) == ("Paris, I think.", "France...", "stop")
    assert (got.prompt_tokens, got.completion_tokens, got.total_ms) == (11, 7, None)
    assert (got.model, got.performer) == ("fake", "server:openai_compatible/fake")
    assert got.warnings == ()
    assert heard.of("text") == got.text
    assert heard.of("thinking") == "France..."
    assert len(heard.pieces) == 4


async def test_the_request_says_all_that_the_wire_has_a_word_for(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    options = {"temperature": 0.1, "seed": 7, "num_predict": 40, "stop": ["x"], "num_ctx": 8192, "temprature": 1}
    got = await client.chat(ask(format=schema, options=options, keep_alive="10m", think="low"), lambda *_: None)
    assert server.chats[0].body == {
        "model": "fake",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.1,
        "seed": 7,
        "max_tokens": 40,
        "stop": ["x"],
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
    }
    told_of = [(w["code"], str(w["message"])) for w in got.warnings]
    assert [code for code, _ in told_of] == ["OPTION_UNKNOWN", "OPTION_IGNORED", "OPTION_IGNORED"]
    assert "temprature" in told_of[0][1]
    assert "num_ctx" in told_of[1][1]
    assert "keep_alive" in told_of[2][1]


async def test_the_request_says_nothing_that_the_node_did_not_say(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    await client.chat(ask(options={"num_predict": -1}), lambda *_: None)
    await client.chat(ask(format="json", think=False), lambda *_: None)
    assert set(server.chats[0].body) == {"model", "messages", "stream", "stream_options"}
    assert server.chats[1].body["response_format"] == {"type": "json_object"}
    assert "reasoning_effort" not in server.chats[1].body


async def test_pictures_are_parts_of_a_message(server: OpenAIServer, client: OpenAIClient) -> None:
    picture = "data:image/png;base64,iVBORw0KGgo="
    call = CallModel(({"role": "user", "content": "what is it?", "images": [picture]},))
    await client.chat(call, lambda *_: None)
    assert server.chats[0].body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": picture}},
            ],
        }
    ]


async def test_an_answer_cut_by_length_says_so(server: OpenAIServer, client: OpenAIClient, ask: Ask) -> None:
    server.on("plan", said('{"a": [1,2', finish="length"))
    got = await client.chat(ask("plan", format="json"), lambda *_: None)
    assert (got.text, got.done_reason) == ('{"a": [1,2', "length")


async def test_counts_may_be_missing(server: OpenAIServer, client: OpenAIClient, ask: Ask) -> None:
    server.on("hello", said("x", counted=False))
    got = await client.chat(ask(), lambda *_: None)
    assert (got.prompt_tokens, got.completion_tokens) == (None, None)


async def test_nonsense_in_place_of_a_count_or_a_text_is_not_taken(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    odd = {"choices": [{"delta": {"content": ["x"], "reasoning": 7}}], "model": 7, "usage": {"prompt_tokens": -1}}
    none: list[dict[str, object]] = [{"choices": "none", "usage": "none"}, {"choices": ["none"]}, {}]
    server.on("hello", told(*events([odd, *none, {"choices": [{"delta": "none", "finish_reason": "stop"}]}])))
    got = await client.chat(ask(), lambda *_: None)
    assert (got.text, got.model, got.prompt_tokens) == ("", "fake", None)


async def test_the_end_of_the_stream_closes_an_answer_that_said_why_it_ended(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    server.on("hello", told(*events([chunk("x"), chunk(finish="stop")])))
    assert (await client.chat(ask(), lambda *_: None)).text == "x"


@pytest.mark.parametrize(
    "steps",
    [(*events([chunk("one ")]),), (*events([chunk("one ")]), DONE), (DONE,), (), ("eof",), (*events([usage()]), DONE)],
    ids=["end of body", "done and no reason", "done alone", "nothing", "end of file", "counts alone"],
)
async def test_a_stream_that_does_not_say_why_it_ended_is_cut_and_no_answer(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, steps: tuple[bytes, ...]
) -> None:
    server.on("hello", told(*steps))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "cut"


async def test_a_host_that_does_not_stream_is_understood(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, heard: Heard
) -> None:
    server.on("hello", whole("all at once", reasoning_content="hm"))
    got = await client.chat(ask(), heard)
    assert (got.text, got.thinking, got.completion_tokens) == ("all at once", "hm", 7)
    assert heard.of("text") == "all at once"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (page("<html>sign in</html>"), "not_json"),
        (told(b"data: {broken\n\n"), "not_json"),
        (told(b"data: [1]\n\n"), "not_json"),
        (Response((b"",), headers=(("Content-Type", "application/json"),)), "cut"),
    ],
    ids=["a page", "broken", "a list", "empty"],
)
async def test_what_is_no_answer_is_a_bad_reply(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, response: Response, reason: str
) -> None:
    server.on("hello", response)
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == reason


@pytest.mark.parametrize(
    "response",
    [
        told(*(events([chunk("x" * 400)]) * 4), DONE),
        told(b"data: " + b"x" * 80_000),
        told(*[b"data: " + b"y" * 8_000 + b"\n"] * 20),
        whole("x" * 2_000),
        whole("x" * 200_000),
    ],
    ids=["much text", "a long line", "a long event", "a long object", "a longer one"],
)
async def test_an_answer_is_bounded(server: OpenAIServer, ask: Ask, response: Response) -> None:
    server.on("hello", response)
    client = OpenAIClient(parse_openai(server.url), model="fake", max_reply_bytes=1_000)
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    await client.aclose()
    assert caught.value.details["reason"] == "too_large"


async def test_a_model_that_declines_is_refused_with_its_words(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    server.on("hello", told(*events([chunk(refusal="I can"), chunk(refusal="not."), chunk(finish="stop")]), DONE))
    with pytest.raises(ModelRefused, match=r"declined to answer: I cannot\.") as caught:
        await client.chat(ask(), lambda *_: None)
    assert (caught.value.details["reason"], caught.value.retryable) == ("refusal", False)


async def test_an_answer_that_was_withheld_is_refused(server: OpenAIServer, client: OpenAIClient, ask: Ask) -> None:
    server.on("hello", said("half of", finish="content_filter"))
    with pytest.raises(ModelRefused) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "content_filter"
    assert caught.value.details["body"] == "half of"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, ModelRefused), (401, ModelRefused), (403, ModelRefused), (429, ModelOverloaded), (500, ModelServerError),
     (502, ModelServerError), (503, ModelOverloaded), (307, ModelRefused)],
)  # fmt: skip
async def test_a_status_decides_the_error_and_the_text_is_kept(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, status: int, kind: type[Upstream]
) -> None:
    server.on("hello", refused(status, "so it is", Retry_After="3", Location="http://elsewhere"))
    with pytest.raises(kind) as caught:
        await client.chat(ask(), lambda *_: None)
    assert type(caught.value) is kind
    assert (caught.value.details["status"], caught.value.details["body"]) == (status, "so it is")
    assert caught.value.details.get("retry_after_ms") == (3000 if kind is ModelOverloaded else None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "out of memory", "code": 500}, ModelServerError),
        ({"message": "the prompt is too long", "code": 400}, ModelRefused),
        ({"message": "gone", "code": "server_error"}, ModelServerError),
        ("gone", ModelServerError),
    ],
)
async def test_an_error_in_the_middle_is_no_answer(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, error: object, kind: type[Upstream]
) -> None:
    server.on("hello", told(*events([chunk("well "), {"error": error, "choices": []}]), DONE))
    with pytest.raises(kind) as caught:
        await client.chat(ask(), lambda *_: None)
    assert type(caught.value) is kind


async def test_a_missing_model_names_what_is_there(server: OpenAIServer, client: OpenAIClient, ask: Ask) -> None:
    with pytest.raises(ModelNotFound, match="installed are: fake"):
        await client.chat(ask(model="gone"), lambda *_: None)
    server.routes["/v1/models"] = refused(500, "no list")
    with pytest.raises(ModelNotFound, match="The model `gone` does not exist"):
        await client.chat(ask(model="gone"), lambda *_: None)
    server.routes["/v1/chat/completions"] = refused(404, "no such route")
    del server.routes["/v1/models"]
    with pytest.raises(ModelNotFound, match="no such route"):
        await client.chat(ask(), lambda *_: None)


async def test_silence_after_the_first_byte_is_a_timeout_and_closes_the_socket(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    server.on("hello", told(*events([chunk("well ")]), Gate()))
    with pytest.raises(ModelTimeout) as caught:
        await client.chat(ask(idle_timeout_ms=30), lambda *_: None)
    assert caught.value.details == {"timeout_ms": 30, "idle": True}
    await server.chats[0].closed.wait()


async def test_a_call_that_takes_too_long_is_a_timeout(server: OpenAIServer, client: OpenAIClient, ask: Ask) -> None:
    server.on("hello", told(Gate()))
    await client.chat(ask("once before"), lambda *_: None)  # so that the clock runs for the call alone
    with pytest.raises(ModelTimeout) as caught:
        await client.chat(ask(timeout_ms=300), lambda *_: None)
    assert caught.value.details["idle"] is False
    await server.chats[1].closed.wait()


async def test_cancelling_closes_the_socket_at_once(server: OpenAIServer, client: OpenAIClient, ask: Ask) -> None:
    server.on("hello", told(*events([chunk("well ")]), Gate()))
    seen = asyncio.Event()
    task = asyncio.create_task(client.chat(ask(), lambda *_: seen.set()))
    await seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.chats[0].closed.wait()
    assert (await client.chat(ask("again"), lambda *_: None)).text == "A fine answer."


async def test_a_reset_in_the_middle_is_a_connection_error(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    gate = Gate()
    server.on("hello", told(*events([chunk("well ")]), gate, "rst"))
    task = asyncio.create_task(client.chat(ask(), lambda *_: gate.open()))
    with pytest.raises(ModelUnreachable) as caught:
        await task
    assert caught.value.details["reason"] == "reset"


async def test_blanks_after_the_json_asked_for_end_the_call(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    server.on("hello", told(*events([chunk('{"a": 1}'), chunk(" " * 100)]), Gate()))
    got = await client.chat(ask(format="json"), lambda *_: None)
    assert got.text.strip() == '{"a": 1}'
    assert [w["code"] for w in got.warnings] == ["WHITESPACE_LOOP"]
    await server.chats[0].closed.wait()


async def test_the_key_is_sent_and_never_told(ask: Ask) -> None:
    async with OpenAIServer(key=SECRET) as server:
        client = OpenAIClient(parse_openai(server.url), api_key=SECRET, model="fake")
        assert (await client.chat(ask(), lambda *_: None)).text
        server.on("echo", refused(400, f"your key {SECRET} is odd"))
        with pytest.raises(ModelRefused) as caught:
            await client.chat(ask("echo"), lambda *_: None)
        assert SECRET not in f"{caught.value.message}{caught.value.details}"
        server.routes["/v1/models"] = refused(403, f"your key {SECRET} may not")
        with pytest.raises(ModelRefused) as listed:
            await client.models()
        assert SECRET not in f"{listed.value.message}{listed.value.details}"
        wrong = OpenAIClient(parse_openai(server.url), model="fake")
        with pytest.raises(ModelRefused) as unnamed:
            await wrong.chat(ask(), lambda *_: None)
        assert unnamed.value.details["status"] == 401
        await client.aclose()
        await wrong.aclose()


async def test_the_key_is_in_no_log(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with OpenAIServer(key=SECRET) as server:
        client = OpenAIClient(parse_openai(server.url), api_key=SECRET, model="fake")
        await client.chat(ask(), lambda *_: None)
        await client.aclose()
    assert caplog.records, "the HTTP library told of something"
    assert SECRET not in caplog.text


async def test_a_key_goes_to_no_plain_address_that_nobody_named(ask: Ask) -> None:
    async with OpenAIServer() as server:
        client = OpenAIClient(parse_openai(server.url, named=False), api_key=SECRET, model="fake")
        await client.chat(ask(), lambda *_: None)
        await client.aclose()
    assert "authorization" not in server.chats[0].headers


async def test_models_are_listed_and_one_is_asked_where_none_is_named(ask: Ask) -> None:
    async with OpenAIServer("b", "a") as server:
        client = OpenAIClient(parse_openai(server.url))
        assert await client.models() == (ModelInfo("b"), ModelInfo("a"))
        await client.chat(ask(), lambda *_: None)
        assert server.chats[0].body["model"] == "b"
        server.routes["/v1/models"] = Response((b'{"data": 7}',))
        with pytest.raises(ModelNotConfigured):
            await client.chat(ask(), lambda *_: None)
        await client.aclose()


async def test_a_host_that_is_gone_is_unreachable(ask: Ask) -> None:
    client = OpenAIClient(parse_openai("http://127.0.0.1:9"), model="fake")
    with pytest.raises(ModelUnreachable) as called:
        await client.chat(ask(), lambda *_: None)
    with pytest.raises(ModelUnreachable):
        await client.models()
    await client.aclose()
    assert "http://127.0.0.1:9/v1 does not answer" in called.value.message


async def test_one_connection_serves_one_call_after_another(
    server: OpenAIServer, client: OpenAIClient, ask: Ask
) -> None:
    for _ in range(5):
        await client.chat(ask(), lambda *_: None)
    assert (len(server.chats), server.connections) == (5, 1)


TEXT = 'caf\u00e9 \U0001f600 a\u2028b\x85c "quoted"\nnew line'
WHOLE = b"".join((*events([chunk(TEXT[:9]), chunk(TEXT[9:]), chunk(finish="stop"), usage()]), DONE))
EMOJI = WHOLE.index("\U0001f600".encode()) + 2


@pytest.mark.parametrize(
    "pieces",
    [
        [bytes([byte]) for byte in WHOLE],
        [WHOLE],
        [WHOLE[:EMOJI], WHOLE[EMOJI:]],
        [bytes([byte]) for byte in WHOLE.replace(b"\n", b"\r\n")],
        [WHOLE.replace(b"\n", b"\r\n")],
        [bytes([byte]) for byte in WHOLE.replace(b"\n", b"\r")],
        [b": waiting\n\nevent: x\nid: 7\nretry: 5\n\n", WHOLE],
        [WHOLE.replace(b"data: ", b"data:")],
        [WHOLE.replace(b'"choices"', b'\ndata: "choices"')],
        [WHOLE.removesuffix(b"\n\n")],
        [WHOLE.removesuffix(DONE)[:-2]],
    ],
    ids=["byte by byte", "at once", "inside an emoji", "CRLF byte by byte", "CRLF", "CR", "comments and other fields",
         "no space", "several data lines", "no last blank line", "no end of the last event"],
)  # fmt: skip
async def test_the_text_does_not_depend_on_how_the_stream_is_cut(
    server: OpenAIServer, client: OpenAIClient, ask: Ask, heard: Heard, pieces: list[bytes]
) -> None:
    server.on("hello", Response(tuple(pieces), headers=EVENTS))
    got = await client.chat(ask(), heard)
    assert got.text == heard.of("text") == TEXT
    assert got.completion_tokens == 7
