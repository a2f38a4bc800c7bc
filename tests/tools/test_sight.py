"""What one principal sees of another's runs: nothing, whatever tool is asked; and which scope each tool wants."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.mcp_server.schemas import input_schema
from agent_graph.tools.deps import ADMIN, SCOPES, Caller
from agent_graph.tools.registry import TOOLS, Tool
from agent_graph.tools.toolsets import ORDER
from tests.fakes.opened import Tools
from tests.tools.specs import gated

ALL_BUT_ADMIN = SCOPES - {ADMIN}
ANN = Caller("assistant", "desk", principal="ann", scopes=ALL_BUT_ADMIN)
BOB = Caller("assistant", "desk", principal="bob", scopes=ALL_BUT_ADMIN)
NOT_THERE = {"run": "run-00000000000aaaaaaaaaa", "approval": "apr-none"}


def _names(tool: Tool) -> list[str]:
    """The arguments that name a run or an approval."""
    return [name for name in input_schema(tool.params)["properties"] if _kind(name)]  # type: ignore[union-attr]


def _kind(name: str) -> str:
    return next((kind for kind in NOT_THERE if name in (f"{kind}_id", f"{kind}_ids", f"{kind}s")), "")


def _filled(tool: Tool, ids: dict[str, str]) -> dict[str, Any]:
    """Arguments of a call: every id, and of the rest what must be there."""
    schema: Any = input_schema(tool.params)
    given: dict[str, Any] = {}
    for name, part in schema["properties"].items():
        if kind := _kind(name):
            given[name] = [ids[kind]] if part["type"] == "array" else ids[kind] if part["type"] == "string" else 0
        elif name in schema.get("required", ()):
            given[name] = _something(part)
    if tool.name == "graph_status":
        given["resource"] = "run"
    return given


def _something(part: Any) -> Any:
    if "enum" in part:
        return part["enum"][0]
    return {"string": "x", "integer": part.get("minimum", 0), "object": {}, "array": [], "boolean": False}[part["type"]]


@pytest.fixture
async def ids(tools: Tools) -> dict[str, str]:
    """A run of Ann's that waits, and its approval."""
    ann = Tools(tools.deps, ANN)
    await ann.ok("graph_create", spec=gated())
    run_id = await ann.run("gated", {"draft": "Dear Dana"}, thread_id="secret", idempotency_key="k")
    await ann.ok("graph_run_wait", run_id=run_id, until="waiting")
    [pending] = (await ann.ok("graph_approval_list"))["approvals"]
    return {"run": run_id, "approval": pending["approval_id"]}


BY_ID = sorted(name for name, tool in TOOLS.items() if _names(tool))


@pytest.mark.parametrize("name", BY_ID)
async def test_another_principals_run_reads_like_one_that_does_not_exist(
    tools: Tools, ids: dict[str, str], name: str
) -> None:
    bob, tool = Tools(tools.deps, BOB), TOOLS[name]
    before = await tools.everything()
    hers = await bob.envelope(name, **_filled(tool, ids))
    nobodys = await bob.envelope(name, **_filled(tool, NOT_THERE))
    text = str(hers)
    for kind, value in ids.items():
        text = text.replace(value, NOT_THERE[kind])
    assert text == str(nobodys)
    assert await tools.everything() == before


def test_the_walk_meets_the_tools_that_take_an_id() -> None:
    assert {"graph_run_get", "graph_run_cancel", "graph_run_events", "graph_approval_decide"} < set(BY_ID)
    assert len(BY_ID) >= 10


@pytest.mark.parametrize("name", ["graph_run_get", "graph_run_state", "graph_run_events", "graph_approval_get"])
async def test_who_started_a_run_sees_it(tools: Tools, ids: dict[str, str], name: str) -> None:
    await Tools(tools.deps, ANN).ok(name, **_filled(TOOLS[name], ids))


async def test_lists_and_counts_hold_what_is_ones_own(tools: Tools, ids: dict[str, str]) -> None:
    bob = Tools(tools.deps, BOB)
    assert (await bob.ok("graph_run_list"))["runs"] == []
    assert (await bob.ok("graph_run_list", thread_id="secret"))["runs"] == []
    assert (await bob.ok("graph_approval_list", status="all"))["approvals"] == []
    assert not any((await bob.ok("graph_status"))["runs"].values())
    assert (await Tools(tools.deps, ANN).ok("graph_status"))["runs"] == {"waiting": 1}


