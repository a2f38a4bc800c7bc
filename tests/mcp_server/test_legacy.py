"""The ancestor's two commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent_graph.mcp_server import legacy, serve
from agent_graph.settings import Settings
from tests.mcp_server.process import started

COMMAND = (sys.executable, "-m", "agent_graph.mcp_server.legacy")


@pytest.mark.process
@pytest.mark.timeout(60)
async def test_an_old_client_entry_keeps_working(script: Path, tmp_path: Path) -> None:
    flags = ("--base-url", "http://127.0.0.1:9", "--model", "m", "--socket", str(tmp_path / "s"), "--direct")
    async with started(script, tmp_path / "data", command=(*COMMAND, *flags)) as server:
        await server.ready()
        settings = (await server.tool(1, "graph_status"))["data"]["settings"]
        assert settings["ollama_host"] == {"value": "http://127.0.0.1:9", "source": "flag --ollama-host"}
        assert settings["model"]["value"] == "m"
        assert settings["data_dir"]["value"] == str(tmp_path / "data")
        assert await server.end_of_input() == 0


def test_its_flags_become_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[Settings, bool]] = []

    def main(settings: Settings, *, in_process: bool = False) -> int:
        seen.append((settings, in_process))
        return 0

    monkeypatch.setattr(serve, "main", main)
    assert legacy.main(["--data-dir", str(tmp_path), "--base-url", "http://host:1"]) == 0
    ((settings, in_process),) = seen
    assert (settings.data_dir, settings.ollama_host, in_process) == (tmp_path, "http://host:1", True)


def test_a_setting_that_cannot_be_used_is_a_sentence_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_GRAPH_PROVIDER", "nobody")
    assert legacy.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("agent-graph-mcp: ")
    assert "AGENT_GRAPH_PROVIDER" in said.err


def test_the_daemon_says_in_one_sentence_that_it_is_not_there_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert legacy.daemon_main(["--data-dir", "x"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"{legacy.NO_DAEMON}\n")
    assert said.err.count("\n") == 1
