"""Every unfinished run goes on by itself at the next start; what was paid for is not paid for again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine import journal
from agent_graph.engine.commands import Resume
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, Room, asked, opened
from tests.specs import Json, gate, join, llm, passthrough, put, router, rule, spec, transform

COUNCIL = spec(
    llm("plan", "plan: {input}", output_key="plan"), llm("a", "analyst a", output_key="ra"),
    llm("b", "analyst b", output_key="rb"), llm("c", "analyst c", output_key="rc"),
    join("j", ["ra", "rb", "rc"], "all", "collect_array"), llm("end", "report: {all}", output_key="report"),
    edges="plan>a plan>b plan>c a>j b>j c>j j>end end>END", output_key="report",
)  # fmt: skip
LOOP = spec(
    transform("x", {"op": "increment", "path": "n", "value": 1}),
    router("r", rule("n", "lt", 150, "x"), default=["END"]), edges="x>r", output_key="n", max_iterations=1000,
)  # fmt: skip
DEAD: JsonObject = {"code": "MODEL_UNREACHABLE", "message": "nobody answers"}


async def interrupted(path: Path, gates: Gates, *names: str) -> str:
    """A council that its program left while the calls `names` were in flight."""
    async with opened(ScriptedModel(gates), path) as room:
        run_id = await room.start(COUNCIL)
        for name in names:
            await gates.reached(name)
    async with opened(ScriptedModel(gates), path, recover=False) as room:
        assert (await room.store.runs.get(run_id)).status == "interrupted"
    return run_id


async def test_a_run_left_in_the_middle_goes_on_by_itself_and_equals_one_that_was_not(tmp_path: Path) -> None:
    gates = Gates("analyst b")
    run_id = await interrupted(tmp_path, gates, "analyst b")
    assert gates.cancelled == ["analyst b"]
    model = ScriptedModel(Gates())
    async with opened(model, tmp_path) as room:
        await room.ended(run_id)
        cut = await room.record(run_id)
        assert asked(model, "plan:", "analyst a", "analyst b", "analyst c", "report") == [0, 0, 1, 0, 1]
        assert await room.started(run_id) == [
            ("plan#1", 1), ("a#1", 1), ("b#1", 1), ("c#1", 1), ("b#1", 2), ("j#1", 1), ("end#1", 1),
        ]  # fmt: skip
    async with opened(ScriptedModel(Gates())) as room:
        whole = await room.start(COUNCIL)
        await room.ended(whole)
        assert await room.record(whole) == cut


async def test_an_orderly_end_says_interrupted_at_once(tmp_path: Path) -> None:
    gates = Gates("plan")
    async with opened(ScriptedModel(gates), tmp_path) as room:
        run_id = await room.start(COUNCIL)
        await gates.reached("plan")
        await room.supervisor.shutdown("closing time")
        row = await room.store.runs.get(run_id)
        assert row.status == "interrupted"
        assert row.error == {"code": "INTERRUPTED", "message": "closing time"}
        assert gates.cancelled == ["plan"]


async def test_accepted_and_queued_runs_are_taken_up_too(tmp_path: Path) -> None:
    gates = Gates("analyst a")
    async with opened(ScriptedModel(gates), tmp_path, active_runs=1) as room:
        ids = [await room.start(COUNCIL, f"question {n}") for n in range(4)]
        await gates.reached("analyst a")
        before = [(await room.store.runs.get(run_id)).status for run_id in ids]
        assert before == ["running", "accepted", "accepted", "accepted"]
    model = ScriptedModel(Gates())
    async with opened(model, tmp_path, active_runs=2) as room:
        rows = [await room.ended(run_id) for run_id in ids]
        assert {row.status for row in rows} == {"completed"}
        assert model.most_at_once <= 6  # two councils of three


async def test_recovery_never_drives_more_than_there_are_places(tmp_path: Path) -> None:
    one = spec(llm("draft", "{input}", output_key="text"), edges="draft>END")
    gates = Gates("q")
    async with opened(ScriptedModel(gates, parallel=50), tmp_path) as room:
        ids = [await room.start(one, f"q{n}") for n in range(12)]
        await gates.reached("q")
        for run_id in ids:
            await room.reaches(run_id, "running")
    again = Gates("q")
    async with opened(ScriptedModel(again, parallel=50), tmp_path, active_runs=3) as room:
        await again.reached("q")
        assert room.supervisor.load()["active"] == 3
        statuses = sorted([(await room.store.runs.get(run_id)).status for run_id in ids])
        assert "running" not in statuses[:9]  # honest: who is not driven is not running
        again.open("q")
        assert {(await room.ended(run_id)).status for run_id in ids} == {"completed"}


async def test_AP10_a_join_keeps_what_it_was_given_over_a_pause_and_a_restart(tmp_path: Path) -> None:
    graph = spec(
        passthrough("s"), put("a", ra=1), gate("h"), put("b", rb=2), join("j", ["ra", "rb"], "o", "collect_array"),
        edges="s>a a>j s>h h>b b>j j>END", output_key="o",
    )  # fmt: skip
    async with opened(ScriptedModel(), tmp_path) as room:
        run_id = await room.start(graph, {})
        await room.reaches(run_id, "waiting")
    async with opened(ScriptedModel(), tmp_path) as room:
        (pending,) = await room.pending(run_id)
        assert (await room.store.runs.get(run_id)).status == "waiting"
        await room.decide(pending["approval_id"])
        assert (await room.ended(run_id)).final_state == ([1, 2],)
        assert [firing for firing, _ in await room.started(run_id)].count("j#1") == 1


async def test_a_host_that_is_gone_interrupts_and_siblings_answers_are_kept(tmp_path: Path) -> None:
    gates = Gates("analyst b")
    model = ScriptedModel(lambda call: answer_or_die(gates, call))
    async with opened(model, tmp_path) as room:
        run_id = await room.start(impatient(COUNCIL))
        await gates.reached("analyst b")  # a and c have been turned away by now, or will be
        gates.open("analyst b")
        row = await room.reaches(run_id, "interrupted")
        assert row.error is not None
        assert row.error["code"] == "MODEL_UNREACHABLE"
        assert [fact.firing for fact in await room.facts(run_id, e.ModelAnswered)] == ["plan#1", "b#1"]
        await room.at_rest()
        model = room.deps.models.chosen.client  # type: ignore[union-attr, assignment]  # chosen, and scripted
        model._answering = Gates()  # the host is back
        await room.supervisor.ask(run_id, Resume())
        row = await room.ended(run_id)
        assert (row.status, row.error) == ("completed", None)
        assert asked(model, "plan:", "analyst a", "analyst b", "analyst c", "report") == [1, 2, 1, 2, 1]
        assert ("a#1", 2) in await room.started(run_id)


def impatient(council: Json) -> Json:
    """The same with one attempt each."""
    once = [{**node, "config": {**node.get("config", {}), "retry": {"max_attempts": 1}}} for node in council["nodes"]]
    return {**council, "nodes": once}


async def answer_or_die(gates: Gates, call: CallModel) -> str | Reply:
    prompt = str(call.messages[-1]["content"])
    if "analyst a" in prompt or "analyst c" in prompt:
        return Reply(error=DEAD)
    return await gates(call)


async def test_resuming_a_live_run_changes_nothing_and_an_ended_one_is_refused() -> None:
    gates = Gates("plan")
    async with opened(ScriptedModel(gates)) as room:
        run_id = await room.start(COUNCIL)
        await gates.reached("plan")
        before = await room.log(run_id)
        await room.supervisor.ask(run_id, Resume())
        assert await room.log(run_id) == before
        gates.open("plan")
        await room.ended(run_id)
        from agent_graph.errors import RunTerminal

        with pytest.raises(RunTerminal):
            await room.supervisor.ask(run_id, Resume())


async def test_a_bug_in_a_step_is_that_nodes_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_graph.core.nodes import passthrough as node_type

    def broken(*_: object) -> object:
        raise ZeroDivisionError("oh")

    async with opened(ScriptedModel()) as room:
        await room.create(spec(passthrough("p"), edges="p>END"))
        monkeypatch.setattr(node_type, "step", broken)
        run_id = (await room.data("graph_run_start", graph_id="case", input={}))["run_id"]
        row = await room.ended(run_id)
        assert row.status == "failed"
        (failed,) = await room.facts(run_id, e.NodeFailed)
        assert (failed.error["class"], failed.error["code"]) == ("bug", "INTERNAL")


async def test_a_bug_in_a_model_client_fails_the_node_and_hangs_nothing() -> None:
    async def broken(call: object) -> str:
        raise KeyError("no such thing")

    async with opened(ScriptedModel(broken)) as room:
        row = await room.run(spec(llm("draft", output_key="x"), edges="draft>END"))
        assert row.status == "failed"
        assert row.error is not None
        assert (row.error["code"], row.error["class"]) == ("INTERNAL", "bug")


async def test_a_bug_in_the_driver_leaves_the_run_honestly_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_graph.engine import runner

    def broken(*_: object) -> object:
        raise ZeroDivisionError("oh")

    gates = Gates("plan")
    async with opened(ScriptedModel(gates), tmp_path) as room:
        run_id = await room.start(COUNCIL)
        await gates.reached("plan")
        with monkeypatch.context() as patched:
            patched.setattr(runner, "decide", broken)
            gates.open("plan")
            row = await room.reaches(run_id, "interrupted")
        assert row.error is not None
        assert row.error["code"] == "INTERNAL"
        await room.supervisor.ask(run_id, Resume())
        assert (await room.ended(run_id)).status == "completed"
        assert [fact.firing for fact in await room.facts(run_id, e.ModelAnswered)].count("plan#1") == 1


@pytest.mark.parametrize("every", [1, 7])
async def test_a_run_with_snapshots_equals_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    async def ends(room: Room) -> object:
        row = await room.run(LOOP, {"n": 0})
        assert row.final_state == (150,)
        return await room.record(row.run_id)

    async with opened(ScriptedModel()) as room:
        plain = await ends(room)
    monkeypatch.setattr(journal, "SNAPSHOT_EVENTS", every)
    async with opened(ScriptedModel(), tmp_path) as room:
        assert await ends(room) == plain
        (row,), _ = await room.store.runs.list()
        snapshot, rest, _ = await room.store.runs.load(row.run_id)
        assert snapshot is not None
        assert len(rest) < row.seq / 2
        assert await room.store.runs.verify_chain(row.run_id) is None


async def test_wherever_a_run_is_left_it_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left while each of its calls in turn is in flight, with a snapshot at every commit."""
    monkeypatch.setattr(journal, "SNAPSHOT_EVENTS", 1)
    records = []
    for name in ("plan", "analyst a", "analyst c", "report", ""):
        folder = tmp_path / (name or "whole")
        folder.mkdir()
        gates = Gates(*filter(None, [name]))
        async with opened(ScriptedModel(gates), folder) as room:
            run_id = await room.start(COUNCIL)
            await (gates.reached(name) if name else room.ended(run_id))
        async with opened(ScriptedModel(Gates()), folder) as room:
            await room.ended(run_id)
            records.append(await room.record(run_id))
    assert all(record == records[0] for record in records)


