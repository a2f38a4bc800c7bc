"""A scripted server and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from agent_graph.core.effects import CallModel
from agent_graph.llm.hosts import parse_host
from agent_graph.llm.ollama import OllamaClient
from tests.fakes.ollama_server import OllamaServer


@pytest.fixture
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer() as running:
        yield running


@pytest.fixture
async def client(server: OllamaServer) -> AsyncIterator[OllamaClient]:
    made = OllamaClient(parse_host(server.url), model="fake")
    yield made
    await made.aclose()


class Heard:
    """What `on_delta` was told."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str]] = []

    def __call__(self, kind: str, piece: str) -> None:
        self.pieces.append((kind, piece))

    def of(self, kind: str) -> str:
        return "".join(piece for told, piece in self.pieces if told == kind)


@pytest.fixture
def heard() -> Heard:
    return Heard()


Ask = Callable[..., CallModel]


@pytest.fixture
def ask() -> Ask:
    """A call with one user message."""

    def make(prompt: str = "hello", **fields: object) -> CallModel:
        return CallModel(({"role": "user", "content": prompt},), **({"timeout_ms": 15_000} | fields))  # type: ignore[arg-type]

    return make
