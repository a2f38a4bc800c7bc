"""Councils that vote, through the tools: ballots as JSON, dissent, deadlock, and a restart between the ballots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, opened
from tests.specs import gate, join, llm, node, passthrough, spec

BALLOT = {
    "type": "object", "required": ["ranking", "reason"], "additionalProperties": False,
    "properties": {
        "ranking": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "maxLength": 10}},
        "reason": {"type": "string", "maxLength": 80},
    },
}  # fmt: skip
VOTERS = ("ann", "ben", "cyd")


def council(method: str, **config: Any) -> dict[str, Any]:
    voters = [llm(name, f"ballot of {name}", output_schema=BALLOT, output_key=f"b_{name}") for name in VOTERS]
    edges = [f"fork>{name} {name}>vote" for name in VOTERS]
    config = {"method": method, "candidates": ["A", "B", "C"]} | config
    return spec(
        passthrough("fork"), *voters, join("vote", [f"b_{name}" for name in VOTERS], "outcome", "vote", **config),
        gate("chair", subject_key="outcome"), edges=" ".join([*edges, "vote>chair chair>END"]), output_key="outcome",
    )  # fmt: skip


def voting(**rankings: list[str]) -> ScriptedModel:
    async def answer(call: CallModel) -> Any:
        name = str(call.messages[-1]["content"]).split()[-1]
        return json.dumps({"ranking": rankings[name], "reason": f"{name} thinks so"})

    return ScriptedModel(answer)


async def test_a_council_ranks_and_the_chair_sees_who_was_against_and_why() -> None:
    model = voting(ann=["B", "A", "C"], ben=["B", "C", "A"], cyd=["A", "B", "C"])
    async with opened(model) as room:
        run_id = await room.start(council("condorcet"))
        await room.reaches(run_id, "waiting")
        (pending,) = await room.pending(run_id)
        shown = pending["subject"]
        assert shown["winner"] == "B"
        assert shown["dissent"] == [
            {"input": "b_cyd", "choice": "A", "winner_rank": 2, "reason": "cyd thinks so"},
        ]  # fmt: skip
        await room.decide(pending["approval_id"])
        row = await room.ended(run_id)
    assert row.status == "completed"
    assert [line["candidate"] for line in row.final_state[0]["ranking"]] == ["B", "A", "C"]  # type: ignore[index]  # an object


async def test_a_cycle_goes_to_whoever_is_named_for_it() -> None:
    model = voting(ann=["A", "B", "C"], ben=["B", "C", "A"], cyd=["C", "A", "B"])
    graph = council("condorcet", on_deadlock=["settle"])
    graph["nodes"].append(node("settle", "state_transform", operations=[
        {"op": "set", "path": "settled", "from": "outcome.cycle"}]))  # fmt: skip
    graph["output_key"] = "settled"
    async with opened(model) as room:
        row = await room.run(graph)
        assert row.final_state == (["A", "B", "C"],)
        (route,) = await room.facts(row.run_id, e.RouteTaken)
    assert (route.firing, route.transition, route.targets) == ("vote#1", "deadlock", ("settle",))


@pytest.mark.parametrize(
    ("rankings", "config", "code", "told"),
    [
        ({"cyd": ["A", "B", "D"]}, {}, "VOTE_BALLOT_INVALID", "there is no candidate 'D'"),
        ({"cyd": ["A", "B"]}, {}, "VOTE_BALLOT_INVALID", "leaves out 'C'"),
        ({"cyd": ["A", "A", "B"]}, {}, "VOTE_BALLOT_INVALID", "'A' is ranked twice"),
        ({"cyd": ["C", "A", "B"]}, {"require": True}, "VOTE_DEADLOCK", "tie"),
    ],
)
async def test_what_cannot_be_counted_fails_the_run_and_nothing_is_written(
    rankings: dict[str, list[str]], config: dict[str, Any], code: str, told: str
) -> None:
    model = voting(**({"ann": ["A", "B", "C"], "ben": ["B", "C", "A"]} | rankings))
    async with opened(model) as room:
        row = await room.run(council("borda", **config))
        assert (row.status, row.error["code"]) == ("failed", code)  # type: ignore[index]  # it has one
        assert told in str(row.error)
        assert "outcome" not in await room.state(row.run_id)


async def test_a_bad_ballot_can_count_for_nobody() -> None:
    model = voting(ann=["A", "B", "C"], ben=["A", "C", "B"], cyd=["D"])
    async with opened(model) as room:
        run_id = await room.start(council("borda", on_invalid="spoil"))
        await room.reaches(run_id, "waiting")
        outcome = (await room.state(run_id))["outcome"]
    assert (outcome["winner"], outcome["voters"]) == ("A", 3)
    assert outcome["spoiled"] == [{"input": "b_cyd", "fault": "there is no candidate 'D'"}]


async def test_ballots_cast_before_a_restart_are_not_asked_for_again(tmp_path: Path) -> None:
    held = Gates("ballot of cyd")
    graph = council("majority")
    for each in graph["nodes"][1:4]:
        del each["config"]["output_schema"]
    held.answer = ""

    async def first(call: CallModel) -> str:
        await held(call)
        return "A"

    async with opened(ScriptedModel(first), tmp_path) as room:
        run_id = await room.start(graph)
        await held.reached("ballot of cyd")
    model = ScriptedModel([Reply(when="cyd", text="B")])
    async with opened(model, tmp_path) as room:
        await room.reaches(run_id, "waiting")
        outcome = (await room.state(run_id))["outcome"]
        assert (outcome["winner"], [v["order"] for v in outcome["votes"]]) == ("A", [["A"], ["A"], ["B"]])
        assert len(model.calls) == 1
        cut = await room.record(run_id)
    async with opened(ScriptedModel([Reply(when="cyd", text="B")], default=Reply(text="A"))) as room:
        whole = await room.start(graph)
        await room.reaches(whole, "waiting")
        assert (await room.record(whole))["firings"] == cut["firings"]
