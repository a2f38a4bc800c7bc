"""A receiver of notices: an HTTP server that answers as a test wants, and keeps what it was sent."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

SECRET = "a-secret-of-thirty-two-bytes,-or-so"
HANGS = b""
"""An answer that never comes."""


def answer(status: int = 204, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} whatever", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True)
class Post:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def signed_with(self, secret: str) -> bool:
        """As a receiver checks it who has read nothing but the page of the standard."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split(" ")


class Receiver:
    """`answers` are used up in order, then it takes everything (204)."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.answers: deque[bytes] = deque()
        self.endless = False
        """The answer's body does not end."""
        self.written = 0
        self.port = 0
        self.scheme = "http"
        self._heard = asyncio.Condition()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hooks/of-a-secret-path"

    async def heard(self, count: int) -> list[Post]:
        """The first so many posts, once they are there."""
        async with asyncio.timeout(15), self._heard:
            await self._heard.wait_for(lambda: len(self.posts) >= count)
        return self.posts[:count]

    def types(self) -> list[str]:
        return [post.json["type"] for post in self.posts]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            writer.transport.abort() if self.endless else writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._serving.discard(task)

    async def aclose(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers["content-length"]))
            said = self.answers.popleft() if self.answers else answer()
            async with self._heard:
                self.posts.append(Post(first.split(" ")[1], headers, body))
                self._heard.notify_all()
            if said == HANGS:
                await reader.read()  # until the other side goes
            elif self.endless:
                await self._pour(writer)
            else:
                writer.write(said)
                await writer.drain()

    async def _pour(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n")
        while self.written < 10_000_000_000:
            writer.write(b"x" * 65_536)
            self.written += 65_536
            await writer.drain()


@asynccontextmanager
async def receiving(*, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", port, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    receiver.scheme = "https" if tls else "http"
    try:
        yield receiver
    finally:
        server.close()
        await receiver.aclose()
        await server.wait_closed()
