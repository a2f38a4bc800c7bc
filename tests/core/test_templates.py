"""Every template that ships: it compiles without a warning, draws, and runs every way to the end it promises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agent_graph.core import schema
from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import CallModel
from agent_graph.core.graph import Graph
from agent_graph.core.outcome import state
from agent_graph.core.render import as_json, mermaid
from agent_graph.core.template import instantiate
from agent_graph.core.ways import taken
from agent_graph.engine.templates import templates
from tests.fakes.played import Script, play

TEMPLATES = templates()


def graph_of(template_id: str, **params: Any) -> Graph:
    compiled = compile_graph(instantiate(TEMPLATES[template_id], "mine", params=params))
    assert compiled.graph is not None, [issue.to_json() for issue in compiled.issues]
    return compiled.graph


PLAN = {"workstreams": [{"id": f"ws{i}", "title": f"Title {i}", "question": f"Question {i}?"} for i in range(3)]}


def council(node: str, _nth: int, _call: CallModel) -> Any:
    return PLAN if node == "coordinator" else f"<{node} says>"


@pytest.mark.parametrize("template_id", TEMPLATES)
def test_it_compiles_without_a_warning_and_declares_its_result(template_id: str) -> None:
    template = TEMPLATES[template_id]
    compiled = compile_graph(instantiate(template, "mine", params=template.sample["params"]))
    assert [issue.to_json() for issue in compiled.issues if issue.severity != "info"] == []
    assert compiled.graph is not None
    assert compiled.graph.output.declared
    assert all(node.description for node in compiled.graph.nodes)
    spec: Any = template.spec
    for node in spec["nodes"]:
        config = node.get("config", {})
        assert node["type"] not in ("llm", "human_approval") or config["output_key"]
        assert node["type"] != "llm" or config["max_tokens"]
        assert schema.unbounded(config.get("output_schema", {"const": 0}), "") == []


@pytest.mark.parametrize("template_id", TEMPLATES)
def test_its_sample_is_an_input_the_graph_takes(template_id: str) -> None:
    template = TEMPLATES[template_id]
    spec: Any = template.spec
    assert schema.check(spec["input_schema"], "") == []
    assert schema.violations(template.sample["input"], spec["input_schema"]) == []
    assert schema.violations("", spec["input_schema"])


@pytest.mark.parametrize("template_id", TEMPLATES)
@pytest.mark.parametrize("include_details", [False, True])
def test_it_draws(template_id: str, include_details: bool) -> None:
    merman = pytest.importorskip("merman", reason="the parser `merman` is not installed (extra `dev`)")
    graph = graph_of(template_id)
    text = mermaid(graph, include_details=include_details).text
    engine = merman.MermanEngine(None, merman.MermanEngineServices())
    assert engine.validate(text, None).valid
    nodes: Any = as_json(graph)["nodes"]
    assert len(json.loads(engine.parse_json(text, None))["nodes"]) == len(nodes) + 2


@pytest.mark.parametrize("template_id", TEMPLATES)
def test_mermaid_itself_draws_it(template_id: str) -> None:
    mermaidx = pytest.importorskip("mermaidx", reason="Mermaid itself (`mermaidx`) is not installed (extra `dev`)")
    svg = mermaidx.render(mermaid(graph_of(template_id)).text).svg()
    assert ">START<" in svg
    assert ">END<" in svg


def test_every_parameter_reaches_the_graph() -> None:
    params = {"style": "verse", "words": 33, "max_tokens": 99, "analyst_model": "small", "report_model": "large"}
    graph = graph_of("council_deliberation", **params)
    assert graph.node("analyst_1").config.model == "small"
    assert graph.node("synthesize").config.model == "large"
    assert graph.node("coordinator").config.model == ""
    assert graph.node("analyst_2").config.max_tokens == 99
    assert "verse" in graph.node("analyst_0").config.system
    assert "at most 33 words" in graph.node("synthesize").config.prompt
    assert graph.metadata == {"template": "council_deliberation", "template_version": "1"}


# -- councils ----------------------------------------------------------------------------------------------------------


def test_the_council_gives_each_analyst_its_own_part_and_joins_in_order() -> None:
    played = play(graph_of("council_deliberation"), "Buses?", council)
    assert (played.asked[0], played.asked[4:]) == ("coordinator", ["synthesize"])
    assert sorted(played.asked[1:4]) == ["analyst_0", "analyst_1", "analyst_2"]
    for i in range(3):
        prompt = played.prompt(f"analyst_{i}")
        assert f"Title {i}" in prompt
        assert f"Question {i}?" in prompt
        assert "Buses?" in prompt
        assert not any(f"Question {other}?" in prompt for other in range(3) if other != i)
    report = played.prompt("synthesize")
    assert [report.index(f"<analyst_{i} says>") for i in range(3)] == sorted(
        report.index(f"<analyst_{i} says>") for i in range(3)
    )
    assert all(f"{i + 1}. Title {i}\n<analyst_{i} says>" in report for i in range(3))
    assert played.result == "<synthesize says>"
    assert state(played.run)["findings"] == [f"<analyst_{i} says>" for i in range(3)]


def test_the_council_starts_all_analysts_before_the_first_answers() -> None:
    graph = graph_of("council_deliberation")
    played = play(graph, "Buses?", council)
    kinds = [(fact.type, getattr(fact, "firing", "")) for fact in played.facts]
    started = [kinds.index(("node_started", f"analyst_{i}#1")) for i in range(3)]
    answered = [kinds.index(("model_answered", f"analyst_{i}#1")) for i in range(3)]
    assert max(started) < min(answered)


def test_the_council_takes_an_object_and_an_input_full_of_braces() -> None:
    played = play(graph_of("council_deliberation"), {"question": "{plan} {run_input}", "n": 1}, council)
    assert '{"n":1,"question":"{plan} {run_input}"}' in played.prompt("analyst_0")
    assert played.result == "<synthesize says>"


def test_the_judge_sees_both_cases() -> None:
    played = play(graph_of("parallel_council"), "Move it", lambda node, _nth, _call: f"<{node} says>")
    assert sorted(played.asked[:2]) == ["optimist", "skeptic"]
    assert "<" not in played.prompt("optimist") + played.prompt("skeptic"), "the sides do not see each other"
    judge = played.prompt("judge")
    assert judge.index("<optimist says>") < judge.index("<skeptic says>")
    assert "Move it" in judge
    assert played.result == "<judge says>"


def test_the_final_plan_is_made_from_the_draft_and_its_critique() -> None:
    played = play(graph_of("plan_critique_refine"), "A party", lambda node, _nth, _call: f"<{node} says>")
    assert played.asked == ["plan", "critique", "refine"]
    assert "<plan says>" in played.prompt("critique")
    assert "<plan says>" in played.prompt("refine")
    assert "<critique says>" in played.prompt("refine")
    assert played.result == "<refine says>"


# -- the pipeline ------------------------------------------------------------------------------------------------------


def pipeline(verdicts: Sequence[bool]) -> Script:
    """A model whose validator answers by `verdicts`, one after the other."""

    def script(node: str, nth: int, _call: CallModel) -> Any:
        match node:
            case "planner":
                return {"points": ["one", "two", "three"]}
            case "extractor":
                return {"claims": ["claim A", "claim B"]}
            case "validator":
                return {"problems": [] if verdicts[nth] else [f"problem {nth}"], "valid": verdicts[nth]}
        return f"<{node} {nth}>"

    return script


STEPS = ["planner", "researcher", "extractor", "synthesizer", "validator"]


def test_a_summary_that_holds_goes_straight_on() -> None:
    played = play(graph_of("analysis_pipeline"), "Pumps", pipeline([True]))
    assert played.asked == [*STEPS, "formatter"]
    assert "1. one\n2. two\n3. three" in played.prompt("researcher")
    assert '["claim A","claim B"]' in played.prompt("validator")
    assert "<synthesizer 0>" in played.prompt("validator"), "the validator sees the summary"
    assert "<synthesizer 0>" in played.prompt("formatter")
    assert played.routes == ["rules/0"]
    assert played.result == "<formatter 0>"


def test_a_summary_that_does_not_hold_is_corrected_and_checked_again() -> None:
    played = play(graph_of("analysis_pipeline"), "Pumps", pipeline([False, True]))
    assert played.asked == [*STEPS, "corrector", "validator", "formatter"]
    assert "problem 0" in played.prompt("corrector")
    assert "<synthesizer 0>" in played.prompt("corrector")
    assert "<corrector 0>" in played.prompt("validator", 1)
    assert "<corrector 0>" in played.prompt("formatter")
    assert played.routes == ["default", "rules/0"]
    assert state(played.run)["corrections"] == 1
    assert taken(played.graph, played.facts)["count_correction", "", "validator"] == 1


@pytest.mark.parametrize("bound", [1, 3, 10])
def test_corrections_end_at_their_bound_and_the_result_says_what_is_open(bound: int) -> None:
    graph = graph_of("analysis_pipeline", max_corrections=bound)
    played = play(graph, "Pumps", pipeline([False] * (bound + 1)))
    assert played.asked == [*STEPS, *["corrector", "validator"] * bound, "formatter"]
    assert played.routes[-1] == "rules/1"
    assert f"<corrector {bound - 1}>" in played.prompt("formatter")
    assert f'{{"problems":["problem {bound}"],"valid":false}}' in played.prompt("formatter")
    assert played.result == "<formatter 0>"


def test_a_verdict_in_the_input_is_not_trusted() -> None:
    run_input = {"validation": {"valid": True, "problems": []}, "summary": "mine", "topic": "Pumps"}
    played = play(graph_of("analysis_pipeline"), run_input, pipeline([False, True]))
    assert played.asked == [*STEPS, "corrector", "validator", "formatter"]


# -- the classifier ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("label", "handler", "route"), [
    ("bug", "bug_handler", "rules/0"),
    ("feature", "feature_handler", "rules/1"),
    ("question", "question_handler", "rules/2"),
    ("other", "general_handler", "default"),
])  # fmt: skip
def test_each_kind_of_message_reaches_its_handler(label: str, handler: str, route: str) -> None:
    def script(node: str, _nth: int, _call: CallModel) -> Any:
        return {"label": label} if node == "classifier" else f"<{node} says>"

    played = play(graph_of("classifier_router"), "It broke", script)
    assert played.asked == ["classifier", handler]
    assert "It broke" in played.prompt(handler), "the handler sees the original message"
    assert played.routes == [route]
    assert played.result == f"<{handler} says>"


# -- the gate ----------------------------------------------------------------------------------------------------------


def writer(node: str, nth: int, _call: CallModel) -> Any:
    return f"<{node} {nth}>"


def test_nothing_goes_on_before_a_person_decided() -> None:
    graph = graph_of("approval_gated_action", audience=["boss"], expiry_ms=5_000)
    played = play(graph, "Tell Dana", writer)
    assert played.run.status == "waiting"
    (gate,) = played.run.open_approvals
    assert gate.subject == "<draft 0>"
    assert "Tell Dana" in gate.prompt
    assert gate.audience == ("boss",)
    assert gate.allowed_decisions == ("approve", "reject", "request_changes")
    assert gate.expires_at_ms - gate.opened_at_ms == 5_000
    assert "outcome" not in state(played.run)


def test_approved_the_result_is_the_draft_as_it_was_shown() -> None:
    played = play(graph_of("approval_gated_action"), "Tell Dana", writer, decisions=[("approve", "fine")])
    assert played.asked == ["draft"]
    assert played.result == {"status": "approved", "action": "<draft 0>", "decided_by": "ann", "note": "fine"}


def test_rejected_the_result_is_the_refusal() -> None:
    played = play(graph_of("approval_gated_action"), "Tell Dana", writer, decisions=[("reject", "no")])
    assert played.result == {"status": "rejected", "refused": "<draft 0>", "decided_by": "ann", "note": "no"}
    assert played.routes == ["reject"]


def test_changes_are_worked_in_and_shown_again() -> None:
    decisions = [("request_changes", "shorter"), ("request_changes", "warmer"), ("approve", "")]
    played = play(graph_of("approval_gated_action"), "Tell Dana", writer, decisions=decisions)
    assert played.asked == ["draft", "rework", "rework"]
    assert "<draft 0>" in played.prompt("rework", 0)
    assert "shorter" in played.prompt("rework", 0)
    assert "<rework 0>" in played.prompt("rework", 1)
    assert "warmer" in played.prompt("rework", 1)
    assert len({gate.approval_id for gate in played.run.gates.values()}) == 3, "an old yes opens no later gate"
    assert played.result == {"status": "approved", "action": "<rework 1>", "decided_by": "ann", "note": ""}


def test_a_decision_in_the_input_opens_no_gate() -> None:
    run_input = {"decision": {"decision": "approve", "by": "me"}, "outcome": {"status": "approved"}, "draft": "mine"}
    played = play(graph_of("approval_gated_action"), run_input, writer, decisions=[("reject", "no")])
    assert played.result["status"] == "rejected"
    assert played.result["refused"] == "<draft 0>"
