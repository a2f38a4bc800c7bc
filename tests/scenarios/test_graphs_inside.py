"""Field cases of graphs inside graphs: ST01, AP03, AP05, CF01 and the five subgraphs of one step."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Room, asked, opened
from tests.fakes.ollama_server import Gate, OllamaServer, encoded, line, stream
from tests.specs import Json, gate, join, llm, passthrough, put, spec, subgraph, transform

APPENDS: Json = {"reducers": {"log": "append"}, "output_key": "log"}


def appends(node_id: str, value: str) -> Json:
    return transform(node_id, {"op": "append", "path": "log", "value": value})


async def test_ST01_a_list_comes_back_from_a_graph_inside_once_and_not_doubled() -> None:
    async with opened(ScriptedModel()) as room:
        await room.create(spec(appends("c", "c"), edges="c>END", name="inner", **APPENDS))
        deeper = subgraph("sg", "inner", input={"from": "log"}, output={"log": "log"})
        for name, deep in (("one", "inner"), ("two", "middle")):
            await room.create(spec(appends("m", "m"), deeper, edges="m>sg sg>END", name="middle", **APPENDS))
            inside = subgraph("sg", deep, input={"from": "log"}, output={"log": "log"})
            graph = spec(
                appends("p1", "p1"), inside, appends("p2", "p2"), edges="p1>sg sg>p2 p2>END", name=name, **APPENDS
            )
            (log,) = (await room.run(graph, {})).final_state
            assert log == ["p1", *(["m"] if deep == "middle" else []), "c", "p2"]


async def test_AP03_two_pauses_of_one_shape_have_ids_of_their_own_and_say_where_they_stand() -> None:
    asks = spec(
        gate("ok", on_reject=["no"]), put("yes", said="yes"), put("no", said="no"), edges="ok>yes yes>END no>END",
        name="asks", output_key="said",
    )  # fmt: skip
    both = spec(
        passthrough("s"), subgraph("sg1", "asks"), subgraph("sg2", "asks"), join("j", ["sg1", "sg2"], "said"),
        edges="s>sg1 s>sg2 sg1>j sg2>j j>END", output_key="said",
    )  # fmt: skip
    async with opened(ScriptedModel()) as room:
        await room.create(asks)
        run_id = await room.start(both, {})
        await room.reaches(run_id, "waiting")
        pending = {one["node_path"]: one for one in await room.pending(run_id)}
        assert [*pending] == ["sg1#1/ok#1", "sg2#1/ok#1"]
        assert {one["node_id"] for one in pending.values()} == {"ok"}
        first, second = (one["approval_id"] for one in pending.values())
        assert first != second
        await room.decide(first, "approve")
        await room.decide(second, "reject")
        assert (await room.ended(run_id)).final_state == (["yes", "no"],)
        before = len(await room.log(run_id))
        refused = await room.decide(first, "reject")
        assert refused["error_code"] == "APPROVAL_ALREADY_DECIDED"
        assert len(await room.log(run_id)) == before


AP05 = spec(put("a", seen=1), gate("h1"), llm("b"), gate("h2"), llm("c"), edges="a>h1 h1>b b>h2 h2>c c>END", name="two")


@pytest.mark.parametrize("restarted", [False, True])
async def test_AP05_the_second_pause_inside_a_graph_inside_goes_on_too(tmp_path: Path, restarted: bool) -> None:
    model = ScriptedModel([Reply("fine")])
    around = spec(subgraph("sg", "two"), edges="sg>END", name="around")

    async def decide(room: Room, run_id: str, path: str) -> str:
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        assert pending["node_path"] == path
        assert (await room.decide(pending["approval_id"]))["ok"]
        return str(pending["approval_id"])

    async with opened(model, tmp_path) as room:
        await room.create(AP05)
        run_id = await room.start(around, {})
        first = await decide(room, run_id, "sg#1/h1#1")
        if not restarted:
            second = await decide(room, run_id, "sg#1/h2#1")
            assert (await room.ended(run_id)).status == "completed"
        else:
            await room.reaches(run_id, "waiting")
    if restarted:
        async with opened(model, tmp_path) as room:
            second = await decide(room, run_id, "sg#1/h2#1")
            assert (await room.ended(run_id)).status == "completed"
    assert first != second
    assert asked(model, "b", "c") == [1, 1]


@pytest.mark.parametrize("held", ["streaming", "silent"])
async def test_CF01_cancelling_reaches_down_to_the_socket_of_a_graph_inside(held: str) -> None:
    hold = Gate()
    async with OllamaServer() as server:
        lines = encoded([line("half of")]) if held == "streaming" else ()
        server.on("first", stream(*lines, hold))
        async with opened(OllamaClient(parse_host(server.url), model="fake")) as room:
            await room.create(
                spec(llm("first"), llm("second"), llm("third"), edges="first>second second>third", name="in")
            )
            run_id = await room.start(spec(subgraph("sg", "in"), edges="sg>END"))
            request = await server.arrived("first")
            await hold.reached.wait()
            asked_at = time.monotonic()
            await room.data("graph_run_cancel", run_id=run_id, reason="enough")
            async with asyncio.timeout(5):
                await request.closed.wait()
            assert time.monotonic() - asked_at < 1
            row = await room.ended(run_id)
            assert (row.status, row.error) == ("cancelled", {"code": "CANCELLED", "message": "enough"})
            cancelled = [fact.firing for fact in await room.facts(run_id, e.FiringCancelled)]
            assert cancelled == ["sg#1/first#1", "sg#1"]
            assert (server.count("second"), server.count("third")) == (0, 0)
            again = await room.data("graph_run_cancel", run_id=run_id, reason="again")
            assert again["status"] == "cancelled"
            await room.deps.models.aclose()


async def test_reproduction_9_five_graphs_inside_one_step_all_run() -> None:
    names = [f"sg{n}" for n in range(5)]
    wires = " ".join(f"s>{name} {name}>j" for name in names)
    around = spec(passthrough("s"), *(subgraph(name, "in") for name in names), join("j", names), edges=f"{wires} j>END")
    model = ScriptedModel([Reply("fine")])
    async with opened(model) as room:
        await room.create(spec(llm("a", "{input}"), edges="a>END", name="in"))
        row = await room.run(around, "q")
        assert row.status == "completed"
        assert model.count("q") == 5
        (answers,) = row.final_state
        assert isinstance(answers, list)
        assert len(answers) == 5


async def refusals(room: Room, graph: Json) -> list[str]:
    before = await room.counts()
    refused = await room.call("graph_create", spec=graph)
    assert refused["error_code"] == "SPEC_INVALID"
    assert await room.counts() == before, "a graph that is refused is not stored"
    return [issue["code"] for issue in refused["details"]["issues"]]


async def test_a_graph_that_names_what_is_not_stored_or_itself_is_refused_and_nothing_is_stored() -> None:
    async with opened(ScriptedModel()) as room:
        assert await refusals(room, spec(subgraph("s", "nobody"))) == ["SUBGRAPH_NOT_FOUND"]
        assert await refusals(room, spec(subgraph("s", "case"))) == ["SUBGRAPH_CYCLE"]


async def test_a_stored_graph_goes_on_with_the_version_it_was_stored_with(tmp_path: Path) -> None:
    around: Any = spec(subgraph("s", "in"), edges="s>END", name="around")
    model = ScriptedModel([Reply("fine")])
    async with opened(model, tmp_path) as room:
        older = await room.create(spec(llm("a", "old"), edges="a>END", name="in"))
        await room.create(around)
        await room.create(spec(llm("a", "new"), edges="a>END", name="in"))
        shown = await room.data("graph_inspect", graph_id="around")
        assert older["graph_version"] in str(shown["nodes"])
    async with opened(model, tmp_path) as room:
        run_id = (await room.data("graph_run_start", graph_id="around", input="x"))["run_id"]
        assert (await room.ended(run_id)).status == "completed"
    assert asked(model, "old", "new") == [1, 0]
