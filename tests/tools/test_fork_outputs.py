"""graph_run_fork: outputs that no firing takes are refused, and the state of an open frame can be changed."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.llm.scripted import ScriptedModel
from tests.engine.room import asked
from tests.fakes.opened import Tools
from tests.specs import join, llm, node, router, rule, spec, subgraph
from tests.tools.test_forking import echoed, forked, settled

INNER = spec(
    llm("x", "X {topic}", output_key="y"), llm("v", "V {y}", output_key="z"), edges="x>v v>END", name="inner",
    output_key="z",
)  # fmt: skip
DEEP = spec(
    llm("a", "A", output_key="ka"),
    node("p", "parallel", for_each={"path": "items"}, entry="i", join="j", output_key="all"),
    llm("i", "I {item} {topic}"), llm("i2", "I2 {item}"), join("j", ["i2"]),
    subgraph("s", "inner", input={"topic": "topic"}, output_key="ks"),
    llm("l", "L", output_key="kl"), router("r", rule("again", "eq", 1, "l"), default=["w"]),
    llm("w", "W {ks}", output_key="kw"),
    edges="a>p i>i2 i2>j j>s s>l l>r w>END", name="deep", output_key="kw",
)  # fmt: skip
INPUT = {"topic": "t", "items": ["one", "two"], "again": 0}


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(echoed)


@pytest.fixture
async def origin(tools: Tools) -> str:
    for document in (INNER, DEEP):
        await tools.ok("graph_create", spec=document, overwrite=True)
    run_id = await tools.run("deep", INPUT)
    assert (await settled(tools, run_id))["status"] == "completed"
    return run_id


async def seq_of(tools: Tools, run_id: str, kind: str, firing: str) -> int:
    events = (await tools.ok("graph_run_events", run_id=run_id, limit=200))["events"]
    found = [event for event in events if event["type"] == kind and event.get("node_path") == firing]
    return int(found[0]["seq"])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a", "asked once"),
        ("a#1", "had its answer"),
        ("a#2", "on no cycle"),
        ("a#1.1", "read like"),
        ("w#x", "is no firing"),
        ("w#1[0]", "asks no model"),
        ("x#1", "has no node 'x'"),
        ("w/x#1", "is no firing"),
        ("w#1/x#1", "nothing runs inside"),
        ("p#1/i#1", "begin like p#1[0]/"),
        ("s#1[0]/x#1", "begin like s#1/"),
        ("p#1[0]/i#1", "p#1 is over"),
        ("s#1/x#1", "s#1 is over"),
        ("s#1/a#1", "s#1 is over"),
    ],
)
async def test_an_output_that_no_firing_takes_is_refused_and_nothing_is_made(
    tools: Tools, origin: str, name: str, why: str
) -> None:
    before = (await tools.ok("graph_run_list"))["runs"]
    refusal = await tools.refused("graph_run_fork", run_id=origin, before="w", outputs={name: "said"})
    assert refusal["error_code"] == "INVALID_ARGUMENT"
    assert why in refusal["error"]
    assert (await tools.ok("graph_run_list"))["runs"] == before


async def test_an_output_for_what_is_inside_is_taken_by_that_firing_alone(
    tools: Tools, model: ScriptedModel, origin: str
) -> None:
    refusal = await tools.refused("graph_run_fork", run_id=origin, before="s", outputs={"s#1/w#1": "said"})
    assert (refusal["error_code"], "has no node" in refusal["error"]) == ("INVALID_ARGUMENT", True)
    run = await forked(tools, origin, before="s", outputs={"s#1/x#1": "said"})
    assert run["state"]["ks"] == "<V said>"
    assert asked(model, "X", "V") == [1, 2]
    by_id = await forked(tools, origin, before="p", outputs={"x": "by id", "i": "each"})
    assert by_id["state"]["ks"] == "<V by id>"


async def test_an_output_the_way_did_not_come_to_is_told_at_the_end(tools: Tools, origin: str) -> None:
    run = await forked(tools, origin, before="w", outputs={"l#2": "never"})
    events = (await tools.ok("graph_run_events", run_id=run["run_id"], limit=200))["events"]
    (warned,) = [event for event in events if event.get("code") == "OUTPUT_NOT_TAKEN"]
    assert "l#2" in str(warned)
    assert run["status"] == "completed"


# -- frames ------------------------------------------------------------------------------------------------------------


async def test_the_state_of_an_open_frame_is_changed_and_the_runs_own_is_not(tools: Tools, origin: str) -> None:
    patch = [{"op": "replace", "path": "/y", "value": "patched"}]
    run = await forked(tools, origin, before="s#1/v#1", frame="s#1", patch=patch)
    assert run["state"]["ks"] == "<V patched>"
    assert "y" not in run["state"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"frame": "s#1"}, "there is no patch"),
        ({"frame": "s#2", "patch": [{"op": "add", "path": "/y", "value": 1}]}, "there are s#1"),
    ],
)
async def test_a_frame_that_is_not_open_or_not_changed_is_refused(
    tools: Tools, origin: str, arguments: Any, why: str
) -> None:
    refusal = await tools.refused("graph_run_fork", run_id=origin, before="s#1/v#1", **arguments)
    assert refusal["error_code"] == "INVALID_ARGUMENT"
    assert why in refusal["error"]


async def test_a_frame_is_refused_where_none_is_open(tools: Tools, origin: str) -> None:
    patch = [{"op": "add", "path": "/y", "value": 1}]
    refusal = await tools.refused("graph_run_fork", run_id=origin, before="w", frame="s#1", patch=patch)
    assert "only the run's own" in refusal["error"]


@pytest.mark.parametrize("patch", [{"op": "replace", "value": ["x"]}, {"op": "remove"}], ids=["others", "none"])
async def test_what_runs_inside_keeps_the_items_it_was_opened_for(tools: Tools, origin: str, patch: Any) -> None:
    at = await seq_of(tools, origin, "node_started", "p#1[0]/i2#1")
    refusal = await tools.refused("graph_run_fork", run_id=origin, at=at, patch=[{**patch, "path": "/items"}])
    assert refusal["error_code"] == "INVALID_ARGUMENT"
    assert "p#1 was begun with what would be changed" in refusal["error"]


async def test_what_is_not_opened_yet_begins_with_what_was_changed(tools: Tools, origin: str) -> None:
    at = await seq_of(tools, origin, "frames_opened", "p#1")
    run = await forked(tools, origin, at=at, patch=[{"op": "replace", "path": "/topic", "value": "new"}])
    assert run["status"] == "completed"
    assert run["state"]["topic"] == "new"
