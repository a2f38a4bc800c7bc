"""Nodes that have to cite, through the engine: what they cite is compared with the store; the log has the verdict."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import events as e
from agent_graph.core.scheduler import evolve, new_run
from agent_graph.engine.keys import open_keys
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Json, Room, opened
from tests.specs import llm, passthrough, spec

SOURCE = "Größe: 12 m. The bridge opened in 1932."
CITING = spec(
    llm("cite", "Cite {witness_id}.", json_mode=True, evidence_required=True, output_key="report",
        retry={"max_attempts": 2, "initial_delay_ms": 0}),
    edges="cite>END",
)  # fmt: skip


def claim(witness_id: str, words: str = "The bridge opened in 1932.", **more: Any) -> Json:
    start = SOURCE.encode().index(words.encode())
    return {"text": words, "witness_id": witness_id, "span": {"start": start, "end": start + len(words.encode())},
            **more}  # fmt: skip


async def captured(room: Room, content: str = SOURCE, locator: str = "a page") -> str:
    made = await room.data("graph_source_witness_capture", locator=locator, content=content)
    return str(made["witness_id"])


class Citing:
    """A model whose answers are lists of claims, the last of them again and again."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []

    async def __call__(self, call: Any) -> Any:
        self.prompts.append(str(call.messages[-1]["content"]))
        return {"claims": self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]}


async def test_what_is_cited_is_found_and_the_log_names_its_digest() -> None:
    says = Citing([])
    async with opened(ScriptedModel(says)) as room:
        witness_id = await captured(room)
        says.answers = [[claim(witness_id), claim(witness_id, "Größe")]]
        row = await room.run(CITING, {"witness_id": witness_id})
        assert row.status == "completed", row.error
        (checked,) = await room.facts(row.run_id, e.EvidenceChecked)
        (named,) = checked.witnesses
        got = await room.data("graph_source_witness_get", witness_id=witness_id)
        assert named == {name: got[name] for name in ("witness_id", "digest", "locator_digest")}
        events = (await room.data("graph_run_events", run_id=row.run_id))["events"]
        (shown,) = [event for event in events if event["type"] == "evidence_checked"]
        assert (shown["node_id"], shown["attempt"], shown["witnesses"]) == ("cite", 1, [named])
        assert "a page" not in json.dumps(events)
        (firing,) = (await room.record(row.run_id))["firings"]  # type: ignore[misc]  # a list
        assert firing["evidence"] == [named]  # type: ignore[index,call-overload]  # an object


async def test_the_model_is_told_where_its_words_stand_and_mends_its_span() -> None:
    says = Citing([])
    async with opened(ScriptedModel(says)) as room:
        witness_id = await captured(room)
        wrong = {**claim(witness_id), "span": {"start": 0, "end": 9}}
        says.answers = [[wrong], [claim(witness_id)]]
        row = await room.run(CITING, {"witness_id": witness_id})
        assert row.status == "completed", row.error
        assert "these words stand at bytes 15 to 41" in says.prompts[1]
        first, second = await room.facts(row.run_id, e.EvidenceChecked)
        assert [one["code"] for one in first.problems] == ["WITNESS_TEXT_DIFFERS"]
        assert second.problems == ()


async def test_claims_that_never_stand_fail_the_node_as_an_answer_that_does_not_fit() -> None:
    says = Citing([])
    async with opened(ScriptedModel(says)) as room:
        says.answers = [[claim("wit-made-up")]]
        row = await room.run(CITING, {"witness_id": "none"})
        error: Any = row.error
        assert (row.status, error["code"], error["class"]) == ("failed", "MODEL_BAD_REPLY", "bad_reply")
        assert (error["details"]["reason"], error["details"]["codes"]) == ("evidence", ["WITNESS_NOT_FOUND"])
        assert len(says.prompts) == 4  # two attempts, each with one answer to mend
        assert await room.state(row.run_id) == {"witness_id": "none"}


async def test_a_run_cites_what_its_principal_has_captured_and_nothing_of_another() -> None:
    from agent_graph.tools.deps import Caller
    from agent_graph.tools.registry import call

    says = Citing([])
    async with opened(ScriptedModel(says)) as room:
        ann, bob = (Caller("assistant", "c", principal=name) for name in ("ann", "bob"))
        made: Any = await call(
            room.deps, "graph_source_witness_capture", {"locator": "p", "content": SOURCE}, caller=ann
        )
        witness_id = made["data"]["witness_id"]
        says.answers = [[claim(witness_id)]]
        await room.create(CITING)
        ends = []
        for caller in (ann, bob):
            asked = {"graph_id": CITING["name"], "input": {"witness_id": witness_id}}
            started: Any = await call(room.deps, "graph_run_start", asked, caller=caller)
            ends.append((await room.ended(started["run_id"])).status)
        assert ends == ["completed", "failed"]


