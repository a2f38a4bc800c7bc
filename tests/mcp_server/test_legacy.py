"""The ancestor's two commands: a client that is configured for them keeps working as it is."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from agent_graph.mcp_server import legacy, proxy
from agent_graph.mcp_server.proxy_arguments import Arguments
from tests.mcp_server.fronts import end, until_up
from tests.mcp_server.process import GONE_S, environment, started

COMMAND = (sys.executable, "-m", "agent_graph.mcp_server.legacy")
DAEMON = "import sys; from agent_graph.mcp_server.legacy import daemon_main; sys.exit(daemon_main())"


@pytest.mark.process
@pytest.mark.timeout(60)
@pytest.mark.parametrize("direct", [True, False], ids=["--direct", "through its daemon"])
async def test_an_old_client_entry_keeps_working(script: Path, tmp_path: Path, direct: bool) -> None:
    flags = ("--base-url", "http://127.0.0.1:9", "--model", "m", "--socket", str(tmp_path / "s"))
    try:
        command = (*COMMAND, *flags, *(("--direct",) if direct else ()))
        async with started(script, tmp_path / "data", command=command) as server:
            await server.ready()
            settings = (await server.tool(1, "graph_status"))["data"]["settings"]
            assert settings["ollama_host"] == {"value": "http://127.0.0.1:9", "source": "flag --ollama-host"}
            assert settings["model"]["value"] == "m"
            assert settings["data_dir"]["value"] == str(tmp_path / "data")
            assert (tmp_path / "s").exists() is not direct
            assert await server.end_of_input() == 0
    finally:
        await asyncio.to_thread(end, tmp_path / "data")
    assert not (tmp_path / "s").exists()


@pytest.mark.process
@pytest.mark.timeout(60)
async def test_its_daemon_is_found_by_the_socket_alone(script: Path, tmp_path: Path) -> None:
    data, place = str(tmp_path / "data"), str(tmp_path / "a.sock")
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DAEMON, "--data-dir", data, "--socket", place, env=environment(script),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        await asyncio.to_thread(until_up, tmp_path / "data")
        elsewhere = {"AGENT_GRAPH_DATA_DIR": str(tmp_path / "elsewhere")}
        async with started(script, command=(*COMMAND, "--socket", place, "-"), env=elsewhere) as client:
            await client.ready()
            assert (await client.tool(1, "graph_status"))["data"]["data_dir"] == data
            assert await client.end_of_input() == 0
        assert not (tmp_path / "elsewhere").exists()
    finally:
        daemon.terminate()
        await asyncio.wait_for(daemon.communicate(), GONE_S)
    assert daemon.returncode == 0


def test_its_flags_become_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Arguments] = []
    monkeypatch.setattr(proxy, "serve", lambda asked: seen.append(asked) or 0)
    assert legacy.main(["--data-dir", str(tmp_path), "--base-url", "http://host:1", "--socket", "/s"]) == 0
    (asked,) = seen
    assert asked.flags == {"data_dir": str(tmp_path), "ollama_host": "http://host:1"}
    assert (asked.folder, asked.socket) == (str(tmp_path), "/s")
    assert asked.command()[-1] == "--socket=/s"


def test_a_setting_that_cannot_be_used_is_a_sentence_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_GRAPH_PROVIDER", "nobody")
    for work in (lambda: legacy.main(["--direct"]), lambda: legacy.daemon_main([])):
        assert work() == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("agent-graph")
        assert "AGENT_GRAPH_PROVIDER" in said.err


def test_a_flag_that_it_never_had_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (legacy.main, legacy.daemon_main):
        with contextlib.suppress(SystemExit):
            command(["--nonsense"])
        assert "usage:" in capsys.readouterr().err
