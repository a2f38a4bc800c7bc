"""What a host says about itself is kept within bounds and as JSON, whatever it is."""

from __future__ import annotations

import gzip
import json

import pytest

from agent_graph.core.jsonvalue import check_value
from agent_graph.errors import ModelServerError, ModelTimeout
from agent_graph.llm.ollama import OllamaClient
from agent_graph.llm.ollama_words import LABEL_CHARS
from agent_graph.llm.refusals import KEPT
from tests.fakes.ollama_server import OllamaServer, Response, encoded, last_line, line, stream
from tests.llm.conftest import Ask


@pytest.mark.parametrize("word", ["half \ud800", "w" * 1_000_000])
@pytest.mark.parametrize("name", ["model", "done_reason"])
async def test_a_hosts_words_about_its_answer_are_whole_and_short(
    server: OllamaServer, client: OllamaClient, ask: Ask, name: str, word: str
) -> None:
    last = json.dumps({**last_line(), name: word}).encode() + b"\n"
    server.on("hello", stream(*encoded([line("hi")]), last))
    answer = await client.chat(ask(), lambda *_: None)
    kept = getattr(answer, name)
    check_value(kept, max_depth=1)
    assert kept.startswith(word[:4])
    assert len(kept) <= LABEL_CHARS


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("word", ["half \ud800", "w" * 1_000_000])
async def test_a_hosts_own_error_text_is_whole_and_short(
    server: OllamaServer, client: OllamaClient, ask: Ask, word: str, status: int
) -> None:
    server.on("hello", Response((json.dumps({"error": word}).encode() + b"\n",), status))
    with pytest.raises(ModelServerError) as caught:
        await client.chat(ask(), lambda *_: None)
    check_value(dict(caught.value.details), max_depth=2)
    check_value(caught.value.message, max_depth=1)
    assert word[:4] in caught.value.message
    assert len(caught.value.message) < KEPT + 200


@pytest.mark.parametrize("count", ["9" * 4_000, "-1", "1.5", "NaN", "true", '"7"'])
async def test_a_count_that_is_none_counts_as_not_said(
    server: OllamaServer, client: OllamaClient, ask: Ask, count: str
) -> None:
    last = f'{{"done":true,"prompt_eval_count":{count}}}\n'
    server.on("hello", stream(*encoded([line("hi")]), last.encode()))
    answer = await client.chat(ask(), lambda *_: None)
    assert (answer.text, answer.prompt_tokens) == ("hi", None)


async def test_a_small_body_that_unpacks_to_millions_of_lines_holds_nobody_up(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    packed = gzip.compress(b"\n" * 60_000_000)
    server.on("hello", Response((packed,), headers=(("Content-Encoding", "gzip"),)))
    with pytest.raises(ModelTimeout):
        await client.chat(ask(timeout_ms=300), lambda *_: None)
