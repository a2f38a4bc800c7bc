"""Small graphs for the tools' tests."""

from __future__ import annotations

from typing import Any


def echo(name: str = "echo", *, prompt: str = "{input}", **more: Any) -> dict[str, Any]:
    """One model call."""
    return {
        "spec_version": "2", "name": name, "entry": "say",
        "nodes": [{"id": "say", "type": "llm", "config": {"prompt": prompt, "output_key": "said"}}],
        "edges": [], "output_key": "said", **more,
    }  # fmt: skip


def keep(name: str = "keep") -> dict[str, Any]:
    """No model call: the state is the input."""
    return {
        "spec_version": "2", "name": name, "entry": "pass",
        "nodes": [{"id": "pass", "type": "passthrough"}], "edges": [],
    }  # fmt: skip


def gated(name: str = "gated", **config: Any) -> dict[str, Any]:
    """A person decides about the input's `draft`."""
    return {
        "spec_version": "2", "name": name, "entry": "gate",
        "nodes": [
            {
                "id": "gate", "type": "human_approval",
                "config": {"prompt": "May this be sent?", "subject_key": "draft", "output_key": "decision", **config},
            },
        ],
        "edges": [], "output_key": "decision",
    }  # fmt: skip
