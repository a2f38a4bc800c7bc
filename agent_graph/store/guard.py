"""Whether the files of an open store are still those in its folder; may not open, make or mend one.

A file that was removed under a program goes on for that program alone: it writes on, everything goes well, and nothing
of it is there any more when it ends. So a store looks at the names now and then, and when one of them stands for
another file, or for none, it writes nothing more. Reading goes on: what was stored can still be taken out.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Final, TypeAlias

from agent_graph.errors import AgentGraphError, DataDirLocked, StoreCorrupt

BETWEEN_LOOKS_S: Final = 0.1
Identity: TypeAlias = tuple[int, int] | None


class Guard:
    """Looks at the database, its write-ahead log and, where there is one, the file that locks the folder."""

    __slots__ = ("_database", "_files", "_lock", "_lost", "_next")

    def __init__(self, database: Path, *, lock: Path | None = None) -> None:
        self._database = database
        self._lock = lock
        watched = (database, database.with_name(f"{database.name}-wal"), *(() if lock is None else (lock,)))
        self._files = {path: found for path in watched if (found := identity(path)) is not None}
        self._lost: AgentGraphError | None = None
        self._next = 0.0

    def check(self, *, now: bool = False) -> None:
        """Look, unless that was done a moment ago; with `now`, look in any case.

        Raises `StoreCorrupt` when the database or its log was removed or replaced, `DataDirLocked` when the lock was:
        from then on, always.
        """
        at = time.monotonic()
        if self._lost is None and (now or at >= self._next):
            self._next = at + BETWEEN_LOOKS_S
            for path, known in self._files.items():
                if identity(path) != known:
                    self._lost = self._loss_of(path)
        if self._lost is not None:
            raise type(self._lost)(self._lost.message, **self._lost.details)

    def _loss_of(self, path: Path) -> AgentGraphError:
        done = "removed" if identity(path) is None else "replaced by another"
        if path == self._lock:
            return DataDirLocked(
                f"The lock of the data folder, {path}, was {done} while this program had it, so another may own the "
                "folder by now. Nothing more is written here: stop this program and start it again.",
                path=str(path.parent), lock=str(path),
            )  # fmt: skip
        return StoreCorrupt(
            f"{path} was {done} while this program was using it. Nothing more is written, and nothing was made in its "
            "place. What was stored can still be read here and exported; then stop this program, put the file (or a "
            "copy of the database) back, and start again.",
            path=str(self._database), check=f"{path.name} was {done}",
        )  # fmt: skip


def identity(path: Path) -> Identity:
    """What tells a file from every other, whatever its name; None when there is none."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None
