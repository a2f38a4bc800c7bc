"""The options a model host takes, in one list, and what is wrong with those of a node; asks no host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent_graph.core.issues import Issue, pointer, suggest
from agent_graph.core.jsonvalue import json_equal

KNOWN: Final = frozenset({
    "num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "typical_p", "tfs_z", "repeat_last_n", "temperature",
    "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau", "mirostat_eta",
    "penalize_newline", "stop", "numa", "num_ctx", "num_batch", "num_gpu", "main_gpu", "low_vram", "vocab_only",
    "use_mmap", "use_mlock", "num_thread", "draft_num_predict",
})  # fmt: skip
"""Ollama's names (api/types.go), the ones it has dropped too; it ignores any other with a line in its own log only."""
OF_FIELD: Final = {"temperature": "temperature", "seed": "seed", "max_tokens": "num_predict"}
"""Fields of a node that are options: the field wins, and both given must agree."""


def merged(options: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """`options` with what the node's fields say."""
    given = {option: getattr(config, name) for name, option in OF_FIELD.items()}
    return {**options, **{option: value for option, value in given.items() if value is not None}}


def issues(options: Mapping[str, Any], config: Any, *, node_id: str) -> list[Issue]:
    """OPTION_UNKNOWN (a warning) for every typing mistake, FIELD_CONFLICT where a field says something else."""
    found = [
        Issue(
            "OPTION_UNKNOWN", f'Ollama knows no option "{name}" and would ignore it{suggest(name, KNOWN)}',
            severity="warning", pointer=pointer("options", name), node_id=node_id,
        )
        for name in options
        if name not in KNOWN
    ]  # fmt: skip
    for name, option in OF_FIELD.items():
        given = getattr(config, name)
        if given is not None and option in options and not json_equal(options[option], given):
            message = f"`{name}` and `options.{option}` name the same thing and differ"
            found.append(Issue("FIELD_CONFLICT", message, pointer=pointer("options", option), node_id=node_id))
    return found
