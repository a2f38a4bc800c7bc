"""Tells a URL: one signed POST, no redirect followed, nothing of the answer read but its status."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from agent_graph import __version__
from agent_graph.connect.base import Letter, Receipt
from agent_graph.connect.signing import signature_headers

if TYPE_CHECKING:
    import httpx2

MOST_WAIT_MS: Final = 3_600_000
"""The longest that a receiver's ``Retry-After`` is obeyed."""
_PASSING: Final = frozenset({408, 425, 429})
"""Refusals of a receiver that is there and takes nothing just now."""


class Webhook:
    """`base.Target` over HTTP. The address is the operator's; a proxy is asked only for what is not on this machine."""

    name = "webhook"

    def __init__(
        self, url: str, *, keys: Sequence[bytes], timeout_ms: int, loopback: bool, ca_file: Path | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._url = url
        self._keys = tuple(keys)
        self._timeout_ms = timeout_ms
        self._loopback = loopback
        self._ca_file = ca_file
        self._now_s = now_s
        self._http: httpx2.AsyncClient | None = None

    async def tell(self, letter: Letter) -> Receipt:
        import httpx2

        headers = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"agent-graph/{__version__}",
            **signature_headers(letter.letter_id, letter.body, keys=self._keys, at_s=int(self._now_s())),
        }
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                http = self._client()
                request = http.build_request("POST", self._url, headers=headers, content=letter.body)
                response = await http.send(request, stream=True, follow_redirects=False)
                await response.aclose()  # however much would follow, nobody reads it
        except TimeoutError:
            return Receipt("away", f"it did not answer within {self._timeout_ms} ms")
        except (httpx2.TransportError, httpx2.InvalidURL, ssl.SSLError, OSError) as error:
            return Receipt("away", self._why(error))
        return self._judge(response.status_code, response.headers.get("retry-after", ""))

    async def aclose(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _judge(self, status: int, retry_after: str) -> Receipt:
        if 200 <= status < 300:
            return Receipt("delivered")
        wait_ms = retry_after_ms(retry_after, now_s=self._now_s())
        if 300 <= status < 400:
            return Receipt("refused", f"it answered {status}: a redirect is not followed; set the address it leads to")
        if status >= 500 or status in _PASSING:
            return Receipt("away", f"it answered {status}", wait_ms)
        return Receipt("refused", f"it answered {status}", wait_ms)

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            import httpx2

            trusted: bool | ssl.SSLContext = True
            if self._ca_file is not None:
                trusted = ssl.create_default_context(cafile=str(self._ca_file))
            self._http = httpx2.AsyncClient(
                verify=trusted, trust_env=not self._loopback, timeout=httpx2.Timeout(self._timeout_ms / 1000),
                limits=httpx2.Limits(max_connections=1, max_keepalive_connections=0),
            )  # fmt: skip
        return self._http

    def _why(self, error: Exception) -> str:
        """Without the address: its path may be a secret of its own."""
        said = str(error) or type(error).__name__
        for part in {self._url, urlsplit(self._url).path, urlsplit(self._url).query} - {"", "/"}:
            said = said.replace(part, "...")
        return f"it cannot be reached: {said[:200]}"


def retry_after_ms(text: str, *, now_s: float) -> int:
    """What ``Retry-After`` says, seconds or a date, in milliseconds from now, bounded; 0 for nothing that can be
    read."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]) * 1000, MOST_WAIT_MS)
    try:
        left_s = parsedate_to_datetime(text).timestamp() - now_s
    except (ValueError, OverflowError):
        return 0
    return max(0, min(int(left_s * 1000), MOST_WAIT_MS))
