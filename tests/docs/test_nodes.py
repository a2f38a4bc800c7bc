"""The reference of nodes and prompts: every field says what it means, and the examples give what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.nodes import NODE_TYPES, UNAVAILABLE_TYPES
from agent_graph.core.nodes.base import rendered
from agent_graph.core.nodes.join import Mode
from agent_graph.core.ops import predicates
from agent_graph.core.ops.joins import MODES
from agent_graph.core.ops.operations import FORMS
from agent_graph.core.ops.prompt import parse
from agent_graph.core.ops.transforms import OPERATIONS
from agent_graph.core.spec import json_schema
from agent_graph.errors import NodeFailure
from tests.core.nodes.seen import Seen
from tests.docs.nodes_page import RULE_OPS, takes
from tests.docs.pages import ROOT, marked

PROMPTS = ROOT / "docs" / "reference" / "prompts.md"


def test_every_field_of_the_schema_says_what_it_means() -> None:
    schema: Any = json_schema()
    silent = [name for name, part in schema["properties"].items() if name != "name" and not part.get("description")]
    for node in schema["properties"]["nodes"]["items"]["oneOf"]:
        config = node["properties"]["config"]["properties"]
        silent += [f"{node['title']}.{name}" for name, part in config.items() if not part.get("description")]
    silent += [
        f"edge.{name}"
        for name, part in schema["properties"]["edges"]["items"]["properties"].items()
        if not part.get("description")
    ]
    assert silent == []


def test_every_op_of_a_rule_is_in_the_table_and_its_example_holds() -> None:
    assert set(RULE_OPS) == {*predicates.TESTS, "regex"}
    for op, (takes_, _, value, operand) in RULE_OPS.items():
        rule: Any = {"path": "it", "op": op, **({"value": operand} if takes_ else {})}
        assert predicates.check(rule, "") == []
        assert predicates.prepare(rule)(Seen({"it": value}).read), op


def test_the_tables_of_operations_and_modes_leave_nothing_out() -> None:
    assert set(FORMS) == set(OPERATIONS)
    assert {*MODES, "vote"} == set(Mode.__args__)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1000}, {"type": "null"}]}, "whole number 1 to 1,000"),
        ({"type": "array", "items": {"type": "string"}}, "list of text"),
        ({"enum": ["a", "b"], "type": "string"}, '`"a"`, `"b"`'),
        ({"propertyNames": {"const": "count"}, "additionalProperties": {"type": "integer"}}, "{count: whole number}"),
        ({}, "any JSON"),
    ],
)
def test_what_a_field_takes_is_said_in_words(part: dict[str, Any], words: str) -> None:
    assert takes(part) == words


def seen() -> Seen:
    return Seen(json.loads(marked(PROMPTS, "data: state")), current="Adopt a monorepo?", run_input="Adopt a monorepo?")


def examples() -> list[tuple[str, str]]:
    rows = re.findall(r"^\| `(.*?)` \| `(.*?)` \|", PROMPTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(written.replace("\\|", "|"), gives) for written, gives in rows]


@pytest.mark.parametrize(("written", "gives"), examples())
def test_a_placeholder_gives_what_the_page_says(written: str, gives: str) -> None:
    assert rendered(parse(written), seen(), "") == gives


def test_missing_values_are_named_all_at_once() -> None:
    with pytest.raises(NodeFailure) as caught:
        rendered(parse("{later} and {soon}"), seen(), "")
    assert caught.value.code == "PROMPT_VALUE_MISSING"
    assert caught.value.details == {"paths": ["later", "soon"]}
    assert len(examples()) > 10


def test_readme_names_the_node_types_that_work_and_those_that_do_not_yet() -> None:
    text = Path(ROOT / "README.md").read_text(encoding="utf-8")
    limits = text.partition("## Honest limits")[2]
    (said,) = re.findall(r"Node types ((?:`\w+`(?:, | and )?)+) ", limits)
    assert set(re.findall(r"`(\w+)`", said)) == set(UNAVAILABLE_TYPES)
    nodes = text.partition("\nNodes call a model")[2].partition("\n\n")[0]
    assert set(NODE_TYPES) <= set(re.findall(r"`(\w+)`", nodes))
