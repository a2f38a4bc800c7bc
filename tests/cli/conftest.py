"""A data folder, a script in place of a model, and the command line over them."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_graph.cli.main import main
from tests.cli.terminal import Done, Terminal
from tests.fakes.ollama_server import OllamaServer

SCRIPT = {
    "replies": [
        {"when": "EVIL", "text": "\x1b]0;owned\x07\x1b[2Jgone\u202e", "chunks": 3},
        {"when": "LOST", "error": {"code": "MODEL_UNREACHABLE", "message": "nobody is there"}},
        {"when": "BAD", "error": {"code": "MODEL_BAD_REPLY", "message": "it rambles"}},
        {"when": "REFUSED", "error": {"code": "MODEL_REFUSED", "message": "not this one"}},
        {"when": "ABSENT", "error": {"code": "MODEL_NOT_FOUND", "message": "there is no such model"}},
        {"when": "JSON", "json": {"verdict": "go", "why": "b\u00fcrgerlich"}},
    ],
    "default": {"text": "a fine answer", "chunks": 2},
}


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT), encoding="utf-8")
    return path


@pytest.fixture
def graph_file(tmp_path: Path) -> Callable[[Any], str]:
    """Writes a graph to a file; its path."""

    def write(body: Any) -> str:
        path = tmp_path / "graph.json"
        path.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
        return str(path)

    return write


Cli = Callable[..., Done]


@pytest.fixture
def cli(in_process: Cli, monkeypatch: pytest.MonkeyPatch, script: Path) -> Cli:
    """Runs a command in this process, its model scripted; `stdin` is what is piped in."""
    monkeypatch.setenv("AGENT_GRAPH_SCRIPT", str(script))
    return in_process


Beside = Callable[..., Awaitable[Done]]


@pytest.fixture
def beside(in_process: Cli, monkeypatch: pytest.MonkeyPatch, ollama: OllamaServer) -> Beside:
    """Runs a command in this process beside those of `terminal`, its model the scripted Ollama server."""
    monkeypatch.setenv("OLLAMA_HOST", ollama.url)
    monkeypatch.setenv("AGENT_GRAPH_MODEL", "fake")

    async def run(*arguments: str, stdin: bytes | None = b"") -> Done:
        return await asyncio.to_thread(in_process, *arguments, stdin=stdin)

    return run


@pytest.fixture
def in_process(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], data_dir: Path
) -> Iterator[Cli]:
    monkeypatch.setenv("AGENT_GRAPH_DATA_DIR", str(data_dir))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    root = logging.getLogger()
    before, level = [*root.handlers], root.level

    def run(*arguments: str, stdin: bytes | None = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["agent-graph", *arguments])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsysbinary.readouterr()
        try:
            code = main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        said = capsysbinary.readouterr()
        return Done(code, said.out, said.err.decode())

    yield run
    root.handlers[:] = before
    root.setLevel(level)


@pytest.fixture
async def ollama() -> AsyncIterator[OllamaServer]:
    async with OllamaServer() as running:
        yield running


@pytest.fixture
async def terminal(data_dir: Path, ollama: OllamaServer) -> AsyncIterator[Terminal]:
    """Commands as processes, whose model is the scripted Ollama server."""
    opened = Terminal(data_dir, OLLAMA_HOST=ollama.url, AGENT_GRAPH_MODEL="fake")
    yield opened
    await opened.aclose()