async def test_a_run_that_wakes_often_still_gets_its_snapshot(tmp_path: Path) -> None:
    """Each wake is a new driver: the events since the last snapshot are counted over all of them."""
    graph = spec(
        gate("h", on_request_changes=["h"]), put("z", done=True), edges="h>z z>END", output_key="done",
        max_iterations=1000,
    )  # fmt: skip
    async with opened(ScriptedModel(), tmp_path) as room:
        run_id = await room.start(graph, {})
        for _ in range(20):
            row = await room.supervisor.wait(run_id, timeout_ms=5000, until=lambda row: row.status == "waiting")
            (pending,) = await room.pending(run_id)
            await room.decide(pending["approval_id"], "request_changes")
            await room.supervisor.wait(run_id, timeout_ms=5000, until=lambda now, seq=row.seq: now.seq >= seq + 5)  # type: ignore[misc]  # mypy cannot infer a default's type
            await room.at_rest()
        snapshot, events, _ = await room.store.runs.load(run_id)
        assert snapshot is not None
        assert len(events) < 64 + 8


async def test_a_snapshot_of_another_program_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_graph.core import checkpoint

    monkeypatch.setattr(journal, "SNAPSHOT_EVENTS", 1)
    gates = Gates("analyst b")
    async with opened(ScriptedModel(gates), tmp_path) as room:
        run_id = await room.start(COUNCIL)
        await gates.reached("analyst b")
    monkeypatch.setattr(checkpoint, "FORMAT", 99)
    async with opened(ScriptedModel(Gates()), tmp_path) as room:
        assert (await room.ended(run_id)).status == "completed"
