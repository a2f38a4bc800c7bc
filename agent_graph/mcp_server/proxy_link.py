"""How a front comes to a daemon: connects to the one there is, or starts one; imports the standard library alone."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from agent_graph import __version__
from agent_graph.mcp_server import hello
from agent_graph.mcp_server.proxy_arguments import Arguments, environment
from agent_graph.tools.socket_address import connected

START_S = 30.0
"""Seconds in which a daemon has to be there; one that waits for a folder gives up sooner, and says for whom."""
ANSWER_S = 15.0
"""Seconds a daemon has for its answer to the first line: longer than all it does before it answers anybody."""
BETWEEN_LOOKS_S = 0.05
CHUNK = 256 * 1024
SAID = 2_000
"""Characters of what a daemon printed that are shown when it did not start."""


class Unreached(Exception):
    """There is no daemon to talk to; `code` is one of `agent_graph.errors`."""

    def __init__(self, code: str, message: str, *, retryable: bool = True, exit_code: int = 5) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.retryable = retryable
        self.exit_code = exit_code


class Link:
    """One connection to a daemon that has welcomed this client."""

    def __init__(self, connection: socket.socket, rest: bytes, pid: int) -> None:
        self._connection = connection
        self._rest = rest
        self.pid = pid

    def send(self, line: bytes) -> None:
        """Raises OSError when the daemon has gone."""
        self._connection.sendall(line)

    def end_of_input(self) -> None:
        """Tell the daemon that the client says no more; what it answers still comes."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has gone: then it knows

    def receive(self) -> bytes:
        """What comes next, b"" at the end."""
        rest, self._rest = self._rest, b""
        try:
            return rest or self._connection.recv(CHUNK)
        except OSError:
            return b""

    def close(self) -> None:
        self._connection.close()


def reach(arguments: Arguments, *, before_start: Callable[[], None]) -> Link:
    """The daemon of the client's data folder, started if need be, which takes a second and is told by `before_start`.
    Raises `Unreached`."""
    deadline = time.monotonic() + START_S
    while True:
        connection = find(arguments)
        if connection is None:
            before_start()
            start(arguments)
            connection = find(arguments)
        link = None if connection is None else introduce(connection, arguments)
        if link is not None:
            return link
        if time.monotonic() >= deadline:
            raise Unreached("DAEMON_UNREACHABLE", f"no daemon came up within {START_S:.0f} s; see {_log(arguments)}")
        time.sleep(BETWEEN_LOOKS_S)  # the one there was is leaving


def find(arguments: Arguments) -> tuple[socket.socket, str] | None:
    """A connection to a daemon that listens, and the token to show it; None when there is none."""
    for path in filter(None, (arguments.socket, os.path.join(arguments.folder, hello.SOCKET_NAME))):
        try:
            if hasattr(socket, "AF_UNIX"):
                return connected(path), ""
            return _through_loopback(arguments.folder)
        except (OSError, ValueError, KeyError):
            continue
    return None


def _through_loopback(folder: str) -> tuple[socket.socket, str]:
    """As `find`, on a system without sockets in folders (not tried)."""
    with open(os.path.join(folder, hello.DOOR_NAME), encoding="ascii") as file:
        door = json.load(file)
    return socket.create_connection(("127.0.0.1", int(door["port"])), timeout=5.0), str(door["token"])


def introduce(found: tuple[socket.socket, str], arguments: Arguments) -> Link | None:
    """Say who we are; None when the daemon is leaving. Raises `Unreached` when it refuses or does not answer."""
    connection, token = found
    connection.settimeout(ANSWER_S)
    body: dict[str, Any] = {"version": __version__, **arguments.hello()}
    if token:
        body["token"] = token
    try:
        connection.sendall(hello.line(body))
        answer, rest = _answer(connection)
    except TimeoutError:
        connection.close()
        message = f"the daemon of {arguments.folder} does not answer: it is stopped or stuck; see {_log(arguments)}"
        raise Unreached("DAEMON_UNREACHABLE", message) from None
    except (OSError, ValueError):
        connection.close()
        return None
    if answer.get("ok") is not True:
        connection.close()
        if answer.get("again"):
            return None
        raise _refusal(answer)
    connection.settimeout(None)
    return Link(connection, rest, int(answer.get("pid", 0)))


def _answer(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """The first line and what came after it. Raises OSError, ValueError."""
    got = b""
    while b"\n" not in got:
        chunk = connection.recv(CHUNK)
        if not chunk or len(got) > hello.MOST_BYTES:
            raise ConnectionResetError
        got += chunk
    line, _, rest = got.partition(b"\n")
    answer = json.loads(line)
    if not isinstance(answer, dict):
        raise ValueError(answer)
    return answer, rest


def _refusal(answer: dict[str, Any]) -> Unreached:
    return Unreached(
        str(answer.get("error_code", "DAEMON_UNREACHABLE")), str(answer.get("error", "it gave no reason")),
        retryable=bool(answer.get("retryable")), exit_code=int(answer.get("exit", 5)),
    )  # fmt: skip


# -- starting one --------------------------------------------------------------------------------------------------


def start(arguments: Arguments) -> None:
    """Start a daemon and wait until it listens, or another does. Raises `Unreached` when it says why it cannot."""
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":  # not tried
        options = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(  # noqa: S603  (our own interpreter, and flags as they were given)
        arguments.command(), env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, **options,
    )  # fmt: skip
    threading.Thread(target=process.wait, name="reaper", daemon=True).start()
    assert process.stdout is not None
    with process.stdout as told:
        answer, said = _report(told.fileno(), time.monotonic() + START_S)
    if said:
        sys.stderr.write(f"{said[-SAID:]}\n")
    if answer is None:
        why = f"it said: {said[-SAID:]}" if said else f"see {_log(arguments)}"
        raise Unreached("DAEMON_UNREACHABLE", f"the daemon of {arguments.folder} did not start; {why}")
    if answer.get("ok") is not True:
        raise _refusal(answer)


def _report(told: int, deadline: float) -> tuple[dict[str, Any] | None, str]:
    """What a daemon that starts tells: its report, None when it ended or took too long without one, and the rest."""
    got = b""
    while True:
        for line in got.split(b"\n")[:-1]:
            if line.startswith(b'{"' + hello.KEY.encode()):
                return json.loads(line), got[: got.index(line)].decode(errors="replace").strip()
        if sys.platform != "win32" and not select.select([told], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None, got.decode(errors="replace").strip()
        chunk = os.read(told, CHUNK)
        if not chunk:
            return None, got.decode(errors="replace").strip()
        got += chunk


def _log(arguments: Arguments) -> str:
    return os.path.join(arguments.folder, hello.LOG_NAME)
