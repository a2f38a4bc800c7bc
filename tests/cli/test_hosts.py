"""Named model hosts as the command line shows them, and a run that names one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Beside
from tests.fakes.ollama_server import OllamaServer

File = Callable[[Any], str]
SECRET = "k-3f9a-never-shown"


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, ollama: OllamaServer) -> None:
    """Two hosts: the scripted Ollama, and one where nobody is."""
    for field, value in (("KIND", "ollama"), ("URL", ollama.url), ("MODEL", "fake")):
        monkeypatch.setenv(f"AGENT_GRAPH_HOSTS__GPU__{field}", value)
    for field, value in (("KIND", "openai_compatible"), ("URL", "http://127.0.0.1:9"), ("KEY_ENV", "AWAY_KEY")):
        monkeypatch.setenv(f"AGENT_GRAPH_HOSTS__AWAY__{field}", value)
    monkeypatch.setenv("AWAY_KEY", SECRET)
    monkeypatch.setenv("AGENT_GRAPH_DEFAULT_HOST", "gpu")


async def test_status_shows_every_host_with_its_state(beside: Beside, named: None, ollama: OllamaServer) -> None:
    shown = await beside("status")
    assert shown.code == 0
    assert b"host away    MODEL_UNREACHABLE: http://127.0.0.1:9/v1 does not answer" in shown.out
    assert f"host gpu     ollama at {ollama.url}, default fake; models: fake:latest (the default)" in shown.out.decode()
    as_json = await beside("status", "--json")
    hosts = json.loads(as_json.out)["data"]["settings"]["hosts"]
    assert hosts["away"]["key"] == "AWAY_KEY, set, not shown"
    assert SECRET.encode() not in shown.out + as_json.out


async def test_doctor_shows_every_host_and_only_the_default_one_decides_the_code(beside: Beside, named: None) -> None:
    shown = await beside("doctor")
    assert shown.code == 0
    assert b"warning  host away MODEL_UNREACHABLE" in shown.out
    assert b"ok       host gpu" in shown.out
    assert SECRET.encode() not in shown.out


async def test_a_model_on_the_command_line_may_name_its_host(
    beside: Beside, named: None, ollama: OllamaServer, graph_file: File
) -> None:
    spec = {"name": "one", "entry": "a", "nodes": [{"id": "a", "type": "llm"}], "edges": [{"from": "a", "to": "END"}]}
    done = await beside("run", graph_file(spec), "hello", "--model", "gpu/fake")
    assert (done.code, done.out.strip()) == (0, b"A fine answer.")
    assert ollama.chats[0].body["model"] == "fake"
    away = await beside("run", graph_file(spec), "hello", "--model", "away/large")
    assert away.code == 4
    assert "MODEL_UNREACHABLE" in away.err
