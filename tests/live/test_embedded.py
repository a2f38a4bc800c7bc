"""The embedded model for real: what it says is a small model's, how it says it is tested."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelBadReply, ModelNotFound, ModelRefused, ModelTimeout
from agent_graph.llm.base import ModelClient
from agent_graph.llm.embedded import EmbeddedClient
from agent_graph.llm.weights import SMOLLM2, installed_weights
from tests.live.weights import MODEL, models_dir, needs_the_embedded_model

pytestmark = needs_the_embedded_model
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}},
    "required": ["name"],
    "additionalProperties": False,
}


def ask(prompt: str, **fields: object) -> CallModel:
    return CallModel(({"role": "user", "content": prompt},), **fields)  # type: ignore[arg-type]


@pytest.fixture
async def model() -> AsyncIterator[EmbeddedClient]:
    client = EmbeddedClient(models_dir())
    yield client
    await client.aclose()


async def test_it_answers_and_counts_and_says_nothing_on_stdout(
    model: EmbeddedClient, capfd: pytest.CaptureFixture[str]
) -> None:
    client: ModelClient = model
    heard: list[str] = []
    call = ask("Name one fruit.", options={"num_predict": 8, "seed": 1})
    first = await client.chat(call, lambda kind, piece: heard.append(piece))
    again = await client.chat(call, lambda *_: None)
    assert first.text == "".join(heard) != ""
    assert again.text == first.text
    assert (first.model, first.performer) == (MODEL, f"server:embedded/{MODEL}")
    assert first.model_digest == SMOLLM2.file_sha256
    assert first.prompt_tokens == again.prompt_tokens
    assert first.prompt_tokens is not None
    assert first.prompt_tokens > 5
    assert first.completion_tokens in range(1, 9)
    assert first.load_ms
    assert again.load_ms == 0
    assert first.warnings == ()
    assert capfd.readouterr().out == ""


async def test_a_short_limit_ends_it_by_length(model: EmbeddedClient) -> None:
    got = await model.chat(ask("Count from one to fifty.", options={"num_predict": 3}), lambda *_: None)
    assert (got.done_reason, got.completion_tokens) == ("length", 3)


async def test_a_schema_is_followed(model: EmbeddedClient) -> None:
    got = await model.chat(ask("Invent a name.", format=SCHEMA), lambda *_: None)
    assert got.done_reason == "stop"
    assert set(json.loads(got.text)) == {"name"}


async def test_json_mode_gives_json_or_says_that_it_was_cut(model: EmbeddedClient) -> None:
    got = await model.chat(ask("Reply with {}", format="json", options={"num_predict": 64}), lambda *_: None)
    if got.done_reason == "stop":
        json.loads(got.text)


async def test_a_prompt_that_does_not_fit_is_refused_and_not_shortened() -> None:
    client = EmbeddedClient(models_dir(), context=256)
    with pytest.raises(ModelRefused, match="exceeds the available context"):
        await client.chat(ask("word " * 400), lambda *_: None)
    await client.aclose()


async def test_what_it_cannot_do_is_refused_or_warned_about(model: EmbeddedClient) -> None:
    with pytest.raises(ModelRefused, match="does not support thinking"):
        await model.chat(ask("x", think=True), lambda *_: None)
    with pytest.raises(ModelRefused, match="does not take this request"):
        await model.chat(ask("x", format={"type": "wrong"}), lambda *_: None)
    with pytest.raises(ModelRefused, match="temperature"):
        await model.chat(ask("x", options={"temperature": "hot"}), lambda *_: None)
    with pytest.raises(ModelNotFound, match="installed are"):
        await model.chat(ask("x", model="llama3.2"), lambda *_: None)
    options = {"num_predict": 1, "num_ctx": 100_000, "num_gpu": 1, "temprature": 1}
    got = await model.chat(ask("x", think=False, options=options), lambda *_: None)
    assert [warning["code"] for warning in got.warnings] == ["OPTION_UNKNOWN", "OPTION_IGNORED", "OPTION_IGNORED"]
    fits = await model.chat(ask("x", options={"num_predict": 1, "num_ctx": 1024}), lambda *_: None)
    assert fits.warnings == ()


async def test_cancelling_ends_the_generation(model: EmbeddedClient) -> None:
    started = asyncio.Event()
    call = ask("Tell a very long story.", options={"num_predict": 4000, "seed": 3})
    task = asyncio.create_task(model.chat(call, lambda *_: started.set()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # There is one thread: the next call is served only because the story ended.
    got = await model.chat(ask("Hi", options={"num_predict": 2}), lambda *_: None)
    assert got.completion_tokens is not None


async def test_a_call_given_up_while_its_prompt_is_read_does_not_hold_up_the_next(model: EmbeddedClient) -> None:
    await model.chat(ask("Hi", options={"num_predict": 1}), lambda *_: None)
    with pytest.raises(ModelTimeout):
        await model.chat(ask("something else " * 1700, timeout_ms=300), lambda *_: None)
    got = await model.chat(ask("Hi", timeout_ms=12_000, options={"num_predict": 1}), lambda *_: None)
    assert got.completion_tokens == 1


async def test_the_attempt_ends_in_time(model: EmbeddedClient) -> None:
    await model.chat(ask("Hi", options={"num_predict": 1}), lambda *_: None)
    with pytest.raises(ModelTimeout):
        await model.chat(ask("Tell a long story.", timeout_ms=300, options={"num_predict": 4000}), lambda *_: None)


async def test_closing_ends_what_is_under_way_and_a_later_call_loads_again() -> None:
    client = EmbeddedClient(models_dir())
    started = asyncio.Event()
    task = asyncio.create_task(
        client.chat(ask("Tell a very long story.", options={"num_predict": 4000, "seed": 3}), lambda *_: started.set())
    )
    await started.wait()
    await client.aclose()
    with pytest.raises(ModelBadReply) as caught:
        await task
    assert caught.value.details["reason"] == "cut"
    assert (await client.chat(ask("Hi", options={"num_predict": 1}), lambda *_: None)).load_ms
    await client.aclose()


async def test_any_other_file_can_be_named_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.symlink_to(installed_weights(models_dir())[MODEL])
    client = EmbeddedClient(models_dir(), model=str(mine))
    for name in ("", str(mine), "mine"):
        got = await client.chat(ask("Hi", model=name, options={"num_predict": 1}), lambda *_: None)
        assert got.performer == "server:embedded/mine"
    await client.aclose()

    broken = tmp_path / "models" / "broken.gguf"
    broken.parent.mkdir()
    broken.write_bytes(b"GGUF and no more")
    client = EmbeddedClient(broken.parent, model="broken")
    with pytest.raises(ModelRefused, match="cannot be loaded"):
        await client.chat(ask("Hi"), lambda *_: None)
    await client.aclose()


def test_the_pinned_digest_is_that_of_the_weights() -> None:
    with installed_weights(models_dir())[MODEL].open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SMOLLM2.file_sha256
