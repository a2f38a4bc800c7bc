"""``subscriptions/listen`` of the revision 2026-07-28: a request whose answer is the stream of what changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final, Literal, NoReturn
from urllib.parse import quote

from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourcesListChanged,
    ResourceUpdated,
    event_to_notification,
)

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import SubscriptionLimit
from agent_graph.mcp_server.calling import Context, caller_of, connection_of
from agent_graph.mcp_server.faults import refused
from agent_graph.mcp_server.resources.statement import Unreadable, check
from agent_graph.mcp_server.subscriptions.hub import LIST, MOST_ADDRESSES, PAUSE_S, Hub, Mailbox, plain
from agent_graph.mcp_server.tasks.serving import asks, require
from agent_graph.mcp_server.tasks.view import detailed
from agent_graph.tools.deps import Caller, Deps

RUNS: Final = "graph://runs/"
TASK: Final = "task:"
"""Before the id of a task that is followed."""
MOST_STREAMS: Final = 50
"""Streams of one client."""


class TaskNotification(types.Notification[dict[str, Any], Literal["notifications/tasks"]]):
    """A task has changed; `params` is what ``tasks/get`` would answer."""

    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: dict[str, Any]


def serve(server: Server[Any], deps: Deps, hub: Hub) -> None:
    """Add the method to `server`."""
    streams: Counter[object] = Counter()

    async def listen(
        context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        wanted, caller, client = params.notifications, caller_of(context), _client(context)
        if streams[client] >= MOST_STREAMS:
            raise refused(SubscriptionLimit(f"{MOST_STREAMS} streams of this client are open; close one first"))
        if task_ids(wanted):
            require(context)
        if len(wanted.resource_subscriptions or ()) + len(task_ids(wanted)) > MOST_ADDRESSES:
            raise refused(SubscriptionLimit(f"one stream follows at most {MOST_ADDRESSES} addresses"))
        box = Mailbox(caller)
        streams[client] += 1
        try:
            honoured = await _honoured(deps, wanted, caller)
            for task in task_ids(honoured):
                hub.follow(f"{RUNS}{task}", box, told=f"{TASK}{task}")
            for uri in honoured.resource_subscriptions or ():
                hub.follow(plain(uri), box, told=uri)
            if honoured.resources_list_changed:
                hub.follow(LIST, box)
            await _stream(deps, context, box, honoured)
        finally:
            hub.leave(box)
            streams[client] -= 1
            if not streams[client]:
                del streams[client]

    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, listen)


async def _honoured(deps: Deps, wanted: types.SubscriptionFilter, caller: Caller) -> types.SubscriptionFilter:
    """What is asked for without the addresses at which this caller can read nothing. The lists of tools and of prompts
    are followed as well; they never change."""
    asked = dict.fromkeys(wanted.resource_subscriptions or ())
    readable = [uri for uri in asked if await _readable(deps, uri, caller)]
    visible = [
        task for task in task_ids(wanted) if await _readable(deps, f"graph://runs/{quote(task, safe='')}", caller)
    ]
    more = {"taskIds": visible} if visible else {}
    return types.SubscriptionFilter(
        **more,
        tools_list_changed=wanted.tools_list_changed or None,
        prompts_list_changed=wanted.prompts_list_changed or None,
        resources_list_changed=wanted.resources_list_changed or None,
        resource_subscriptions=readable or None,
    )


async def _readable(deps: Deps, uri: str, caller: Caller) -> bool:
    try:
        await check(deps, uri, caller=caller)
    except Unreadable:
        return False
    return True


def task_ids(wanted: types.SubscriptionFilter) -> list[str]:
    """The tasks that are followed; the extension adds them to what a stream can follow."""
    given = (wanted.model_extra or {}).get("taskIds")
    return [task for task in given if isinstance(task, str)] if isinstance(given, list) else []


async def _stream(deps: Deps, context: Context, box: Mailbox, honoured: types.SubscriptionFilter) -> NoReturn:
    """Say first what is followed, then what changes, until the client has enough; it never returns by itself."""
    meta: JsonObject = {SUBSCRIPTION_ID_META_KEY: context.request_id}
    acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
    tell, number = context.session.send_notification, context.request_id
    await tell(types.SubscriptionsAcknowledgedNotification(params=acknowledged), number)
    while True:
        for what in await box.take():
            if what.startswith(TASK):
                news: Any = await _task(deps, context, what.removeprefix(TASK), meta=meta)
            else:
                event = ResourcesListChanged() if what == LIST else ResourceUpdated(what)
                news = event_to_notification(event, meta)
            await tell(news, number)
        await asyncio.sleep(PAUSE_S)


async def _task(deps: Deps, context: Context, task_id: str, *, meta: JsonObject) -> TaskNotification:
    task = await detailed(deps, task_id, caller=caller_of(context), asks=asks(context))
    return TaskNotification(params={**task, "_meta": meta})


def _client(context: Context) -> object:
    """One client: whoever is behind the same pipe, or, where every request comes by itself, whoever was let in."""
    connection = connection_of(context)
    return connection.outbound if connection.has_standalone_channel else caller_of(context).principal
