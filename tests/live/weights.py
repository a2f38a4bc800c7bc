"""The embedded model where it is installed, and the reason to skip where it is not."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_graph.llm.weights import SMOLLM2, installed_weights
from agent_graph.settings import default_data_dir

MODEL = SMOLLM2.model


def models_dir() -> Path:
    """The folder of weights to test with: ``AGENT_GRAPH_WEIGHTS``, else the user's own."""
    named = os.environ.get("AGENT_GRAPH_WEIGHTS")
    return Path(named) if named else default_data_dir() / "models"


def _missing() -> str:
    if find_spec("xllamacpp") is None:
        return "the extra `local` (xllamacpp) is not installed"
    if MODEL not in installed_weights(models_dir()):
        return "the weights are not installed: `agent-graph local setup`"
    return ""


needs_the_embedded_model = [
    pytest.mark.live,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(_missing()), reason=_missing() or "everything is there"),
]
