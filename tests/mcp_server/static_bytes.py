"""What every process must hand out alike, as lines; a program that prints them."""

from __future__ import annotations

import asyncio
import hashlib
import sys

from agent_graph.mcp_server.prompts.serving import published
from agent_graph.mcp_server.resources.serving import resource_templates, static_resources
from agent_graph.mcp_server.resources.statement import read
from agent_graph.tools.deps import Caller
from tests.fakes.opened import opened

STORED = ("graph://graphs", "graph://approvals/pending")
"""Of those that are always listed, the ones that show what is stored."""


async def static_bytes() -> str:
    """A digest of every static resource, then the lists."""
    lines: list[str] = []
    async with opened() as deps:
        for row in static_resources():
            if row.uri not in STORED:
                text = (await read(deps, row.uri, caller=Caller("assistant"))).text
                lines.append(f"{row.uri} {hashlib.sha256(text.encode()).hexdigest()}\n")
    lists = (static_resources(), resource_templates(), published())
    lines += ["".join(row.model_dump_json() for row in listed) + "\n" for listed in lists]
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(static_bytes()))
