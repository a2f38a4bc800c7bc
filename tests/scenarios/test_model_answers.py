"""Field cases of model answers (OL): what comes over Ollama's wire, and what the run makes of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from agent_graph.store.base import RunRow
from tests.engine.room import Room, opened
from tests.fakes.ollama_server import (
    Model,
    OllamaServer,
    Response,
    Step,
    answer,
    encoded,
    last_line,
    line,
    stream,
)
from tests.fakes.pictures import PNG_BYTES, data_url
from tests.specs import Json, llm, put, router, rule, spec


@asynccontextmanager
async def council_of_one(response: Response) -> AsyncIterator[tuple[Room, OllamaServer]]:
    """An engine whose model is an Ollama that always answers `response`."""
    async with OllamaServer(Model("fake:latest", ("completion", "thinking"))) as server:
        server.default = response
        client = OllamaClient(parse_host(server.url), model="fake")
        async with opened(client) as room:
            try:
                yield room, server
            finally:
                await client.aclose()


def asking(**config: Any) -> Json:
    return spec(llm("a", "ask", output_key="plan", **config), edges="a>END")


def refused(row: RunRow, code: str = "MODEL_BAD_REPLY") -> dict[str, Any]:
    """The error of a run that failed with `code`."""
    assert row.status == "failed"
    assert row.error is not None
    assert row.error["code"] == code
    return row.error


@pytest.mark.parametrize("reason", ["stop", "length"])
async def test_OL01_an_answer_that_is_all_thinking_is_no_answer(reason: str) -> None:
    async with council_of_one(answer("", thinking="so the plan is...", reason=reason)) as (room, server):
        row = await room.run(asking(json_mode=True))
        error = refused(row)
        assert error["details"]["reason"] == "empty"
        assert "17" in error["message"]  # characters of thinking
        assert "plan" not in await room.state(row.run_id)
        # The case says: left out when not set. Left out, a thinking model would think, so it is told not to.
        assert [request.body["think"] for request in server.chats] == [False] * 3


async def test_OL01_think_is_left_out_for_a_model_that_cannot() -> None:
    async with council_of_one(answer("fine")) as (room, server):
        server.models = [Model("fake:latest")]
        assert (await room.run(asking())).status == "completed"
        assert all("think" not in request.body for request in server.chats)


@pytest.mark.parametrize("think", [True, False, "high"])
async def test_OL01_think_is_sent_when_it_is_set(think: bool | str) -> None:
    async with council_of_one(answer("fine")) as (room, server):
        assert (await room.run(asking(think=think))).status == "completed"
        assert [request.body["think"] for request in server.chats] == [think]


async def test_OL03_blanks_without_end_after_a_whole_value_end_in_time_and_close_the_socket() -> None:
    async def blanks() -> AsyncIterator[bytes]:
        while True:
            yield encoded([line("\n")])[0]
            await asyncio.sleep(0.002)  # the model's pace

    async with council_of_one(stream(*encoded([line('{"a":1}')]), blanks)) as (room, server):
        begun = time.monotonic()
        row = await room.run(asking(json_mode=True, timeout_ms=1500))
        assert time.monotonic() - begun < 3
        async with asyncio.timeout(1):
            await server.chats[-1].closed.wait()
        if row.status == "completed":
            assert row.final_state == ({"a": 1},)
        else:
            assert row.error is not None
            assert row.error["code"] in ("MODEL_TIMEOUT", "MODEL_BAD_REPLY")


SAID = 'h\u00e9llo \U0001f600 one\u2028two \\"three\\"'


def split_anywhere(whole: bytes) -> tuple[Step, ...]:
    return tuple(bytes([byte]) for byte in whole)


def forms() -> dict[str, tuple[Step, ...]]:
    """One answer in many pieces, as networks and hosts cut them."""
    objects = [line(SAID[:7]), line(SAID[7:]), last_line()]
    lines = encoded(objects)
    whole = b"".join(lines)
    escaped = b"".join(json.dumps(each).encode() + b"\n" for each in objects)
    acute = escaped.index(b"\\u00e9") + 3
    smile = whole.index("\U0001f600".encode()) + 2
    return {
        "byte by byte": split_anywhere(whole),
        "in the middle of a sign of four bytes": (whole[:smile], whole[smile:]),
        "in the middle of an escape": (escaped[:acute], escaped[acute:]),
        "two objects in one packet": (lines[0] + lines[1], lines[2]),
        "with carriage returns": encoded(objects, end=b"\r\n"),
        "with an empty line": (lines[0], b"\n", *lines[1:]),
        "without a last line end": (whole.rstrip(b"\n"),),
    }


@pytest.mark.parametrize("form", forms().values(), ids=forms())
async def test_OL06_however_the_stream_is_cut_the_text_is_the_same(form: tuple[Step, ...]) -> None:
    async with council_of_one(stream(*form)) as (room, _):
        assert (await room.run(asking())).final_state == (SAID,)


BEGUN = encoded([line("The pl"), line("an is"), line(" to")])


@pytest.mark.parametrize(
    ("response", "codes"),
    [
        (stream(*BEGUN, "eof"), ("MODEL_BAD_REPLY",)),
        (stream(*BEGUN), ("MODEL_BAD_REPLY",)),
        (stream(*BEGUN, "rst"), ("MODEL_BAD_REPLY", "MODEL_UNREACHABLE", "MODEL_SERVER_ERROR")),
        (stream("eof"), ("MODEL_BAD_REPLY", "MODEL_UNREACHABLE", "MODEL_SERVER_ERROR")),
    ],
    ids=["the connection ends", "the body ends", "the connection is reset", "nothing came"],
)
async def test_OL08_an_answer_that_was_cut_off_is_never_taken_for_a_whole_one(
    response: Response, codes: tuple[str, ...]
) -> None:
    """A host that cannot be reached interrupts the run; every other cut fails it."""
    async with council_of_one(response) as (room, _):
        run_id = await room.start(asking())
        row = await room.supervisor.wait(
            run_id, timeout_ms=10_000, until=lambda row: row.status in ("completed", "failed", "interrupted")
        )
        assert row.status in ("failed", "interrupted")
        assert row.error is not None
        assert row.error["code"] in codes
        assert "plan" not in await room.state(run_id)
        assert not await room.facts(run_id, e.ModelAnswered)


async def test_OL09_a_text_cut_by_length_is_kept_and_says_so() -> None:
    async with council_of_one(answer("The plan is to fir", reason="length", out=16)) as (room, server):
        row = await room.run(asking(max_tokens=16))
        assert (row.status, row.final_state) == ("completed", ("The plan is to fir",))
        assert row.usage["completion_tokens"] == 16
        assert server.chats[0].body["options"]["num_predict"] == 16
        (warning,) = await room.facts(row.run_id, e.Warned)
        assert "length" in f"{warning.code} {warning.message} {warning.details}".lower()
        (answered,) = await room.facts(row.run_id, e.ModelAnswered)
        assert answered.answer["done_reason"] == "length"


async def test_OL09_json_cut_by_length_is_an_error_that_says_length() -> None:
    async with council_of_one(answer('{"a": [1,2', reason="length", out=16)) as (room, _):
        error = refused(await room.run(asking(json_mode=True)))
        assert error["details"]["reason"] == "length"


async def test_OL09_a_text_cut_by_length_fails_where_the_node_asks_for_that() -> None:
    async with council_of_one(answer("The plan", reason="length")) as (room, _):
        assert refused(await room.run(asking(on_length="error")))["details"]["reason"] == "length"


LONG = {f"a{n}": "An analyst's finding, at length. " * 1_250 for n in range(3)}
"""Three texts of 40 kB."""


@pytest.mark.parametrize("on_length", ["keep", "error"])
async def test_OL05_a_prompt_the_host_has_cut_is_said_and_can_be_fatal(on_length: str) -> None:
    synthesis = spec(llm("syn", "{a0}{a1}{a2}", on_length=on_length), edges="syn>END")
    async with council_of_one(answer("from what is left", prompt=2_050)) as (room, server):
        row = await room.run(synthesis, LONG)
        assert len(server.chats) == 1
        if on_length == "error":
            assert refused(row, "PROMPT_TRUNCATED")["details"]["prompt_tokens"] == 2_050
            return
        assert row.status == "completed"
        (warning,) = await room.facts(row.run_id, e.Warned)
        assert warning.code == "PROMPT_TRUNCATED"
        assert warning.details["prompt_tokens"] == 2_050


async def test_OL05_num_ctx_reaches_the_host() -> None:
    async with council_of_one(answer("fine")) as (room, server):
        assert (await room.run(asking(options={"num_ctx": 16_384}))).status == "completed"
        assert server.chats[0].body["options"] == {"num_ctx": 16_384}


async def test_pictures_of_the_input_reach_the_model_and_are_shown_by_their_digest() -> None:
    picture = data_url("image/png", PNG_BYTES + bytes(1_000))
    looking = spec(llm("a", "what is it?", images=["{photo}"]), edges="a>END")
    async with council_of_one(answer("a dot")) as (room, server):
        server.models = [Model("fake:latest", ("completion", "vision"))]
        row = await room.run(looking, {"photo": picture})
        assert row.final_state == ("a dot",)
        (sent,) = server.chats[0].body["messages"]
        assert sent["images"] == [picture.partition(",")[2]]
        (accepted, *_) = (await room.data("graph_run_events", run_id=row.run_id))["events"]
        assert accepted["input"]["photo"].startswith("data:image/png;bytes=1070;sha256:")
        assert (await room.state(row.run_id))["photo"] == picture


@pytest.mark.parametrize("photo", ["/etc/passwd", "https://example.org/a.png"])
async def test_no_file_and_no_address_is_ever_read_for_a_picture(photo: str) -> None:
    looking = spec(llm("a", "what is it?", images=["{photo}"]), edges="a>END")
    async with council_of_one(answer("a dot")) as (room, server):
        error = refused(await room.run(looking, {"photo": photo}), "IMAGE_INVALID")
        assert "passwd" not in error["message"]
        assert server.requests == []


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('```json\n{"a":1}\n```', {"a": 1}),
        ('json\n```json\n{"a":1}\n```', {"a": 1}),
        ('Run:\n```bash\nls\n```\n{"a":1}', {"a": 1}),
        ("[1,2]", [1, 2]),
        ('"text"', "text"),
    ],
)
async def test_OL04_one_json_value_is_taken_out_of_its_wrapping(content: str, value: object) -> None:
    """The prose with a bash block before the JSON is taken: of the brackets in it only the JSON's own are there."""
    then = spec(
        llm("a", "ask", json_mode=True, output_key="plan"), put("yes", took=True), put("no", took=False),
        router("r", rule("/plan/a", "eq", 1, "yes"), default=["no"]), edges="a>r yes>END no>END", output_key="plan",
    )  # fmt: skip
    async with council_of_one(answer(content)) as (room, server):
        row = await room.run(then)
        assert row.final_state == (value,)
        assert len(server.chats) == 1
        assert (await room.state(row.run_id))["took"] == isinstance(value, dict)


