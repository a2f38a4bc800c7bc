"""Tells a program of the operator's: started without a shell, the JSON on its stdin, bounded in time and in output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_graph.connect.base import Letter, Receipt

SAID_BYTES: Final = 2_000
"""Of what it writes to stderr, the so many last bytes are kept; the rest, and stdout, is read and thrown away."""
PIECE: Final = 64 * 1024
HANDED_ON: Final = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "DISPLAY", "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
    "USERPROFILE", "APPDATA", "LOCALAPPDATA",
))  # fmt: skip
"""Variables it is given; keys of model hosts and tokens are not among them."""


class CommandHook:
    """`base.Target` over a process. It delivered what it ends with 0 for."""

    name = "command"

    def __init__(
        self, argv: Sequence[str], *, timeout_ms: int, environ: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._argv = tuple(argv)
        self._timeout_ms = timeout_ms
        self._environ = {
            name: value for name, value in environ.items() if name.upper() in HANDED_ON or name.startswith("LC_")
        }
        self._folder = folder

    async def tell(self, letter: Letter) -> Receipt:
        process: asyncio.subprocess.Process | None = None
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                process = await self._start(letter)
                said = await _converse(process, letter.body)
                code = await process.wait()
        except TimeoutError:
            return Receipt("refused", f"it did not end within {self._timeout_ms} ms, and was killed")
        except (OSError, ValueError) as error:
            return Receipt("away", f"it cannot be started: {getattr(error, 'strerror', None) or error}")
        finally:
            if process is not None:
                await _end(process)
        if code == 0:
            return Receipt("delivered")
        return Receipt("refused", f"it ended with {code}{': ' + said if said else ''}")

    async def aclose(self) -> None:
        """Nothing is kept between two tries."""

    async def _start(self, letter: Letter) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *self._argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self._folder,
            env={**self._environ, "AGENT_GRAPH_NOTICE_ID": letter.letter_id},
            start_new_session=sys.platform != "win32",  # so that what it starts can be ended with it
        )  # fmt: skip


async def _converse(process: asyncio.subprocess.Process, body: bytes) -> str:
    """Hand the letter over and read to the end of both outputs; the end of stderr, on one line."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    _, said, _ = await asyncio.gather(_last(process.stdout), _last(process.stderr), _hand_over(process.stdin, body))
    return " ".join(said.decode(errors="replace").split())[-200:]


async def _hand_over(stdin: asyncio.StreamWriter, body: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a program need not read
        stdin.write(body)
        await stdin.drain()
    stdin.close()


async def _last(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while piece := await stream.read(PIECE):
        kept = (kept + piece)[-SAID_BYTES:]
    return kept


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill it, and what it has started, unless it is over."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    await asyncio.shield(process.wait())
