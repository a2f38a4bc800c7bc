"""Reads the file of scripted replies that ``AGENT_GRAPH_SCRIPT`` names.

::

    {
      "replies": [
        {"when": "analyst 1", "text": "Looks sound.", "chunks": 3},
        {"when": "coordinator", "json": {"verdict": "go"}, "thinking": "let me see"},
        {"when": "slow", "text": "done", "delay_ms": 50, "prompt_tokens": 12, "completion_tokens": 1},
        {"when": "weather", "tool_calls": [{"name": "forecast", "arguments": {"city": "Oslo"}}], "times": 1},
    {"result": "rain", "text": "Take an umbrella."},
    {"when": "flaky", "error": {"code": "MODEL_UNREACHABLE", "message": "gone"}, "times": 1}
      ],
      "default": {"text": "A fine answer."}
    }

The fields are those of `scripted.Reply`. A reply has one of ``text``, ``json``, ``error`` and ``tool_calls``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent_graph.errors import SettingInvalid

ANSWERS = ("text", "json", "error", "tool_calls")
LEAST = {"chunks": 1, "times": 0, "delay_ms": 0, "chunk_delay_ms": 0, "prompt_tokens": 0, "completion_tokens": 0,
         "images": 0}  # fmt: skip
TYPE_NAMES = {str: "a text", int: "a whole number", dict: "an object", list: "a list"}


def read_script(
    path: Path, *, fields: Mapping[str, type], codes: frozenset[str]
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The replies, and the default where there is one, each checked against `fields` and the error `codes`.

    Raises `SettingInvalid` with one sentence that names the file and the place in it.
    """
    reader = _Reader(path, fields, codes)
    try:
        script = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise reader.wrong("", f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise reader.wrong("", f"is not JSON: {error}") from error
    if not isinstance(script, dict):
        raise reader.wrong("", 'must be an object with "replies"')
    reader.known(script, ("replies", "default"), "")
    replies = script.get("replies", [])
    if not isinstance(replies, list):
        raise reader.wrong("replies", "must be a list")
    if not replies and "default" not in script:
        raise reader.wrong("", 'has neither "replies" nor a "default"')
    default = reader.reply(script["default"], "default") if "default" in script else None
    return [reader.reply(each, f"replies/{index}") for index, each in enumerate(replies)], default


class _Reader:
    def __init__(self, path: Path, fields: Mapping[str, type], codes: frozenset[str]) -> None:
        self._path = path
        self._fields = fields
        self._codes = codes

    def wrong(self, place: str, what: str) -> SettingInvalid:
        where = f"{self._path}, {place}:" if place else f"{self._path}"
        return SettingInvalid(f"the script {where} {what}", setting="AGENT_GRAPH_SCRIPT", place=place)

    def known(self, value: dict[str, Any], names: tuple[str, ...], place: str) -> None:
        for name in value:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f'; did you mean "{near[0]}"?' if near else f"; it may have {', '.join(names)}"
                raise self.wrong(place, f'has no field "{name}"{hint}')

    def reply(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(place, "must be an object")
        self.known(value, tuple(self._fields), place)
        for name, given in value.items():
            kind = self._fields[name]
            if not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
                raise self.wrong(place, f'"{name}" must be {TYPE_NAMES[kind]}')
            if isinstance(given, int) and name in LEAST and given < LEAST[name]:
                raise self.wrong(place, f'"{name}" must be at least {LEAST[name]}')
        if sum(name in value for name in ANSWERS) != 1:
            raise self.wrong(place, 'must have one of "text", "json", "error" and "tool_calls"')
        for wanted in value.get("tool_calls", ()):
            if not isinstance(wanted, dict) or not isinstance(wanted.get("name"), str):
                raise self.wrong(place, 'each of "tool_calls" must be an object with a "name"')
        if "error" in value and value["error"].get("code") not in self._codes:
            raise self.wrong(place, f"the error's code must be one of {', '.join(sorted(self._codes))}")
        return value
