"""Tokens for who comes in over HTTP: the operator's tools that make, list and revoke them, and what a token is.

A token is ``agt_<id>_<secret>``. It is shown once, when it is made; the store keeps the digest of its secret, which
has 256 random bits, so that a plain digest is as good as a slow one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Annotated, Final, Literal

from pydantic import Field

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import TokenNotFound
from agent_graph.store.base import TokenRow, TokenStore
from agent_graph.tools.keeping import OPERATOR
from agent_graph.tools.params import Params
from agent_graph.tools.registry import Call, tool

PREFIX: Final = "agt_"
DAY_MS: Final = 24 * 60 * 60 * 1000
NOBODY: Final = hashlib.sha256(b"nobody's").hexdigest()
"""Compared with where there is no such token, so that a stranger cannot tell ids that exist by the time it takes."""

Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$",
        description="Who comes in with it: the principal on its runs and votes.",
    ),
]
Scope = Literal["runs:read", "runs:write", "approvals:decide", "admin"]


class CreateParams(Params):
    name: Name
    scopes: Annotated[
        list[Scope], Field(min_length=1, description="runs:read, runs:write, approvals:decide, or admin for all.")
    ]
    days: Annotated[int, Field(ge=0, le=36_500, description="It ends after so many days; 0 = not by itself.")] = 0


@tool(
    "graph_token_create", CreateParams, title="Make a token", toolset=OPERATOR,
    description="""Make a token for who comes in over HTTP. It is shown this once. Example: {"name": "ann", "scopes":
    ["runs:read", "runs:write"]}""",
)  # fmt: skip
async def graph_token_create(call: Call[CreateParams]) -> JsonObject:
    args, deps = call.args, call.deps
    token_id, secret, now_ms = secrets.token_hex(6), secrets.token_urlsafe(32), deps.clock.now_ms()
    expires_at_ms = now_ms + args.days * DAY_MS if args.days else None
    row = TokenRow(token_id, args.name, _digest(secret), tuple(dict.fromkeys(args.scopes)), now_ms, expires_at_ms)
    await deps.store.tokens.add(row)
    return {"token": f"{PREFIX}{token_id}_{secret}", **_view(row, now_ms)}


class ListParams(Params):
    pass


@tool(
    "graph_token_list", ListParams, title="List tokens", toolset=OPERATOR, read_only=True, idempotent=True,
    description="The tokens that were made, without their secrets: whose, which scopes, until when. Example: {}",
)  # fmt: skip
async def graph_token_list(call: Call[ListParams]) -> JsonObject:
    now_ms = call.deps.clock.now_ms()
    return {"tokens": [_view(row, now_ms) for row in await call.deps.store.tokens.list()]}


class RevokeParams(Params):
    name: Annotated[str, Field(min_length=1, max_length=64, description="A token's id, or the principal of several.")]


@tool(
    "graph_token_revoke", RevokeParams, title="Revoke tokens", toolset=OPERATOR, destructive=True, idempotent=True,
    description="""Take back a token by its id, or all tokens of a principal; from now on they let nobody in. Example:
    {"name": "ann"}""",
)  # fmt: skip
async def graph_token_revoke(call: Call[RevokeParams]) -> JsonObject:
    name, store, now_ms = call.args.name, call.deps.store.tokens, call.deps.clock.now_ms()
    if not any(name in (row.token_id, row.principal) for row in await store.list()):
        raise TokenNotFound(f"no token has the id {name!r} or is of a principal of that name", name=name)
    return {"revoked": [_view(row, now_ms) for row in await store.revoke(name, at_ms=now_ms)]}


async def holder(store: TokenStore, token: str, *, now_ms: int) -> TokenRow | None:
    """The token's row while it lets somebody in; None for one that is none, is unknown, revoked or over."""
    token_id, _, secret = token.removeprefix(PREFIX).partition("_")
    row = await store.find(token_id)
    fits = hmac.compare_digest(_digest(secret), NOBODY if row is None else row.digest)
    if row is None or not fits or _status(row, now_ms) != "valid":
        return None
    return row


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _status(row: TokenRow, now_ms: int) -> str:
    if row.damaged:
        return "damaged"
    if row.revoked_at_ms is not None:
        return "revoked"
    return "expired" if row.expires_at_ms is not None and row.expires_at_ms <= now_ms else "valid"


def _view(row: TokenRow, now_ms: int) -> JsonObject:
    return {
        "token_id": row.token_id, "name": row.principal, "scopes": list(row.scopes), "status": _status(row, now_ms),
        "created_at_ms": row.created_at_ms, "expires_at_ms": row.expires_at_ms,
    }  # fmt: skip
