"""How a front comes to a daemon: connects to the one there is, or starts one; imports the standard library alone."""

from __future__ import annotations

import json
import os
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
from agent_graph.system.processes import start_apart
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


def find(arguments: Arguments) -> socket.socket | None:
    """A connection to a daemon that listens; None when there is none."""
    for path in filter(None, (arguments.socket, os.path.join(arguments.folder, hello.SOCKET_NAME))):
        try:
            return connected(path)
        except OSError:
            continue
    return None


def introduce(connection: socket.socket, arguments: Arguments) -> Link | None:
    """Say who we are; None when the daemon is leaving. Raises `Unreached` when it refuses or does not answer."""
    connection.settimeout(ANSWER_S)
    try:
        connection.sendall(hello.line({"version": __version__, **arguments.hello()}))
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
    process = start_apart(  # our own interpreter, and flags as they were given
        arguments.command(), env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    threading.Thread(target=process.wait, name="reaper", daemon=True).start()
    answer, said = _Told(process).report(START_S)
    if said:
        sys.stderr.write(f"{said[-SAID:]}\n")
    if answer is None:
        why = f"it said: {said[-SAID:]}" if said else f"see {_log(arguments)}"
        raise Unreached("DAEMON_UNREACHABLE", f"the daemon of {arguments.folder} did not start; {why}")
    if answer.get("ok") is not True:
        raise _refusal(answer)


class _Told:
    """What a daemon that starts tells, read by a thread: not every system can wait for a pipe and a clock at once."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._output = process.stdout
        self._got = b""
        self._answer: dict[str, Any] | None = None
        self._reading = threading.Thread(target=self._read, name="from a daemon that starts", daemon=True)
        self._reading.start()

    def report(self, seconds: float) -> tuple[dict[str, Any] | None, str]:
        """Its report, None when it ended or took too long without one, and what it said before."""
        self._reading.join(seconds)
        return self._answer, self._got.decode(errors="replace").strip()

    def _read(self) -> None:
        with self._output as output:
            while self._answer is None and (chunk := os.read(output.fileno(), CHUNK)):
                self._got += chunk
                for line in self._got.split(b"\n")[:-1]:
                    if line.startswith(b'{"' + hello.KEY.encode()):
                        self._got = self._got[: self._got.index(line)]
                        self._answer = json.loads(line)
                        break


def _log(arguments: Arguments) -> str:
    return os.path.join(arguments.folder, hello.LOG_NAME)
