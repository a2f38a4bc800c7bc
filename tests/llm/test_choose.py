"""Which model is used when none is named, and what is said when there is none."""

from __future__ import annotations

import pytest

from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.errors import ModelNotConfigured
from agent_graph.llm.base import ModelInfo, OnDelta
from agent_graph.llm.choose import Choice, choose_model, missing_model


class Host:
    """A host with the models it was given."""

    provider, host, parallel = "ollama", "http://127.0.0.1:11434", 4

    def __init__(self, *installed: ModelInfo) -> None:
        self.installed = installed

    async def chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        raise AssertionError("no call is made to choose")

    async def models(self) -> tuple[ModelInfo, ...]:
        return self.installed

    async def aclose(self) -> None:
        pass


EMBEDDING = ModelInfo("embed:latest", capabilities=("embedding",))


async def test_a_named_model_is_used_without_asking() -> None:
    assert await choose_model(Host(), "mine") == Choice("mine")


@pytest.mark.parametrize("others", [(), (EMBEDDING,)])
async def test_the_only_model_is_used_without_a_word(others: tuple[ModelInfo, ...]) -> None:
    assert await choose_model(Host(*others, ModelInfo("a:1b"))) == Choice("a:1b")


async def test_the_first_of_several_is_used_with_a_line_that_says_so() -> None:
    choice = await choose_model(Host(EMBEDDING, ModelInfo("b:1b", capabilities=("completion",)), ModelInfo("a:1b")))
    assert choice.model == "b:1b"
    assert choice.note == "no model is named: using b:1b, the first of 2 installed (--model names another)"


@pytest.mark.parametrize("installed", [(), (EMBEDDING,)])
async def test_without_any_model_the_ways_out_are_told(installed: tuple[ModelInfo, ...]) -> None:
    with pytest.raises(ModelNotConfigured) as caught:
        await choose_model(Host(*installed))
    assert caught.value.code == "MODEL_NOT_CONFIGURED"
    for way in ("ollama pull", "--ollama-host", "agent-graph local setup"):
        assert way in caught.value.message
    assert len(caught.value.details["ways_out"]) == 3


def test_a_missing_model_names_a_bounded_number_of_others() -> None:
    error = missing_model("gone", [ModelInfo(f"m{i}") for i in range(25)], host="h")
    assert "m19 and 5 more" in error.message
    assert len(error.details["installed"]) == 25
    assert "no model is installed" in missing_model("gone", [], host="h").message