@pytest.mark.parametrize("content", ['{\n\n{\n"a":1}', '{"a":1} {"a":2}'])
async def test_OL04_nothing_is_guessed_and_the_raw_text_is_kept(content: str) -> None:
    async with council_of_one(answer(content)) as (room, server):
        error = refused(await room.run(asking(json_mode=True, retry={"max_attempts": 1})))
        assert (error["details"]["reason"], error["details"]["text"]) == ("json", content)
        first, mending = server.chats
        assert mending.body["messages"][1] == {"role": "assistant", "content": content}
        assert "not JSON" in mending.body["messages"][2]["content"]
        assert first.body["format"] == mending.body["format"] == "json"


async def test_OL14_a_host_that_ignores_the_form_is_told_once_and_then_it_is_an_error() -> None:
    async with council_of_one(answer("I would say yes.")) as (room, server):
        error = refused(await room.run(asking(json_mode=True, retry={"max_attempts": 1})))
        assert (error["details"]["reason"], error["details"]["text"]) == ("json", "I would say yes.")
        assert len(server.chats) == 2


BIG = 2**53 + 1
HUGE = 10**400 + 7


@pytest.mark.parametrize("number", [BIG, HUGE, -HUGE, 18446744073709551616])
@pytest.mark.parametrize("form", ["json_mode", "output_schema"])
async def test_huge_integers_are_exact_through_the_form_of_an_answer(number: int, form: str) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "enum": [number]}}, "required": ["n"]}
    config = {"json_mode": True} if form == "json_mode" else {"output_schema": schema}
    then = spec(llm("a", "ask", output_key="plan", **config), llm("b", "{plan.n} {plan|json}"), edges="a>b b>END")
    async with council_of_one(answer(f'{{"n": {number}}}')) as (room, server):
        row = await room.run(then)
        assert row.status == "completed"
        assert (await room.state(row.run_id))["plan"] == {"n": number}
        assert server.chats[1].prompt == f'{number} {{"n":{number}}}'
        if form == "output_schema":
            assert server.chats[0].body["format"]["properties"]["n"]["enum"] == [number]


async def test_an_integer_one_off_is_not_the_one_of_the_schema_and_one_too_long_is_refused() -> None:
    schema = {"type": "integer", "maximum": BIG, "minimum": BIG}
    once = {"repair": 0, "retry": {"max_attempts": 1}}
    async with council_of_one(answer(str(BIG - 1))) as (room, server):
        assert refused(await room.run(asking(output_schema=schema, **once)))["details"]["reason"] == "schema"
        server.default = answer("1" * 5_000)
        error = refused(await room.run(asking(json_mode=True, **once)))
        assert error["details"]["reason"] == "json"
        assert "digits" in error["message"]
