"""The console as routes: who is let in to which page, and what every answer says to the browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from agent_graph.console import forms
from agent_graph.console.cookies import Cookies
from agent_graph.console.desk import Desk, Turned
from agent_graph.console.rendering import page
from agent_graph.console.sessions import Session, Sessions
from agent_graph.console.views import approvals, deciding, graphs, log, login, receipts, runs, starting
from agent_graph.core.classes import dataclass
from agent_graph.errors import AgentGraphError, FormNotValid
from agent_graph.tools.deps import Deps

View: TypeAlias = Callable[[Desk, Request], Awaitable[Response]]
STATIC: Final = Path(__file__).parent / "static"
FILES: Final = {"console.css": "text/css", "console.js": "text/javascript", "mark.svg": "image/svg+xml"}
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer a form would name the origin "null", which the door refuses
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Console:
    """The console of one server."""

    deps: Deps
    sessions: Sessions
    take: Callable[[str], None]
    """Counts a request of somebody. Raises `TooManyRequests`."""
    body_bytes: int

    def routes(self) -> Sequence[BaseRoute]:
        """All of them, for the server's application."""
        return [
            Route("/", self._open(_home), methods=["GET"]),
            Route("/static/{name}", self._open(_static), methods=["GET"]),
            Route("/login", self._open(self._login), methods=["GET", "POST"]),
            Route("/logout", self._closed(self._logout), methods=["POST"]),
            Route("/approvals", self._closed(approvals.inbox), methods=["GET"]),
            Route("/approvals/live", self._closed(approvals.live), methods=["GET"]),
            Route("/approvals/{approval_id}", self._closed(approvals.shown), methods=["GET"]),
            Route("/approvals/{approval_id}", self._closed(deciding.decided), methods=["POST"]),
            Route("/approvals/{approval_id}/edit", self._closed(deciding.edited), methods=["GET", "POST"]),
            Route("/log", self._closed(log.shown), methods=["GET"]),
            Route("/log.csv", self._closed(log.as_csv), methods=["GET"]),
            Route("/log.json", self._closed(log.as_json), methods=["GET"]),
            Route("/runs", self._closed(runs.listed), methods=["GET"]),
            Route("/runs/live", self._closed(runs.list_live), methods=["GET"]),
            Route("/runs/{run_id}", self._closed(runs.shown), methods=["GET"]),
            Route("/runs/{run_id}/report", self._closed(runs.report), methods=["GET"]),
            Route("/runs/{run_id}/receipt.json", self._closed(receipts.taken), methods=["GET"]),
            Route("/runs/{run_id}/live", self._closed(runs.live), methods=["GET"]),
            Route("/graphs", self._closed(graphs.listed), methods=["GET"]),
            Route("/graphs/{graph_id}", self._closed(graphs.shown), methods=["GET"]),
            Route("/graphs/{graph_id}", self._closed(starting.graph_started), methods=["POST"]),
            Route("/templates", self._closed(graphs.templates), methods=["GET"]),
            Route("/templates/{template_id}", self._closed(starting.template), methods=["GET"]),
            Route("/templates/{template_id}", self._closed(starting.template_started), methods=["POST"]),
            Route("/{path:path}", self._open(_nothing), methods=["GET"]),
        ]

    def _open(self, view: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """A page for everybody."""

        async def endpoint(request: Request) -> Response:
            try:
                return _secured(await view(request))
            except AgentGraphError as refusal:
                return _secured(_refused(refusal.code, refusal.message, refusal.http_status, desk=None))

        return endpoint

    def _closed(self, view: View) -> Callable[[Request], Awaitable[Response]]:
        """A page for who is logged in; a form has to be one of theirs."""

        async def endpoint(request: Request) -> Response:
            desk: Desk | None = None
            try:
                found = await self.sessions.find(Cookies(request).session)
                if found is None:
                    self.take(_address(request))
                    return _secured(_log_in_first(request))
                session, caller = found
                self.take(f"principal {caller.principal}" if caller.principal else _address(request))
                desk = Desk(self.deps, session, caller, partial(self._still, session), self.sessions.over)
                if request.method == "POST":
                    forms.check_origin(request)
                    form = await forms.read_form(request, most=self.body_bytes)
                    forms.check(form, session.form_key)
                    desk = replace(desk, form=form)
                return _secured(await view(desk, request))
            except Turned as turned:
                return _secured(_refused(turned.code, turned.message, turned.status, desk=desk))
            except AgentGraphError as refusal:
                return _secured(_refused(refusal.code, refusal.message, refusal.http_status, desk=desk))

        return endpoint

    async def _login(self, request: Request) -> Response:
        self.take(_address(request))
        cookies = Cookies(request)
        if request.method == "GET":
            return login.asked(request, cookies)
        forms.check_origin(request)
        form = await forms.read_form(request, most=login.MOST_BYTES)
        if not cookies.before:
            raise FormNotValid("the cookie of this page did not come back: allow cookies, and load it again")
        forms.check(form, cookies.before)
        return await login.opened(self.sessions, form, cookies)

    async def _logout(self, desk: Desk, request: Request) -> Response:
        self.sessions.close(desk.session)
        response = RedirectResponse("/login", 303)
        Cookies(request).forget(response)
        return response

    async def _still(self, session: Session) -> bool:
        return await self.sessions.caller(session) is not None


async def _home(request: Request) -> Response:
    return RedirectResponse("/approvals", 303)


async def _nothing(request: Request) -> Response:
    return _refused("NOT_FOUND", "There is no such page.", 404, desk=None)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in FILES:
        return page("refused.html", http_status=404, code="NOT_FOUND", message="There is no such file.", desk=None)
    return FileResponse(STATIC / name, media_type=FILES[name], headers={"cache-control": "max-age=300"})


def _log_in_first(request: Request) -> Response:
    goes_on = "text/event-stream" in request.headers.get("accept", "")
    if request.method == "GET" and not goes_on:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/login?next={quote(request.url.path + query, safe='')}", 303)
    message = "You are not logged in, or no longer: nothing was changed. Log in, and send it again."
    return _refused("ACCESS_TOKEN_INVALID", message, 401, desk=None)


def _refused(code: str, message: str, status: int, *, desk: Desk | None) -> Response:
    return page("refused.html", http_status=status, code=code, message=message, desk=desk)


def _secured(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _address(request: Request) -> str:
    return f"address {request.client.host if request.client else ''}"
