"""A model that answers when it is let go."""

from __future__ import annotations

import asyncio

from agent_graph.core.effects import CallModel
from agent_graph.llm.scripted import ScriptedModel


class Held:
    """`asked` is set once it was asked; it answers once `go` is."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = asyncio.Event()
        self.model = ScriptedModel(self._answer)

    async def _answer(self, call: CallModel) -> str:
        self.asked.set()
        await self.go.wait()
        return "at last"
