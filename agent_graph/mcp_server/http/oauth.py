"""Access tokens of an OAuth issuer (RFC 9068): this server is a resource server and issues none.

A token is taken when its signature is of one of the issuer's keys, and it is of that issuer, for this server, and not
over. The keys are read when one is wanted that is not known, and at most once in a while: a stranger's tokens cannot
make this server ask its issuer again and again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any, Final

import jwt

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import AccessTokenInvalid, InsufficientScope, IssuerUnreachable
from agent_graph.settings.http import SCOPES, HttpSettings

log = logging.getLogger(__name__)

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""With a public key alone: nobody who can check a token can make one."""
NEEDED: Final = ("exp", "iss", "aud", "sub")
LEEWAY_S: Final = 30
FETCH_S: Final = 5.0
AGAIN_S: Final = 30.0
"""Seconds between two looks for keys."""
KEYS_S: Final = 3_600.0
"""Seconds after which keys are looked for again all the same: one may have been taken back."""
NOT_VALID: Final = "this token does not let anybody in here"


class Issuer:
    """The one whose tokens are taken."""

    def __init__(self, http: HttpSettings) -> None:
        self._http = http
        self._keys: dict[str, jwt.PyJWK] = {}
        self._looked: float | None = None
        self._looking = asyncio.Lock()

    @property
    def metadata(self) -> JsonObject:
        """What a client reads to find the issuer (RFC 9728)."""
        return {
            "resource": self._http.oauth_resource, "authorization_servers": [self._http.oauth_issuer],
            "scopes_supported": list(SCOPES), "bearer_methods_supported": ["header"],
            "resource_name": "agent-graph",
        }  # fmt: skip

    async def holder(self, token: str) -> tuple[str, frozenset[str]]:
        """(principal, scopes) of a token. Raises `AccessTokenInvalid`, `InsufficientScope`, `IssuerUnreachable`."""
        try:
            claims = jwt.decode(
                token, await self._key(token), algorithms=list(ALGORITHMS), issuer=self._http.oauth_issuer,
                audience=self._http.oauth_resource, leeway=LEEWAY_S, options={"require": list(NEEDED)},
            )  # fmt: skip
        except jwt.PyJWTError as wrong:
            log.info("an issuer's token was refused: %s: %s", type(wrong).__name__, wrong)
            raise AccessTokenInvalid(NOT_VALID, shown=True) from None
        subject, scopes = str(claims["sub"]), _scopes(claims)
        if not subject or not subject.isprintable():
            raise AccessTokenInvalid(NOT_VALID, shown=True)
        for scope in self._http.oauth_scopes:
            if scope not in scopes:
                raise InsufficientScope(f"the token lacks the scope {scope}", scope=scope)
        return f"{self._http.oauth_issuer}#{subject}", scopes

    async def _key(self, token: str) -> jwt.PyJWK:
        """The key a token says it is signed with; the only one, for a token that says nothing."""
        header = jwt.get_unverified_header(token)
        kid = header.get("kid", "")
        found = self._known(kid)
        if found is None or self._older_than(KEYS_S):
            await self._look()
            found = self._known(kid)
        if not self._keys:
            raise IssuerUnreachable("the issuer's keys cannot be read now; try again", retry_after_s=int(AGAIN_S))
        if found is None:
            raise jwt.InvalidKeyError(f"the issuer has no key {kid!r}")
        return found

    def _known(self, kid: object) -> jwt.PyJWK | None:
        if not kid and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(str(kid))

    def _older_than(self, seconds: float) -> bool:
        return self._looked is None or time.monotonic() - self._looked > seconds

    async def _look(self) -> None:
        async with self._looking:
            if not self._older_than(AGAIN_S):
                return
            self._looked = time.monotonic()
            try:
                self._keys = await asyncio.to_thread(_read, self._http.oauth_jwks)
            except (OSError, ValueError, jwt.PyJWTError) as wrong:
                log.warning("the issuer's keys cannot be read from %s: %s", self._http.oauth_jwks, wrong)


def _scopes(claims: dict[str, Any]) -> frozenset[str]:
    """Those of this server that the token holds; issuers write them as one text or as a list."""
    said = claims.get("scope", claims.get("scp", ""))
    names = said.split() if isinstance(said, str) else said if isinstance(said, list) else ()
    return frozenset(SCOPES) & {name for name in names if isinstance(name, str)}


def _read(place: str) -> dict[str, jwt.PyJWK]:
    """The keys that can check a signature, by their id."""
    if "://" in place:
        keys = jwt.PyJWKClient(place, cache_jwk_set=False, timeout=FETCH_S).get_jwk_set()
    else:
        keys = jwt.PyJWKSet.from_dict(json.loads(Path(place).read_text(encoding="utf-8")))
    return {str(key.key_id or ""): key for key in keys.keys if key.public_key_use in (None, "sig")}
