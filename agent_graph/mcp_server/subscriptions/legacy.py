"""``resources/subscribe`` and ``resources/unsubscribe`` of the revisions up to 2025-11-25."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from mcp import types
from mcp.server.lowlevel import Server

from agent_graph.errors import SubscriptionLimit
from agent_graph.mcp_server.calling import Context, caller_of, connection_of
from agent_graph.mcp_server.faults import protocol_error, refused
from agent_graph.mcp_server.resources.statement import Unreadable, check
from agent_graph.mcp_server.subscriptions.hub import MOST_ADDRESSES, PAUSE_S, Hub, Mailbox, plain
from agent_graph.tools.deps import Deps

_KEY: Final = "agent-graph/follower"
"""Where a connection's follower is among what the SDK keeps for a connection."""


class Follower:
    """One client on one connection, and the task that tells it."""

    def __init__(self, hub: Hub, context: Context) -> None:
        self.box = Mailbox(caller_of(context))
        self.uris: dict[str, str] = {}
        self._hub = hub
        self._session = context.session
        self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while True:
            for uri in await self.box.take():
                await self._session.send_resource_updated(uri)
            await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        self._hub.leave(self.box)
        self._telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._telling


def serve(server: Server[Any], deps: Deps, hub: Hub) -> None:
    """Add the two methods to `server`."""

    async def subscribe(context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        try:
            await check(deps, uri, caller=caller_of(context))
        except Unreadable as unread:
            raise protocol_error(unread.refusal, uri=uri) from None
        follower = _follower(hub, context)
        if len({*follower.uris, uri}) > MOST_ADDRESSES:
            limit = SubscriptionLimit(f"one client follows at most {MOST_ADDRESSES} addresses; unsubscribe one first")
            raise refused(limit, uri=uri)
        follower.uris[uri] = plain(uri)
        hub.follow(plain(uri), follower.box, told=uri)
        return types.EmptyResult()

    async def unsubscribe(context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        follower = _kept(context).get(_KEY)
        if follower is not None and (what := follower.uris.pop(uri, "")):
            hub.leave(follower.box, what, told=uri)
        return types.EmptyResult()

    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


def _follower(hub: Hub, context: Context) -> Follower:
    """The connection's, made when it is first needed and closed with the connection."""
    kept = _kept(context)
    follower: Follower | None = kept.get(_KEY)
    if follower is None:
        follower = kept[_KEY] = Follower(hub, context)
        connection_of(context).exit_stack.push_async_callback(follower.close)
    return follower


def _kept(context: Context) -> dict[str, Any]:
    state: dict[str, Any] = connection_of(context).state
    return state
