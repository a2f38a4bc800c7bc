"""docs/reference/nodes.md as it follows from the published schema and the tables of operations."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from agent_graph.core.nodes import DECLARED_TYPES, NODE_TYPES, UNAVAILABLE_TYPES
from agent_graph.core.nodes.base import NodeConfig
from agent_graph.core.ops import joins
from agent_graph.core.ops.joins import MODES
from agent_graph.core.ops.operations import FORMS
from agent_graph.core.ops.predicates import ALIASES
from agent_graph.core.ops.reducers import REDUCERS
from agent_graph.core.ops.transforms import OPERATIONS
from agent_graph.core.spec import json_schema
from agent_graph.core.spec_fields import ON_NODE

COMMON: Final = tuple(field.name for field in fields(NodeConfig))
LATER: Final = "Only the default is taken: "
"""How the schema starts what it says of a field nothing acts on yet."""

RULE_OPS: Final[dict[str, tuple[str, str, Any, Any]]] = {
    "eq": ("any JSON", "it equals the value; 1 equals 1.0, and never `true`", 1, 1.0),
    "ne": ("any JSON", "`eq` does not", 1, "1"),
    "lt": ("a number or text", "it is less; numbers with numbers, texts with texts", 2, 10),
    "lte": ("a number or text", "it is less or equal", 2, 2),
    "gt": ("a number or text", "it is greater", 10, 2),
    "gte": ("a number or text", "it is greater or equal", 2, 2),
    "in": ("a list", "it is one of the values", "b", ["a", "b"]),
    "not_in": ("a list", "`in` does not", "c", ["a", "b"]),
    "contains": ("any JSON", "a text has that text in it, a list that element, an object that key", ["a", "b"], "b"),
    "not_contains": ("any JSON", "`contains` does not", "all is well", "wrong"),
    "starts_with": ("a text", "it is a text that starts so", "PASS: fine", "PASS"),
    "ends_with": ("a text", "it is a text that ends so", "is it?", "?"),
    "regex": ("an RE2 pattern", "it is a text and the pattern is found in it", "score: 7", "score: [0-9]+"),
    "is_type": (
        "`null`, `boolean`, `number`, `integer`, `string`, `array`, `object`, or a list of them",
        "it is of that type", 7, "integer",
    ),
    "exists": ("", "it is there and not null", 0, None),
    "not_exists": ("", "`exists` does not", None, None),
    "empty": ("", 'it is not there, null, `""`, `[]` or `{}`', [], None),
    "not_empty": ("", "`empty` does not", 0, None),
}  # fmt: skip
"""By op: what it takes, when it holds, and an example (what is at `path`, `value`) in which it does."""


def nodes_page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    schema: Any = json_schema()
    kinds = {node["title"]: node for node in schema["properties"]["nodes"]["items"]["oneOf"]}
    yield from _text("""
        # Fields of a graph

        <!-- written from the code by `make golden` -->

        A field that is not listed here is refused (`UNKNOWN_FIELD`), and so is another value than the default where one
        says *default only* (`NODE_TYPE_UNAVAILABLE`). A *state path* is dotted (`review.score`, `items.0`) or a JSON
        Pointer (`/review/score`).
        `agent-graph schema` prints the same as a JSON Schema, for editors. Templates, texts with `{...}` in them:
        [prompts](prompts.md). When a node runs: [scheduling](../explanation/scheduling.md).
    """)
    yield from _contents(kinds)
    yield from ("", "## The graph", "")
    yield from _table(schema["properties"], schema["required"])
    yield from ("", "### `budgets`", "", schema["properties"]["budgets"]["description"], "")
    yield from _table(schema["properties"]["budgets"]["properties"], ())
    edge = schema["properties"]["edges"]["items"]
    yield from ("", "### An edge", "", edge["description"], "")
    yield from _table(edge["properties"], edge["required"])
    yield from _every_node(kinds)
    for kind in NODE_TYPES:
        yield from _one_type(kind, kinds[kind], _shared(kinds))
    yield from _not_there()


def _contents(kinds: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "Types: " + ", ".join(f"[`{kind}`](#{kind})" for kind in kinds) + "."


def _every_node(kinds: Mapping[str, Any]) -> Iterator[str]:
    shell = kinds["passthrough"]["properties"]
    yield from ("", "## Every node", "")
    below = {
        "type": {"type": "string", "description": "One of the types below."},
        "config": {"type": "object", "description": "The fields of its type."},
    }
    yield from _table({**shell, **below}, ("id", "type"))
    beside = ", ".join(f"`{name}`" for name in ON_NODE)
    yield from ("", f"These may stand on the node itself as well as in `config`, where its type has them: {beside}.")
    yield from ("", "In `config`, whatever the type:", "")
    yield from _table(_shared(kinds), ())
    retry = _parts(_shared(kinds)["retry"])[0]
    yield from ("", "### `retry`", "", retry["description"], "")
    yield from _table(retry["properties"], ())


def _shared(kinds: Mapping[str, Any]) -> dict[str, Any]:
    """What most types say of the common fields; a type that says something else has it in its own table."""
    said = {}
    for name in COMMON:
        ways = Counter(json.dumps(kind["properties"]["config"]["properties"][name]) for kind in kinds.values())
        said[name] = json.loads(ways.most_common(1)[0][0])
    return said


def _one_type(kind: str, node: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[str]:
    config = node["properties"]["config"]
    yield from ("", f"## {kind}", "", _sentence(config["description"]), "")
    made = {f.name: f.default_factory() for f in fields(NODE_TYPES[kind].Config) if f.default_factory is not MISSING}
    taken = {name: part for name, part in config["properties"].items() if shared.get(name) != part}
    taken = {name: {**part, "default": made[name]} if name in made else part for name, part in taken.items()}
    own = {name: part for name, part in taken.items() if name not in COMMON}
    yield from _table({**own, **{name: taken[name] for name in COMMON if name in taken}}, config.get("required", ()))
    if kind == "llm":
        message = _parts(config["properties"]["messages"])[0]["items"]
        yield from ("", "### `messages`", "", message["description"], "")
        yield from _table(message["properties"], message["required"])
    yield from {"router": _rules, "state_transform": _operations, "join": _modes}.get(kind, lambda: iter(()))()


def _rules() -> Iterator[str]:
    aliases = ", ".join(f"`{alias}` for `{op}`" for alias, op in ALIASES.items())
    yield from _text(f"""

        ### Rules

        A rule is {{`path`, `op`, `value` or `value_path`, `ignore_case`?, `targets`, `label`?}}, or in place of a test
        `all` / `any` (a list of rules) or `not` (a rule). `path` `""` is the current value, `value_path` another state
        path to compare with. What holds nothing reads as null; on a value of the wrong type a rule does not hold, and
        never fails. The same rules, without `targets`, are a loop's `until` and a join's `of`. Also read: {aliases}.

        | op | `value` | holds when | example |
        |---|---|---|---|
    """)
    for op, (takes, holds, value, operand) in RULE_OPS.items():
        example = f"`{_json(value)}` {op}" + (f" `{_json(operand)}`" if takes else "")
        yield f"| `{op}` | {takes} | {_cell(holds)} | {example} |"


def _operations() -> Iterator[str]:
    yield from _text("""

        ### Operations

        Each has `op` and `path`, the state path it writes. `from` is the state path of a value, in place of `value`;
        when nothing is there, the node fails. On a key with a reducer a write is a contribution; `replace: true`
        overwrites.

        | op | needs | may have | writes |
        |---|---|---|---|
    """)
    for op, form in FORMS.items():
        pair = ("`value` or `from`",) if form.operand else ()
        needs = [*(pair if form.operand == "needed" else ()), *(f"`{name}`" for name in form.required)]
        may = [*(pair if form.operand == "optional" else ()), *(f"`{name}`" for name in form.optional)]
        yield f"| `{op}` | {', '.join(needs)} | {', '.join(may)} | {_cell(_said(OPERATIONS[op]))} |"
    yield from (
        "",
        "### Reducers",
        "",
        "In the graph's `reducers`, by key: what becomes of a value that is written (the operand).",
        "",
    )
    yield from ("| reducer | makes |", "|---|---|")
    for name, reducer in REDUCERS.items():
        yield f"| `{name}` | {_cell(_said(reducer))} |"


def _modes() -> Iterator[str]:
    meaning = (inspect.getdoc(joins) or "").split("\n\n")[1].replace("``", "`")
    yield from ("", "### Modes", "", "Always in the order of `inputs`, whatever came first.", "", meaning, "")
    yield from ("| mode | makes |", "|---|---|")
    for name, mode in MODES.items():
        yield f"| `{name}` | {_cell(_said(mode))} |"
    yield "| `vote` | The counted ballots and who won: [how a council votes](../explanation/votes.md). |"
    yield from _text("""

        `dedupe_by_identity` and the three after it give {join, certification, value, contradictions,
        minority_report, notes}; `certification` is `certified` or `quarantine`.
    """)


def _not_there() -> Iterator[str]:
    yield from ("", "## Not yet", "", "Known to the checker and refused by name (`NODE_TYPE_UNAVAILABLE`):", "")
    yield from ("| type | would do | why not |", "|---|---|---|")
    for kind, reason in UNAVAILABLE_TYPES.items():
        would = (inspect.getdoc(DECLARED_TYPES[kind]) or "").partition(": ")[2].partition(";")[0]
        yield f"| `{kind}` | {_cell(would)} | {_cell(reason)} |"


def _table(parts: Mapping[str, Any], required: Iterable[str]) -> Iterator[str]:
    yield from ("| field | takes | default | meaning |", "|---|---|---|---|")
    for name, part in parts.items():
        default = "*required*" if name in required else _default(part)
        yield f"| `{name}` | {_cell(takes(part))} | {_cell(default)} | {_meaning(part)} |"


def _meaning(part: Mapping[str, Any]) -> str:
    said = " ".join(part.get("description", "").split())
    return _cell(f"*default only*: {said.removeprefix(LATER)}" if said.startswith(LATER) else said)


def _default(part: Mapping[str, Any]) -> str:
    value = part.get("default")
    return "" if value is None else f"`{_json(value)}`"


def takes(part: Mapping[str, Any]) -> str:
    """What a field takes, in words, from its schema."""
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(takes(each) for each in _parts(part)))
    if "enum" in part or "const" in part:
        return ", ".join(f"`{_json(value)}`" for value in part.get("enum", [part.get("const")]))
    kind = part.get("type")
    if kind == "array":
        items = takes(part["items"]) if part.get("items") else ""
        return f"list of {items}" if items and "oneOf" not in part["items"] else "list"
    if "propertyNames" in part:
        return f"{{{part['propertyNames']['const']}: {takes(part['additionalProperties'])}}}"
    return _KINDS.get(str(kind), "any JSON") + _bounds(part)


_KINDS: Final = {
    "integer": "whole number", "number": "number", "string": "text", "boolean": "true, false", "object": "object",
}  # fmt: skip


def _bounds(part: Mapping[str, Any]) -> str:
    low, high = part.get("minimum"), part.get("maximum")
    if high is not None:
        return f" {low:,} to {high:,}"
    return f" from {low:,}" if low is not None else ""


def _parts(part: Mapping[str, Any]) -> list[Any]:
    return [each for each in part["anyOf"] if each.get("type") != "null"]


def _said(function: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


def _sentence(docstring: str) -> str:
    said = docstring.partition(": ")[2]
    return said[:1].upper() + said[1:]


def _cell(text: str) -> str:
    return re.sub(r"\bNone\b", "null", text.replace("``", "`")).replace("|", "\\|")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(block: str) -> list[str]:
    """The lines of a block, with an empty one before it where it starts with one."""
    return [*([""] if block.startswith("\n\n") else []), *inspect.cleandoc(block).split("\n")]
