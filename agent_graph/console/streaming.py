"""Pages as they go on, by server-sent events: parts of a page, made here, put in their places by the script."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

from starlette.responses import StreamingResponse

from agent_graph.console.desk import Desk, Turned
from agent_graph.console.rendering import fragment
from agent_graph.core.classes import dataclass
from agent_graph.core.events import Event
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import AgentGraphError, TooManyRequests
from agent_graph.store.base import RunRow
from agent_graph.tools.live import DELTA, STATUS, follow
from agent_graph.tools.sight import seen_by

KEEP_S: Final = 15.0
"""Seconds without news after which a sign of life is sent, and the session looked at."""
SOON_S: Final = 0.25
"""Seconds after a change in which more may come, before what it makes of the page is sent."""
LATEST_S: Final = 1.0
"""Seconds after which it is sent whatever comes."""
AGAIN_MS: Final = 1_000
"""Milliseconds after which a browser asks again whose connection was lost."""
MOST: Final = 16
"""Pages of one session that go on at once."""
APPROVALS: Final = "approvals"
RUNS: Final = "runs"
_MARKS: Final = {APPROVALS: ("approval_",), RUNS: ("run_", "approval_")}
"""How the types of events begin that change a list."""
_BREAK: Final = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a page: what it is, its text, and for an event its number."""

    name: str
    text: str = ""
    seq: int | None = None

    def sent(self) -> bytes:
        lines = [] if self.seq is None else [f"id: {self.seq}"]
        lines += [f"event: {self.name}", *(f"data: {line}" for line in _BREAK.split(self.text))]
        return "\n".join([*lines, "", ""]).encode("utf-8", "replace")


Standing = Callable[[], Awaitable[Sequence[Part]]]


def run_stream(desk: Desk, run_id: str, *, since: int, began_ms: int | None, standing: Standing) -> StreamingResponse:
    """A run's events from `since` on, text as it streams, and after changes what `standing` makes of it; ends with
    the run, or when the browser may not look any more."""
    return _response(desk, run_parts(desk, run_id, since=since, began_ms=began_ms, standing=standing))


async def run_parts(
    desk: Desk, run_id: str, *, since: int, standing: Standing, began_ms: int | None = None
) -> AsyncGenerator[Part]:  # fmt: skip
    """The parts of `run_stream`; one without a name is a sign of life."""
    loop = asyncio.get_running_loop()
    items = follow(seen_by(desk.deps, desk.caller), run_id, cursor=since)
    coming: asyncio.Future[JsonObject | None] | None = None
    over, out = (asyncio.ensure_future(one.wait()) for one in (desk.over, desk.session.over))
    changed, told = False, loop.time()
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(items, None))
            either: set[asyncio.Future[Any]] = {coming, over, out}
            quiet_s = SOON_S if changed else KEEP_S
            await asyncio.wait(either, timeout=quiet_s, return_when=asyncio.FIRST_COMPLETED)
            if over.done():
                return  # without an end: the browser asks again
            if not coming.done() or loop.time() - told > LATEST_S:
                told = loop.time()
                if not await desk.still():
                    yield Part("gone")
                    return
                for part in await standing() if changed else [Part("")]:
                    yield part
                changed = False
                if not coming.done():
                    continue
            item, coming = coming.result(), None
            if item is None:
                for part in await standing():
                    yield part
                break
            if item["type"] == STATUS:
                changed = True
            else:
                yield _part(item, began_ms)
    except (AgentGraphError, Turned):  # it was pruned or cannot be read: loaded anew, the page says what is wrong
        pass
    finally:
        over.cancel()
        out.cancel()
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, AgentGraphError):
                await coming
        await items.aclose()  # type: ignore[attr-defined]  # it is a generator
    yield Part("end")


def _part(item: JsonObject, began_ms: int | None) -> Part:
    if item["type"] == DELTA:
        return Part("delta", json.dumps({"firing": item["firing"], "kind": item["kind"], "text": item["text"]}))
    return Part("event", fragment("event.html", event=item, began_ms=began_ms), int(str(item["seq"])))


def changes(desk: Desk, *, of: str, run_id: str = "") -> StreamingResponse:
    """A part ``changed`` whenever something of the kind `of` happened that the browser sees: an approval was opened,
    voted on or closed, or how a run stands has changed; with `run_id` only of that run. At most one each second."""
    return _response(desk, change_parts(desk, of=of, run_id=run_id))


async def change_parts(desk: Desk, *, of: str, run_id: str = "") -> AsyncGenerator[Part]:
    """The parts of `changes`; one without a name is a sign of life."""
    news = asyncio.Event()
    sees_all = desk.caller.sees_approvals if of == APPROVALS else desk.caller.sees_all

    def hear(row: RunRow, events: Sequence[Event]) -> None:
        theirs = sees_all or row.principal == desk.caller.principal
        if theirs and run_id in ("", row.run_id) and any(event.fact.type.startswith(_MARKS[of]) for event in events):
            news.set()

    stop = desk.deps.supervisor.shell.notify.listen(hear)
    try:
        yield Part("")
        while True:
            waits = {asyncio.ensure_future(one.wait()) for one in (news, desk.over, desk.session.over)}
            try:
                await asyncio.wait(waits, timeout=KEEP_S, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()
            if desk.over.is_set():
                return
            if not await desk.still():
                yield Part("gone")
                return
            told = news.is_set()
            news.clear()
            yield Part("changed" if told else "")
            if told:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LATEST_S):
                        await desk.over.wait()
    finally:
        stop()


def _response(desk: Desk, parts: AsyncGenerator[Part]) -> StreamingResponse:
    """Raises `TooManyRequests` for more than a session may have."""
    session = desk.session
    if session.streams >= MOST:
        raise TooManyRequests(f"{MOST} pages of yours go on already; close some", retry_after_s=60)

    async def sent() -> AsyncIterator[bytes]:
        session.streams += 1
        try:
            async with aclosing(parts):
                yield f"retry: {AGAIN_MS}\n\n".encode()
                async for part in parts:
                    yield part.sent() if part.name else b": still here\n\n"
        finally:
            session.streams -= 1

    return StreamingResponse(sent(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
