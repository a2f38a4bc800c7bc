"""Large and awkward graphs are checked in time that grows with their size; each of these once took minutes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from tests.core.specs import gate, join, llm, loop, pass_, put, router, spec

NAMES = [f"n{i}" for i in range(10_000)]
CHAIN = ">".join([*NAMES, "END"])
pytestmark = pytest.mark.timeout(120)


def seconds(raw: Any, *codes: str) -> float:
    """Of this process's own time; the graph has these issues and no others."""
    started = time.process_time()
    found = compile_graph(raw)
    spent = time.process_time() - started
    assert {issue.code for issue in found.issues} == set(codes)
    return spent


def test_ten_thousand_nodes_in_a_row_that_write_one_key() -> None:
    assert seconds(spec([put(name, "x") for name in NAMES], CHAIN)) < 15


def test_ten_thousand_nodes_side_by_side_that_write_one_key() -> None:
    side = NAMES[:9_990]
    raw = spec([pass_("f"), *(put(name, "x") for name in side), join("j")], *(f"f>{name}>j" for name in side), "j>END")
    assert seconds(raw, "PARALLEL_WRITE_CONFLICT") < 15
    assert seconds({**raw, "reducers": {"x": "append"}}) < 15


def test_ten_thousand_prompts_that_name_what_nobody_writes() -> None:
    nodes = [{**llm(name), "prompt": f"{{unknown{i}}}"} for i, name in enumerate(NAMES)]
    assert seconds(spec(nodes, CHAIN), "PROMPT_PLACEHOLDER_UNKNOWN") < 60


def test_a_cycle_of_four_thousand_nodes() -> None:
    ring = [router("n0", ["n1"], default=["END"]), *(pass_(name) for name in NAMES[1:4_000])]
    assert seconds(spec(ring, ">".join([*NAMES[1:4_000], "n0"]))) < 10


@pytest.mark.parametrize("op", ["eq", "gte", "contains", "regex"])
def test_a_router_of_three_hundred_rules(op: str) -> None:
    values: list[Any] = [300 - i if op == "gte" else f"(a{i}|b)" if op == "regex" else f"a{i:03}" for i in range(300)]
    rules = [{"path": "score", "op": op, "value": value, "targets": ["END"]} for value in values]
    raw = spec([llm("s", "score"), router("r", rules=rules, default=["END"])], "s>r", output_key="score")
    assert seconds(raw) < 10


def test_thousands_of_gates_loops_and_forks_in_a_row() -> None:
    nodes = [pass_("f0")]
    ways = []
    for i in range(800):
        nodes += [put(f"a{i}"), gate(f"g{i}", on_request_changes=[f"a{i}"]), put(f"b{i}"), join(f"j{i}"),
                  loop(f"l{i}", f"c{i}", f"r{i}"), put(f"c{i}"), router(f"r{i}", ["f0"], default=[f"f{i + 1}"]),
                  pass_(f"f{i + 1}")]  # fmt: skip
        ways += [f"f{i}>a{i}>g{i}>j{i}", f"f{i}>b{i}>j{i}>l{i}", f"c{i}>l{i}"]
    assert seconds(spec(nodes, *ways, "f800>END")) < 40
