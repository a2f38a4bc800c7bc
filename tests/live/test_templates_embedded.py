"""The templates on the embedded model: every answer it gives under a schema fits, and every run comes to its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import CallModel
from agent_graph.core.template import instantiate
from agent_graph.engine.templates import get
from agent_graph.llm.embedded import EmbeddedClient
from tests.fakes.played import play
from tests.live.weights import models_dir, needs_the_embedded_model
from tests.sizes import size

pytestmark = needs_the_embedded_model
WITH_REASONS = ("ranked_council", "debate", "review_with_changes", "map_reduce", "extract_then_verify")
"""The result is an object that says how it came about."""
RUNS = size(ci=1, full=20)
QUESTIONS = [
    "Should a small team adopt a monorepo?",
    "How can a bakery sell more bread in winter?",
    "Ist ein Tempolimit auf Autobahnen sinnvoll?",
    "tea or coffee?",
    {"question": "Write {{this}} as JSON: [1, 2]", "urgent": True},
]


@pytest.mark.parametrize(("template_id", "params"), [
    ("council_deliberation", {"max_tokens": 64}),
    ("analysis_pipeline", {"max_tokens": 64, "max_corrections": 1}),
    ("classifier_router", {"max_tokens": 64}),
    ("ranked_council", {"max_tokens": 64, "order_swap": True}),
    ("debate", {"max_tokens": 64}),
    ("review_with_changes", {"max_tokens": 64, "max_rounds": 1}),
    ("map_reduce", {"max_tokens": 64, "max_parts": 2}),
    ("extract_then_verify", {"max_claims": 2}),
])  # fmt: skip
@pytest.mark.parametrize("nth", range(RUNS))
def test_a_small_model_comes_through(template_id: str, params: dict[str, Any], nth: int) -> None:
    compiled = compile_graph(instantiate(get(template_id), "live", params=params))
    assert compiled.graph is not None
    client = EmbeddedClient(models_dir())
    with asyncio.Runner() as loop:

        def ask(_node: str, _nth: int, call: CallModel) -> str:
            return loop.run(client.chat(call, lambda *_: None)).text

        played = play(compiled.graph, QUESTIONS[nth % len(QUESTIONS)], ask)
        loop.run(client.aclose())
    assert isinstance(played.result, dict if template_id in WITH_REASONS else str)
