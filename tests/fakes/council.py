"""A council's answers, as a script: what every door's tests run the templates with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WORKSTREAMS: dict[str, Any] = {
    "workstreams": [
        {"id": f"ws{index}", "title": f"Part {index}", "question": f"What speaks for part {index}?"}
        for index in range(3)
    ]
}  # fmt: skip
REPLIES: list[dict[str, Any]] = [
    {"when": "The council must answer", "json": WORKSTREAMS},
    {"when": "Write the report", "text": "The report: go ahead."},
    {"when": "Write a short message", "text": "Dear Dana, it will be late."},
    {"when": "slow", "text": "late, but there", "delay_ms": 30_000},
]
DEFAULT: dict[str, Any] = {"text": "Looks sound."}


def write_ready_answer(path: Path) -> str:
    """A script that answers everything at once; returns what it says."""
    path.write_text(json.dumps({"default": {"text": "there at once"}}), encoding="utf-8")
    return "there at once"


def write_script(path: Path) -> Path:
    """The script as a file for ``AGENT_GRAPH_SCRIPT``."""
    path.write_text(json.dumps({"replies": REPLIES, "default": DEFAULT}), encoding="utf-8")
    return path
