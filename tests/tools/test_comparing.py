"""graph_run_compare over stored runs: a fork and its origin, and what cannot be compared."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.llm.scripted import ScriptedModel
from agent_graph.tools.deps import Caller
from tests.engine.room import asked
from tests.fakes.opened import Tools
from tests.tools.test_forking import LINE, forked, model, started  # noqa: F401  (model is a fixture)


@pytest.mark.parametrize("k", ["a", "b", "c"])
async def test_a_fork_before_a_node_differs_there_first(tools: Tools, model: ScriptedModel, k: str) -> None:  # noqa: F811
    origin = await started(tools, LINE, "q")
    run = await forked(tools, origin, before=k, outputs={k: "something else"})
    before = "abc".index(k)
    assert asked(model, *"ABC"[:before]) == [1] * before, "nothing before it is executed"
    found = await tools.ok("graph_run_compare", run_id=origin, other_run_id=run["run_id"])
    assert found["first_divergence"] == {"node_path": f"{k}#1", "node_id": k, "differs": ["output"]}
    assert found["b"]["forked_from"]["run_id"] == origin
    assert {"op": "replace", "path": f"/k{k}", "value": "something else"} in found["state_patch"]


async def test_a_fork_that_changes_nothing_is_the_same(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    run = await forked(tools, origin, before="b")
    found = await tools.ok("graph_run_compare", run_id=origin, other_run_id=run["run_id"])
    assert found["same"]
    assert (found["a"]["usage"]["llm_calls"], found["b"]["usage"]["llm_calls"]) == (3, 2)
    short = await tools.ok("graph_run_compare", run_id=origin, other_run_id=run["run_id"], limit=1)
    assert short["truncated"]


async def test_what_cannot_be_compared_is_refused(tools: Tools) -> None:
    origin = await started(tools, LINE, "q")
    other: Any = Tools(tools.deps, Caller("assistant", "c", principal="bob", scopes=frozenset({"runs:read"})))
    for caller, arguments, code in (
        (tools, {"other_run_id": "run-none"}, "RUN_NOT_FOUND"),
        (other, {"other_run_id": origin}, "RUN_NOT_FOUND"),
        (tools, {"other_run_id": origin, "limit": 0}, "INVALID_ARGUMENT"),
    ):
        assert (await caller.refused("graph_run_compare", run_id=origin, **arguments))["error_code"] == code
    await tools.ok("graph_store_prune", run_ids=[origin])
    refusal = await tools.refused("graph_run_compare", run_id=origin, other_run_id=origin)
    assert refusal["error_code"] == "RUN_PRUNED"
