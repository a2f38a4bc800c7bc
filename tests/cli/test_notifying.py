"""`agent-graph notify` tries who is told, `agent-graph doctor` says how telling goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import TWO_STEPS, Done
from tests.fakes.receiver import SECRET

Cli = Callable[..., Done]
File = Callable[[Any], str]
NOBODY = "http://127.0.0.1:9/secret-path"
"""A port at which nobody listens."""


def keeps(tmp_path: Path) -> str:
    """A program that keeps every notice in a file."""
    code = f"import sys; open({str(tmp_path / 'told.jsonl')!r}, 'a').write(sys.stdin.read() + '\\n')"
    return json.dumps([sys.executable, "-c", code])


def told(tmp_path: Path) -> list[str]:
    return [json.loads(line)["type"] for line in (tmp_path / "told.jsonl").read_text().splitlines()]


def finding(cli: Cli) -> Any:
    found = [one for one in cli("doctor", "--json").json["data"]["findings"] if one["name"] == "notices"]
    return found[0] if found else None


def test_a_test_is_sent_to_everybody_and_each_failure_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENT_GRAPH_NOTIFY_COMMAND", keeps(tmp_path))
    done = cli("notify")
    assert (done.code, done.out) == (0, b"command: delivered\n")
    monkeypatch.setenv("AGENT_GRAPH_NOTIFY_URL", NOBODY)
    monkeypatch.setenv("AGENT_GRAPH_NOTIFY_SECRET", SECRET)
    done = cli("notify", "--json")
    targets = done.json["data"]["targets"]
    assert done.code == 1
    assert (targets["command"]["delivered"], targets["webhook"]["delivered"]) == (True, False)
    assert "secret-path" not in done.out.decode() + done.err
    assert told(tmp_path) == ["test", "test"]


def test_where_nobody_is_told_that_is_said(cli: Cli) -> None:
    done = cli("notify", "--json")
    assert (done.code, done.json["error_code"]) == (2, "SETTING_INVALID")
    assert "notify.url" in done.json["error"]
    assert finding(cli) is None


def test_a_command_that_runs_a_graph_tells_of_its_end_and_the_doctor_of_that(
    cli: Cli, graph_file: File, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENT_GRAPH_NOTIFY_COMMAND", keeps(tmp_path))
    assert cli("run", graph_file(TWO_STEPS), "x").code == 0
    assert told(tmp_path) == ["run.ended"]
    found = finding(cli)
    assert (found["level"], found["said"]) == ("ok", "command: 1 told, 0 waiting, 0 given up")


def test_a_receiver_that_is_away_changes_no_exit_code_and_the_doctor_says_what_waits(
    cli: Cli, graph_file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_GRAPH_NOTIFY_URL", NOBODY)
    monkeypatch.setenv("AGENT_GRAPH_NOTIFY_SECRET", SECRET)
    assert cli("run", graph_file(TWO_STEPS), "x").code == 0
    found = finding(cli)
    assert found["level"] == "warning"
    assert found["said"].startswith("webhook: 0 told, 1 waiting, 0 given up; failed at ")
    assert "cannot be reached" in found["said"]
    assert "secret-path" not in json.dumps(found)
    monkeypatch.delenv("AGENT_GRAPH_NOTIFY_URL")
    assert "the settings name none any more" in finding(cli)["said"]
