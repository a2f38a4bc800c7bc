"""Reads what a form sends, within a bound, and sees that it is a form of ours."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import Request

from agent_graph.errors import BodyTooLarge, FormNotValid, InputInvalid, OriginNotAllowed

Form: TypeAlias = Mapping[str, str]

KEY: Final = "form_key"
"""The field every form carries."""
FIELDS: Final = 200
MEDIA_TYPE: Final = "application/x-www-form-urlencoded"


async def read_form(request: Request, *, most: int) -> Form:
    """The fields; of one that comes twice the last. Line ends are those of Unix, whatever a browser makes of them.

    Raises `BodyTooLarge`, `InputInvalid`.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise InputInvalid(f"a form is sent as {MEDIA_TYPE}")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise BodyTooLarge(f"a request has at most {most} bytes", limit=most)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    except ValueError:
        raise InputInvalid("this is no form: it cannot be read") from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


def check_origin(request: Request) -> None:
    """Raises `OriginNotAllowed` for a form of a page of another server, also of one that may use ``/mcp``."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    other = origin is not None and origin not in (f"http://{host}", f"https://{host}")
    if other or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise OriginNotAllowed("this form was sent by a page of another server; nothing was changed")


def nonce() -> str:
    """What goes with a form and makes of one that is sent twice one deed."""
    return f"console-{secrets.token_urlsafe(16)}"


def check(form: Form, key: str) -> None:
    """Raises `FormNotValid` when the form does not carry `key`."""
    if not key or not hmac.compare_digest(form.get(KEY, "").encode(), key.encode()):
        raise FormNotValid(
            "this form is not of your session, or of an earlier one; load the page again and send it anew"
        )
