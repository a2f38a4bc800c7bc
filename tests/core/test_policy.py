"""What a graph is held to: rules, overrides, verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core.compile import compile_graph
from agent_graph.core.graph import Graph
from agent_graph.core.nodes.tool import Config as Tool
from agent_graph.core.policy import Case, Finding, PolicyBook, Profile
from agent_graph.core.policy import rules as rules_module
from agent_graph.core.policy.case import behind_gate
from agent_graph.core.policy.profile import BUILT_IN, NAMES, SENSES, covers, read_profile, tighten
from agent_graph.core.policy.rules import RULES
from agent_graph.core.policy.verdict import judge


def graph(
    *nodes: dict[str, Any], edges: tuple[tuple[str, str], ...] = (), inner: tuple[Graph, ...] = (), **more: Any
) -> Graph:
    spec = {
        "name": "held", "entry": nodes[0]["id"], "nodes": list(nodes),
        "edges": [{"from": a, "to": b} for a, b in edges], **more,
    }  # fmt: skip
    compiled = compile_graph(spec, stored={(one.name, ""): one for one in inner})
    assert compiled.graph is not None, compiled.issues
    return compiled.graph


def node(node_id: str, kind: str = "passthrough", **config: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, "config": config}


def ask(node_id: str = "ask", prompt: str = "{input}", **config: Any) -> dict[str, Any]:
    return node(node_id, "llm", prompt=prompt, **config)


def codes(profile: Profile, case: Case) -> list[tuple[str, str, str]]:
    verdict = judge(profile, case)
    return [(one.code, one.where, one.rule) for one in (*verdict.violations, *verdict.warnings)]


def test_the_baseline_holds_a_graph_to_nothing_but_what_the_server_can_do() -> None:
    case = Case(graph(ask()), lacking={"llm": "no models here"})
    assert judge(BUILT_IN["baseline"], Case(graph(ask()))).decision == "allow"
    assert codes(BUILT_IN["baseline"], case) == [("NODE_TYPE_UNAVAILABLE", "ask", "capabilities")]


@pytest.mark.parametrize(
    ("bound", "code", "where"),
    [
        ({"node_types": ("router",)}, "NODE_TYPE_NOT_ALLOWED", "ask"),
        ({"max_nodes": 1}, "POLICY_LIMIT_EXCEEDED", ""),
        ({"max_edges": 1}, "POLICY_LIMIT_EXCEEDED", ""),
        ({"max_iterations": 3}, "POLICY_LIMIT_EXCEEDED", ""),
        ({"max_loop_rounds": 4}, "POLICY_LIMIT_EXCEEDED", "again"),
        ({"max_parallelism": 7}, "POLICY_LIMIT_EXCEEDED", ""),
        ({"max_prompt_bytes": 4}, "POLICY_LIMIT_EXCEEDED", "ask"),
        ({"max_input_bytes": 2}, "POLICY_LIMIT_EXCEEDED", ""),
        ({"models": ("qwen3*",)}, "MODEL_NOT_ALLOWED", "ask"),
        ({"channels": ("cli",)}, "GATE_CHANNEL_NOT_ALLOWED", "gate"),
        ({"approval_before": ("llm",)}, "APPROVAL_REQUIRED", "ask"),
        ({"requirements": ("REQ-1",)}, "REQUIREMENT_NOT_COVERED", ""),
        ({"budgets": ("max_tokens",)}, "BUDGET_REQUIRED", ""),
    ],
)
def test_each_rule_says_what_goes_against_it_and_where(bound: dict[str, Any], code: str, where: str) -> None:
    held = graph(
        node("again", "loop", entry="ask", exit="gate", max_iterations=5), ask(model="mistral"),
        node("gate", "human_approval", prompt="May it?"),
        edges=(("again", "ask"), ("again", "gate"), ("ask", "again")),
    )  # fmt: skip
    case = Case(held, input="x")
    (name,) = bound
    assert (code, where, name) in codes(Profile("own", **bound), case)
    assert judge(Profile("own", **bound), case).decision == "deny"
    assert judge(Profile("own", **bound, review=(name,)), case).decision == "review"


def test_a_node_without_a_model_is_held_to_the_default_and_denied_when_there_is_none() -> None:
    profile = Profile("own", models=("qwen3:8b",))
    assert codes(profile, Case(graph(ask()), model="qwen3:8b")) == []
    assert codes(profile, Case(graph(ask()), model="other")) == [("MODEL_NOT_ALLOWED", "ask", "models")]
    assert codes(profile, Case(graph(ask()))) == [("MODEL_NOT_ALLOWED", "ask", "models")]
    assert codes(profile, Case(graph(ask(model="qwen3:8b", fallback_models=["other"])))) == [
        ("MODEL_NOT_ALLOWED", "ask", "models")
    ]


def test_a_bound_on_calls_is_told_where_it_can_run_out_and_denies_what_cannot_end_within_it() -> None:
    chain = graph(ask("one"), ask("two", retry={"max_attempts": 1}), edges=(("one", "two"),))

    def found(most: int, case: Case) -> list[tuple[str, str]]:
        verdict = judge(Profile("own", max_llm_calls=most), case)
        return [(one.code, one.severity) for one in (*verdict.violations, *verdict.warnings)]

    assert found(1, Case(chain)) == [("POLICY_LIMIT_EXCEEDED", "deny")]
    kept = graph(ask("one", cache=True, retry={"max_attempts": 1}), ask("two", retry={"max_attempts": 1}),
                 edges=(("one", "two"),))  # fmt: skip
    assert found(1, Case(kept)) == [("BUDGET_MAY_RUN_OUT", "note")], "a kept answer is no call"
    assert found(3, Case(chain)) == [("BUDGET_MAY_RUN_OUT", "note")]
    assert judge(Profile("own", max_llm_calls=3), Case(chain)).decision == "allow"
    assert found(4, Case(chain)) == []
    each = node("each", "parallel", for_each={"path": "items"}, entry="ask", join="ask", output_key="all")
    many = graph(each, ask())
    assert found(10**6, Case(many)) == [("BUDGET_MAY_RUN_OUT", "note")]


def test_every_message_and_the_system_text_count_as_prompt() -> None:
    profile = Profile("own", max_prompt_bytes=10)
    told = graph(
        node("ask", "llm", messages=[{"role": "system", "content": "y" * 8}, {"role": "user", "content": "x" * 8}])
    )
    assert codes(profile, Case(told)) == [("POLICY_LIMIT_EXCEEDED", "ask", "max_prompt_bytes")]


def test_a_requirement_is_covered_by_any_node_that_carries_it_and_a_budget_by_graph_start_or_profile() -> None:
    profile = Profile("own", requirements=("REQ-1",), budgets=("max_llm_calls", "max_tokens"), max_tokens=9)
    case = Case(graph(ask(requirements=["REQ-1"])), budgets=frozenset({"max_llm_calls"}))
    assert judge(profile, case).decision == "allow"
    assert judge(profile, case).budgets == {"max_tokens": 9}


@pytest.mark.parametrize(
    ("gate", "behind"),
    [
        ({}, True),
        ({"on_reject": ["other"]}, True),
        ({"on_reject": ["ask"]}, False),
        ({"on_reject": "continue"}, False),
        ({"on_request_changes": "continue"}, False),
    ],
)
def test_a_node_is_behind_a_gate_when_only_a_yes_leads_to_it(gate: dict[str, Any], behind: bool) -> None:
    held = graph(
        node("gate", "human_approval", prompt="May it?", **gate), ask(), node("other"), node("last"),
        edges=(("gate", "ask"), ("ask", "last"), ("other", "last"), ("gate", "other")),
    )  # fmt: skip
    gated = dict(zip(("gate", "ask", "other", "last"), behind_gate(held), strict=True))
    assert gated["ask"] is behind
    assert gated["gate"] is False
    assert gated["last"] is (behind and gate.get("on_reject") != ["other"])


def test_a_way_around_the_gate_is_found() -> None:
    held = graph(
        node("start"), node("gate", "human_approval", prompt="May it?"), ask(),
        edges=(("start", "gate"), ("gate", "ask"), ("start", "ask")),
    )  # fmt: skip
    profile = Profile("own", approval_before=("llm",))
    assert codes(profile, Case(held)) == [("APPROVAL_REQUIRED", "ask", "approval_before")]


def test_a_graph_in_a_graph_is_held_to_the_same_and_named_by_its_place() -> None:
    inner = graph(ask(model="mistral"), name="inner")
    middle = graph(node("twice", "subgraph", graph_name="inner"), name="middle", inner=(inner,))
    outer = graph(
        node("gate", "human_approval", prompt="May it?"), node("free", "subgraph", graph_name="middle"),
        node("held", "subgraph", graph_name="middle"), node("start"),
        edges=(("start", "gate"), ("start", "free"), ("gate", "held")), entry="start", inner=(middle,),
        output_key="x",
    )  # fmt: skip
    models = judge(Profile("own", models=("qwen3*",)), Case(outer)).violations
    assert {one.where for one in models} == {"free/twice/ask", "held/twice/ask"}
    gates = judge(Profile("own", approval_before=("llm",)), Case(outer)).violations
    assert [one.where for one in gates] == ["free/twice/ask"]
    assert judge(Profile("own", max_nodes=5), Case(outer)).decision == "deny"
    assert judge(Profile("own", max_nodes=6, pinned_subgraphs=True), Case(outer)).decision == "allow"


def test_what_is_as_the_profile_wants_it_is_not_told() -> None:
    inner = graph(ask(), name="inner")
    held = graph(
        node("gate", "human_approval", prompt="May it?"), node("one", "subgraph", graph_name="inner"),
        node("two", "subgraph", graph_name="inner"), edges=(("gate", "one"), ("one", "two")), inner=(inner,),
    )  # fmt: skip
    profile = Profile(
        "own", node_types=("human_approval", "subgraph", "llm"), channels=("cli", "console"), approval_before=("llm",),
        max_nodes=4, requirements=("R1",), review=("requirements",),
    )  # fmt: skip
    closed = replace(held.nodes[0], config=replace(held.nodes[0].config, channels=["cli"]))
    warned = judge(profile, Case(replace(held, nodes=(closed, *held.nodes[1:])))).to_json()
    assert warned["decision"] == "review"
    said = "no node carries the requirement R1"
    found = {"code": "REQUIREMENT_NOT_COVERED", "message": said, "rule": "requirements", "severity": "review"}
    assert warned["warnings"] == [found]


def test_a_graph_that_another_program_stored_without_a_version_is_not_pinned() -> None:
    inner = graph(ask(), name="inner")
    outer = graph(node("sub", "subgraph", graph_name="inner"), inner=(inner,))
    loose = replace(outer, nodes=(replace(outer.nodes[0], config=replace(outer.nodes[0].config, graph_version="")),))
    found = codes(Profile("own", pinned_subgraphs=True), Case(loose))
    assert found == [("SUBGRAPH_NOT_PINNED", "sub", "pinned_subgraphs")]


def test_tools_of_connections_that_are_not_allowed_are_named() -> None:
    held = graph(ask(tools=["library/search", "shell/run"]))
    found = judge(Profile("own", connections=("library",)), Case(held)).violations
    assert [(one.code, one.where) for one in found] == [("CONNECTION_NOT_ALLOWED", "ask")]
    assert "shell" in found[0].message
    acting = replace(held, nodes=(replace(held.nodes[0], type="tool", config=Tool(connection="shell", tool="run")),))
    assert judge(Profile("own", connections=("library",)), Case(acting)).decision == "deny"
    assert judge(Profile("own", connections=("*",)), Case(acting)).decision == "allow"


def test_a_profile_is_read_with_everything_that_is_wrong_with_it_at_once() -> None:
    profile, problems = read_profile(
        "own", {"max_node": 3, "max_nodes": 0, "max_edges": True, "pinned_subgraphs": 1, "models": "qwen3",
                "channels": ["cli", "telephone"], "requirements": ["R1", "R1"], "connections": ["a*b"],
                "node_types": [""], "review": ["models", "nothing"], "budgets": ["max_llm_call"]},
    )  # fmt: skip
    said = {(one.code, one.field) for one in problems}
    assert ("POLICY_RULE_UNKNOWN", "max_node") in said
    wrong = {"max_nodes", "max_edges", "pinned_subgraphs", "models", "channels", "connections", "node_types"}
    assert {("POLICY_VALUE_INVALID", name) for name in wrong | {"review", "budgets"}} < said
    assert "did you mean" in next(one.message for one in problems if one.field == "max_node")
    assert profile == Profile("own", requirements=("R1",))


def test_an_override_may_tighten_and_nothing_else() -> None:
    book = PolicyBook("own", {"own": Profile("own", max_nodes=5, models=("qwen3*",), requirements=("R1",))})
    case = Case(graph(ask(model="qwen3:8b", requirements=["R1"])))
    assert book.judge(case).decision == "allow"
    assert (
        book.judge(case, override={"max_nodes": 4, "models": ["qwen3:8b"], "requirements": ["R1"]}).decision == "allow"
    )
    for looser in ({"max_nodes": 6}, {"models": ["*"]}, {"requirements": []}, {"models": ["qwen3:8b", "mistral"]}):
        verdict = book.judge(case, override=looser)
        assert [one.code for one in verdict.violations] == ["POLICY_OVERRIDE_LOOSENS"]
    loosened = PolicyBook("own", book.own, loosen=True).judge(case, override={"requirements": []})
    assert loosened.decision == "allow"


def test_what_cannot_be_read_denies() -> None:
    case = Case(graph(ask()))
    book = PolicyBook()
    for verdict, code in (
        (book.judge(case, name="nope"), "POLICY_PROFILE_UNKNOWN"),
        (book.judge(case, override={"max_nodez": 3}), "POLICY_RULE_UNKNOWN"),
        (book.judge(case, override={"max_nodes": "3"}), "POLICY_VALUE_INVALID"),
    ):
        assert verdict.decision == "deny"
        assert [one.code for one in verdict.violations] == [code]


def test_a_bug_in_a_rule_denies_even_where_a_person_might_waive_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(profile: Profile, case: Case) -> Any:
        raise KeyError("oh")
        yield Finding("", "")

    monkeypatch.setitem(RULES, "models", broken)
    verdict = judge(Profile("own", review=("models",)), Case(graph(ask())))
    assert verdict.decision == "deny"
    assert [(one.code, one.rule) for one in verdict.violations] == [("POLICY_RULE_BROKEN", "models")]


def test_the_verdict_shows_the_policy_in_force_without_what_it_leaves_open() -> None:
    body = judge(Profile("own", max_nodes=3, channels=("cli",)), Case(graph(ask()))).to_json()
    assert body["effective_policy"] == {"name": "own", "max_nodes": 3, "channels": ["cli"]}
    assert body["decision"] == "allow"
    assert body["violations"] == body["warnings"] == []
    denied = judge(Profile("own", models=(), review=("models",)), Case(graph(ask()))).to_json()
    message = "this node asks whichever model is the default, and the default is not set; name a model"
    found = {"code": "MODEL_NOT_ALLOWED", "message": message, "rule": "models", "node_path": "ask"}
    assert denied["warnings"] == [{**found, "severity": "review"}]
    assert judge(Profile("own", max_input_bytes=1), Case(graph(ask()), input=0)).decision == "allow"


def test_every_field_of_a_profile_has_a_rule_that_reads_it() -> None:
    budgets_only = {"max_tokens", "max_node_firings", "max_wall_clock_ms"}
    assert set(NAMES) - budgets_only - {"review"} == set(RULES) - {"capabilities"}
    assert all(getattr(rules_module, name).__doc__ for name in RULES)


VALUES = {
    "most": st.integers(1, 9),
    "only": st.lists(st.sampled_from(("cli", "console", "assistant")), max_size=3),
    "need": st.lists(st.sampled_from(("max_llm_calls", "max_tokens")), max_size=2),
    "flag": st.booleans(),
    "soft": st.lists(st.sampled_from(("models", "channels")), max_size=2),
}
BODIES = st.fixed_dictionaries({}, optional={name: VALUES[sense] for name, sense in SENSES.items()})


@given(BODIES, BODIES)
def test_a_tightened_profile_never_allows_what_the_profile_denied(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    profile, problems = read_profile("own", first)
    override, more = read_profile("override", second)
    assert not problems
    assert not more
    tighter, _ = tighten(profile, override, second)
    held = graph(
        node("gate", "human_approval", prompt="May it?"), ask(model="mistral"), edges=(("gate", "ask"),)
    )  # fmt: skip
    case = Case(held, input="abc")
    order = ("allow", "review", "deny")
    assert order.index(judge(profile, case).decision) <= order.index(judge(tighter, case).decision)


@given(st.text("ab*", max_size=4), st.text("ab", max_size=4))
def test_a_pattern_covers_what_starts_as_it_does(pattern: str, name: str) -> None:
    expected = name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
    assert covers(pattern, name) is expected
