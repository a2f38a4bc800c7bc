"""Log messages, message by message."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.tools import registry
from agent_graph.tools.registry import TOOLS
from tests.fakes.opened import opened
from tests.mcp_server.wire import Wire, wired


def logged(wire: Wire) -> list[Any]:
    return [one["params"] for one in wire.seen if one.get("method") == "notifications/message"]


async def refused(wire: Wire) -> None:
    answer = await wire.ask("tools/call", name="graph_run_get", arguments={"run_id": "run-none"})
    assert answer["result"]["isError"] is True


async def test_a_client_is_told_what_was_refused_in_its_calls_once_it_asked_for_that() -> None:
    async with opened() as deps, wired(deps, "legacy") as wire, wired(deps, "legacy") as other:
        await refused(wire)
        assert logged(wire) == []
        assert (await wire.ask("logging/setLevel", level="warning"))["result"] == {}
        await refused(wire)
        await wire.ask("tools/call", name="graph_list", arguments={})
        (message,) = logged(wire)
        assert (message["level"], message["logger"]) == ("warning", "agent-graph")
        assert (message["data"]["tool"], message["data"]["error_code"]) == ("graph_run_get", "RUN_NOT_FOUND")
        await refused(other)
        assert logged(other) == []
        await wire.ask("logging/setLevel", level="error")
        await refused(wire)
        assert logged(wire) == [message]


async def test_a_bug_of_ours_is_an_error_with_its_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    async def breaks(call: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setitem(TOOLS, "graph_list", replace(TOOLS["graph_list"], run=breaks))
    monkeypatch.setattr(registry.log, "exception", lambda *said: None)
    async with opened() as deps, wired(deps, "legacy") as wire:
        await wire.ask("logging/setLevel", level="error")
        await wire.ask("tools/call", name="graph_list", arguments={})
        (message,) = logged(wire)
        assert message["level"] == "error"
        assert "inc-" in message["data"]["error"]


async def test_the_newest_revision_has_no_levels() -> None:
    async with opened() as deps, wired(deps, "auto") as wire:
        assert (await wire.ask("logging/setLevel", level="debug"))["error"]["code"] == -32601
        await refused(wire)
        assert logged(wire) == []
