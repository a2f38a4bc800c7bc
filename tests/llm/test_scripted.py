"""The scripted model: what it is told to say it says, and it keeps account."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_graph import errors
from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.llm.base import ModelClient, ModelInfo
from agent_graph.llm.scripted import ERRORS, Reply, ScriptedModel
from tests.fakes.pictures import PNG
from tests.llm.conftest import Ask, Heard


async def test_the_first_reply_that_fits_the_last_user_message_is_given(ask: Ask, heard: Heard) -> None:
    model: ModelClient = ScriptedModel(
        [Reply(when="capital", text="Paris it is", chunks=3, thinking="hm"), Reply(when="capital", text="never")]
    )
    got = await model.chat(ask("the capital of France", model="m1"), heard)
    assert got == ModelAnswer(
        "Paris it is", "hm", model="m1", performer="server:scripted/m1", prompt_tokens=4, completion_tokens=3,
        total_ms=0, load_ms=0,
    )  # fmt: skip
    assert heard.pieces == [("thinking", "hm"), ("text", "Pari"), ("text", "s it"), ("text", " is")]
    assert await model.models() == (ModelInfo("scripted", capabilities=("completion", "thinking", "tools", "vision")),)
    await model.aclose()


async def test_a_reply_is_used_up_and_the_next_takes_over(ask: Ask) -> None:
    model = ScriptedModel([Reply(text="one", times=1), Reply(text="two", times=1)], default=Reply(text="rest"))
    assert [(await model.chat(ask(), lambda *_: None)).text for _ in range(4)] == ["one", "two", "rest", "rest"]
    assert model.count("hello") == 4
    assert [call.messages[0]["content"] for call in model.calls] == ["hello"] * 4


async def test_a_reply_may_be_for_one_model_only(ask: Ask) -> None:
    model = ScriptedModel([Reply(model="big", text="big"), Reply(text="any")])
    assert (await model.chat(ask(model="small"), lambda *_: None)).text == "any"
    assert (await model.chat(ask(model="big"), lambda *_: None)).text == "big"


async def test_a_message_nobody_foresaw_is_refused_with_the_message(ask: Ask) -> None:
    with pytest.raises(errors.ModelRefused) as caught:
        await ScriptedModel([Reply(when="x", text="x")]).chat(ask("surprise"), lambda *_: None)
    assert caught.value.code == "MODEL_REFUSED"
    assert "surprise" in caught.value.message


async def test_what_is_said_can_be_told_in_full(ask: Ask) -> None:
    model = ScriptedModel([Reply(json=None, done_reason="length", prompt_tokens=5, completion_tokens=6)])
    got = await model.chat(ask(), lambda *_: None)
    assert (got.text, got.done_reason, got.prompt_tokens, got.completion_tokens) == ("null", "length", 5, 6)


@pytest.mark.parametrize(
    ("said", "text"),
    [("plain", "plain"), ({"a": "\u00e9"}, '{"a": "\u00e9"}'), ([1], "[1]"), (Reply(text="r"), "r"),
     (ModelAnswer("whole"), "whole")],
)  # fmt: skip
async def test_a_function_may_answer_with_anything_that_is_an_answer(
    ask: Ask, heard: Heard, said: Any, text: str
) -> None:
    async def answer(call: CallModel) -> Any:
        return said

    assert (await ScriptedModel(answer).chat(ask(), heard)).text == text
    assert heard.of("text") == text


@pytest.mark.parametrize("code", sorted(ERRORS))
async def test_each_error_of_a_model_can_be_scripted(ask: Ask, code: str) -> None:
    model = ScriptedModel([Reply(error={"code": code, "message": "so it is", "retry_after_ms": 5})])
    with pytest.raises(ERRORS[code]) as caught:
        await model.chat(ask(), lambda *_: None)
    assert (caught.value.code, caught.value.message) == (code, "so it is")
    assert caught.value.details == {"retry_after_ms": 5}


async def test_the_time_limits_of_a_call_hold(ask: Ask) -> None:
    model = ScriptedModel([Reply(when="slow", text="x", delay_ms=60_000),
                           Reply(text="xy", chunks=2, chunk_delay_ms=60_000)])  # fmt: skip
    for prompt, limits, idle in (("slow", {"timeout_ms": 20}, False), ("halting", {"idle_timeout_ms": 20}, True)):
        with pytest.raises(errors.ModelTimeout) as caught:
            await model.chat(ask(prompt, **limits), lambda *_: None)
        assert caught.value.details == {"timeout_ms": 20, "idle": idle}


async def test_calls_under_way_together_are_counted(ask: Ask) -> None:
    together = asyncio.Barrier(3)

    async def answer(call: CallModel) -> str:
        await together.wait()
        return "ok"

    model = ScriptedModel(answer)
    await asyncio.gather(*(model.chat(ask(), lambda *_: None) for _ in range(3)))
    assert model.most_at_once == 3


SCRIPT = {
    "replies": [
        {"when": "analyst", "text": "Looks sound.", "chunks": 3, "times": 1},
        {"when": "coordinator", "json": {"verdict": "go"}, "thinking": "let me see"},
        {"when": "flaky", "error": {"code": "MODEL_UNREACHABLE", "message": "gone"}},
        {"when": "weather", "tool_calls": [{"name": "forecast", "arguments": {"city": "Oslo"}}], "times": 1},
        {"result": "rain", "text": "Take an umbrella."},
        {"images": 2, "text": "Two pictures.", "done_reason": "length"},
    ],
    "default": {"text": "A fine answer."},
}


async def test_a_script_is_read_from_a_file(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT))
    model = ScriptedModel.from_file(path, parallel=2)
    asked = ["analyst", "coordinator", "analyst"]
    got = [await model.chat(ask(prompt), lambda *_: None) for prompt in asked]
    assert [answer.text for answer in got] == ["Looks sound.", '{"verdict": "go"}', "A fine answer."]
    assert got[1].thinking == "let me see"
    assert model.parallel == 2
    with pytest.raises(errors.ModelUnreachable, match="gone"):
        await model.chat(ask("flaky"), lambda *_: None)


async def test_a_script_plays_tool_calls_pictures_and_cut_answers(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT))
    model = ScriptedModel.from_file(path)
    wants = await model.chat(ask("weather"), lambda *_: None)
    assert wants.tool_calls == ({"id": "", "name": "forecast", "arguments": {"city": "Oslo"}},)
    result = {"role": "tool", "content": "rain all day", "call_id": "t1", "name": "forecast"}
    told = CallModel((*ask("weather").messages, result))  # type: ignore[arg-type]  # a JSON object
    assert (await model.chat(told, lambda *_: None)).text == "Take an umbrella."
    shown = CallModel(({"role": "user", "content": "what is it?", "images": [PNG, PNG]},))
    cut = await model.chat(shown, lambda *_: None)
    assert (cut.text, cut.done_reason) == ("Two pictures.", "length")
    assert (await model.chat(ask("rain"), lambda *_: None)).text == "A fine answer."


async def test_a_script_may_be_nothing_but_a_default_or_nothing_but_replies(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "script.json"
    for script in ({"default": {"text": "x"}}, {"replies": [{"text": "x"}]}):
        path.write_text(json.dumps(script))
        assert (await ScriptedModel.from_file(path).chat(ask(), lambda *_: None)).text == "x"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", 'must be an object with "replies"'),
        ("{}", 'has neither "replies" nor a "default"'),
        ('{"reply": []}', 'has no field "reply"; did you mean "replies"?'),
        ('{"replies": {}}', "replies: must be a list"),
        ('{"replies": [1]}', "replies/0: must be an object"),
        ('{"replies": [{"text": "x"}, {"txt": "x"}]}', 'replies/1: has no field "txt"; did you mean "text"?'),
        ('{"replies": [{"zzz": "x"}]}', 'has no field "zzz"; it may have text'),
        ('{"replies": [{"text": 1}]}', '"text" must be a text'),
        ('{"replies": [{"text": "x", "chunks": true}]}', '"chunks" must be a whole number'),
        ('{"replies": [{"text": "x", "chunks": 0}]}', '"chunks" must be at least 1'),
        ('{"replies": [{"text": "x", "delay_ms": -1}]}', '"delay_ms" must be at least 0'),
        ('{"replies": [{"when": "x"}]}', 'must have one of "text", "json", "error" and "tool_calls"'),
        ('{"replies": [{"text": "x", "json": 1}]}', 'must have one of "text", "json", "error" and "tool_calls"'),
        ('{"default": {"tool_calls": {}}}', '"tool_calls" must be a list'),
        ('{"default": {"tool_calls": [{"arguments": {}}]}}', 'each of "tool_calls" must be an object with a "name"'),
        ('{"default": {"error": "x"}}', 'default: "error" must be an object'),
        ('{"default": {"error": {"code": "OOPS"}}}', "the error's code must be one of MODEL_BAD_REPLY"),
    ],
)
def test_a_bad_script_says_what_is_wrong_and_where(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(errors.SettingInvalid) as caught:
        ScriptedModel.from_file(path)
    assert caught.value.code == "SETTING_INVALID"
    assert says in caught.value.message
    assert str(path) in caught.value.message


def test_a_script_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(errors.SettingInvalid, match=r"cannot be read: No such file"):
        ScriptedModel.from_file(tmp_path / "none.json")


def test_a_script_that_is_no_text_says_so(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(errors.SettingInvalid, match="is not JSON"):
        ScriptedModel.from_file(path)
