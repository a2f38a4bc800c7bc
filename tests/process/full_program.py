"""The program whose files may not grow: as `chaos_program`, under a limit on their size that a line lifts.

``python full_program.py BYTES FOLDER OLLAMA_URL TAG...``; a line on standard input lifts the limit.
"""

from __future__ import annotations

import asyncio
import resource
import sys

from tests.process.chaos_program import main, say


def lift(most: int) -> None:
    sys.stdin.readline()
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    say("room")


async def run(limit: int, *arguments: str) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    await asyncio.gather(main(*arguments), asyncio.to_thread(lift, most))


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), *sys.argv[2:]))
