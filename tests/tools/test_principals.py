"""Who a caller was authenticated as: on the run it starts and on its vote, and nothing where nobody was."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.tools.deps import SCOPES, Caller
from tests.fakes.opened import Tools
from tests.tools.specs import gated

ANN = Caller("assistant", "a client", principal="ann")


async def _decided(tools: Tools) -> Any:
    """A run and its approval after a vote."""
    await tools.ok("graph_create", spec=gated(), overwrite=True)
    run_id = await tools.run("gated", {"draft": "Dear Dana"})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
    [pending] = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]
    decided = await tools.ok(
        "graph_approval_decide", approval_id=pending["approval_id"], decision="approve", decided_by="Ann"
    )
    await tools.ok("graph_run_wait", run_id=run_id)
    return run_id, decided["approval"]


async def test_a_run_and_a_vote_name_who_was_authenticated(tools: Tools) -> None:
    ann = Tools(tools.deps, ANN)
    run_id, approval = await _decided(ann)
    assert approval["votes"][0]["principal"] == "ann"
    assert (await ann.ok("graph_run_get", run_id=run_id))["principal"] == "ann"
    [listed] = (await ann.ok("graph_run_list"))["runs"]
    assert listed["principal"] == "ann"
    events = (await ann.ok("graph_run_events", run_id=run_id))["events"]
    assert events[0]["principal"] == "ann"
    [voted] = [event for event in events if event["type"] == "approval_voted"]
    assert voted["vote"]["principal"] == "ann"


async def test_where_nobody_was_authenticated_nobody_is_named(tools: Tools) -> None:
    run_id, approval = await _decided(tools)
    assert "principal" not in approval["votes"][0]
    run = await tools.ok("graph_run_get", run_id=run_id)
    events = (await tools.ok("graph_run_events", run_id=run_id))["events"]
    assert "principal" not in run
    assert all("principal" not in event for event in events)


@pytest.mark.parametrize("via", ["assistant", "cli", "console", "elicitation"])
def test_the_local_user_may_do_all(via: Any) -> None:
    assert Caller(via).scopes == SCOPES
