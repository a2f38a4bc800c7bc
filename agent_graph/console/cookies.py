"""The two cookies: which session a browser has, and that a login form was loaded before it was sent."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

SESSION: Final = "agent_graph_session"
BEFORE: Final = "agent_graph_login"


class Cookies:
    """Those of one request. Their names hold the port: a browser sends the cookies of a host to all ports of it."""

    def __init__(self, request: Request) -> None:
        port = request.url.port
        self._suffix = f"_{port}" if port else ""
        self._secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
        self.session = request.cookies.get(f"{SESSION}{self._suffix}", "")
        self.before = request.cookies.get(f"{BEFORE}{self._suffix}", "")

    def keep(self, response: Response, held: str) -> None:
        """The session, as long as the browser is open."""
        self._set(response, SESSION, held)
        response.delete_cookie(f"{BEFORE}{self._suffix}", path="/login", httponly=True, samesite="strict")

    def keep_before(self, response: Response, key: str) -> None:
        self._set(response, BEFORE, key, path="/login")

    def forget(self, response: Response) -> None:
        name = f"{SESSION}{self._suffix}"
        response.delete_cookie(name, secure=self._secure, httponly=True, samesite="strict")

    def _set(self, response: Response, name: str, value: str, *, path: str = "/") -> None:
        response.set_cookie(
            f"{name}{self._suffix}", value, path=path, secure=self._secure, httponly=True, samesite="strict"
        )
