"""graph_run_fork: what is taken over is not paid again, and no fork leads past a decision its origin had not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_graph.engine.approvers import Approvers, Proof
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.tools.deps import Caller
from tests.engine.room import asked
from tests.fakes.opened import Tools, opened
from tests.specs import gate, join, llm, node, passthrough, put, router, rule, spec

LINE = spec(
    llm("a", "A {input}", output_key="ka"), llm("b", "B {ka}", output_key="kb"), llm("c", "C {kb}", output_key="kc"),
    edges="a>b b>c c>END", output_key="kc", name="line",
)  # fmt: skip
CLOSED = ["console", "cli", "elicitation"]
HUMAN = Caller("cli", "a shell")


def guarded(**config: Any) -> dict[str, Any]:
    """A draft, a person who approves it, and what happens then."""
    return spec(
        llm("draft", "Draft {topic}", output_key="text"), gate("ok", subject_key="text", **config),
        llm("send", "Send {text}", output_key="sent"), edges="draft>ok ok>send send>END", output_key="sent",
        name="guarded",
    )  # fmt: skip


async def echoed(call: Any) -> str:
    return f"<{call.messages[-1]['content']}>"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(echoed)


async def settled(tools: Tools, run_id: str) -> Any:
    """The run when it has ended or waits."""
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    return await tools.ok("graph_run_get", run_id=run_id, include_state=True)


async def forked(tools: Tools, run_id: str, **arguments: Any) -> Any:
    """The fork, settled."""
    made = await tools.ok("graph_run_fork", run_id=run_id, **arguments)
    return await settled(tools, made["run_id"])


async def started(tools: Tools, document: Any, value: Any) -> str:
    await tools.ok("graph_create", spec=document, overwrite=True)
    run_id = await tools.run(document["name"], value)
    await settled(tools, run_id)
    return run_id


async def decided(tools: Tools, run_id: str, decision: str = "approve") -> None:
    """Whatever the run asks is decided by a person at a shell."""
    person = Tools(tools.deps, HUMAN)
    for gate_ in (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]:
        await person.ok("graph_approval_decide", approval_id=gate_["approval_id"], decision=decision, decided_by="Ada")
    await settled(tools, run_id)


async def test_nodes_before_the_point_are_not_executed_again(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, LINE, "q")
    assert asked(model, "A", "B", "C") == [1, 1, 1]
    made = await tools.ok("graph_run_fork", run_id=origin, before="c")
    run = await settled(tools, made["run_id"])
    assert asked(model, "A", "B", "C") == [1, 1, 2]
    assert run["status"] == "completed"
    assert run["usage"]["llm_calls"] == 1
    assert run["usage"]["inherited"]["llm_calls"] == made["taken_over"]["llm_calls"] == 2
    assert run["forked_from"] == made["forked_from"] == {"run_id": origin, "seq": made["taken_over"]["events"] - 1}
    listed = (await tools.ok("graph_run_list"))["runs"]
    assert [one.get("forked_from", {}).get("run_id") for one in listed] == [origin, None]
    events = (await tools.ok("graph_run_events", run_id=run["run_id"]))["events"]
    (own,) = [event for event in events if event["type"] == "run_forked"]
    assert (own["seq"], own["run_id"], own["before"]) == (made["taken_over"]["events"], origin, "c#1")
    assert events[0]["forked_from"] == made["forked_from"]
    replayed = await tools.ok("graph_run_replay", run_id=run["run_id"])
    assert replayed["same"], replayed


async def test_a_patch_an_output_and_a_model_are_seen_from_the_point_on(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, LINE, "q")
    patch = [{"op": "replace", "path": "/kb", "value": "patched"}]
    run = await forked(tools, origin, before="c", patch=patch)
    assert run["final_state"] == "<C patched>"
    run = await forked(tools, origin, before="b", outputs={"b": "handed in"})
    assert run["final_state"] == "<C handed in>"
    assert run["usage"]["llm_calls"] == 1
    assert asked(model, "A", "B", "C") == [1, 1, 3]
    run = await forked(tools, origin, before="b", models={"c": "another"})
    assert [call.model for call in model.calls[-2:]] == ["scripted", "another"]


async def test_a_fork_of_a_fork_knows_both(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, LINE, "q")
    first = await forked(tools, origin, before="b", outputs={"b": "one"}, models={"c": "m"})
    second = await forked(tools, first["run_id"], before="c", patch=[{"op": "add", "path": "/kb", "value": "two"}])
    assert second["final_state"] == "<C two>"
    assert second["forked_from"]["run_id"] == first["run_id"]
    assert model.calls[-1].model == "m"
    assert second["usage"]["inherited"]["llm_calls"] == 0, "what the first had inherited was not its own"


async def test_another_version_goes_on_where_the_way_is_shared_and_is_refused_where_not(
    tools: Tools, model: ScriptedModel
) -> None:
    origin = await started(tools, LINE, "q")
    changed = {**LINE, "nodes": [*LINE["nodes"][:2], llm("c", "Now {kb}", output_key="kc")]}
    version = (await tools.ok("graph_create", spec=changed, overwrite=True))["graph_version"]
    run = await forked(tools, origin, before="c", graph_version=version)
    assert (run["final_state"], run["graph_version"]) == ("<Now <B <A q>>>", version)
    assert asked(model, "A", "B") == [1, 1]
    for nodes in (
        [llm("a", "First {input}", output_key="ka"), *LINE["nodes"][1:]],
        [put("a", ka="x"), *LINE["nodes"][1:]],
    ):
        version = (await tools.ok("graph_create", spec={**LINE, "nodes": nodes}, overwrite=True))["graph_version"]
        refusal = await tools.refused("graph_run_fork", run_id=origin, before="c", graph_version=version)
        assert (refusal["error_code"], refusal["details"]["node_path"]) == ("FORK_DIVERGES", "a#1")


async def test_from_the_start_nothing_is_taken_over(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, LINE, "q")
    run = await forked(tools, origin, at=0)
    assert run["status"] == "completed"
    assert asked(model, "A", "B", "C") == [2, 2, 2]


async def test_a_failed_run_goes_on_from_before_what_failed() -> None:
    answers = iter(["x", "", "", "", "", "", "", "fine", "done"])

    async def said(_call: Any) -> str:
        return next(answers)

    async with opened(ScriptedModel(said)) as deps:
        tools = Tools(deps)
        document = {**LINE, "nodes": [
            {**one, "config": {**one["config"], "retry": {"max_attempts": 1}}} for one in LINE["nodes"]
        ]}  # fmt: skip
        origin = await started(tools, document, "q")
        assert (await tools.ok("graph_run_get", run_id=origin))["error"]["node_id"] == "b"
        for _ in range(5):
            run = await forked(tools, origin, failed=True)
            assert run["status"] == "failed"
        assert (await forked(tools, origin, failed=True))["status"] == "completed"


async def test_a_key_forks_once(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    first = await tools.ok("graph_run_fork", run_id=origin, before="c", idempotency_key="k")
    again = await tools.ok("graph_run_fork", run_id=origin, before="c", idempotency_key="k")
    assert first == again
    refusal = await tools.envelope("graph_run_fork", run_id=origin, before="b", idempotency_key="k")
    assert refusal["error_code"] == "IDEMPOTENCY_CONFLICT"
    assert len((await tools.ok("graph_run_list"))["runs"]) == 2


async def test_budgets_start_anew_and_can_be_given(tools: Tools) -> None:
    origin = await started(tools, {**LINE, "budgets": {"max_llm_calls": 3}}, "q")
    run = await forked(tools, origin, before="c")
    assert run["budget"]["max_llm_calls"] == {"max": 3, "used": 1}
    run = await forked(tools, origin, before="b", budgets={"max_llm_calls": 1})
    assert (run["status"], run["error"]["code"]) == ("failed", "BUDGET_EXHAUSTED")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "INVALID_ARGUMENT"),
        ({"before": "c", "at": 3}, "INVALID_ARGUMENT"),
        ({"before": "z"}, "FORK_POINT_NOT_FOUND"),
        ({"before": "c", "nth": 2}, "FORK_POINT_NOT_FOUND"),
        ({"at": 10_000}, "FORK_POINT_NOT_FOUND"),
        ({"failed": True}, "FORK_POINT_INVALID"),
        ({"before": "c", "patch": [{"op": "remove", "path": "/none"}]}, "INVALID_ARGUMENT"),
        ({"before": "c", "patch": [{"op": "replace", "path": "", "value": 1}]}, "INVALID_ARGUMENT"),
        ({"before": "c", "patch": [{"op": "add", "path": "/__x", "value": 1}]}, "RESERVED_KEY"),
        ({"before": "c", "patch": [{"op": "add", "path": "/x", "value": "x" * 40_000_000}]}, "INPUT_TOO_LARGE"),
        ({"before": "c", "outputs": {"z": "x"}}, "INVALID_ARGUMENT"),
        ({"before": "c", "models": {"c": 1}}, "INVALID_ARGUMENT"),
        ({"before": "c", "models": {"c": "http://x"}}, "INVALID_ARGUMENT"),
        ({"before": "c", "graph_version": "sha256:none"}, "GRAPH_VERSION_NOT_FOUND"),
        ({"before": "c", "budgets": {"max_wishes": 3}}, "INVALID_BUDGETS"),
    ],
)
async def test_a_fork_that_cannot_be_is_refused_and_nothing_is_made(tools: Tools, arguments: Any, code: str) -> None:
    origin = await started(tools, LINE, "q")
    refusal = await tools.refused("graph_run_fork", run_id=origin, **arguments)
    assert refusal["error_code"] == code


async def test_where_a_run_was_about_to_end_it_is_said_from_where_it_goes_on(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    last = (await tools.ok("graph_run_events", run_id=origin))["next_cursor"] - 1
    refusal = await tools.refused("graph_run_fork", run_id=origin, at=last)
    assert (refusal["error_code"], refusal["details"]["latest"]) == ("FORK_POINT_INVALID", last - 1)
    run = await forked(tools, origin, at=last - 1)
    assert (run["status"], run["usage"]["llm_calls"]) == ("completed", 0)
    planned = await tools.ok("graph_run_fork", run_id=origin, at=last - 1, dry_run=True)
    assert (planned["status"], planned["questions"], planned["run_id"]) == ("dry_run", 0, "")


async def test_a_pruned_run_is_not_forked(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    await tools.ok("graph_store_prune", run_ids=[origin])
    assert (await tools.refused("graph_run_fork", run_id=origin, before="c"))["error_code"] == "RUN_PRUNED"


async def test_only_who_sees_a_run_and_may_write_forks_it(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    other = Tools(tools.deps, Caller("assistant", "c", principal="bob", scopes=frozenset({"runs:read", "runs:write"})))
    assert (await other.refused("graph_run_fork", run_id=origin, before="c"))["error_code"] == "RUN_NOT_FOUND"
    reader = Tools(tools.deps, Caller("assistant", "c", principal="eve", scopes=frozenset({"runs:read"})))
    assert (await reader.refused("graph_run_fork", run_id=origin, before="c"))["error_code"] == "INSUFFICIENT_SCOPE"
    all_seeing = Caller(
        "assistant", "c", principal="ann", scopes=frozenset({"runs:read", "runs:write"}), sharing="all"
    )  # fmt: skip
    made = await Tools(tools.deps, all_seeing).ok("graph_run_fork", run_id=origin, before="c")
    run = await settled(tools, made["run_id"])
    assert run["principal"] == "ann", "the fork is of whoever forks"
    mine = await other.run("line", "q")
    await settled(other, mine)
    fork = await other.ok("graph_run_fork", run_id=mine, before="c")
    assert (await settled(other, fork["run_id"]))["principal"] == "bob"


# -- gates ---------------------------------------------------------------------------------------------------------


async def test_a_waiting_run_that_is_forked_waits_at_a_gate_of_its_own(tools: Tools) -> None:
    origin = await started(tools, guarded(channels=CLOSED), {"topic": "t"})
    (old,) = (await tools.ok("graph_approval_list", run_id=origin))["approvals"]
    seq = (await tools.ok("graph_run_events", run_id=origin))["next_cursor"] - 1
    run = await forked(tools, origin, at=seq)
    assert run["status"] == "waiting"
    (new,) = run["pending_approvals"]
    assert new["approval_id"] != old["approval_id"]
    assert (new["subject_digest"], new["channels"]) == (old["subject_digest"], old["channels"])
    await decided(tools, origin)
    assert (await settled(tools, run["run_id"]))["status"] == "waiting", "a yes to the origin opens no gate of a fork"


async def test_votes_of_a_half_filled_quorum_are_not_taken_along(tools: Tools) -> None:
    origin = await started(tools, guarded(quorum=2), {"topic": "t"})
    (old,) = (await tools.ok("graph_approval_list", run_id=origin))["approvals"]
    await tools.ok("graph_approval_decide", approval_id=old["approval_id"], decision="approve", decided_by="Ada")
    seq = (await tools.ok("graph_run_events", run_id=origin))["next_cursor"] - 1
    (new,) = (await forked(tools, origin, at=seq))["pending_approvals"]
    assert new["votes"] == []


async def test_a_decision_stays_at_its_subject_in_a_fork_that_changes_nothing(tools: Tools) -> None:
    origin = await started(tools, guarded(), {"topic": "t"})
    await decided(tools, origin)
    run = await forked(tools, origin, before="send")
    assert run["status"] == "completed"
    (taken,) = (await tools.ok("graph_approval_list", run_id=run["run_id"], status="all"))["approvals"]
    (was,) = (await tools.ok("graph_approval_list", run_id=origin, status="all"))["approvals"]
    assert (taken["status"], taken["subject_digest"], taken["votes"]) == (
        "approved", was["subject_digest"], was["votes"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"patch": [{"op": "replace", "path": "/text", "value": "evil"}]},
        {"patch": [{"op": "add", "path": "/elsewhere", "value": 1}]},
        {"outputs": {"send": "sent to all"}},
        {"models": {"send": "another"}},
    ],
    ids=["the subject", "another key", "output", "model"],
)
async def test_whatever_is_changed_behind_a_decision_is_asked_anew(
    tools: Tools, model: ScriptedModel, change: Any
) -> None:
    origin = await started(tools, guarded(channels=CLOSED), {"topic": "t"})
    await decided(tools, origin)
    sent = asked(model, "Send")
    made = await tools.ok("graph_run_fork", run_id=origin, before="send", **change)
    run = await settled(tools, made["run_id"])
    assert run["status"] == "waiting"
    (question,) = run["pending_approvals"]
    assert made["asks"] == [question["approval_id"]]
    assert question["channels"] == CLOSED
    assert list(question["subject"]["changes"]) == [next(iter(change))]
    assert asked(model, "Send") == sent, "nothing goes on before somebody has decided"
    refusal = await tools.envelope(
        "graph_approval_decide", approval_id=question["approval_id"], decision="approve", decided_by="me"
    )
    assert refusal["error_code"] == "APPROVAL_CHANNEL_NOT_ALLOWED"
    await decided(tools, run["run_id"])
    assert (await settled(tools, run["run_id"]))["status"] == "completed"


async def test_whoever_may_not_decide_takes_no_decision_along_either(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, guarded(channels=CLOSED), {"topic": "t"})
    await decided(tools, origin)
    run = await forked(tools, origin, before="send")
    assert run["status"] == "waiting", "an assistant repeats nothing a person had let through once"
    await decided(tools, run["run_id"], "reject")
    ended = await settled(tools, run["run_id"])
    assert (ended["status"], ended["error"]["code"]) == ("failed", "APPROVAL_REJECTED")
    assert asked(model, "Send") == [1]
    person = Tools(tools.deps, HUMAN)
    assert (await forked(person, origin, before="send"))["status"] == "completed"


async def test_who_may_not_decide_on_their_own_run_takes_no_decision_along_to_one(tools: Tools) -> None:
    origin = await started(tools, guarded(self_approval=False), {"topic": "t"})
    person = Tools(tools.deps, HUMAN)
    (asks,) = (await tools.ok("graph_approval_list", run_id=origin))["approvals"]
    await person.ok("graph_approval_decide", approval_id=asks["approval_id"], decision="approve", decided_by="Ada")
    await settled(tools, origin)
    assert (await forked(tools, origin, before="send"))["status"] == "completed", "by whoever started the origin"
    run = await forked(person, origin, before="send")
    (question,) = run["pending_approvals"]
    refusal = await person.envelope(
        "graph_approval_decide", approval_id=question["approval_id"], decision="approve", decided_by="Ada"
    )
    assert refusal["error_code"] == "APPROVAL_SELF_DECISION"


async def test_a_rejected_gate_is_not_turned_by_a_fork(tools: Tools) -> None:
    document = spec(
        gate("ok", on_reject="continue", channels=CLOSED, subject_key="x"),
        router("r", rule("ok.decision", "eq", "approve", "yes"), rule("agreed", "eq", True, "yes"), default=["no"]),
        llm("yes", output_key="said"), llm("no", output_key="said"), edges="ok>r yes>END no>END", output_key="said",
        name="turned",
    )  # fmt: skip
    origin = await started(tools, document, {"x": 1, "agreed": False})
    await decided(tools, origin, "reject")
    approve = {"decision": "approve", "note": "", "by": "Ada", "via": "cli", "at_ms": 0}
    for patch in (
        [{"op": "replace", "path": "/ok", "value": approve}],
        [{"op": "replace", "path": "/ok/decision", "value": "approve"}],
        [{"op": "remove", "path": "/ok"}],
    ):
        refusal = await tools.refused("graph_run_fork", run_id=origin, before="r", patch=patch)
        assert refusal["error_code"] == "FORK_NOT_ALLOWED"
    run = await forked(tools, origin, before="r", patch=[{"op": "replace", "path": "/agreed", "value": True}])
    assert run["status"] == "waiting", "what stands for a decision elsewhere is asked about too"
    refusal = await tools.refused("graph_run_fork", run_id=origin, before="ok", outputs={"ok": approve})
    assert refusal["error_code"] == "FORK_NOT_ALLOWED"
    early = [{"op": "add", "path": "/ok", "value": approve}]
    assert (await tools.refused("graph_run_fork", run_id=origin, at=0, patch=early))["error_code"] == "FORK_NOT_ALLOWED"


async def test_another_version_takes_no_decision_along(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, guarded(channels=CLOSED), {"topic": "t"})
    await decided(tools, origin)
    changed = guarded(channels=CLOSED)
    changed["nodes"][2] = llm("send", "Send evil {text}", output_key="sent")
    version = (await tools.ok("graph_create", spec=changed, overwrite=True))["graph_version"]
    run = await forked(tools, origin, before="send", graph_version=version)
    (question,) = run["pending_approvals"]
    assert question["subject"]["changes"] == {"graph_version": version}
    assert asked(model, "Send evil") == [0]


async def test_questions_outlive_a_fork_of_the_fork(tools: Tools) -> None:
    origin = await started(tools, guarded(channels=CLOSED), {"topic": "t"})
    await decided(tools, origin)
    change = [{"op": "replace", "path": "/text", "value": "evil"}]
    first = await forked(tools, origin, before="send", patch=change)
    last = (await tools.ok("graph_run_events", run_id=first["run_id"]))["next_cursor"] - 1
    person = Tools(tools.deps, HUMAN)
    second = await forked(person, first["run_id"], at=last)
    assert second["status"] == "waiting"
    assert [one["subject"]["changes"]["patch"] for one in second["pending_approvals"]] == [change]
    await decided(tools, first["run_id"])
    done = (await tools.ok("graph_run_events", run_id=first["run_id"]))["events"]
    after = next(event["seq"] for event in done if event["type"] == "approval_decided" and event["firing"] == "on_fork")
    third = await forked(person, first["run_id"], at=after)
    assert third["status"] == "completed"
    fourth = await forked(person, first["run_id"], at=after, patch=[{"op": "add", "path": "/y", "value": 1}])
    assert len(fourth["pending_approvals"]) == 2, "the gate, and what was let through with the first changes"


async def test_a_gate_an_operator_placed_later_stands_in_the_fork_too(tools: Tools, model: ScriptedModel) -> None:
    document = spec(
        llm("a", "A {input}", output_key="ka"), gate("g"), llm("z", "Z {ka}", output_key="kz"),
        edges="a>g g>z z>END", output_key="kz", name="placed",
    )  # fmt: skip
    origin = await started(tools, document, "q")
    person = Tools(tools.deps, HUMAN)
    await person.ok("graph_approval_request", run_id=origin, at="z", prompt="Really?")
    run = await forked(tools, origin, before="a")
    await decided(tools, run["run_id"])
    run = await settled(tools, run["run_id"])
    assert [one["prompt"] for one in run["pending_approvals"]] == ["Really?"]
    assert asked(model, "Z") == [0]
    other = {**document, "nodes": [*document["nodes"][:2], llm("y", "Z {ka}", output_key="kz")]}
    other["edges"] = spec(passthrough("a"), edges="a>g g>y y>END")["edges"]
    version = (await tools.ok("graph_create", spec=other, overwrite=True))["graph_version"]
    refusal = await tools.refused("graph_run_fork", run_id=origin, before="g", graph_version=version)
    assert refusal["error_code"] == "FORK_NOT_ALLOWED"


async def test_items_subgraphs_mutexes_timers_signals_and_half_filled_joins_are_taken_over(
    tools: Tools, model: ScriptedModel
) -> None:
    inner = spec(llm("deep", "Deep {input}"), gate("in"), edges="deep>in in>END", name="inner")
    await tools.ok("graph_create", spec=inner)
    document = spec(
        passthrough("s"), llm("quick", "Quick", mutex="m", output_key="kq"), llm("other", "Other", mutex="m"),
        node("p", "parallel", for_each={"path": "items"}, entry="i", join="j", output_key="all"),
        llm("i", "Item {item}"), node("w", "signal", name="go"), node("j", "join", inputs=["i"]),
        node("sub", "subgraph", graph_name="inner"), node("t", "timer", delay_ms=3_600_000),
        join("meet", ["quick", "all"], "met"), llm("end", "End", output_key="said"),
        edges="s>quick s>p s>sub s>t s>other i>w w>j quick>meet j>meet sub>meet t>meet other>meet meet>end end>END",
        output_key="said", name="much",
    )  # fmt: skip
    origin = await started(tools, document, {"items": ["x", "y"]})
    before = len(model.calls)
    seq = (await tools.ok("graph_run_events", run_id=origin))["next_cursor"] - 1
    run = await forked(tools, origin, at=seq)
    assert len(model.calls) == before, "nothing is paid again"
    was = await tools.ok("graph_run_get", run_id=origin, include_state=True)
    kinds = [(one["kind"], one.get("due_at_ms")) for one in was["waiting_for"] if one["kind"] != "approval"]
    assert [(one["kind"], one.get("due_at_ms")) for one in run["waiting_for"] if one["kind"] != "approval"] == kinds
    assert run["state"] == was["state"]
    assert [one["node_path"] for one in run["pending_approvals"]] == ["sub#1/in#1"]
    for _ in range(2):
        await tools.ok("graph_run_signal", run_id=run["run_id"], name="go", payload=1)
    await decided(tools, run["run_id"])
    assert asked(model, "End") == [0], "a fork makes no hour shorter"
    assert (await tools.ok("graph_run_replay", run_id=run["run_id"], level="verify"))["same"]


async def test_answers_to_calls_under_way_at_the_point_are_taken_over(tools: Tools, model: ScriptedModel) -> None:
    document = spec(
        passthrough("s"), llm("a", "A", output_key="ka"), llm("b", "B", output_key="kb"), join("m", ["a", "b"], "met"),
        edges="s>a s>b a>m b>m m>END", output_key="met", name="two",
    )  # fmt: skip
    origin = await started(tools, document, {})
    events = (await tools.ok("graph_run_events", run_id=origin))["events"]
    seq = max(event["seq"] for event in events if event["type"] == "node_started" and event["firing"] in ("a#1", "b#1"))
    run = await forked(tools, origin, at=seq)
    assert (run["status"], asked(model, "A", "B")) == ("completed", [1, 1])
    run = await forked(tools, origin, at=seq, models={"b": "another"})
    assert (run["status"], asked(model, "A", "B")) == ("completed", [1, 2])
    run = await forked(tools, origin, at=seq, outputs={"b": "given", "a": {"x": 1}})
    assert (run["final_state"], asked(model, "A", "B")) == (['{"x":1}', "given"], [1, 2])


async def test_a_fork_that_was_not_driven_is_driven_by_the_next_process(tmp_path: Path) -> None:
    model = ScriptedModel([], default=Reply(text="fine"))
    async with opened(model, folder=tmp_path) as deps:
        tools = Tools(deps)
        origin = await started(tools, LINE, "q")
        deps.supervisor._stopping = True  # type: ignore[attr-defined]  # as when the process dies right after the commit
        with pytest.raises(AssertionError):
            await tools.ok("graph_run_fork", run_id=origin, before="c")
        deps.supervisor._stopping = False  # type: ignore[attr-defined]  # as above
        log = await tools.ok("graph_run_fork", run_id=origin, before="c", idempotency_key="k")
        await deps.supervisor.shutdown("it dies")  # type: ignore[attr-defined]  # the real one
    async with opened(model, folder=tmp_path) as deps:
        await deps.supervisor.recover()  # type: ignore[attr-defined]  # as above
        run = await settled(Tools(deps), log["run_id"])
        assert run["status"] == "completed"


async def test_another_default_model_is_a_change_too(tools: Tools, model: ScriptedModel) -> None:
    origin = await started(tools, guarded(), {"topic": "t"})
    await decided(tools, origin)
    run = await forked(tools, origin, before="send", model="another")
    (question,) = run["pending_approvals"]
    assert question["subject"]["changes"] == {"model": "another"}
    await decided(tools, run["run_id"])
    assert model.calls[-1].model == "another"
    again = await forked(tools, run["run_id"], before="send")
    assert again["status"] == "completed"
    assert model.calls[-1].model == "another"


async def test_a_secret_in_a_patch_or_an_output_is_stored_nowhere(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    secret = "Bearer abcdefghijklmnopqrstuvwxyz0123456789"
    patch = [{"op": "add", "path": "/api_key", "value": secret}]
    made = await tools.ok("graph_run_fork", run_id=origin, before="c", patch=patch, outputs={"c": f"use {secret}"})
    await settled(tools, made["run_id"])
    stored = await tools.deps.store.runs.events(made["run_id"], limit=200)
    assert secret not in repr(stored)


async def test_the_receipt_of_a_fork_says_what_it_begins_with(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    run = await forked(tools, origin, before="c", outputs={"c": "given"})
    receipt = (await tools.ok("graph_run_receipt", run_id=run["run_id"]))["receipt"]
    assert receipt["forked_from"]["run_id"] == origin
    assert receipt["forked_from"]["changes"].startswith("sha256:")
    assert [leaf["performer"] for leaf in receipt["leaves"]][-1] == "given:fork"
    plain = await forked(tools, origin, before="c")
    receipt = (await tools.ok("graph_run_receipt", run_id=plain["run_id"]))["receipt"]
    assert receipt["forked_from"]["changes"] is None
    assert [leaf["seq"] < receipt["forked_from"]["events"] for leaf in receipt["leaves"]] == [True, True, False]


# -- what a breaker found ----------------------------------------------------------------------------------------------


def asked_before(key: str = "ok") -> dict[str, Any]:
    """Goes on at once where a decision is there already, and else asks."""
    return spec(
        passthrough("pre"), router("r", rule("ok.decision", "eq", "approve", "yes"), default=[key]),
        gate(key, channels=CLOSED, subject_key="x"), llm("yes", "SEND {x}", output_key="said"),
        edges=f"pre>r {key}>yes yes>END", output_key="said", name="loopy",
    )  # fmt: skip


async def test_two_forks_through_another_version_put_no_decision_where_a_gate_keeps_one(
    tools: Tools, model: ScriptedModel
) -> None:
    other = (await tools.ok("graph_create", spec=asked_before("other")))["graph_version"]
    run_id = await started(tools, asked_before(), {"x": 1})
    version = (await tools.ok("graph_run_get", run_id=run_id))["graph_version"]
    forged: Any = [{"op": "add", "path": "/ok", "value": {"decision": "approve", "by": "Ada", "via": "cli"}}]
    away = await forked(tools, run_id, before="pre", graph_version=other, patch=forged)
    before = len(model.calls)
    events = (await tools.ok("graph_run_events", run_id=away["run_id"]))["events"]
    seq = next(event["seq"] for event in events if event["type"] == "run_forked")
    refused = await tools.refused("graph_run_fork", run_id=away["run_id"], at=seq, graph_version=version)
    assert (refused["error_code"], refused["details"]["path"]) == ("FORK_NOT_ALLOWED", "ok")
    assert len(model.calls) == before


async def test_a_decision_at_a_closed_gate_is_taken_along_only_by_who_could_make_it(
    tools: Tools, model: ScriptedModel, tmp_path: Path
) -> None:
    run_id = await started(tools, guarded(channels=["cli"]), {"topic": "t"})
    await decided(tools, run_id)
    sent = asked(model, "Send")
    free = await forked(Tools(tools.deps, HUMAN), run_id, before="send")
    assert (free["status"], asked(model, "Send")[0]) == ("completed", sent[0] + 1)  # nobody has a secret
    guards = Approvers(tmp_path)
    await guards.add(Proof("ada", "a long enough secret"), voucher=None, now_ms=0)
    guarded_by = replace(tools.deps, approvers=guards)
    shell, ada = Tools(guarded_by, HUMAN), Tools(guarded_by, replace(HUMAN, approver="ada"))
    stranger = Tools(guarded_by, replace(HUMAN, scopes=frozenset({"runs:read", "runs:write"})))
    for who, status in ((shell, "waiting"), (stranger, "waiting"), (ada, "completed")):
        assert (await forked(who, run_id, before="send"))["status"] == status


async def test_a_decision_that_comes_out_of_a_graph_inside_is_put_there_by_nobody_else(
    tools: Tools, model: ScriptedModel
) -> None:
    inner = spec(gate("g", channels=CLOSED, output_key="verdict"), edges="g>END", output_key="verdict", name="inner")
    await tools.ok("graph_create", spec=inner)
    outer = spec(
        passthrough("p"), router("r", rule("verdict.decision", "eq", "approve", "yes"), default=["s"]),
        node("s", "subgraph", graph_name="inner", output_key="verdict"), llm("yes", "SEND", output_key="said"),
        edges="p>r s>yes yes>END", output_key="said", name="outer",
    )  # fmt: skip
    forged: Any = {"decision": "approve"}
    run_id = await started(tools, outer, {"verdict": forged})
    assert (await settled(tools, run_id))["status"] == "waiting"
    refused = await tools.refused(
        "graph_run_fork", run_id=run_id, before="r", patch=[{"op": "add", "path": "/verdict", "value": forged}]
    )
    assert refused["error_code"] == "FORK_NOT_ALLOWED"
    assert model.calls == []


async def test_nothing_is_taken_over_from_a_log_that_somebody_has_changed(tmp_path: Path, model: ScriptedModel) -> None:
    async with opened(model, folder=tmp_path) as deps:
        tools = Tools(deps)
        run_id = await started(tools, LINE, "q")
        other = await tools.run("line", "q")
        await settled(tools, other)
        change = "UPDATE events SET body = replace(body, '<B', '<EVIL') WHERE body LIKE '%<B%'"
        await deps.store.database.write(lambda connection: connection.execute(change).rowcount)  # type: ignore[attr-defined]
        for refused in (
            await tools.refused("graph_run_fork", run_id=run_id, before="c"),
            await tools.refused("graph_run_compare", run_id=run_id, other_run_id=other),
        ):
            assert refused["error_code"] == "STORE_CORRUPT"
            assert "EVIL" not in str(refused)
        assert len((await tools.ok("graph_run_list"))["runs"]) == 2
