"""`human_approval` asks a person and goes on as they decide."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from agent_graph.core.effects import MISSING, ApprovalAnswer, AskApproval, Done, Write
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.nodes import human_approval
from agent_graph.core.nodes.base import Read, Target
from agent_graph.core.policy.profile import CHANNELS
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen, found, node, step

WEEK_MS = 604_800_000


def decided(decision: str, *, round: int = 1, by: str = "ann", subject: Any = None) -> ApprovalAnswer:  # noqa: A002
    return ApprovalAnswer(round=round, decision=decision, note="why", by=by, via="cli", at_ms=5, subject=subject)


def record(decision: str) -> dict[str, object]:
    return {"decision": decision, "note": "why", "by": "ann", "via": "cli", "at_ms": 5}


def test_it_asks_with_prompt_subject_and_defaults() -> None:
    asked = step(node("human_approval", prompt="Send {input}?"), Seen(current={"to": "bob"}))
    assert asked == AskApproval(
        round=1, prompt='Send {"to":"bob"}?', subject={"to": "bob"}, audience=(), expiry_ms=WEEK_MS,
        allowed_decisions=("approve", "reject", "request_changes"), remind_ms=WEEK_MS // 10,
    )  # fmt: skip


def test_prompt_subject_and_audience_can_come_from_the_config() -> None:
    of = node(
        "human_approval", prompt_key="ask", subject_key="draft.body", audience="legal", expiry_ms=9,
        allowed_decisions=["reject", "approve", "approve"],
    )  # fmt: skip
    asked = step(of, Seen({"ask": "Fine? {draft}", "draft": {"body": "text"}}))
    assert asked == AskApproval(
        round=1, prompt="Fine? {draft}", subject="text", audience=("legal",), expiry_ms=9,
        allowed_decisions=("reject", "approve"),
    )  # fmt: skip
    assert step(node("human_approval", audience=["a", "b"]), Seen()).audience == ("a", "b")


def test_a_prompt_that_is_no_text_is_shown_as_json() -> None:
    assert step(node("human_approval", prompt_key="ask"), Seen({"ask": {"a": 1}})).prompt == '{"a":1}'


def test_a_gate_without_a_prompt_names_itself() -> None:
    assert step(node("human_approval", id="gate"), Seen()).prompt == 'Approve "gate"?'
    assert step(node("human_approval", label="Ship it"), Seen()).prompt == "Ship it"


def test_the_input_of_the_prompt_is_at_the_input_key() -> None:
    assert step(node("human_approval", prompt="{input}", input_key="x"), Seen({"x": "y"})).prompt == "y"


@pytest.mark.parametrize("config", [{"subject_key": "draft"}, {"prompt_key": "draft"}, {"prompt": "{draft}"}])
def test_nothing_is_asked_while_there_is_nothing_to_show(config: dict[str, str]) -> None:
    with pytest.raises(NodeFailure) as failed:
        step(node("human_approval", **config), Seen())
    assert failed.value.code == "PROMPT_VALUE_MISSING"


@pytest.mark.parametrize("config", [{"prompt_key": "long"}, {"prompt": "{long}"}])
def test_a_prompt_beyond_the_limit_is_the_nodes_failure(config: dict[str, str]) -> None:
    with pytest.raises(NodeFailure) as failed:
        step(node("human_approval", **config), Seen({"long": "é" * (DEFAULTS.prompt_bytes // 2 + 1)}))
    assert failed.value.code == "VALUE_TOO_LARGE"
    assert failed.value.details == {"limit": DEFAULTS.prompt_bytes}


def test_an_approval_follows_the_out_edges_and_is_kept_under_the_nodes_id() -> None:
    made = step(node("human_approval", id="gate"), Seen(), [decided("approve")])
    kept = record("approve")
    assert made == Done((Write("set", ("gate",), kept),), output=kept, transition="approve")


def test_a_decision_in_the_input_is_never_trusted() -> None:
    seeded = Seen({"gate": {"decision": "approve"}, "verdict": "approve"})
    assert isinstance(step(node("human_approval", id="gate"), seeded), AskApproval)
    assert isinstance(step(node("human_approval", id="gate", output_key="verdict"), seeded), AskApproval)
    made = step(node("human_approval", id="gate"), seeded, [decided("approve")])
    assert made.writes == (Write("set", ("gate",), record("approve")),)


def test_the_decision_goes_to_the_output_key() -> None:
    made = step(node("human_approval", output_key="review.result"), Seen(), [decided("approve")])
    assert made.writes == (Write("set", ("review", "result"), record("approve")),)


def test_decisions_can_be_collected_by_a_reducer() -> None:
    values = Seen(reducers={"log": "append"})
    made = step(node("human_approval", output_key="log"), values, [decided("approve")])
    assert made.writes == (Write("operand", ("log",), record("approve")),)


def test_a_node_id_with_dots_is_one_key() -> None:
    of = node("human_approval", id="gate.one")
    assert human_approval.writes("gate.one", of.config) == ["/gate.one"]
    assert step(of, Seen(), [decided("approve")]).writes[0].path == ("gate.one",)


def test_a_rejection_fails_the_node_where_nothing_else_is_said() -> None:
    with pytest.raises(NodeFailure, match="rejected by ann") as failed:
        step(node("human_approval"), Seen(), [decided("reject")])
    assert (failed.value.code, failed.value.failure_class) == ("APPROVAL_REJECTED", "refused")
    assert failed.value.details == {"decision": record("reject")}
    with pytest.raises(NodeFailure, match="rejected by a person"):
        step(node("human_approval"), Seen(), [decided("reject", by="")])


@pytest.mark.parametrize("decision", ["reject", "request_changes"])
def test_a_decision_can_have_targets_or_go_on(decision: str) -> None:
    way = f"on_{decision}"
    made = step(node("human_approval", **{way: ["rework", "END", "rework"]}), Seen(), [decided(decision)])
    assert (made.targets, made.transition, made.output) == (("rework", "END"), decision, record(decision))
    onward = step(node("human_approval", **{way: "continue"}), Seen(), [decided(decision)])
    assert (onward.targets, onward.transition, onward.output) == (None, decision, record(decision))
    assert step(node("human_approval", **{way: []}), Seen(), [decided(decision)]).targets == ("END",)


def test_changes_without_a_target_open_a_new_round_of_the_same_gate() -> None:
    of = node("human_approval", prompt="Fine?")
    second = step(of, Seen(), [decided("request_changes")])
    assert (second.round, second.prompt) == (2, "Fine?")
    third = step(of, Seen(), [decided("request_changes"), decided("request_changes", round=2)])
    assert third.round == 3
    made = step(of, Seen(), [decided("request_changes"), decided("approve", round=2)])
    assert made.transition == "approve"


def test_an_expired_approval_is_a_failure_and_no_rejection() -> None:
    with pytest.raises(NodeFailure) as failed:
        step(node("human_approval", on_reject=["x"]), Seen(), [decided("expired")])
    assert (failed.value.code, failed.value.failure_class) == ("APPROVAL_EXPIRED", "refused")


def test_an_expired_approval_can_lead_elsewhere_and_says_so_in_the_state() -> None:
    kept = {"decision": "expired", "note": "", "by": "", "via": "", "at_ms": 5}
    late = ApprovalAnswer(1, "expired", "", "", "", 5)
    made = step(node("human_approval", on_expire={"goto": ["late", "END", "late"]}), Seen(), [late])
    assert made == Done((Write("set", ("n",), kept),), output=kept, targets=("late", "END"), transition="expired")
    assert step(node("human_approval", on_expire={"goto": []}), Seen(), [late]).targets == ("END",)


def test_what_decides_the_gate_is_asked_with() -> None:
    of = node(
        "human_approval", allowed_decisions=["approve", "edit"], quorum=3, channels=["cli", "console", "cli"],
        self_approval=False, subject_schema={"type": "string"},
    )  # fmt: skip
    asked = step(of, Seen())
    assert (asked.quorum, asked.channels, asked.self_approval) == (3, ("cli", "console"), False)
    assert asked.subject_schema == {"type": "string"}
    assert set(get_args(human_approval.Channel)) == set(CHANNELS)


@pytest.mark.parametrize(
    ("config", "remind_ms"),
    [
        ({}, WEEK_MS // 10), ({"remind_ms": 0}, 0), ({"remind_ms": 5_000}, 5_000),
        ({"expiry_ms": 600_000}, 60_000), ({"expiry_ms": 599_999}, 0), ({"expiry_ms": 9, "remind_ms": 9}, 0),
        ({"expiry_ms": 9, "remind_ms": 8}, 8),
    ],
)  # fmt: skip
def test_a_reminder_comes_a_tenth_before_the_end_unless_that_is_too_short(
    config: dict[str, Any], remind_ms: int
) -> None:
    assert step(node("human_approval", **config), Seen()).remind_ms == remind_ms


def edit(config: dict[str, Any], values: Seen, subject: Any) -> Done:
    made = step(
        node("human_approval", allowed_decisions=["edit"], **config), values, [decided("edit", subject=subject)]
    )
    assert isinstance(made, Done)
    assert (made.targets, made.transition, made.output) == (None, "edit", record("edit"))
    return made


def test_an_edited_subject_goes_on_where_it_came_from() -> None:
    kept = Write("set", ("n",), record("edit"))
    made = edit({}, Seen(current="old"), "new")
    assert (made.writes, made.current) == ((kept,), "new")
    assert edit({}, Seen(current="old"), None).current is None
    made = edit({"subject_key": "draft.body"}, Seen({"draft": {"body": "old"}}), "new")
    assert (made.writes, made.current) == ((Write("set", ("draft", "body"), "new"), kept), MISSING)
    made = edit({"subject_key": "__input__"}, Seen(current="old"), "new")
    assert (made.writes, made.current) == ((kept,), "new")
    made = edit({"subject_key": "__input__.body"}, Seen(current={"body": "old", "to": "bob"}), "new")
    assert (made.writes, made.current) == ((kept,), {"body": "new", "to": "bob"})


def test_an_edited_subject_overwrites_what_a_reducer_gathers() -> None:
    made = edit({"subject_key": "log"}, Seen({"log": ["old"]}, reducers={"log": "append"}), ["new"])
    assert made.writes[0] == Write("replace", ("log",), ["new"])


def test_it_says_what_it_chooses_reads_and_writes() -> None:
    config = human_approval.Config(
        prompt="{input} {plan.a?} {run_input} {plan.a?}", input_key="draft", subject_key="body", on_reject=["x", "END"],
        on_request_changes=["y"],
    )  # fmt: skip
    assert not human_approval.CHOOSES
    assert human_approval.targets(config) == [
        Target("x", "/on_reject/0"), Target("END", "/on_reject/1"), Target("y", "/on_request_changes/0"),
    ]  # fmt: skip
    assert human_approval.reads(config) == [
        Read("draft", "/input_key"), Read("plan.a", "/prompt", optional=True), Read("body", "/subject_key"),
    ]  # fmt: skip
    assert human_approval.writes("n", config) == ["n"]
    assert not human_approval.writes_current(config)
    edits = human_approval.Config(allowed_decisions=["edit"], subject_key="body", on_expire={"goto": ["late", "END"]})
    assert human_approval.writes("n", edits) == ["n", "body"]
    assert not human_approval.writes_current(edits)
    assert human_approval.targets(edits) == [Target("late", "/on_expire/goto/0"), Target("END", "/on_expire/goto/1")]
    for key in ("", "__input__", "__input__.title"):
        current = human_approval.Config(allowed_decisions=["edit"], subject_key=key)
        assert human_approval.writes("n", current) == ["n"]
        assert human_approval.writes_current(current)
    assert human_approval.targets(human_approval.Config(on_reject="continue")) == []


@pytest.mark.parametrize(
    ("config", "issues"),
    [
        ({}, []),
        ({"prompt": "a", "prompt_key": "b"}, [("FIELD_CONFLICT", "/prompt_key")]),
        ({"allowed_decisions": ["approve", "edit"]}, []),
        ({"subject_schema": {"type": "text"}}, [("SCHEMA_INVALID", "/subject_schema/type")]),
        ({"subject_schema": {"type": "string"}}, [("FIELD_UNUSED", "/subject_schema")]),
        ({"subject_schema": {"type": "string"}, "allowed_decisions": ["edit"]}, []),
        ({"expiry_ms": 5, "remind_ms": 5}, [("FIELD_UNUSED", "/remind_ms")]),
        ({"allowed_decisions": ["edit"], "subject_key": "n.text"}, [("FIELD_CONFLICT", "/subject_key")]),
        ({"allowed_decisions": ["approve"], "subject_key": "n.text"}, []),
        (
            {"allowed_decisions": ["edit"], "subject_key": "draft", "output_key": "draft"},
            [("FIELD_CONFLICT", "/subject_key")],
        ),
        ({"subject_key": "a..b"}, [("STATE_PATH_INVALID", "/subject_key")]),
        ({"output_key": "/a~2"}, [("STATE_PATH_INVALID", "/output_key")]),
    ],
)
def test_what_is_wrong_is_found_at_its_place(config: dict[str, object], issues: list[tuple[str, str]]) -> None:
    assert found("human_approval", **config) == issues


def test_what_nothing_acts_on_yet_is_named() -> None:
    assert set(human_approval.UNAVAILABLE) == {"executor", "timeout_ms", "on_error"}
