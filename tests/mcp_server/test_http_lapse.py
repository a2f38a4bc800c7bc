"""An answer that goes on does not outlive the token it was asked for with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from agent_graph.mcp_server.http import lapse
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.tokens import DAY_MS
from tests.fakes.hands import Hands
from tests.fakes.opened import opened
from tests.mcp_server.process import initialize
from tests.mcp_server.served import asked, call, envelope, made, method, on_a_port, token_for
from tests.tools.specs import gated

SOON_S = 10.0
LISTEN = {"notifications": {"resourcesListChanged": True}}


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def deps(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Deps]:
    monkeypatch.setattr(lapse, "LOOK_S", 0.02)
    async with opened(clock=hands) as found:
        yield found


async def revoked(deps: Deps, name: str) -> None:
    answer = await registry.call(deps, "graph_token_revoke", {"name": name}, caller=Caller("cli"))
    assert answer["ok"]


@pytest.mark.parametrize("how", ["revoked", "over"])
async def test_a_stream_ends_when_its_token_does_and_not_before(deps: Deps, hands: Hands, how: str) -> None:
    ann, bob = await token_for(deps, "ann", "runs:read", days=1), await token_for(deps, "bob", "runs:read")
    async with asked(made(deps)) as client:
        streams = [asyncio.create_task(method(client, "subscriptions/listen", LISTEN, token=one)) for one in (ann, bob)]
        done, _ = await asyncio.wait(streams, timeout=0.3)
        assert not done, "many looks later both go on"
        assert deps.catalog.listeners
        if how == "revoked":
            await revoked(deps, "ann")
        else:
            hands.at_ms += DAY_MS
        answer = await asyncio.wait_for(streams[0], SOON_S)
        assert answer.status_code == 200
        assert "subscriptions/acknowledged" in answer.text
        assert not streams[1].done()
        assert (await method(client, "subscriptions/listen", LISTEN, token=ann)).status_code == 401
        await revoked(deps, "bob")
        await asyncio.wait_for(streams[1], SOON_S)
    assert not deps.catalog.listeners, "nobody is told any more"


async def test_the_stream_of_a_session_ends_too(deps: Deps) -> None:
    ann = await token_for(deps, "ann", "runs:read")
    about = {"authorization": f"Bearer {ann}", "accept": "application/json, text/event-stream"}
    async with on_a_port(made(deps)) as url, httpx2.AsyncClient(headers=about, timeout=SOON_S) as client:
        first = await client.post(url, json=initialize()[0])
        session = {"mcp-session-id": first.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        await client.post(url, json=initialize()[1], headers=session)
        async with client.stream("GET", url, headers=session) as stream:
            assert stream.status_code == 200
            await revoked(deps, "ann")
            assert not [line async for line in stream.aiter_lines() if line.startswith("data: {")]
        assert (await client.post(url, json=initialize()[1], headers=session)).status_code == 401


async def test_a_wait_that_is_cut_so_touches_no_run(deps: Deps) -> None:
    ann = await token_for(deps, "ann", "runs:read", "runs:write")
    async with asked(made(deps)) as client:
        assert envelope(await call(client, "graph_create", {"spec": gated()}, token=ann))["ok"]
        started = await call(client, "graph_run_start", {"graph_id": "gated", "input": {"draft": "x"}}, token=ann)
        run_id = envelope(started)["run_id"]
        waiting = asyncio.create_task(call(client, "graph_run_wait", {"run_id": run_id}, token=ann))
        assert not (await asyncio.wait([waiting], timeout=0.3))[0]
        await revoked(deps, "ann")
        answer = await asyncio.wait_for(waiting, SOON_S)
        assert answer.status_code in (200, 401)
        assert '"ok"' not in answer.text or not json.loads(answer.text)["ok"]
        assert (await deps.store.runs.get(run_id)).status in ("running", "waiting")
