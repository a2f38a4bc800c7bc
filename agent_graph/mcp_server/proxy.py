"""`agent-graph mcp`: carries a client's lines to its daemon and back; imports the standard library alone.

One thread reads the client, one writes to the daemon and finds or starts it, one reads the daemon: a cancel passes
while an answer is awaited, and a slow reader slows down nobody but itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from typing import Any, NoReturn

from agent_graph.mcp_server import hello, proxy_facts
from agent_graph.mcp_server.proxy_arguments import Arguments, parse
from agent_graph.mcp_server.proxy_book import Book, Message, refused
from agent_graph.mcp_server.proxy_client import client
from agent_graph.mcp_server.proxy_link import Link, Unreached, reach

MOST_HELD = 64 * 1024 * 1024
"""Bytes of lines that wait for a daemon; then the client waits."""
MOST_LINE = 96 * 1024 * 1024
"""Bytes of a line that are looked at in one piece; a longer one goes to the daemon in pieces, which refuses it."""
LAST_S = 4.0
"""Seconds that the daemon has for what is still to be answered when the client has said its last."""
REVIVALS = 3
REVIVED_S = 60.0
"""A daemon that dies more than `REVIVALS` times in so many seconds is started again only when the client asks."""
LOOK_S = 0.1
"""Seconds between two looks at whether the client still reads, when it has said its last."""
LOST = (
    "the daemon (process {pid}) ended before it had answered: {why}. Whether it did what was asked is not known, and "
    "its runs go on when a daemon is there again: look, then ask again"
)
KILLED = "it was killed or it crashed"


def main(words: list[str]) -> int | None:
    """Serve one client, with the arguments of `agent-graph mcp`; returns the exit code.

    None where they want more than a front.
    """
    arguments = parse(words)
    return None if arguments is None else serve(arguments)


def serve(arguments: Arguments) -> int:
    """Serve one client until it leaves; returns the exit code: that of the last failure to reach a daemon, else 0."""
    try:
        os.fstat(0), os.fstat(1)
    except OSError as error:
        _say(f"standard input and output are needed for the protocol: {error.strerror}")
        return 2
    return Proxy(arguments).run()


class Proxy:
    """One client and, one after another, the daemons that serve it."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[Message | None] = deque()
        """What the client said and no daemon has yet; None at its end."""
        self._held = 0
        self._lost = False
        """The daemon has gone without a word, and another is to go on with its runs."""
        self._revived: deque[float] = deque(maxlen=REVIVALS)
        """When a daemon was last started though nobody had asked."""
        self._link: Link | None = None
        self._book = Book()
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._client = client(room=lambda: self._held <= MOST_HELD)
        self._last_at = 0.0
        """When the client's last word went to the daemon."""
        self._code = 0

    def run(self) -> int:
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _leave)
        threading.Thread(target=self._carry, name="to the daemon", daemon=True).start()
        if self._read():
            self._put(None)
            while not self._over.wait(LOOK_S) and not self._too_late() and self._client.reads():
                pass
        return self._code

    def _too_late(self) -> bool:
        return self._last_at > 0 and time.monotonic() - self._last_at > LAST_S

    # -- the client ------------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Take what the client says until it says no more; False when it is gone altogether."""
        rest = bytearray()
        for chunk in self._client.chunks():
            if not chunk:
                if rest.strip():
                    self._put(Message(bytes(rest)))
                return True
            rest += chunk
            if b"\n" in chunk or len(rest) > MOST_LINE:
                *lines, last = rest.split(b"\n")
                for line in lines:
                    if line.strip():
                        self._put(Message(bytes(line) + b"\n"))
                rest = last
                if len(rest) > MOST_LINE:
                    self._put(Message(bytes(rest)))
                    rest = bytearray()
        return False

    def _put(self, message: Message | None) -> None:
        with self._changed:
            self._queue.append(message)
            self._held += len(message.line) if message is not None else 0
            self._changed.notify_all()

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            with self._writing:
                while view:
                    view = view[os.write(1, view) :]
        except OSError:
            self._finish(0)

    def _finish(self, code: int) -> None:
        self._code = code
        self._over.set()
        self._client.stop()

    # -- to the daemon ---------------------------------------------------------------------------------------------

    def _carry(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._lost:
                    self._changed.wait()
                message, lost = (self._queue.popleft() if self._queue else None), self._lost
                self._lost = False
                end = not lost and message is None
                self._held -= len(message.line) if message is not None else 0
            if end:
                self._end()
                return
            self._forward(message)

    def _forward(self, message: Message | None) -> None:
        """Send it; None only sees to it that there is a daemon."""
        while True:
            with self._lock:
                link = self._link
                if link is not None:
                    if message is not None and not message.answered:
                        self._book.sent(message, link)
                    break
            if not self._reach(message):
                return
        if message is not None and not message.answered:
            _send(link, message.line)

    def _end(self) -> None:
        """The client has said its last."""
        with self._lock:
            link = self._link
            self._last_at = time.monotonic()
        if link is None:
            self._finish(self._code)
        else:
            link.end_of_input()

    def _reach(self, message: Message | None) -> bool:
        """Have a daemon. When there can be none, everything that waits for one is answered with the reason."""
        try:
            link = reach(self._arguments, before_start=lambda: self._answer_early(message))
        except Unreached as reason:
            self._unreached(reason, message)
            return False
        with self._lock:
            again = self._book.told_again()
        for line in again:
            _send(link, line)
        with self._lock:
            self._link = link
            self._code = 0
        threading.Thread(target=self._receive, args=(link,), name="from the daemon", daemon=True).start()
        return True

    def _answer_early(self, message: Message | None) -> None:
        """A daemon takes a second to start, and some clients wait no longer for their first answer."""
        if message is None or message.method != "initialize" or message.answered:
            return
        line = proxy_facts.answer(message.body.get("id"), message.params)
        if line is not None:
            message.answered = True
            with self._lock:
                self._book.remember(message)
            self._write(line)

    def _unreached(self, reason: Unreached, message: Message | None) -> None:
        _say(str(reason))
        with self._changed:
            waiting = [message, *self._queue]
            ended = None in self._queue
            self._queue.clear()
            self._held = 0
            self._code = reason.exit_code
            if ended:
                self._queue.append(None)
        for each in waiting:
            if each is not None and each.id and not each.answered:
                self._write(refused(each.id, reason.code, str(reason).partition(": ")[2], retryable=reason.retryable))
        if reason.code == "SETTING_INVALID":
            self._finish(reason.exit_code)  # it will be no better the next time

    # -- from the daemon -------------------------------------------------------------------------------------------

    def _receive(self, link: Link) -> None:
        why = ""
        rest = bytearray()
        while not why and (chunk := link.receive()):
            rest += chunk
            if b"\n" not in chunk:
                continue
            *lines, last = rest.split(b"\n")
            rest = last
            for line in map(bytes, lines):
                if line.startswith(hello.BYE):
                    why = line[len(hello.BYE) : -1].decode().strip('"')
                    break
                with self._lock:
                    ours = self._book.heard(line)
                if ours:
                    self._write(line + b"\n")
        self._gone(link, why)

    def _gone(self, link: Link, why: str) -> None:
        with self._changed:
            self._link = None
            lost = self._book.lost(link)
            over = self._last_at > 0
            self._lost = not why and not over and self._may_revive()
            self._changed.notify_all()
        link.close()
        text = LOST.format(pid=link.pid, why=why or KILLED)
        for key in lost:
            self._write(refused(key, "DAEMON_LOST", text, retryable=True))
        if over:
            self._finish(self._code)

    def _may_revive(self) -> bool:
        now = time.monotonic()
        if len(self._revived) == REVIVALS and now - self._revived[0] < REVIVED_S:
            return False
        self._revived.append(now)
        return True


def _send(link: Link, line: bytes) -> None:
    try:
        link.send(line)
    except OSError:
        return  # whoever reads the daemon notices that it has gone


def _leave(number: int, frame: Any) -> NoReturn:
    raise SystemExit(0)


def _say(sentence: str) -> None:
    """A remark to the person who reads the client's log."""
    try:
        sys.stderr.write(f"agent-graph: {sentence}\n")
        sys.stderr.flush()
    except (OSError, AttributeError):
        return  # nobody reads it