@pytest.mark.parametrize("keyless", [True, False])
async def test_what_cannot_be_checked_fails_at_once_and_is_not_asked_again(tmp_path: Path, keyless: bool) -> None:
    says = Citing([])
    async with opened(ScriptedModel(says), tmp_path) as room:
        witness_id = await captured(room)
    says.answers = [[claim(witness_id)]]
    other = open_keys(None, now_ms=1, keyless=keyless)  # none, or another folder's
    async with opened(ScriptedModel(says), tmp_path, keys=other) as room:
        row = await room.run(CITING, {"witness_id": witness_id})
        error: Any = row.error
        code = "INTEGRITY_KEY_REQUIRED" if keyless else "WITNESS_INTEGRITY_FAILURE"
        assert (row.status, error["code"], error["class"]) == ("failed", code, "refused")
        assert "bridge" not in json.dumps(error)
        assert len(says.prompts) == (0 if keyless else 1)  # an answer nothing could check is not paid for


async def test_a_source_that_is_gone_is_told_as_not_found() -> None:
    says = Citing([])
    async with opened(ScriptedModel(says)) as room:
        witness_id = await captured(room)
        assert await room.store.witnesses.prune([witness_id]) == (witness_id,)
        says.answers = [[claim(witness_id)]]
        row = await room.run(CITING, {"witness_id": witness_id})
        error: Any = row.error
        assert error["details"]["codes"] == ["WITNESS_NOT_FOUND"]


async def test_runs_that_race_cite_one_source_and_each_holds_it() -> None:
    says = Citing([])
    async with opened(ScriptedModel(says)) as room:
        witness_id = await captured(room)
        says.answers = [[claim(witness_id)]]
        run_ids = [await room.start(CITING, {"witness_id": witness_id}) for _ in range(4)]
        assert {(await room.ended(run_id)).status for run_id in run_ids} == {"completed"}
        assert await room.store.witnesses.prune([witness_id]) == ()
        assert await room.store.witnesses.idle(before_ms=2**53, going=run_ids[1:]) == ((), 1)
        assert await room.store.witnesses.idle(before_ms=2**53, going=run_ids) == (((witness_id, 41),), 0)


async def test_a_log_is_read_again_without_the_source(tmp_path: Path) -> None:
    says = Citing([])
    async with opened(ScriptedModel(says), tmp_path) as room:
        witness_id = await captured(room)
        says.answers = [[claim(witness_id)]]
        row = await room.run(CITING, {"witness_id": witness_id})
        record = await room.record(row.run_id)
        await room.at_rest()
        graph, log = await room.deps.catalog.get(row.graph_id, row.graph_version), await room.log(row.run_id)
    run = new_run()
    for event in log:
        evolve(graph, run, event)
    assert run.status == "completed"
    async with opened(ScriptedModel([Reply(text="x")]), tmp_path) as room:
        assert await room.record(row.run_id) == record


async def test_on_error_leads_on_where_a_node_cannot_prove_its_claims() -> None:
    graph = spec(
        llm("cite", "Cite.", json_mode=True, evidence_required=True, repair=0, on_error="continue",
            retry={"max_attempts": 1}),
        edges="cite>END", name="goes_on", output_key="errors.cite.code",
    )  # fmt: skip
    async with opened(ScriptedModel(Citing([claim("wit-0")]))) as room:
        row = await room.run(graph)
        assert (row.status, row.final_state) == ("completed", ("MODEL_BAD_REPLY",))


async def test_a_fork_takes_the_comparison_over_and_holds_the_source_too() -> None:
    says = Citing([])
    graph = spec(*CITING["nodes"], passthrough("after"), edges="cite>after after>END", name="forks")
    async with opened(ScriptedModel(says)) as room:
        import_module("agent_graph.tools.forking")
        witness_id = await captured(room)
        says.answers = [[claim(witness_id)]]
        row = await room.run(graph, {"witness_id": witness_id})
        made = await room.data("graph_run_fork", run_id=row.run_id, before="after")
        fork = await room.ended(made["run_id"])
        assert fork.status == "completed", fork.error
        assert len(says.prompts) == 1
        assert len(await room.facts(fork.run_id, e.EvidenceChecked)) == 1
        assert await room.store.witnesses.idle(before_ms=2**53, going=[row.run_id]) == ((), 1)
