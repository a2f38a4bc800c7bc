"""Field cases of failure: JB05, CF03, CF04, OL12 and OL14, on Ollama's wire."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.engine.room import Room, opened
from tests.fakes.ollama_server import Gate, OllamaServer, answer, busy, error, stream
from tests.specs import Json, join, llm, node, passthrough, spec

QUICK = {"initial_delay_ms": 5, "max_delay_ms": 20}
BROKEN = error(500, "llama runner process has terminated")


@asynccontextmanager
async def ollama(**config: Any) -> AsyncIterator[tuple[Room, OllamaServer]]:
    async with OllamaServer() as server:
        client = OllamaClient(parse_host(server.url), model="fake", **config)
        async with opened(client) as room:
            try:
                yield room, server
            finally:
                await client.aclose()


def unequal_branches(mode: str, on_error: Any) -> Json:
    """s > a1 > a2 > j and s > b > j."""
    return spec(
        passthrough("s"), llm("a1", "ask a1", output_key="r1", retry=QUICK, on_error=on_error),
        llm("a2", "ask a2", output_key="ra"), llm("b", "ask b", output_key="rb"), join("j", ["ra", "rb"], "out", mode),
        edges="s>a1 a1>a2 a2>j s>b b>j j>END", output_key="out",
    )  # fmt: skip


async def test_JB05_a_branch_that_fails_before_its_last_step_fails_the_run_and_nothing_hangs() -> None:
    async with ollama() as (room, server):
        server.on("ask a1", BROKEN)
        row = await room.run(unequal_branches("all_success", "fail"))
        assert row.status == "failed"
        assert row.error is not None
        assert (row.error["node_id"], row.error["code"], row.error["attempts"]) == ("a1", "MODEL_SERVER_ERROR", 3)
        assert "j#1" not in dict(await room.started(row.run_id))
        assert server.count("ask a1") == 3


async def test_JB05_a_quorum_is_met_by_the_other_branch_when_the_failing_one_goes_to_the_join() -> None:
    async with ollama() as (room, server):
        server.on("ask a1", BROKEN)
        row = await room.run(unequal_branches("quorum", {"goto": ["j"]}))
        assert (row.status, row.final_state) == ("completed", ({"met": True, "approvals": 1, "required": 1},))
        assert [path for path, _ in await room.started(row.run_id)].count("j#1") == 1
        assert server.count("ask a2") == 0
        found = await room.data("graph_run_get", run_id=row.run_id)
        assert found["errors"]["a1"]["code"] == "MODEL_SERVER_ERROR"
        assert found["skipped"] == ["a2"]


def council(on_error: str, *, timeout_ms: int = 600_000, **joining: Any) -> Json:
    analysts = [
        llm(f"a{n}", f"analyst {n}", output_key=f"r{n}", on_error=on_error, retry=QUICK, timeout_ms=timeout_ms)
        for n in range(3)
    ]
    edges = " ".join(f"s>a{n} a{n}>j" for n in range(3))
    return spec(
        passthrough("s"), *analysts, join("j", ["r0", "r1", "r2"], "findings"),
        join("met", ["r0", "r1", "r2"], **joining), edges=f"{edges} j>met met>END",
    )  # fmt: skip


async def test_CF03_a_failure_that_is_allowed_leaves_a_mark_in_its_place() -> None:
    async with ollama() as (room, server):
        server.on("analyst 1", BROKEN)
        row = await room.run(council("continue", mode="quorum", required=2, require=True, output="ok"))
        assert row.status == "completed"
        state = await room.state(row.run_id)
        assert state["findings"] == ["A fine answer.", None, "A fine answer."]
        assert (await room.data("graph_run_get", run_id=row.run_id))["errors"].keys() == {"a1"}


async def test_CF03_all_must_succeed_names_the_node_that_did_not_and_keeps_the_others() -> None:
    async with ollama() as (room, server):
        server.on("analyst 1", BROKEN)
        row = await room.run(council("continue", mode="all_success", require=True, output="ok"))
        assert row.error is not None
        assert (row.status, row.error["code"], row.error["details"]["failed"]) == (
            "failed", "JOIN_QUORUM_NOT_MET", ["r1"],
        )  # fmt: skip
        row = await room.run(council("fail", mode="all_success", output="ok"))
        assert row.error is not None
        assert (row.status, row.error["node_id"]) == ("failed", "a1")
        state = await room.state(row.run_id)
        assert all(value == "A fine answer." for key, value in state.items() if key in ("r0", "r2"))


async def test_CF03_by_timeout() -> None:
    async with ollama() as (room, server):
        server.on("analyst 1", stream(Gate()))
        row = await room.run(council("continue", timeout_ms=150, mode="quorum", required=2, require=True, output="ok"))
        assert row.status == "completed"
        assert (await room.state(row.run_id))["findings"] == ["A fine answer.", None, "A fine answer."]
        found = await room.data("graph_run_get", run_id=row.run_id)
        assert found["errors"]["a1"]["code"] == "MODEL_TIMEOUT"


async def test_CF04_an_errors_text_is_never_handed_to_the_next_model() -> None:
    chain = spec(
        llm("a", "ask a", output_key="ra", retry={**QUICK, "max_attempts": 2}),
        llm("b", "Build on: {ra}"), edges="a>b b>END",
    )  # fmt: skip
    async with ollama() as (room, server):
        server.on("ask a", error(429, "slow down"), times=1)
        server.on("ask a", BROKEN)
        row = await room.run(chain)
        assert row.error is not None
        assert (row.status, row.error["node_id"], row.error["attempts"]) == ("failed", "a", 2)
        assert [r.error["class"] for r in await room.facts(row.run_id, e.NodeRetried)] == ["overloaded"]
        assert server.count("Build on") == 0


async def test_CF04_an_empty_answer_is_a_failed_attempt() -> None:
    chain = spec(llm("a", "ask a", output_key="ra", retry=QUICK), llm("b", "Build on: {ra}"), edges="a>b b>END")
    async with ollama() as (room, server):
        server.on("ask a", answer(""))
        row = await room.run(chain)
        assert row.error is not None
        assert (row.status, row.error["code"], row.error["details"]["reason"], row.error["attempts"]) == (
            "failed", "MODEL_BAD_REPLY", "empty", 3,
        )  # fmt: skip
        assert server.count("Build on") == 0
        server.on("ask once", answer(""), times=1)
        chain["nodes"][0]["config"]["prompt"] = "ask once"
        assert (await room.run(chain)).status == "completed"


async def test_OL12_a_full_queue_is_asked_again_and_never_overrun() -> None:
    branches = [llm(f"n{i}", f"branch {i:02d}.", output_key=f"r{i}", retry=QUICK) for i in range(20)]
    wide = spec(
        passthrough("s"), *branches, join("j", [f"r{i}" for i in range(20)], "all"),
        edges=" ".join(f"s>n{i} n{i}>j" for i in range(20)), max_parallelism=4,
    )  # fmt: skip
    async with ollama(parallel=4) as (room, server):
        for i in range(5):
            server.on(f"branch {i:02d}.", busy("1" if i == 2 else ""), times=1)
        began = time.monotonic()
        row = await room.run(wide)
        assert row.status == "completed", row.error
        assert time.monotonic() - began >= 1, "one was asked to come back after a second"
        assert server.most_at_once <= 4
        assert len(server.chats) == 25
        pauses = await room.facts(row.run_id, e.NodeRetried)
        assert sorted(pause.firing for pause in pauses) == [f"n{i}#1" for i in range(5)]
        assert {pause.firing for pause in pauses if pause.delay_ms >= 1000} == {"n2#1"}
        assert sum(attempt == 2 for _, attempt in await room.started(row.run_id)) == 5


async def test_OL12_what_the_host_refuses_for_good_is_not_asked_again() -> None:
    for status, code in ((400, "MODEL_REFUSED"), (404, "MODEL_NOT_FOUND")):
        async with ollama() as (room, server):
            server.on("ask", error(status, "no"))
            row = await room.run(spec(llm("a", "ask"), edges="a>END"))
            assert row.error is not None
            assert (row.status, row.error["code"], len(server.chats)) == ("failed", code, 1)


async def test_OL14_a_usage_limit_is_shown_and_not_hammered() -> None:
    said = "you have reached your session usage limit"
    graph = spec(
        passthrough("s"), llm("cloud", "ask cloud", output_key="x", retry={**QUICK, "max_attempts": 2}),
        llm("b", "ask b", output_key="y"), join("j", ["x", "y"], "z"), edges="s>cloud s>b cloud>j b>j",
    )  # fmt: skip
    async with ollama() as (room, server):
        server.on("ask cloud", error(429, said, Retry_After="1"))
        began = time.monotonic()
        row = await room.run(graph)
        assert time.monotonic() - began >= 1
        assert row.error is not None
        assert (row.status, row.error["code"], said in row.error["message"]) == ("failed", "MODEL_OVERLOADED", True)
        assert server.count("ask cloud") == 2
        assert (await room.state(row.run_id))["y"] == "A fine answer."


async def test_OL14_prose_where_json_was_asked_for_is_shown_and_mended_once_at_most() -> None:
    prose = "Sure! Here is what I think about it."
    async with ollama() as (room, server):
        server.on("ask cloud", answer(prose))
        graph = spec(
            llm("cloud", "ask cloud", json_mode=True, retry={"max_attempts": 1}, output_key="x"),
            edges="cloud>END",
        )  # fmt: skip
        row = await room.run(graph)
        assert row.error is not None
        assert (row.status, row.error["code"], row.error["details"]["reason"]) == ("failed", "MODEL_BAD_REPLY", "json")
        assert prose in str(row.error)
        assert len(server.chats) == 2, "asked, and asked once to mend it"


async def test_OL12_the_bound_of_a_host_holds_across_the_items_and_graphs_of_many_runs() -> None:
    inner = spec(llm("ask", "item {input}.", retry=QUICK), edges="ask>END", name="inner")
    wide = spec(
        node("map", "parallel", for_each={"path": "xs"}, graph_name="inner", output_key="all"),
        edges="map>END", output_key="all", max_parallelism=20,
    )  # fmt: skip
    async with ollama(parallel=4) as (room, server):
        await room.create(inner)
        await room.create(wide)
        for i in (3, 7):
            server.on(f"item {i:02d}.", busy(), times=1)
        items: list[Any] = [f"{i:02d}" for i in range(20)]
        starts = [await room.data("graph_run_start", graph_id="case", input={"xs": items}) for _ in range(3)]
        rows = [await room.ended(str(each["run_id"])) for each in starts]
        assert [row.status for row in rows] == ["completed"] * 3
        assert server.most_at_once <= 4
        assert len(server.chats) == 3 * 20 + 2


@pytest.mark.parametrize(
    ("policy", "mark"), [("collect_partial", {"error": {"code": "MODEL_SERVER_ERROR"}}), ("ignore", None)]
)
async def test_CF03_a_static_branch_that_may_fail_leaves_a_mark_and_its_calls_are_closed(
    policy: str, mark: Any
) -> None:
    branches = [{"id": f"a{n}", "entry": f"a{n}"} for n in range(3)]
    graph = spec(
        node("p", "parallel", branches=branches, join="j", fail_policy=policy),
        *(llm(f"a{n}", f"analyst {n}", output_key=f"r{n}", retry=QUICK) for n in range(3)),
        join("j", ["r0", "r1", "r2"], "findings"), edges="j>END", output_key="findings",
    )  # fmt: skip
    async with ollama() as (room, server):
        server.on("analyst 1", BROKEN)
        row = await room.run(graph)
        ((first, second, third),) = row.final_state
        assert (row.status, bool(first), bool(third)) == ("completed", True, True)
        assert second == (mark and {"error": {**mark["error"], "message": second["error"]["message"]}})
        assert [fact.branch for fact in await room.facts(row.run_id, e.BranchFailed)] == ["a1"]
        found = await room.data("graph_run_get", run_id=row.run_id)
        assert found["errors"]["a1"]["code"] == "MODEL_SERVER_ERROR"
