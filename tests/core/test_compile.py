"""core.compile: from a spec to a graph, and from what is stored to the same graph."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.compile import compile_graph, load_graph
from agent_graph.core.jsonvalue import digest
from agent_graph.core.limits import Limits
from tests.core.specs import codes, compiled, gate, issues, join, llm, loop, pass_, put, router, spec, transform

COUNCIL = spec(
    [llm("plan", "plan"), pass_("fan"), llm("a", "ra"), llm("b", "rb"), join("j", "all", "a", "rb"),
     llm("syn", "report")],
    "plan>fan>a>j", "fan>b>j>syn>END", max_parallelism=3, reducers={"log": "append"}, metadata={"kind": "council"},
    input_schema={"type": "object"},
)  # fmt: skip


def test_a_graph_knows_all_that_a_run_needs() -> None:
    graph = compiled(COUNCIL).graph
    assert graph is not None
    assert graph.version == digest(graph.spec)
    assert (graph.name, graph.max_iterations, graph.max_parallelism) == ("g", 64, 3)
    assert [(node.id, node.index, node.type) for node in graph.nodes][:2] == [
        ("plan", 0, "llm"),
        ("fan", 1, "passthrough"),
    ]
    assert graph.node("j").config.inputs == ["a", "rb"]
    assert graph.output.path == "report"
    assert graph.reducers == {"log": "append"}
    assert graph.metadata == {"kind": "council"}
    assert graph.input_schema == {"type": "object"}
    assert graph.topology.bodies == {}


def test_a_stored_graph_is_the_compiled_one() -> None:
    nodes = [loop("l", "draft", "g", 2), llm("draft", "text", system="s"), gate("g", on_reject=["draft"]), put("z")]
    found = compiled(spec([*nodes, router("r", ["z"], default=[])], "draft>l", "g>r", "z>END"))
    assert found.graph is not None
    stored = json.loads(json.dumps({"spec": found.graph.spec, "compiled": found.compiled}))
    again = load_graph(stored["spec"], found.graph.version, stored["compiled"])
    assert again.topology == found.graph.topology
    assert [(node.id, node.config) for node in again.nodes] == [(node.id, node.config) for node in found.graph.nodes]
    assert again.output == found.graph.output
    assert again.topology.bodies == {0: 0b10}


def test_loading_a_stored_graph_imports_no_library_of_the_border(repository: Path) -> None:
    found = compiled(COUNCIL)
    assert found.graph is not None
    stored = json.dumps([found.graph.spec, found.graph.version, found.compiled])
    program = (
        "import json, sys\nfrom agent_graph.core.compile import load_graph\n"
        "graph = load_graph(*json.loads(sys.stdin.read()))\n"
        "print(graph.name, *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=stored, capture_output=True, text=True, check=True, cwd=repository
    )
    name, *modules = done.stdout.split()
    assert name == "g"
    assert not {"pydantic", "pydantic_core", "networkx", "jsonschema", "mcp", "httpx2"} & set(modules)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\ud800", 10**5000], ids=["nan", "infinity", "surrogate", "huge"]
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    assert codes({**COUNCIL, "description": value}) == [("FIELD_INVALID", "")]


def test_a_spec_over_a_limit_is_refused() -> None:
    assert [i.code for i in compile_graph(COUNCIL, limits=Limits(spec_bytes=100)).issues] == ["LIMIT_EXCEEDED"]
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert codes({**COUNCIL, "metadata": deep}) == [("LIMIT_EXCEEDED", "")]


def test_a_chain_of_ten_thousand_nodes_is_no_problem() -> None:
    names = [f"n{i}" for i in range(10_000)]
    graph = compiled(spec([pass_(name) for name in names], ">".join([*names, "END"]))).graph
    assert graph is not None
    assert graph.max_iterations == 20_000


def test_the_engines_keys_cannot_be_written() -> None:
    for node in (llm("a", "__x"), llm("a", "outputs.a"), join("a", "errors", "x"), gate("a", output_key="loops"),
                 transform("a", {"op": "set", "path": "__run", "value": 1})):  # fmt: skip
        (issue,) = issues(spec([node], "a>END"), "RESERVED_KEY")
        assert issue.node_id == "a"
        assert issue.pointer.startswith("/nodes/0/config/o")
    assert codes(spec([gate("__g")], "__g>END")) == [("RESERVED_KEY", "/nodes/0")]
    assert codes(spec([pass_("a")], "a>END", reducers={"outputs": "append", "fine": "add"})) == [
        ("RESERVED_KEY", "/reducers/outputs")
    ]
    assert codes(spec([llm("a", "x..y")], "a>END")) == [("STATE_PATH_INVALID", "/nodes/0/config/output_key")]


def test_a_router_without_default_is_a_warning_with_a_fix() -> None:
    raw = spec([router("r", ["a"]), pass_("a")], "a>END")
    (issue,) = issues(raw, "NO_DEFAULT_ROUTE")
    assert (issue.severity, issue.pointer, issue.node_id) == ("warning", "/nodes/0", "r")
    assert issue.fix == ({"op": "add", "path": "/nodes/0/config/default", "value": []},)
    assert compiled(raw).graph is not None
    legacy = spec([{"id": "r", "type": "router", "routes": {"x": "END"}}])
    (issue,) = issues(legacy, "NO_DEFAULT_ROUTE")
    assert issue.fix == ({"op": "add", "path": "/nodes/0/config", "value": {"default": []}},)
    assert issues(spec([router("r", ["a"], default=[]), pass_("a")], "a>END"), "NO_DEFAULT_ROUTE") == []


@pytest.mark.parametrize(
    "wrong", [{"type": 5}, {"type": "object", "properties": 5}, {"required": 5}, {"anyOf": 5}, {"allOf": [{"if": 5}]}]
)
def test_nothing_is_concluded_from_an_input_schema_that_is_none(wrong: dict[str, Any]) -> None:
    found = codes(spec([{"id": "a", "type": "llm", "prompt": "{x}"}], "a>END", input_schema=wrong))
    assert {(code, at.split("/")[1]) for code, at in found} == {("SCHEMA_INVALID", "input_schema")}


def test_bad_schemas_and_patterns_are_found_where_they_stand() -> None:
    assert codes(spec([pass_("a")], "a>END", input_schema={"type": "objekt"})) == [
        ("SCHEMA_INVALID", "/input_schema/type")
    ]
    assert ("SCHEMA_INVALID", "/nodes/0/config/output_schema/type") in codes(
        spec([llm("a", output_schema={"type": 5})], "a>END")
    )
    rule = {"path": "a", "op": "regex", "value": "(", "targets": ["END"]}
    assert ("REGEX_INVALID", "/nodes/0/config/rules/0/value") in codes(spec([router("r", rules=[rule], default=[])]))


def test_a_tokens_way_through_a_prompt_on_the_node_is_pointed_at_there() -> None:
    raw = spec([{"id": "a", "type": "llm", "prompt": ""}], "a>END")
    assert codes(raw) == [("FIELD_INVALID", "/nodes/0/prompt")]


def layered(count: int, width: int = 50) -> dict[str, Any]:
    """Layers of `width` nodes, each leading to two of the next layer."""
    nodes, ways = [pass_("start")], [f"start>n{i}" for i in range(width)]
    for i in range(count):
        nodes.append(llm(f"n{i}", f"k{i}"))
        layer, place = divmod(i, width)
        below = ((layer + 1) * width + place, (layer + 1) * width + (place + 1) % width)
        ways += [f"n{i}>n{target}" for target in below if target < count]
    ways += [f"n{i}>out" for i in range(count - width, count)]
    return spec([*nodes, join("out", "o", "k1")], *ways, "out>END")


@pytest.mark.timeout(120)
def test_ten_times_the_nodes_take_about_ten_times_the_time() -> None:
    def fastest(raw: Any, times: int) -> float:
        found = []
        for _ in range(times):
            started = time.process_time()
            assert compile_graph(raw).graph is not None
            found.append(time.process_time() - started)
        return min(found)

    small, large = layered(950), layered(9_500)
    assert fastest(large, 2) <= 30 * fastest(small, 4)


@pytest.mark.parametrize("name", ["my-workflow", "my-council"])
def test_the_two_examples_of_the_format_are_accepted(name: str) -> None:
    workflow = {
        "spec_version": "2", "name": "my-workflow", "entry": "first_node", "max_iterations": 32, "max_parallelism": 4,
        "nodes": [
            {"id": "first_node", "type": "llm", "prompt": "Process: {input}", "config": {"output_key": "result"}},
            router("router", ["deep_research"], default=["summarize"]),
            {"id": "deep_research", "type": "llm", "prompt": "Deep dive: {input}"},
            {"id": "summarize", "type": "llm", "prompt": "Summarize: {input}"},
        ],
        "edges": [{"from": "first_node", "to": "router"}, {"from": "deep_research", "to": "END"},
                  {"from": "summarize", "to": "END"}],
        "reducers": {"results": "append"},
    }  # fmt: skip
    raw = workflow if name == "my-workflow" else COUNCIL
    found = compile_graph(raw)
    assert found.graph is not None
    assert {issue.severity for issue in found.issues} == {"info"}
