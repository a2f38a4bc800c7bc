"""Where other processes of this user come in to the owner of a data folder: a socket in it, or a port on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Callable
from hmac import compare_digest
from pathlib import Path
from typing import Final, TypeAlias

from agent_graph.errors import AgentGraphError, StoreUnusable
from agent_graph.system.files import PRIVATE_FILE, make_private, replace
from agent_graph.tools import socket_address, socket_loopback, socket_wire

log = logging.getLogger(__name__)

Connected: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]
"""Called in one go with the connection, so that none is ever without its task."""
PROOF_S: Final = 10.0
"""Seconds a connection over loopback has for its proof."""
UNPROVEN: Final = 64
"""Connections whose proof may be still to come; one more, and the one that has kept silent for longest is left."""


class Door:
    """A door that takes connections, which wait until it is open; made by `door`."""

    def __init__(self, path: Path, listener: socket.socket, *, token: bytes = b"") -> None:
        """`token` is what has to be known over loopback; without one `path` is a socket."""
        listener.setblocking(False)
        self._path = path
        self._listener = listener
        self._token = token
        self._server: asyncio.Server | None = None
        self._unproven: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    async def open(self, connected: Connected, *, limit: int) -> None:
        """Hand over each connection of a process that may come in; `limit` is that of its reader, in bytes."""

        def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._come(reader, writer, connected)

        let_in = come if self._token else own_users(connected)
        self._server = await asyncio.start_server(let_in, sock=self._listener, limit=limit)

    def close(self) -> None:
        """Let nobody in any more; who is in stays."""
        if self._server is not None:
            self._server.close()
        self._listener.close()
        for task in self._unproven.values():
            task.cancel()
        with contextlib.suppress(OSError, AgentGraphError):
            if self._token:
                Path(socket_address.door_of(self._path)).unlink(missing_ok=True)
            else:
                socket_wire.remove(self._path)

    def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connected: Connected) -> None:
        if len(self._unproven) >= UNPROVEN:
            silent = next(iter(self._unproven))
            self._unproven.pop(silent).cancel()
            silent.transport.abort()
        task = asyncio.create_task(self._prove(reader, writer, connected))
        self._unproven[writer] = task
        task.add_done_callback(lambda _: self._unproven.pop(writer, None))

    async def _prove(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connected: Connected) -> None:
        proven = False
        try:
            async with asyncio.timeout(PROOF_S):
                proven = await self._knows(reader, writer)
        except (OSError, asyncio.IncompleteReadError):  # a time-out is one
            log.debug("somebody came through loopback and proved nothing")
        finally:
            if not proven:
                writer.transport.abort()
        if proven:
            connected(reader, writer)

    async def _knows(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whoever connected has read the file; we show that we wrote it, to whoever speaks its first words."""
        hello = socket_loopback.HELLO
        if await reader.readexactly(len(hello)) != hello:
            return False
        theirs, ours = await reader.readexactly(socket_loopback.NONCE), secrets.token_bytes(socket_loopback.NONCE)
        writer.write(ours + socket_loopback.proven(self._token, socket_loopback.OWNER, theirs, ours))
        await writer.drain()
        proof = await reader.readexactly(socket_loopback.PROOF)
        return compare_digest(proof, socket_loopback.proven(self._token, socket_loopback.CLIENT, theirs, ours))


def own_users(connected: Connected) -> Connected:
    """As `connected`, for connections of this user's processes; any other's is broken off."""

    def let_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if socket_address.is_same_user(writer.get_extra_info("socket")):
            connected(reader, writer)
        else:
            writer.transport.abort()

    return let_in


def door(path: Path, *, loopback: bool = False) -> Door:
    """A new door in place of one a dead owner left; call it only while holding the folder's lock.

    It is a socket at `path`, or a port on `loopback` where that is wanted or no such socket can be. Raises
    `StoreUnusable`.
    """
    found_at = Path(socket_address.found_at(path, loopback=loopback))
    if found_at == path:
        made = Door(path, socket_wire.listening(path))
        Path(socket_address.door_of(path)).unlink(missing_ok=True)
    else:
        socket_wire.remove(path)
        made = _through_loopback(path, found_at)
    return made


def _through_loopback(path: Path, found_at: Path) -> Door:
    try:
        listener, token, said = socket_loopback.listening()
        try:
            _write(found_at, said)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise StoreUnusable(f"{found_at} cannot be made: {error.strerror or error}", path=str(found_at)) from error
    return Door(path, listener, token=token)


def _write(file: Path, said: bytes) -> None:
    """Whole and private from the first moment. Raises OSError."""
    draft = file.with_suffix(".door.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as opened:
        make_private(descriptor)
        opened.write(said)
    replace(draft, file)
