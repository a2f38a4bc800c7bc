"""Tools a model may call within one node: what they are called, and the conversation with their results.

Who makes the calls is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Final

from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, CallModel, CallTool, ModelAnswer, ToolAnswer
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, size
from agent_graph.errors import NodeFailure

MOST_TOOLS: Final = 64
MOST_ROUNDS: Final = 100
MOST_CALLS: Final = 16
"""Calls in one answer of a model."""
TIMEOUT_MS: Final = 120_000
"""Of one call, unless the node allows less."""
_NAME_CHARS: Final = 64
_REFERENCE: Final = re.compile(r"([A-Za-z0-9_.-]{1,64})/(\S{1,128})")
_UNNAMED: Final = re.compile(r"[^A-Za-z0-9_-]")


# -- names ---------------------------------------------------------------------------------------------------------


def issues(references: Sequence[str], *, node_id: str) -> list[Issue]:
    """FIELD_INVALID for what names no tool of a connection, or names one twice."""
    found = []
    for place, text in enumerate(references):
        message = ""
        if not _REFERENCE.fullmatch(text):
            message = "a tool is named as `connection/tool`, a connection as the server's configuration names it"
        elif text in references[:place]:
            message = f"`{text}` is named twice"
        if message:
            found.append(Issue("FIELD_INVALID", message, pointer=pointer("tools", place), node_id=node_id))
    return found


def offered(references: Sequence[str]) -> tuple[JsonObject, ...]:
    """[{name, connection, tool}] of `connection/tool` texts; `name` is what the model is told.

    Hosts take letters, digits, ``_`` and ``-``. Where two tools would have one name the connection goes before it.
    """
    if not references:
        return ()
    split = [text.partition("/")[::2] for text in references]
    plain = [_wire_name(tool) for _, tool in split]
    names: list[str] = []
    for (connection, tool), name in zip(split, plain, strict=True):
        if plain.count(name) > 1:
            name = _wire_name(f"{connection}_{tool}")
        while name in names:
            name = f"{name[: _NAME_CHARS - 4]}_{len(names)}"
        names.append(name)
    return tuple(
        {"name": name, "connection": connection, "tool": tool}
        for name, (connection, tool) in zip(names, split, strict=True)
    )


def _wire_name(tool: str) -> str:
    return _UNNAMED.sub("_", tool)[:_NAME_CHARS]


# -- the conversation ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Talk:
    """A conversation in which tools are called: the next call of the model, and what it waits for."""

    call: CallModel
    most_rounds: int
    most_bytes: int
    rounds: int = 0
    wanted: list[CallTool] = field(default_factory=list)
    """Calls not answered yet, the next one first."""
    ids: set[str] = field(default_factory=set)

    def take(self, answer: Answer) -> bool:
        """Whether `answer` belongs to the tools: then it has become part of the conversation.

        Raises `NodeFailure` MAX_TOOL_ROUNDS_EXCEEDED, MODEL_BAD_REPLY (reason "tools") or VALUE_TOO_LARGE.
        """
        if isinstance(answer, ToolAnswer):
            self._result(answer)
            return True
        if isinstance(answer, ModelAnswer) and answer.tool_calls and self.call.tools:
            self._calls(answer)
            return True
        return False

    def _calls(self, answer: ModelAnswer) -> None:
        self.rounds += 1
        if self.rounds > self.most_rounds:
            names = [str(one.get("name", ""))[:_NAME_CHARS] for one in answer.tool_calls][:MOST_CALLS]
            message = f"the model still calls tools after {self.most_rounds} rounds (max_tool_rounds)"
            raise NodeFailure("MAX_TOOL_ROUNDS_EXCEEDED", message, limit=self.most_rounds, wanted=names)
        if len(answer.tool_calls) > MOST_CALLS:
            message = f"tools: the model wants {len(answer.tool_calls)} tools called at once; {MOST_CALLS} are taken"
            raise NodeFailure("MODEL_BAD_REPLY", message, failure_class="bad_reply", reason="tools")
        self.wanted = [self._wanted(one, place) for place, one in enumerate(answer.tool_calls)]
        said: list[JsonValue] = [
            {"id": one.call_id, "name": one.name, "arguments": one.arguments} for one in self.wanted
        ]
        self._say({"role": "assistant", "content": answer.text, "tool_calls": said})

    def _wanted(self, one: JsonObject, place: int) -> CallTool:
        call_id = str(one.get("id") or "")[:_NAME_CHARS]
        if not call_id or call_id in self.ids:
            call_id = f"call_{self.rounds}_{place}"
        self.ids.add(call_id)
        name = str(one.get("name") or "")[:_NAME_CHARS]
        known: Any = next((tool for tool in self.call.tools if tool["name"] == name), {})
        return CallTool(
            call_id, name, one.get("arguments"), known.get("connection", ""), known.get("tool", ""),
            offered=tuple(str(tool["name"]) for tool in self.call.tools),
            timeout_ms=min(TIMEOUT_MS, self.call.timeout_ms),
        )  # fmt: skip

    def _result(self, answer: ToolAnswer) -> None:
        if self.wanted and self.wanted[0].call_id == answer.call_id:
            asked = self.wanted.pop(0)
            self._say({"role": "tool", "content": answer.text, "call_id": asked.call_id, "name": asked.name})

    def _say(self, message: JsonObject) -> None:
        messages = (*self.call.messages, message)
        texts = sum(len(str(one["content"]).encode()) + size(one.get("tool_calls", [])) for one in messages)
        if texts > self.most_bytes:
            text = f"the prompt with the results of its tools is larger than {self.most_bytes} bytes"
            raise NodeFailure("VALUE_TOO_LARGE", text, limit=self.most_bytes)
        self.call = replace(self.call, messages=messages)
