"""graph_run_fork under attack: other versions, changed records, shells without a secret, questions at the very end."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_graph.engine.approvers import Approvers, Proof
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.tools.deps import Caller
from tests.engine.room import asked
from tests.fakes.opened import Tools, opened
from tests.specs import gate, llm, passthrough, router, rule, spec
from tests.tools.test_forking import CLOSED, HUMAN, decided, echoed, forked, guarded, settled, started

YES = {"decision": "approve", "note": "", "by": "Ada", "via": "cli", "at_ms": 0}


def looping(name: str, *, kept: str = "") -> dict[str, Any]:
    """Goes on to `yes` where somebody has agreed; asks at the gate `name` otherwise."""
    place = {"output_key": kept} if kept else {}
    return spec(
        passthrough("pre"), router("r", rule(f"{kept or 'ok'}.decision", "eq", "approve", "yes"), default=[name]),
        gate(name, channels=CLOSED, subject_key="x", **place), llm("yes", "Send {x}", output_key="said"),
        edges=f"pre>r {name}>yes yes>END", output_key="said", name="looping",
    )  # fmt: skip


async def versions(tools: Tools, *documents: Any) -> list[str]:
    return [(await tools.ok("graph_create", spec=one, overwrite=True))["graph_version"] for one in documents]


async def runs(tools: Tools) -> int:
    return len((await tools.ok("graph_run_list"))["runs"])


async def test_two_forks_lead_nobody_past_a_closed_gate_by_way_of_another_version() -> None:
    model = ScriptedModel(echoed)
    async with opened(model) as deps:
        tools = Tools(deps)
        other, own = await versions(tools, looping("elsewhere"), looping("ok"))
        origin = await tools.run("looping", {"x": 1})
        await settled(tools, origin)
        patch = [{"op": "add", "path": "/ok", "value": YES}]
        first = await forked(tools, origin, before="pre", graph_version=other, patch=patch)
        events = (await tools.ok("graph_run_events", run_id=first["run_id"]))["events"]
        at = next(event["seq"] for event in events if event["type"] == "run_forked")
        sent = asked(model, "Send")
        for point in ({"at": at}, {"before": "r"}):
            refusal = await tools.refused("graph_run_fork", run_id=first["run_id"], graph_version=own, **point)
            assert refusal["error_code"] in ("FORK_NOT_ALLOWED", "FORK_DIVERGES")
        refusal = await tools.refused("graph_run_fork", run_id=first["run_id"], graph_version=own, at=at)
        assert refusal["error_code"] == "FORK_NOT_ALLOWED"
        assert refusal["details"] == {"node_id": "ok", "path": "ok"}
        between = await forked(tools, first["run_id"], at=at, patch=[{"op": "add", "path": "/z", "value": 1}])
        events = (await tools.ok("graph_run_events", run_id=between["run_id"]))["events"]
        at = [event["seq"] for event in events if event["type"] == "run_forked"][-1]
        refusal = await tools.refused("graph_run_fork", run_id=between["run_id"], graph_version=own, at=at)
        assert refusal["error_code"] == "FORK_NOT_ALLOWED", "nor by three"
        assert asked(model, "Send") == [sent[0] + 1], "by the version that never asked, and by no other"


async def test_an_input_of_another_version_comes_into_no_gates_place_beside_a_patched_value() -> None:
    model = ScriptedModel(echoed)
    async with opened(model) as deps:
        tools = Tools(deps)
        other, own = await versions(tools, looping("elsewhere"), looping("ok", kept="review.ok"))
        await versions(tools, looping("elsewhere"))
        origin = await tools.run("looping", {"x": 1, "review": {"ok": YES}})
        await settled(tools, origin)
        beside = [{"op": "add", "path": "/review/other", "value": 1}]
        refusal = await tools.refused("graph_run_fork", run_id=origin, before="pre", graph_version=own, patch=beside)
        assert refusal["error_code"] == "FORK_NOT_ALLOWED"
        run = await forked(tools, origin, before="pre", graph_version=own)
        assert run["status"] == "waiting", "the input alone never said it"
        assert other != own


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_fork_that_asks_at_the_last_event_waits_and_goes_on_by_the_answer(decision: str) -> None:
    async with opened(ScriptedModel(echoed)) as deps:
        tools = Tools(deps)
        origin = await started(tools, guarded(channels=CLOSED), {"topic": "t"})
        await decided(tools, origin)
        last = (await tools.ok("graph_run_events", run_id=origin))["next_cursor"] - 1
        fork = (await tools.ok("graph_run_fork", run_id=origin, at=last - 1))["run_id"]
        waited = await tools.ok("graph_run_wait", run_id=fork, until="waiting", timeout_ms=5_000)
        assert not waited.get("timed_out")
        run = await settled(tools, fork)
        assert (run["status"], len(run["pending_approvals"])) == ("waiting", 1)
        await decided(tools, fork, decision)
        ended = await settled(tools, fork)
        assert ended["status"] == ("completed" if decision == "approve" else "failed")


def tampered(folder: Path, was: str, now: str) -> None:
    """Somebody with another program has written to the closed store."""
    with sqlite3.connect(folder / "agent-graph.db") as store:
        changed = store.execute("UPDATE events SET body = replace(body, ?, ?) WHERE instr(body, ?)", (was, now, was))
        assert changed.rowcount
    store.close()


@pytest.mark.parametrize("ended", [True, False])
async def test_a_changed_record_is_not_laundered_by_a_fork(tmp_path: Path, *, ended: bool) -> None:
    model = ScriptedModel(echoed)
    async with opened(model, folder=tmp_path) as deps:
        tools = Tools(deps)
        origin = await started(tools, guarded(channels=CLOSED), {"topic": "t"})
        if ended:
            await decided(tools, origin, "reject")
        await deps.supervisor.rest()
        keys = deps.keys
    tampered(tmp_path, "<Draft", "<EVIL!")
    async with opened(model, folder=tmp_path, keys=keys) as deps:
        for tools in (Tools(deps), Tools(deps, HUMAN)):
            for point in ({"before": "ok"}, {"at": 1}, {"before": "ok", "dry_run": True}):
                envelope = await tools.envelope("graph_run_fork", run_id=origin, **point)
                assert envelope["error_code"] == "STORE_CORRUPT", envelope
                assert "EVIL" not in str(envelope)
                assert await runs(tools) == 1
            compared = await tools.envelope("graph_run_compare", run_id=origin, other_run_id=origin)
            assert compared["error_code"] in ("RECEIPT_INTEGRITY_FAILURE", "STORE_CORRUPT")


async def test_a_run_whose_seal_was_taken_away_is_not_forked(tmp_path: Path) -> None:
    model = ScriptedModel(echoed)
    async with opened(model, folder=tmp_path) as deps:
        origin = await started(Tools(deps), guarded(), {"topic": "t"})
        await decided(Tools(deps), origin)
        await deps.supervisor.rest()
        keys = deps.keys
    with sqlite3.connect(tmp_path / "agent-graph.db") as store:
        store.execute("UPDATE runs SET seal = NULL")
    store.close()
    async with opened(model, folder=tmp_path, keys=keys) as deps:
        refusal = await Tools(deps).envelope("graph_run_fork", run_id=origin, before="send")
        assert refusal["error_code"] in ("RECEIPT_INTEGRITY_FAILURE", "STORE_CORRUPT")
        assert await runs(Tools(deps)) == 1


async def test_a_shell_without_the_secret_repeats_nothing_that_was_let_through_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_graph.engine.approvers._COST", {"n": 2**4, "r": 8, "p": 1})
    model = ScriptedModel(echoed)
    async with opened(model) as plain:
        deps = replace(plain, approvers=Approvers(tmp_path))
        shell, ada = Tools(deps, HUMAN), Tools(deps, replace(HUMAN, approver="ada"))
        origin = await started(shell, guarded(channels=["cli"]), {"topic": "t"})
        await decided(shell, origin)
        assert (await forked(shell, origin, before="send"))["status"] == "completed", "nobody has a secret yet"
        await deps.approvers.add(Proof("ada", "correct horse"), voucher=None, now_ms=0)
        sent = asked(model, "Send")
        for caller in (shell, Tools(deps)):
            run = await forked(caller, origin, before="send")
            assert run["status"] == "waiting"
            (question,) = run["pending_approvals"]
            refusal = await caller.envelope(
                "graph_approval_decide", approval_id=question["approval_id"], decision="approve", decided_by="ada"
            )
            assert refusal["error_code"] in ("APPROVER_REQUIRED", "APPROVAL_CHANNEL_NOT_ALLOWED")
        assert asked(model, "Send") == sent
        await ada.ok(
            "graph_approval_decide", approval_id=question["approval_id"], decision="approve", decided_by="ada"
        )  # fmt: skip
        assert (await settled(ada, run["run_id"]))["status"] == "completed"
        assert (await forked(ada, origin, before="send"))["status"] == "completed"


async def test_who_lacks_the_scope_to_decide_takes_no_decision_along() -> None:
    model = ScriptedModel(echoed)
    async with opened(model) as deps:
        scopes = frozenset({"runs:read", "runs:write"})
        bob = Tools(deps, Caller("assistant", "c", principal="bob", scopes=scopes))
        await Tools(deps).ok("graph_create", spec=guarded())
        origin = await bob.run("guarded", {"topic": "t"})
        await settled(bob, origin)
        await decided(Tools(deps), origin)
        run = await forked(bob, origin, before="send")
        assert run["status"] == "waiting"
        assert asked(model, "Send") == [1]
