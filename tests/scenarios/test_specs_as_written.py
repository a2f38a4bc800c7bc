"""The specs that users wrote run as they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import asked, opened

SPECS = Path(__file__).parent / "specs"


def written(name: str) -> dict[str, Any]:
    return json.loads((SPECS / f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]  # an object


async def test_my_workflow_takes_either_way_and_its_result_is_that_ways() -> None:
    for said, way in (("a deep matter", "Deep dive"), ("plain", "Summarize")):
        model = ScriptedModel([Reply(when="Process: ", text=said), Reply(when=way, text=f"{way} done")])
        async with opened(model) as room:
            row = await room.run(written("my-workflow"), "the question")
            assert (row.status, row.final_state) == ("completed", (f"{way} done",))
            assert asked(model, "Process: the question", way) == [1, 1]
            assert len(model.calls) == 2


async def test_my_council_runs_without_a_spec_version_and_with_json_mode_on_the_node() -> None:
    model = ScriptedModel(
        [
            Reply(when="Break into", json={"ws": [1, 2, 3]}),
            *(Reply(when=f"Research {name}", text=f"found {name}") for name in "ABC"),
            Reply(when="Synthesize", text="the report"),
        ]
    )
    async with opened(model) as room:
        row = await room.run(written("my-council"), "the question")
        assert (row.status, row.final_state) == ("completed", ("the report",))
        state = await room.state(row.run_id)
        assert state["workstreams"] == {"ws": [1, 2, 3]}
        assert state["findings"] == ["found A", "found B", "found C"]
        assert model.calls[0].format == "json"
        assert "found A" in str(model.calls[-1].messages)
        assert model.most_at_once == 3


async def test_nine_lanes_collects_what_its_nodes_said_without_output_keys() -> None:
    lanes = ("scope", "risks", "costs", "users", "law", "rivals", "tech", "people", "timing")
    model = ScriptedModel(
        [*(Reply(when=f"only at {lane}", text=f"on {lane}") for lane in lanes), Reply(when="Write", text="report")],
        parallel=9,
    )
    async with opened(model) as room:
        row = await room.run(written("nine-lanes"), "the question")
        assert (row.status, row.final_state) == ("completed", ("report",))
        state = await room.state(row.run_id)
        assert state["all"] == {f"lane_{lane}": f"on {lane}" for lane in lanes}
        assert model.most_at_once == 9


async def test_eleven_wide_takes_eleven_kilobytes_of_input() -> None:
    text = "evidence " * 1252
    assert len(text) > 11 * 1024
    model = ScriptedModel([Reply(when="Decide", text="go"), Reply(when=text, text="a finding")], parallel=11)
    async with opened(model) as room:
        row = await room.run(written("eleven-wide"), text)
        assert (row.status, row.final_state) == ("completed", ("go",))
        assert model.most_at_once == 11
        assert len((await room.state(row.run_id))["findings"]) == 11
        assert {call.options["num_predict"] for call in model.calls[:11]} == {1200}