async def test_graphs_are_everybodys(tools: Tools, ids: dict[str, str]) -> None:
    [listed] = (await Tools(tools.deps, BOB).ok("graph_list"))["graphs"]
    assert listed["graph_id"] == "gated"


async def test_an_idempotency_key_is_ones_own(tools: Tools, ids: dict[str, str]) -> None:
    bob = Tools(tools.deps, BOB)
    his = await bob.run("gated", {"draft": "Dear Dana"}, thread_id="secret", idempotency_key="k")
    again = await bob.run("gated", {"draft": "Dear Dana"}, thread_id="secret", idempotency_key="k")
    assert his == again != ids["run"]
    refused = await bob.refused("graph_run_start", graph_id="gated", input="x", idempotency_key="k")
    assert refused["error_code"] == "IDEMPOTENCY_CONFLICT"
    assert refused["details"] == {"key": "k"}
    assert "bob" not in refused["error"]


@pytest.mark.parametrize(
    "caller", [Caller("cli"), Caller("assistant", principal="root", scopes=frozenset({ADMIN}))], ids=["local", "admin"]
)
async def test_the_local_user_and_an_admin_see_all(tools: Tools, ids: dict[str, str], caller: Caller) -> None:
    all_seeing = Tools(tools.deps, caller)
    assert (await all_seeing.ok("graph_run_get", run_id=ids["run"]))["principal"] == "ann"
    assert len((await all_seeing.ok("graph_approval_list"))["approvals"]) == 1


async def test_the_operator_can_let_principals_decide_for_each_other(tools: Tools, ids: dict[str, str]) -> None:
    decider = Tools(tools.deps, Caller("assistant", principal="bob", scopes=ALL_BUT_ADMIN, sharing="approvals"))
    refused = await decider.refused("graph_run_get", run_id=ids["run"])
    assert refused["error_code"] == "RUN_NOT_FOUND"
    [seen] = (await decider.ok("graph_approval_list"))["approvals"]
    decided = await decider.ok(
        "graph_approval_decide", approval_id=seen["approval_id"], decision="approve", decided_by="Bob"
    )
    assert decided["approval"]["votes"][0]["principal"] == "bob"


async def test_a_reader_is_not_let_at_approvals_it_may_not_decide(tools: Tools, ids: dict[str, str]) -> None:
    reader = Caller("assistant", principal="bob", scopes=frozenset({"runs:read"}), sharing="approvals")
    assert (await Tools(tools.deps, reader).ok("graph_approval_list"))["approvals"] == []


async def test_the_operator_can_let_principals_see_everything(tools: Tools, ids: dict[str, str]) -> None:
    seeing = Tools(tools.deps, Caller("assistant", principal="bob", scopes=ALL_BUT_ADMIN, sharing="all"))
    assert (await seeing.ok("graph_run_get", run_id=ids["run"]))["run_id"] == ids["run"]


# -- scopes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(TOOLS))
async def test_a_tool_is_refused_to_who_lacks_its_scope(tools: Tools, ids: dict[str, str], name: str) -> None:
    lacking = Caller("assistant", principal="ann", scopes=SCOPES - {TOOLS[name].scope, ADMIN})
    refused = await Tools(tools.deps, lacking).refused(name, **_filled(TOOLS[name], ids))
    assert (refused["error_code"], refused["details"]) == ("INSUFFICIENT_SCOPE", {"scope": TOOLS[name].scope})


@pytest.mark.parametrize("name", [name for name in ORDER if name in TOOLS])
def test_a_tool_an_assistant_is_shown_says_which_scope_it_wants(name: str) -> None:
    tool = TOOLS[name]
    assert tool.scope in SCOPES - {ADMIN}, f"{name}: say scope= where it is registered"
    assert tool.read_only == (tool.scope == "runs:read"), "what changes something is no reading"


async def test_where_things_lie_is_told_to_the_operator_alone(tools: Tools) -> None:
    assert "data_dir" in await tools.ok("graph_status")
    told = await Tools(tools.deps, ANN).ok("graph_status")
    assert not {"data_dir", "settings"} & set(told)
