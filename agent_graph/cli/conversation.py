"""What a model was asked and what it said, as text a person reads: lines stay lines."""

from __future__ import annotations

from typing import Any

from agent_graph.cli.output import plain

INDENT = " " * 7


def without_words(event: Any) -> Any:
    """An event of a model's answer without the words, which `words` shows."""
    answer = event.get("answer")
    if event.get("type") != "model_answered" or not isinstance(answer, dict):
        return event
    return {**event, "answer": {name: value for name, value in answer.items() if name != "text"}}


def words(event: Any, messages: Any) -> list[str]:
    """What was asked, message by message, and what was said."""
    answer = event.get("answer")
    if event.get("type") != "model_answered" or not isinstance(answer, dict):
        return []
    lines = [line for message in messages or () for line in _block(f"{message['role']}:", message.get("content"))]
    return lines + _block("it said:", answer.get("text"))


def _block(title: str, text: Any) -> list[str]:
    if not isinstance(text, str) or not text:
        return []
    return [INDENT + title, *(f"{INDENT}  {plain(line)}".rstrip() for line in text.splitlines())]
