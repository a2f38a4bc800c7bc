"""A model that writes while a test watches: the beginning at once, each further piece when it is given one."""

from __future__ import annotations

import asyncio

from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.llm.base import OnDelta
from agent_graph.llm.scripted import ScriptedModel


class Writing(ScriptedModel):
    """A prompt that holds "slowly" is answered piece by piece: `began` is set after the first, `write` gives another,
    `end` is the end of it. All others are answered at once with `answer`."""

    def __init__(self, answer: str = "Looks sound.") -> None:
        super().__init__()
        self.answer = answer
        self.began = asyncio.Event()
        self._pieces: asyncio.Queue[str] = asyncio.Queue()

    def write(self, piece: str) -> None:
        self._pieces.put_nowait(piece)

    def end(self) -> None:
        self._pieces.put_nowait("")

    async def chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        self.calls.append(call)
        text = "Once upon" if "slowly" in str(call.messages[-1]["content"]) else self.answer
        on_delta("text", text)
        if text != self.answer:
            self.began.set()
            while piece := await self._pieces.get():
                on_delta("text", piece)
                text += piece
        return ModelAnswer(text=text, done_reason="stop", model=self.name, performer="server:scripted/scripted",
                           prompt_tokens=3, completion_tokens=4)  # fmt: skip
