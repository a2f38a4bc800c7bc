"""Many clients at once over HTTP: every call is answered, and afterwards nothing of them is left."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from agent_graph.mcp_server.http.metrics import rss_bytes
from tests.fakes.opened import opened
from tests.mcp_server.conftest import ERAS
from tests.mcp_server.load import prepared, sdks
from tests.mcp_server.served import made, on_a_port, token_for
from tests.sizes import FULL, size

CLIENTS = size(4, 50)
CALLS = size(80, 10_000)
ROUNDS = size(3, 4)
MOST_BYTES = 20_000_000
"""By which memory may grow over the second half of the rounds, at full size."""


async def _round(url: str, token: str, era: str, run_id: str, calls: int) -> None:
    """All clients come, make their calls and go."""
    async with AsyncExitStack() as all_of_them:
        clients = [await all_of_them.enter_async_context(sdks(url, token, era=era)) for _ in range(CLIENTS)]

        async def work(call: Any, number: int) -> None:
            for turn in range(calls // CLIENTS):
                if (number + turn) % 2:
                    await call("graph_run_get", {"run_id": run_id})
                else:
                    await call("graph_list", {})

        await asyncio.gather(*(work(call, number) for number, call in enumerate(clients)))


async def _figures(url: str, token: str) -> dict[str, str]:
    async with httpx2.AsyncClient() as http:
        page = await http.get(url.replace("/mcp", "/metrics"), headers={"authorization": f"Bearer {token}"})
    return dict(line.rsplit(" ", 1) for line in page.text.splitlines() if not line.startswith("#"))


@pytest.mark.slow
@pytest.mark.timeout(900 if FULL else 60)
@pytest.mark.parametrize("era", ERAS)
async def test_nothing_is_left_of_many_calls(era: str) -> None:
    async with opened() as deps, on_a_port(made(deps, rate="0")) as url:
        token = await token_for(deps, "ann", "runs:read", "runs:write")
        run_id = await prepared(url, token)
        tasks, memory = set(), []
        for _ in range(ROUNDS):
            await _round(url, token, era, run_id, CALLS // ROUNDS)
            gc.collect()
            figures = await _figures(url, token)
            assert figures["agent_graph_sessions"] == "0"
            tasks.add(len(asyncio.all_tasks()))
            memory.append(rss_bytes())
        answered = int(figures['agent_graph_http_requests_total{method="POST",route="/mcp",status="200"}'])
        assert answered >= CALLS // ROUNDS // CLIENTS * CLIENTS * ROUNDS
        assert len(tasks) == 1, tasks
        assert not deps.supervisor.shell.notify._expected
        if FULL:
            print(f"{era}: {answered} answers, memory after each round {[f'{one / 1e6:.1f} MB' for one in memory]}")
            assert memory[-1] - memory[len(memory) // 2 - 1] < MOST_BYTES, memory
