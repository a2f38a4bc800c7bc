"""Who is told that something changed, as the SDK's own client hears it, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from mcp import MCPError, types
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged

from agent_graph.mcp_server.subscriptions.hub import LIST, MOST_ADDRESSES, PENDING, Hub, Mailbox, plain
from agent_graph.mcp_server.subscriptions.listening import MOST_STREAMS
from agent_graph.tools.deps import Caller, Deps
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import ERAS, Assistant, connected
from tests.mcp_server.test_server import Held
from tests.tools.specs import echo, gated, keep

pytestmark = [
    pytest.mark.usefixtures("at_once"),
    pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed"),  # where it is not there, we do not ask
]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds follow each other without a pause."""
    for module in ("legacy", "listening"):
        monkeypatch.setattr(f"agent_graph.mcp_server.subscriptions.{module}.PAUSE_S", 0)


def listened_to(deps: Deps) -> bool:
    return bool(deps.supervisor.shell.notify.listeners or deps.catalog.listeners)


class Ear:
    """What a legacy client hears of resources."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.heard.put_nowait(str(message.params.uri))


class Follow:
    """One client that follows addresses, whichever way its era has for that."""

    def __init__(self, assistant: Assistant, ear: Ear, opened: AsyncExitStack) -> None:
        self.assistant = assistant
        self._ear = ear
        self._opened = opened
        self._stream: Any = None

    async def follow(self, *uris: str) -> None:
        if self.assistant.client.protocol_version == "2026-07-28":
            self._stream = await self._opened.enter_async_context(
                self.assistant.client.listen(resource_subscriptions=list(uris))
            )
            assert self._stream.honored.resource_subscriptions == list(uris)
        else:
            for uri in uris:
                await self.assistant.client.subscribe_resource(uri)

    async def next(self) -> str:
        if self._stream is None:
            return await self._ear.heard.get()
        event = await anext(self._stream)
        assert isinstance(event, ResourceUpdated)
        return event.uri


@asynccontextmanager
async def following(deps: Deps, era: str) -> AsyncIterator[Follow]:
    ear = Ear()
    async with connected(deps, era, message_handler=ear) as assistant, AsyncExitStack() as opened:
        yield Follow(assistant, ear, opened)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_told_when_a_run_it_follows_has_moved(era: str) -> None:
    held = Held()
    async with opened(held.model) as deps:
        async with following(deps, era) as client:
            tools = Tools(deps)
            await tools.ok("graph_create", spec=echo())
            other, run_id = await tools.run("echo"), await tools.run("echo")
            uri = f"graph://runs/{run_id}"
            await client.follow(uri)
            held.go.set()
            await tools.ok("graph_run_wait", run_id=other)
            await tools.ok("graph_run_wait", run_id=run_id)
            status = ""
            while status != "completed":
                assert await client.next() == uri
                status = (await client.assistant.ok("graph_run_get", run_id=run_id))["status"]
            assert listened_to(deps)
        assert not listened_to(deps)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_told_when_something_waits_for_a_person_and_when_it_no_longer_does(era: str) -> None:
    async with opened() as deps, following(deps, era) as client:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=gated())
        await client.follow(PENDING)
        run_id = await tools.run("gated", {"draft": "x"})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        assert await client.next() == PENDING
        (approval,) = (await tools.ok("graph_approval_list"))["approvals"]
        await tools.ok(
            "graph_approval_decide", approval_id=approval["approval_id"], decision="approve", decided_by="Ada"
        )
        assert await client.next() == PENDING
        assert (await tools.ok("graph_approval_list"))["approvals"] == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_told_of_a_graph_that_gets_another_version(era: str) -> None:
    async with opened() as deps, following(deps, era) as client:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=keep())
        await client.follow("graph://graphs/keep", "graph://graphs")
        await tools.ok("graph_create", spec=keep())
        await tools.ok("graph_create", spec={**keep(), "description": "another"}, overwrite=True)
        assert {await client.next(), await client.next()} == {"graph://graphs/keep", "graph://graphs"}
        await tools.ok("graph_create", action="delete", graph_id="keep")
        assert {await client.next(), await client.next()} == {"graph://graphs/keep", "graph://graphs"}


async def test_a_legacy_client_that_unsubscribes_hears_no_more() -> None:
    async with opened() as deps, following(deps, "legacy") as client:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=keep())
        await client.follow("graph://graphs", "graph://graphs/keep")
        await client.assistant.client.unsubscribe_resource("graph://graphs")
        await client.assistant.client.unsubscribe_resource("graph://weather")
        await tools.ok("graph_create", spec={**keep(), "description": "another"}, overwrite=True)
        assert await client.next() == "graph://graphs/keep"
        await client.assistant.client.unsubscribe_resource("graph://graphs/keep")
        assert not listened_to(deps)


@pytest.mark.parametrize("uri", ["graph://runs/run-none", "graph://weather", "graph://docs/../secret"])
async def test_a_legacy_client_cannot_follow_what_it_cannot_read(uri: str) -> None:
    async with opened() as deps, following(deps, "legacy") as client:
        with pytest.raises(MCPError) as error:
            await client.follow(uri)
        assert error.value.error.code == -32602
        assert error.value.error.data["uri"] == uri
        assert not listened_to(deps)


async def test_a_stream_follows_of_what_is_asked_for_what_can_be_read() -> None:
    async with opened() as deps, connected(deps) as assistant:
        await assistant.ok("graph_create", spec=keep())
        wanted = ["graph://runs/run-none", "graph://graphs/keep", "graph://weather", "graph://graphs/keep"]
        async with assistant.client.listen(resource_subscriptions=wanted, tools_list_changed=True) as stream:
            assert stream.honored.resource_subscriptions == ["graph://graphs/keep"]
            assert stream.honored.tools_list_changed is True
            assert stream.honored.prompts_list_changed is None


async def test_the_list_of_resources_changes_with_every_run_and_that_of_tools_never() -> None:
    async with opened() as deps, connected(deps) as assistant:
        await assistant.ok("graph_create", spec=keep())
        async with assistant.client.listen(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as stream:
            run_id = (await assistant.ok("graph_run_start", graph_id="keep"))["run_id"]
            event = await anext(stream)
            assert isinstance(event, ResourcesListChanged)
            assert not isinstance(event, ToolsListChanged)
            uris = [resource.uri for resource in (await assistant.client.list_resources()).resources]
            assert f"graph://runs/{run_id}" in uris


@pytest.mark.parametrize("era", ERAS)
async def test_one_client_cannot_follow_without_bound(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        assert plain("graph://docs/%69ndex") == "graph://docs/index"
        many = [f"graph://docs/{page}" for page in _spellings(MOST_ADDRESSES + 1)]
        if era == "auto":
            with pytest.raises(MCPError, match="SUBSCRIPTION_LIMIT"):
                async with assistant.client.listen(resource_subscriptions=many):
                    raise AssertionError("it was let in")
            async with AsyncExitStack() as streams:
                for _ in range(MOST_STREAMS):
                    await streams.enter_async_context(assistant.client.listen(tools_list_changed=True))
                with pytest.raises(MCPError, match="SUBSCRIPTION_LIMIT"):
                    async with assistant.client.listen(tools_list_changed=True):
                        raise AssertionError("it was let in")
            return
        for uri in many[:-1]:
            await assistant.client.subscribe_resource(uri)
        await assistant.client.subscribe_resource(many[0])
        with pytest.raises(MCPError, match="SUBSCRIPTION_LIMIT"):
            await assistant.client.subscribe_resource(many[-1])
        await assistant.client.unsubscribe_resource(many[0])
        await assistant.client.subscribe_resource(many[-1])


def _spellings(count: int) -> list[str]:
    """The same page, spelt in so many ways."""
    letters = [(letter, f"%{ord(letter):02X}") for letter in "howto/wait"]
    return ["".join(pair[number >> place & 1] for place, pair in enumerate(letters)) for number in range(count)]


@pytest.mark.parametrize("era", ERAS)
async def test_nothing_is_left_of_a_client_that_has_gone(era: str) -> None:
    async with opened() as deps:
        await Tools(deps).ok("graph_create", spec=keep())
        before = len(asyncio.all_tasks())
        for _ in range(20):
            async with following(deps, era) as client:
                await client.follow("graph://graphs/keep", PENDING)
        assert not listened_to(deps)
        assert len(asyncio.all_tasks()) == before


async def test_what_changes_often_is_told_once_until_it_was_taken() -> None:
    async with opened() as deps:
        hub, box = Hub(deps), Mailbox(Caller("assistant"))
        tools = Tools(deps)
        await tools.ok("graph_create", spec=echo())
        hub.follow(LIST, box)
        hub.follow("graph://graphs", box, told="graph://gr%61phs")
        run_id = await tools.run("echo")
        hub.follow(f"graph://runs/{run_id}", box)
        await tools.ok("graph_run_wait", run_id=run_id)
        await tools.ok("graph_create", spec={**echo(), "description": "another"}, overwrite=True)
        assert await box.take() == [LIST, f"graph://runs/{run_id}", "graph://gr%61phs"]
        assert len(hub) == 3
        hub.leave(box)
        assert len(hub) == 0
        assert not listened_to(deps)


async def test_nobody_hears_of_another_principals_runs() -> None:
    async with opened() as deps:
        hub = Hub(deps)
        ada, bob, all_ = (Mailbox(Caller("assistant", principal=name, scopes=frozenset({"runs:read"})))
                          for name in ("ada", "bob", ""))  # fmt: skip
        for box in (ada, bob, all_):
            hub.follow(PENDING, box)
            hub.follow(LIST, box)
        tools = Tools(deps, Caller("assistant", principal="ada"))
        await tools.ok("graph_create", spec=gated())
        for box in (ada, bob, all_):
            assert await box.take() == [LIST]
        run_id = await tools.run("gated", {"draft": "x"})
        await tools.ok("graph_run_wait", run_id=run_id, until="waiting")
        assert set(await ada.take()) == {LIST, PENDING}
        assert set(await all_.take()) == {LIST, PENDING}
        run_id = await Tools(deps).run("gated", {"draft": "x"})  # the local user's, who has no name
        await Tools(deps).ok("graph_run_wait", run_id=run_id, until="waiting")
        assert set(await all_.take()) == {LIST, PENDING}
        ada.put("the end")
        assert await ada.take() == ["the end"]
        bob.put("the end")
        assert await bob.take() == ["the end"]
