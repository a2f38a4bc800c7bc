"""What a new user does wrong in the first hour, and what they are told: enough to mend it without the docs.

The transcript is a reference file; after a wanted change: AGENT_GRAPH_GOLDEN=write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.cli.conftest import Cli

TRANSCRIPT = Path(__file__).parent / "first_hour.txt"
Spec = dict[str, Any]
GOOD: Spec = {
    "name": "first", "entry": "draft", "output_key": "report",
    "nodes": [
        {"id": "draft", "type": "llm", "prompt": "Write about {run_input}", "config": {"output_key": "draft"}},
        {"id": "fan", "type": "passthrough"},
        {"id": "facts", "type": "llm", "prompt": "Check {draft}", "config": {"output_key": "facts"}},
        {"id": "style", "type": "llm", "prompt": "Polish {draft}", "config": {"output_key": "style"}},
        {"id": "join", "type": "join", "config": {"inputs": ["facts", "style"], "output": "notes"}},
        {"id": "choose", "type": "router", "config": {
            "rules": [{"path": "notes", "op": "not_empty", "targets": ["report"]}], "default": ["draft"]}},
        {"id": "report", "type": "llm", "prompt": "Report {notes}", "config": {"output_key": "report"}},
    ],
    "edges": [{"from": "draft", "to": "fan"}, {"from": "fan", "to": "facts"}, {"from": "fan", "to": "style"},
              {"from": "facts", "to": "join"}, {"from": "style", "to": "join"}, {"from": "join", "to": "choose"},
              {"from": "report", "to": "END"}],
}  # fmt: skip
MISTAKES: dict[str, Callable[[Spec], None]] = {}
MENDED_BY_FIX = {
    "a misspelt field", "a field in the wrong place", "an edge to nowhere", "a misspelt type", "a misspelt entry",
    "an end written small", "an edge twice", "a rule that can never hold",
    "a rule behind a wider one", "a prompt with an unknown placeholder", "a join of a key nobody writes",
    "a result nobody writes", "a quorum of more than there are", "another format's names for an edge",
    "a condition on an edge", "an edge beside a router", "a prompt that reads what comes later",
}  # fmt: skip


def mistake(name: str) -> Callable[[Callable[[Spec], None]], Callable[[Spec], None]]:
    def register(make: Callable[[Spec], None]) -> Callable[[Spec], None]:
        MISTAKES[name] = make
        return make

    return register


def config(spec: Spec, place: int) -> Spec:
    found: Spec = spec["nodes"][place]["config"]
    return found


def rules(spec: Spec, *more: Spec) -> None:
    config(spec, 5)["rules"] += more


mistake("a misspelt field")(lambda s: config(s, 0).update(ouput_key=config(s, 0).pop("output_key")))
mistake("a field in the wrong place")(lambda s: s["nodes"][0].update(output_key=config(s, 0).pop("output_key")))
mistake("an edge to nowhere")(lambda s: s["edges"][2].update(to="styl"))
mistake("another format's names for an edge")(lambda s: s["edges"][0].update(source=s["edges"][0].pop("from")))
mistake("a misspelt type")(lambda s: s["nodes"][1].update(type="passtrough"))
mistake("a misspelt entry")(lambda s: s.update(entry="darft"))
mistake("no entry")(lambda s: s.pop("entry"))
mistake("an end written small")(lambda s: s["edges"][6].update(to="end"))
mistake("an edge twice")(lambda s: s["edges"].append({"from": "fan", "to": "style"}))
mistake("two nodes of one name")(lambda s: s["nodes"].append({"id": "fan", "type": "passthrough"}))
mistake("a number in quotes")(lambda s: config(s, 0).update(max_tokens="200"))
mistake("a router without default")(lambda s: config(s, 5).pop("default"))
mistake("an op of another language")(lambda s: rules(s, {"path": "notes", "op": "==", "value": 1, "targets": ["END"]}))
mistake("a rule that can never hold")(lambda s: rules(s, {"targets": ["report"], "all": [
    {"path": "notes", "op": "eq", "value": 1}, {"path": "notes", "op": "eq", "value": 2}]}))  # fmt: skip
mistake("a rule behind a wider one")(lambda s: rules(
    s, {"path": "notes", "op": "contains", "value": "x", "targets": ["report"]},
    {"path": "notes", "op": "contains", "value": "x", "targets": ["report"]}))  # fmt: skip
mistake("a prompt with an unknown placeholder")(lambda s: s["nodes"][6].update(prompt="Report {note}"))
mistake("a prompt that reads what comes later")(lambda s: s["nodes"][2].update(prompt="Check {draft} {report}"))
mistake("a join of a key nobody writes")(lambda s: config(s, 4).update(inputs=["facts", "stile"]))
mistake("a join of a node without output")(lambda s: config(s, 4).update(inputs=["facts", "fan"]))
mistake("two writers side by side")(lambda s: config(s, 3).update(output_key="facts"))
mistake("a result nobody writes")(lambda s: s.update(output_key="reprot"))
mistake("a cycle without an end")(lambda s: s["edges"].append({"from": "report", "to": "draft"}) or s["edges"].pop(6))
mistake("a node nothing leads to")(lambda s: s["nodes"].append({"id": "alone", "type": "passthrough"}))
mistake("an edge beside a router")(lambda s: s["edges"].append({"from": "choose", "to": "facts"}))
mistake("a condition on an edge")(lambda s: s["edges"][0].update(condition="if short"))
mistake("a quorum of more than there are")(lambda s: config(s, 4).update(mode="quorum", required=3))
mistake("a type that is not there yet")(lambda s: s["nodes"][1].update(
    type="http", config={"connection": "tracker", "method": "POST"}))  # fmt: skip


def test_every_mistake_of_the_first_hour_is_told_so_that_it_can_be_mended(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    said = []
    mended = set()
    for name, make in MISTAKES.items():
        spec = deepcopy(GOOD)
        make(spec)
        file.write_text(json.dumps(spec, indent=2) + "\n", encoding="utf-8")
        done = cli("validate", str(file))
        assert done.err, name
        lines = [line.replace(str(file), "graph.json") for line in done.err.splitlines()]
        said += [f"# {name}", *lines, f"(exits with {done.code})", ""]
        fixed = cli("validate", str(file), "--fix", "--level", "strict")
        mended |= {name} if fixed.code == 0 else set()
    assert mended == MENDED_BY_FIX
    text = "\n".join(said)
    if os.environ.get("AGENT_GRAPH_GOLDEN") == "write":
        TRANSCRIPT.write_text(text, encoding="utf-8")
    assert TRANSCRIPT.read_text(encoding="utf-8") == text


def test_the_graph_without_a_mistake_is_right(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(GOOD), encoding="utf-8")
    done = cli("validate", str(file), "--level", "strict")
    assert (done.code, done.err) == (0, "")


def test_a_default_is_put_in_where_only_the_strict_level_asks_what_then_becomes_of_the_result(
    cli: Cli, tmp_path: Path
) -> None:
    spec = deepcopy(GOOD)
    MISTAKES["a router without default"](spec)
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    assert cli("validate", str(file), "--fix", "--level", "strict").code == 1
    assert json.loads(file.read_text(encoding="utf-8")) == spec
    assert cli("validate", str(file), "--fix").code == 0
    assert json.loads(file.read_text(encoding="utf-8"))["nodes"][5]["config"]["default"] == []
