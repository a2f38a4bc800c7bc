"""The way to a data folder's owner where no socket can be in the folder; imports the standard library alone.

The owner listens on a port of loopback that the system chose, and writes the port and a token, new each time, into a
private file. A connection begins with 32-byte proofs that both have read it, each an HMAC of the token over what both
have drawn; the token itself is never sent. So a program that got the port after its owner had gone learns nothing and
is believed nothing, and neither is one that connects without the file:

    client:  HELLO, its nonce
    owner:   its nonce, its proof
    client:  its proof, and then what it has to say
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from hmac import compare_digest, digest

HOST = "127.0.0.1"
HELLO = b"agent-graph door 1\n"
NONCE = PROOF = 32
ANSWER_S = 5.0
"""Seconds that whoever listens has for its proof."""
MOST_BYTES = 4_096
CLIENT, OWNER = b"client", b"owner"
"""Who says a proof: one of the two cannot be said by the other."""


def connected(door: str) -> socket.socket:
    """A connection to the owner that wrote the file `door`.

    Raises OSError when nobody listens there, when somebody does who has not read it, and when it cannot be read.
    """
    port, token = read(door)
    made = socket.create_connection((HOST, port), timeout=ANSWER_S)
    try:
        ours = secrets.token_bytes(NONCE)
        made.sendall(HELLO + ours)
        theirs, proof = _exactly(made, NONCE), _exactly(made, PROOF)
        if not compare_digest(proof, proven(token, OWNER, ours, theirs)):
            raise ConnectionRefusedError(f"whoever listens on port {port} is not who wrote {door}")
        made.sendall(proven(token, CLIENT, ours, theirs))
    except OSError:
        made.close()
        raise
    return made


def proven(token: bytes, who: bytes, client: bytes, owner: bytes) -> bytes:
    """What shows that `who` knows the token, for the nonces of this connection."""
    return digest(token, who + client + owner, "sha256")


def read(door: str) -> tuple[int, bytes]:
    """The port and the token. Raises OSError: also for a file that says neither, or is another user's."""
    descriptor = os.open(door, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        me, owner = getattr(os, "geteuid", None), os.fstat(descriptor).st_uid
        if me is not None and owner != me():
            raise PermissionError(f"{door} is another user's")
        try:
            said = json.loads(file.read(MOST_BYTES))
            return int(said["port"]), bytes.fromhex(said["token"])
        except (ValueError, LookupError, TypeError):
            raise ConnectionRefusedError(f"{door} does not say where its owner listens") from None


def listening() -> tuple[socket.socket, bytes, bytes]:
    """A socket that listens on a port nobody else has, the token to be shown there, and what the file is to say.

    Raises OSError.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
        if alone is not None:  # on Windows another program could have the port too
            made.setsockopt(socket.SOL_SOCKET, alone, 1)
        made.bind((HOST, 0))
        made.listen(64)
    except OSError:
        made.close()
        raise
    token = secrets.token_bytes(PROOF)
    said = json.dumps({"port": made.getsockname()[1], "token": token.hex()})
    return made, token, said.encode()


def _exactly(connection: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        chunk = connection.recv(count - len(got))
        if not chunk:
            raise ConnectionResetError("whoever listens there broke off")
        got += chunk
    return got
