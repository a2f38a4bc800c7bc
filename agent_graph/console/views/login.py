"""Logging in: with a token, or as the local user with the link that `agent-graph serve` has printed."""

from __future__ import annotations

import re
import secrets
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_graph.console import forms
from agent_graph.console.cookies import Cookies
from agent_graph.console.forms import Form
from agent_graph.console.rendering import page
from agent_graph.console.sessions import Sessions
from agent_graph.errors import AccessTokenInvalid, LoginLinkInvalid

MOST_BYTES: Final = 64 * 1024
HOME: Final = "/approvals"
PAGES: Final = re.compile(r"/(?:approvals|runs|graphs|templates|log)(?:/[\w.:-]+)*(?:\?[\w.&=%+:-]*)?", re.ASCII)
"""Where one may go after logging in: pages of ours, never to another server."""


def asked(request: Request, cookies: Cookies) -> Response:
    """The form. A link is only used up by the form it fills, not by a program that looks at what it leads to."""
    following, link = request.query_params.get("next", HOME), request.query_params.get("link", "")
    return _form(cookies, following=following, link=link)


async def opened(sessions: Sessions, form: Form, cookies: Cookies) -> Response:
    """The session, or the form again with what was wrong."""
    following, link = form.get("next", HOME), form.get("link", "")
    try:
        held = sessions.open_link(link) if link else await sessions.open(form.get("token", "").strip())
    except (AccessTokenInvalid, LoginLinkInvalid) as refusal:
        return _form(cookies, following=following, wrong=refusal.message, status=refusal.http_status)
    response = RedirectResponse(following if PAGES.fullmatch(following) else HOME, 303)
    cookies.keep(response, held)
    return response


def _form(cookies: Cookies, *, following: str, link: str = "", wrong: str = "", status: int = 200) -> Response:
    key = secrets.token_urlsafe(32)
    shown = following if PAGES.fullmatch(following) else HOME
    response = page(
        "login.html", http_status=status, desk=None, form_key={forms.KEY: key}, following=shown, link=link, wrong=wrong
    )
    cookies.keep_before(response, key)
    return response
