"""The node cache: off by default, never paid for, never between clients, and told in the events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.engine.answer_cache import key_of
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.tools.deps import Caller
from agent_graph.tools.registry import call
from tests.engine.room import Room, opened
from tests.fakes.ollama_server import Model, OllamaServer, answer, error
from tests.specs import Json, llm, spec


def asking(prompt: str = "ask", **config: Any) -> Json:
    return spec(llm("a", prompt, **({"cache": True, "seed": 7} | config)), edges="a>END")


async def hits(room: Room, run_id: str) -> list[e.CacheHit]:
    return await room.facts(run_id, e.CacheHit)


async def asked_twice(model: ScriptedModel, first: Json, second: Json) -> int:
    """How often the model was asked by two runs."""
    async with opened(model) as room:
        for graph in (first, second):
            assert (await room.run(graph)).status == "completed"
    return len(model.calls)


async def test_the_answer_of_an_earlier_run_is_taken_and_not_paid_for() -> None:
    model = ScriptedModel([Reply(text="fine", thinking="hm")])
    async with opened(model) as room:
        paid = await room.run(asking())
        again = await room.run(asking())
        assert len(model.calls) == 1
        assert again.final_state == paid.final_state == ("fine",)
        (hit,) = await hits(room, again.run_id)
        assert (hit.firing, hit.run_id) == ("a#1", paid.run_id)
        assert (hit.answer["text"], hit.answer["thinking"]) == ("fine", "hm")
        assert not await room.facts(again.run_id, e.ModelAnswered)
        assert again.usage == {"llm_calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "nodes": 1, "cache_hits": 1}
        assert "cache_hits" not in paid.usage
        events = (await room.data("graph_run_events", run_id=again.run_id))["events"]
        assert "cache_hit" in [event["type"] for event in events]


async def test_a_hit_is_a_recorded_choice() -> None:
    async with opened(ScriptedModel([Reply(text="fine")])) as room:
        paid, again = await room.run(asking()), await room.run(asking())
        assert (await room.record(paid.run_id))["choices"] == []
        assert (await room.record(again.run_id))["choices"] == [{"type": "cache_hit", "firing": "a#1"}]


async def test_nothing_is_taken_that_was_not_asked_for() -> None:
    assert await asked_twice(ScriptedModel([Reply(text="x")]), asking(cache=False), asking(cache=False)) == 2
    assert await asked_twice(ScriptedModel([Reply(text="x")]), asking(cache=False), asking()) == 2


@pytest.mark.parametrize(
    "other",
    [{"prompt": "other"}, {"seed": 8}, {"model": "other"}, {"system": "s"}, {"think": True}, {"options": {"top_k": 1}},
     {"output_schema": {"type": "string", "maxLength": 9}}],
)  # fmt: skip
async def test_another_call_is_another_answer(other: dict[str, Any]) -> None:
    assert await asked_twice(ScriptedModel([Reply(text='"x"')]), asking(), asking(**other)) == 2


async def test_how_long_a_call_may_take_is_no_part_of_it() -> None:
    other = asking(timeout_ms=5, idle_timeout_ms=6, keep_alive="1m")
    assert await asked_twice(ScriptedModel([Reply(text="x")]), asking(), other) == 1


async def test_where_the_model_draws_only_the_same_firing_takes_its_answer() -> None:
    voters = spec(
        *(llm(name, "vote", cache=True, output_key=name) for name in ("a", "b", "c")),
        {"id": "j", "type": "join", "config": {"inputs": ["a", "b", "c"], "output": "all", "mode": "collect_array"}},
        entry="a", edges="a>b b>c c>j j>END",
    )  # fmt: skip
    model = ScriptedModel([Reply(text="one", times=1), Reply(text="two", times=1), Reply(text="three")])
    async with opened(model) as room:
        first, again = await room.run(voters), await room.run(voters)
        assert first.final_state == again.final_state == (["one", "two", "three"],)
        assert len(model.calls) == 3
        assert again.usage["cache_hits"] == 3


@pytest.mark.parametrize("fixed", [{"seed": 1}, {"temperature": 0}, {"options": {"temperature": 0}}])
async def test_where_it_does_not_draw_any_node_takes_it(fixed: dict[str, Any]) -> None:
    one = {**asking(**{"seed": None} | fixed), "name": "one"}
    two = spec(llm("b", "ask", cache=True, **fixed), edges="b>END", name="two")
    assert await asked_twice(ScriptedModel([Reply(text="x")]), one, two) == 1


async def test_an_answer_never_leaves_the_client_that_paid_for_it() -> None:
    model = ScriptedModel([Reply(text="x")])
    async with opened(model) as room:
        await room.run(asking())
        started = await call(room.deps, "graph_run_start", {"graph_id": "case", "input": "a question"},
                             caller=Caller("assistant", "another"))  # fmt: skip
        await room.ended(started["data"]["run_id"])
    assert len(model.calls) == 2


async def test_an_attempt_after_a_failed_one_asks_anew() -> None:
    model = ScriptedModel([Reply(text="no json", times=1), Reply(text='{"a":1}')])
    graph = asking(json_mode=True, repair=0, retry={"max_attempts": 2, "initial_delay_ms": 1})
    async with opened(model) as room:
        assert (await room.run(graph)).status == "completed"
        assert len(model.calls) == 2
        again = await room.run(graph)
        assert again.final_state == ({"a": 1},)
        assert len(model.calls) == 2  # the answer that could be used is the one that is remembered


async def test_answers_survive_a_restart_and_go_with_their_run(tmp_path: Path) -> None:
    async with opened(ScriptedModel([Reply(text="x")]), tmp_path) as room:
        first = await room.run(asking())
    model = ScriptedModel([Reply(text="y")])
    async with opened(model, tmp_path) as room:
        assert (await room.run(asking())).final_state == ("x",)
        assert model.calls == []
        assert await room.store.retention.prune([first.run_id]) == (first.run_id,)
        assert (await room.run(asking())).final_state == ("y",)


async def test_another_model_under_the_same_name_is_another_model() -> None:
    async with OllamaServer(Model("fake:latest", digest="a" * 64)) as server:
        client = OllamaClient(parse_host(server.url), model="fake")
        async with opened(client) as room:
            server.default = answer("old")
            assert (await room.run(asking())).final_state == ("old",)
            server.default = answer("new")
            assert (await room.run(asking())).final_state == ("old",)
            server.models = [Model("fake:latest", digest="c" * 64)]
            assert (await room.run(asking())).final_state == ("new",)
            assert (await room.run(asking(model="FAKE:latest"))).final_state == ("new",)
        await client.aclose()
    assert len(server.chats) == 2


async def test_where_the_host_lists_no_models_nothing_is_remembered_and_where_it_is_away_nothing_is_taken() -> None:
    async with OllamaServer() as server:
        client = OllamaClient(parse_host(server.url), model="fake")
        async with opened(client) as room:
            server.routes["/api/tags"] = error(404, "no such route")
            for _ in range(2):
                assert (await room.run(asking())).status == "completed"
            assert len(server.chats) == 2
            server.routes.clear()
            paid = await room.run(asking())
            (answered,) = await room.facts(paid.run_id, e.ModelAnswered)
            assert answered.cache_key
            await server.__aexit__(None, None, None)
            run_id = await room.start(asking(retry={"max_attempts": 1}))
            assert (await room.reaches(run_id, "interrupted")).error is not None
        await client.aclose()


def test_pictures_and_tools_are_part_of_a_call() -> None:
    plain = CallModel(({"role": "user", "content": "x"},))
    shown = CallModel(({"role": "user", "content": "x", "images": ["data:"]},))
    able = CallModel(({"role": "user", "content": "x"},), tools=({"name": "f"},))
    keys = {key_of(one, model_digest="d", host="h", scope={}, firing={}) for one in (plain, shown, able)}
    assert len(keys) == 3
    assert key_of(plain, model_digest="", host="h", scope={}, firing={}) not in keys
