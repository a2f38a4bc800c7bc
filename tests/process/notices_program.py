"""Owns a folder, tells a webhook, and starts a run if told to: ``notices_program.py FOLDER URL SECRET [run]``."""

from __future__ import annotations

import asyncio
import sys

from agent_graph.app import open_app
from agent_graph.settings import load
from tests.fakes.opened import Tools, council
from tests.tools.specs import gated


async def main(folder: str, url: str, secret: str, *begin: str) -> None:
    environ = {"AGENT_GRAPH_NOTIFY_URL": url, "AGENT_GRAPH_NOTIFY_SECRET": secret}
    async with open_app(load({"data_dir": folder}, environ=environ), recover=True, model=council()) as deps:
        if begin:
            tools = Tools(deps)
            await tools.ok("graph_create", spec=gated())
            await tools.run("gated", {"draft": "a letter"})
        await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
