"""However the network cuts a stream, the same text comes out; a stream that goes wrong is never an answer."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelBadReply, ModelServerError, ModelTimeout, ModelUnreachable
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.fakes.ollama_server import Gate, OllamaServer, Response, encoded, last_line, line, page, stream
from tests.llm.conftest import Ask, Heard

TEXT = 'caf\u00e9 \U0001f600 a\u2028b\u2029c\x85d \\u00e9 "quoted"\nnew line'
LINES = encoded([line(TEXT[:9]), line(TEXT[9:]), last_line()])
WHOLE = b"".join(LINES)
ESCAPED = b'{"message":{"content":"caf\\u00e9 \\ud83d\\ude00"},"done":false}\n{"done":true}\n'
EMOJI = WHOLE.index("\U0001f600".encode()) + 2
ESCAPE = ESCAPED.index(b"\\u00e9") + 3
HALVES = b'{"message":{"content":"x\\ud83d"},"done":false}\n{"message":{"content":"y"},"done":true}\n'


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([bytes([byte]) for byte in WHOLE], TEXT),
        ([WHOLE[:EMOJI], WHOLE[EMOJI:]], TEXT),
        ([WHOLE], TEXT),
        ([LINES[0] + LINES[1], LINES[2]], TEXT),
        ([WHOLE.replace(b"\n", b"\r\n")], TEXT),
        ([LINES[0], b"\n", b"  \r\n", LINES[1], b"\n\n", LINES[2]], TEXT),
        ([WHOLE[:-1]], TEXT),
        ([ESCAPED[:ESCAPE], ESCAPED[ESCAPE:]], "caf\u00e9 \U0001f600"),
        ([HALVES], "x\ufffdy"),
    ],
    ids=["byte by byte", "inside an emoji", "at once", "two a packet", "CRLF", "blank lines", "no last newline",
         "inside an escape", "half a surrogate pair"],
)  # fmt: skip
async def test_OL06_the_text_does_not_depend_on_how_the_stream_is_cut(
    server: OllamaServer, client: OllamaClient, ask: Ask, heard: Heard, pieces: list[bytes], text: str
) -> None:
    server.on("hello", stream(*pieces))
    got = await client.chat(ask(), heard)
    assert got.text == text
    assert heard.of("text") == text


THREE = encoded([line("one "), line("two "), line("three")])
NO_DONE = encoded([{"message": {"content": ""}, "done_reason": "stop"}])


@pytest.mark.parametrize(
    "steps",
    [(*THREE,), (*THREE, "eof"), (*THREE, *NO_DONE), (), ("eof",)],
    ids=["end of body", "end of file", "a reason and no done", "nothing at all", "end of file at once"],
)
async def test_OL08_a_stream_that_ends_before_done_is_cut_and_no_answer(
    server: OllamaServer, client: OllamaClient, ask: Ask, steps: tuple[bytes, ...]
) -> None:
    server.on("hello", stream(*steps))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.code == "MODEL_BAD_REPLY"
    assert caught.value.details["reason"] == "cut"
    assert caught.value.retryable


async def test_OL08_a_reset_in_the_middle_is_a_connection_error(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    gate = Gate()
    server.on("hello", stream(THREE[0], gate, "rst"))
    seen = asyncio.Event()
    task = asyncio.create_task(client.chat(ask(), lambda *_: seen.set()))
    await seen.wait()
    gate.open()
    with pytest.raises(ModelUnreachable) as caught:
        await task
    assert caught.value.details["reason"] == "reset"


async def test_an_error_in_the_middle_of_a_stream_is_the_hosts_failure(
    server: OllamaServer, client: OllamaClient, ask: Ask, heard: Heard
) -> None:
    server.on("hello", stream(THREE[0], *encoded([{"error": "model runner has stopped", "done": True}])))
    with pytest.raises(ModelServerError) as caught:
        await client.chat(ask(), heard)
    assert caught.value.code == "MODEL_SERVER_ERROR"
    assert "model runner has stopped" in caught.value.message
    assert heard.of("text") == "one "


@pytest.mark.parametrize("cuts", [1, 40])
async def test_OL11_a_page_instead_of_json_is_shown_as_far_as_200_characters(
    server: OllamaServer, client: OllamaClient, ask: Ask, cuts: int
) -> None:
    body = "<html>\n<h1>Proxy</h1>" + "x" * 1000
    size = len(body) // cuts
    pieces = [body[start : start + size].encode() for start in range(0, len(body), size)]
    server.on("hello", Response(tuple(pieces), headers=(("Content-Type", "text/html"),)))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "not_json"
    assert caught.value.details["body"] == body[:200]
    assert "not JSON" in caught.value.message
    assert body[:200] in caught.value.message


@pytest.mark.parametrize(
    "bad", [b"[1,2]\n", b"\xff\xfe{}\n", b"[" * 100_000 + b"\n", b"{", b'"text"\n'],
    ids=["a list", "not UTF-8", "too deep", "half an object", "a string"],
)  # fmt: skip
async def test_a_line_that_is_no_json_object_is_refused(
    server: OllamaServer, client: OllamaClient, ask: Ask, bad: bytes
) -> None:
    server.on("hello", stream(THREE[0], bad))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "not_json"


async def test_a_page_instead_of_the_list_of_models_is_not_json(server: OllamaServer, client: OllamaClient) -> None:
    server.routes["/api/tags"] = page("<html>")
    with pytest.raises(ModelBadReply) as caught:
        await client.models()
    assert caught.value.details == {"reason": "not_json", "body": "<html>"}


async def endless(piece: bytes) -> AsyncIterator[bytes]:
    while True:
        yield piece


@pytest.mark.parametrize("schema", ["json", {"type": "object"}])
async def test_OL03_blanks_without_end_after_the_json_end_the_call(
    server: OllamaServer, client: OllamaClient, ask: Ask, heard: Heard, schema: object
) -> None:
    json_text = '{"a": "} \\" {", "b": [1, {}]}'
    server.on("hello", stream(*encoded([line(json_text[:9]), line(json_text[9:])]), lambda: endless(BLANK)))
    got = await client.chat(ask(format=schema), heard)
    request = await server.arrived("hello")
    await request.closed.wait()
    assert got.text.strip() == json_text
    assert len(got.text) == len(json_text) + 64
    assert [warning["code"] for warning in got.warnings] == ["WHITESPACE_LOOP"]
    assert (got.prompt_tokens, got.completion_tokens, got.total_ms) == (None, None, None)


BLANK = encoded([line("\n")])[0]


@pytest.mark.parametrize("text", ["", "{}{", "plain", '{"a":'])
async def test_OL03_blanks_without_end_and_no_json_end_in_time_with_flat_memory(
    server: OllamaServer, client: OllamaClient, ask: Ask, text: str
) -> None:
    server.on("hello", stream(*encoded([line(text)]), lambda: endless(BLANK)))
    await client.chat(ask("warm up"), lambda *_: None)  # the clock is to measure the answer, not the first connection
    tracemalloc.start()
    with pytest.raises(ModelTimeout) as caught:
        await client.chat(ask(format="json", timeout_ms=500), lambda *_: None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await (await server.arrived("hello")).closed.wait()
    assert caught.value.details == {"timeout_ms": 500, "idle": False}
    assert peak < 4_000_000


async def test_without_a_format_blanks_are_text(server: OllamaServer, client: OllamaClient, ask: Ask) -> None:
    text = "{}" + " " * 100
    server.on("hello", stream(*encoded([line(text), last_line()])))
    assert (await client.chat(ask(), lambda *_: None)).text == text


@pytest.mark.parametrize("kind", ["content", "thinking"])
async def test_a_reply_over_the_limit_is_refused_while_it_comes(server: OllamaServer, ask: Ask, kind: str) -> None:
    client = OllamaClient(parse_host(server.url), model="fake", max_reply_bytes=1000)
    piece = line("e" * 100) if kind == "content" else line(thinking="e" * 100)
    server.on("hello", stream(lambda: endless(encoded([piece])[0])))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    await (await server.arrived("hello")).closed.wait()
    await client.aclose()
    assert caught.value.details == {"reason": "too_large", "max_bytes": 1000}


async def test_a_line_without_end_is_refused_while_it_comes(server: OllamaServer, ask: Ask) -> None:
    client = OllamaClient(parse_host(server.url), model="fake", max_reply_bytes=1000)
    server.on("hello", stream(lambda: endless(b"x" * 1000)))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    await client.aclose()
    assert caught.value.details["reason"] == "too_large"


async def test_the_attempt_ends_in_time_and_hangs_up(server: OllamaServer, client: OllamaClient, ask: Ask) -> None:
    server.on("hello", stream(Gate(), *THREE))
    await client.chat(ask("warm up"), lambda *_: None)
    with pytest.raises(ModelTimeout) as caught:
        await client.chat(ask(timeout_ms=500, idle_timeout_ms=1), lambda *_: None)
    await (await server.arrived("hello")).closed.wait()
    assert caught.value.code == "MODEL_TIMEOUT"
    assert caught.value.details == {"timeout_ms": 500, "idle": False}


async def test_silence_after_the_first_byte_ends_the_attempt(
    server: OllamaServer, client: OllamaClient, ask: Ask, heard: Heard
) -> None:
    server.on("hello", stream(THREE[0], Gate()))
    with pytest.raises(ModelTimeout) as caught:
        await client.chat(ask(idle_timeout_ms=100), heard)
    await (await server.arrived("hello")).closed.wait()
    assert caught.value.details == {"timeout_ms": 100, "idle": True}
    assert heard.of("text") == "one "


async def test_a_connection_left_open_after_the_last_line_is_not_waited_for(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.on("hello", stream(*LINES, Gate()))
    assert (await client.chat(ask(), lambda *_: None)).text == TEXT
    await (await server.arrived("hello")).closed.wait()


@pytest.mark.parametrize("when", ["before the first byte", "in the middle"])
async def test_cancelling_closes_the_connection_at_once(
    server: OllamaServer, client: OllamaClient, ask: Ask, when: str
) -> None:
    gate = Gate()
    server.on("hello", stream(*(() if when.startswith("before") else THREE), gate))
    call: CallModel = ask()
    task = asyncio.create_task(client.chat(call, lambda *_: None))
    request = await server.arrived("hello")
    await gate.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await request.closed.wait()
    server.on("again", stream(*LINES))
    assert (await client.chat(ask("again"), lambda *_: None)).text == TEXT
