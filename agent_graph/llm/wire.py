"""One request to a model host over HTTP: whom to call, what to send along, and every way it can go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import ModelBadReply, ModelUnreachable, Upstream
from agent_graph.llm import refusals
from agent_graph.llm.deadlines import attempt
from agent_graph.llm.hosts import HostAddress
from agent_graph.llm.ndjson import parse_object

if TYPE_CHECKING:
    import httpx2

CONNECT_MS = 10_000
LOOKUP_MS = 10_000
"""How long a listing, or a question about a model, may take; it waits for no generation."""
DRAIN_MS = 100
ERROR_BYTES = 64 * 1024
LOOKUP_BYTES = 16 * 1024 * 1024


class Wire:
    """HTTP to one server, with connections kept.

    `api_key` goes out as a bearer token over https or to a host the user named, and nowhere else. No redirect is
    followed. A loopback host is never called through a proxy; others honour HTTP_PROXY, NO_PROXY and their like.
    """

    def __init__(self, host: HostAddress, *, api_key: str = "", accept: str = "application/json") -> None:
        self._host = host
        self._accept = accept
        self._who = host.url
        self._key = api_key.strip() if host.takes_key else ""
        self._http: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def request(
        self, method: str, path: str, *, model: str, body: JsonObject | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """The answer, with its body still to come; leaving early closes the connection.

        Raises the error of the contract for every status but 200 and for a host that cannot be reached, also while
        the body is read inside.
        """
        http = self._client(model)
        headers = {"accept-encoding": "identity", "accept": self._accept}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["content-type"] = "application/json"
        began = False
        try:
            request = http.build_request(method, self._who + path, headers=headers, content=content)
            response = await http.send(request, stream=True, follow_redirects=False)
            began = True
            try:
                if response.status_code != 200:
                    raise await self._refusal(response, model)
                yield response
            finally:
                await response.aclose()
        except _http_errors() as error:
            raise refusals.transport_error(error, who=self._who, model=model, began=began) from error

    async def lookup(self, method: str, path: str, *, model: str = "") -> dict[str, Any]:
        """The one object that a short question is answered with."""
        limits = CallModel((), timeout_ms=LOOKUP_MS)
        body: JsonObject | None = {"model": model} if method == "POST" else None
        whole = b""
        async with (
            attempt(limits, self._who),
            self.request(method, path, model=model, body=body) as response,
            aclosing(response.aiter_bytes()) as pieces,
        ):
            whole = await bounded(pieces, LOOKUP_BYTES)
        if (value := parse_object(whole)) is None:
            shown = refusals.error_text(whole)
            raise ModelBadReply(f"{self._who} answered with no JSON: {shown}", reason="not_json", body=shown)
        return value

    async def aclose(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def scrubbed(self, error: Upstream) -> Upstream:
        """`error` without the API key, should the host have repeated it."""
        if not self._key or self._key not in f"{error.message}{error.details}":
            return error
        details = {k: v.replace(self._key, "***") if isinstance(v, str) else v for k, v in error.details.items()}
        return type(error)(error.message.replace(self._key, "***"), **details)

    async def _refusal(self, response: httpx2.Response, model: str) -> Upstream:
        try:
            async with aclosing(response.aiter_bytes()) as pieces:
                body = await bounded(pieces, ERROR_BYTES)
        except _http_errors():
            body = b""  # the status says enough
        return refusals.refusal(
            response.status_code,
            body,
            who=self._who,
            model=model,
            retry_after=response.headers.get("retry-after", ""),
            location=response.headers.get("location", ""),
        )

    def _client(self, model: str) -> httpx2.AsyncClient:
        if self._http is None:
            import httpx2

            try:
                self._http = httpx2.AsyncClient(
                    trust_env=not self._host.loopback,
                    timeout=httpx2.Timeout(None, connect=CONNECT_MS / 1000),
                    limits=httpx2.Limits(max_connections=None, max_keepalive_connections=8),
                )
            except (ValueError, ImportError) as error:
                raise ModelUnreachable(
                    f"{self._who} would be called through a proxy this program cannot use"
                    f" (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY; NO_PROXY={self._host.host} leaves it out)",
                    reason="proxy",
                    model=model,
                ) from error
        return self._http


async def bounded(pieces: AsyncIterator[bytes], most: int) -> bytes:
    """What comes, up to `most` bytes; the rest is not waited for."""
    whole = bytearray()
    async for piece in pieces:
        whole += piece
        if len(whole) >= most:
            break
    return bytes(whole[:most])


async def drain(pieces: AsyncIterator[bytes]) -> None:
    """Read the end of a body that said all it had to, so that its connection can serve again.

    A host that neither ends it nor goes on is not waited for, and what goes wrong here matters to nobody.
    """
    with suppress(TimeoutError, *_http_errors()):
        async with asyncio.timeout(DRAIN_MS / 1000):
            await anext(pieces, None)


def _http_errors() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL)
