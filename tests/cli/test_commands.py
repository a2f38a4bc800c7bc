"""Every other command: what it prints for people, and that --json is one envelope."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_graph import __version__
from tests.cli.terminal import GATED, TWO_STEPS, Done, environment

Cli = Callable[..., Done]
File = Callable[[Any], str]


def test_the_version_is_told_in_three_ways(cli: Cli) -> None:
    assert cli("--version").out == cli("version").out == f"agent-graph {__version__}\n".encode()
    assert cli("version", "--json").json == {"ok": True, "data": {"version": __version__}}


def test_without_arguments_the_commands_are_listed_and_it_is_wrong_usage(cli: Cli) -> None:
    done = cli()
    assert done.code == 2
    assert "Exit codes: 0 done" in done.out.decode() + done.err
    assert cli("--help").code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("frob",), ("run",), ("cancel", "run-1"), ("templates", "show"), ("templates", "shw", "x"), ("runs", "show"),
        ("runs", "--limit", "0"), ("events", "run-1", "--cursor", "x"), ("approvals", "decide", "apr-1"),
        ("run", "x", "--frob"), ("local", "frob"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_prints_nothing_on_stdout(
    cli: Cli, wrong: tuple[str, ...], data_dir: Path
) -> None:
    done = cli(*wrong)
    assert (done.code, done.out) == (2, b"")
    assert "Error:" in done.err
    assert not data_dir.exists()


def test_a_valid_graph_is_told_to_be_valid_and_nothing_is_stored(cli: Cli, graph_file: File, data_dir: Path) -> None:
    done = cli("validate", graph_file(TWO_STEPS))
    assert done.code == 0
    assert done.out.startswith(b"two_steps is valid: sha256:")
    assert cli("validate", "-", "--json", stdin=json.dumps(TWO_STEPS).encode()).json["data"]["valid"]
    assert not data_dir.exists()


def test_a_wrong_graph_gets_every_finding_with_its_place(cli: Cli, graph_file: File) -> None:
    wrong = {**TWO_STEPS, "entry": "nowhere", "frob": 1}
    done = cli("validate", graph_file(wrong))
    assert (done.code, done.out) == (1, b"")
    assert "SPEC_INVALID: " in done.err.splitlines()[-1]
    assert " at /frob: " in done.err
    assert " at /entry: " in done.err
    told = cli("validate", graph_file(wrong), "--json")
    assert (told.code, told.json["ok"], told.json["data"]["valid"], told.err) == (1, True, False, "")
    assert len(told.json["data"]["issues"]) >= 2


def test_a_graph_is_promoted_and_run_as_a_template(cli: Cli, data_dir: Path) -> None:
    spec = {"name": "plain", "entry": "a", "nodes": [{"id": "a", "type": "passthrough"}], "edges": []}
    assert cli("call", "graph_create", json.dumps({"spec": spec})).code == 0
    made = cli("templates", "promote", "plain", "--as", "passer", "--title", "Hands it on", "--sample", "Hi")
    assert made.code == 0
    assert made.out.decode() == f"passer, version 1: {data_dir / 'templates' / 'passer.json'}\n"
    assert b"passer  " in cli("templates").out
    assert cli("run", "passer", "Hello").out == b"Hello\n"
    assert "TEMPLATE_EXISTS" in cli("templates", "promote", "plain", "--as", "passer").err


def test_templates_are_listed_and_shown_with_their_parameters(cli: Cli, data_dir: Path) -> None:
    assert b"council_deliberation  " in cli("templates").out
    shown = cli("templates", "show", "approval_gated_action").out.decode()
    assert "words" in shown
    assert "agent-graph run approval_gated_action 'Tell the customer" in shown
    (one,) = cli("templates", "show", "parallel_council", "--json").json["data"]["templates"]
    assert one["template_id"] == "parallel_council"
    assert not data_dir.exists()


def test_a_graph_is_drawn_from_a_template_a_file_the_store_and_a_run(
    cli: Cli, graph_file: File, tmp_path: Path
) -> None:
    assert cli("render", "council_deliberation").out.startswith(b"flowchart TD")
    assert cli("render", graph_file(TWO_STEPS), "--direction", "LR").out.startswith(b"flowchart LR")
    run = cli("run", graph_file(TWO_STEPS), "x", "--json").json["run_id"]
    assert cli("render", "two_steps").out.startswith(b"flowchart TD")
    assert b"completed" in cli("render", "--run", run).out
    assert cli("render", "two_steps", "--format", "json").json["entry"] == "draft"
    assert cli("render", "two_steps", "--json").json["data"]["format"] == "mermaid"
    assert cli("render", "two_steps", "-o", str(tmp_path / "graph.mmd")).out == b""
    assert cli("render", "two_steps", "--format", "svg").out.startswith(b"<svg ")
    assert b"draft" in cli("render", "two_steps", "--format", "ascii").out
    assert cli("render", "two_steps", "--format", "png", "-o", str(tmp_path / "graph.png")).out == b""
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    assert cli("render", "two_steps", "--format", "png").out.startswith(b"\x89PNG")
    assert (tmp_path / "graph.mmd").read_text(encoding="utf-8").startswith("flowchart TD")


def test_the_schema_is_printed(cli: Cli) -> None:
    schema = cli("schema").json
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert cli("schema", "--json").json == {"ok": True, "data": schema}


def test_graphs_are_listed(cli: Cli, graph_file: File) -> None:
    assert cli("graphs").out == b"no graphs yet\n"
    cli("run", graph_file(TWO_STEPS), "x")
    assert b"two_steps  2 " in cli("graphs", "--query", "two").out
    assert cli("graphs", "--query", "other", "--json").json["data"]["graphs"] == []


def test_a_run_is_listed_shown_and_told_event_by_event(cli: Cli, graph_file: File) -> None:
    assert cli("runs").out == b"no runs yet\n"
    run = cli("run", graph_file(TWO_STEPS), "x", "--json").json["run_id"]
    assert f"{run}  completed  two_steps".encode() in cli("runs").out
    assert cli("runs", "--status", "failed", "--json").json["data"]["runs"] == []
    shown = cli("runs", "show", run, "--state").out.decode()
    assert "completed" in shown
    assert "result:\na fine answer" in shown
    assert '"draft": "a fine answer"' in shown
    events = cli("events", run)
    assert [line.split()[2] for line in events.out.decode().splitlines()][:3] == [
        "run_accepted", "run_started", "node_started",
    ]  # fmt: skip
    told = cli("events", run, "--json").json["data"]
    assert [event["seq"] for event in told["events"]] == list(range(told["next_cursor"]))
    assert cli("events", run, "--cursor", "2", "--json").json["data"]["events"] == told["events"][2:]
    node = cli("runs", "show", run, "--node", "review", "--json").json["data"]["events"]
    assert [event["type"] for event in node] == ["node_started", "model_answered", "node_finished"]
    text = cli("runs", "show", run, "--node", "review").out.decode()
    assert "model_answered" in text
    assert "\n       user:\n         " in text
    assert "\n       it said:\n         a fine answer\n" in text


def test_following_a_run_that_has_ended_ends_at_once(cli: Cli, graph_file: File) -> None:
    run = cli("run", graph_file(TWO_STEPS), "x", "--json").json["run_id"]
    assert cli("events", run, "--follow").out == cli("events", run).out
    lines = cli("events", run, "--follow", "--json").out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(len(lines)))


def test_following_a_run_that_nobody_drives_says_so(cli: Cli, graph_file: File) -> None:
    run = cli("run", graph_file(GATED), "x", "--json").json["run_id"]
    done = cli("events", run, "-f")
    assert (done.code, done.err) == (0, f"nobody drives {run} (waiting): agent-graph resume {run}\n")


def test_an_approval_is_listed_shown_and_decided_and_the_run_goes_on_here(cli: Cli, graph_file: File) -> None:
    assert cli("approvals", "list").out == b"nothing waits for a decision\n"
    run = cli("run", graph_file(GATED), "x", "--json").json["run_id"]
    (gate,) = cli("approvals", "list", "--json", "--run", run).json["data"]["approvals"]
    assert gate["approval_id"].encode() in cli("approvals", "list").out
    shown = cli("approvals", "show", gate["approval_id"]).out.decode()
    assert "  | May it be done?" in shown
    assert "  | a fine answer" in shown
    assert f"agent-graph approvals decide {gate['approval_id']} approve|reject" in shown
    done = cli("approvals", "decide", gate["approval_id"], "approve", "--note", "go on", "--by", "Ada")
    assert (done.code, done.out) == (0, b"a fine answer\n")
    assert "approve by Ada (cli): go on" in done.err
    assert "approve by Ada (cli): go on" in cli("approvals", "show", gate["approval_id"]).out.decode()
    (vote,) = cli("approvals", "show", gate["approval_id"], "--json").json["data"]["approval"]["votes"]
    assert (vote["via"], vote["decided_by"], vote["decision_note"]) == ("cli", "Ada", "go on")
    late = cli("approvals", "decide", gate["approval_id"], "reject")
    assert (late.code, late.err.split(":")[0]) == (1, "APPROVAL_ALREADY_DECIDED")


def test_a_decision_as_json_is_its_envelope_and_the_run_still_goes_on(cli: Cli, graph_file: File) -> None:
    run = cli("run", graph_file(GATED), "x", "--json").json["run_id"]
    (gate,) = cli("approvals", "list", "--json").json["data"]["approvals"]
    done = cli("approvals", "decide", gate["approval_id"], "approve", "--json")
    assert (done.code, done.json["data"]["approval"]["status"]) == (0, "approved")
    assert cli("runs", "show", run, "--json").json["data"]["status"] == "completed"


def test_a_rejected_run_exits_with_1(cli: Cli, graph_file: File) -> None:
    cli("run", graph_file(GATED), "x")
    (gate,) = cli("approvals", "list", "--json").json["data"]["approvals"]
    done = cli("approvals", "decide", gate["approval_id"], "reject")
    assert (done.code, done.out) == (1, b"")
    assert "APPROVAL_REJECTED: " in done.err


def test_a_run_is_cancelled_and_an_ended_one_is_left_alone(cli: Cli, graph_file: File) -> None:
    run = cli("run", graph_file(GATED), "x", "--json").json["run_id"]
    done = cli("cancel", run, "--reason", "wrong question")
    assert (done.code, done.out, done.err) == (0, b"", f"{run} is cancelled\n")
    assert cli("runs", "show", run, "--json").json["data"]["status"] == "cancelled"
    assert "nothing was changed" in cli("cancel", run, "--reason", "again").err
    resumed = cli("resume", run)
    assert (resumed.code, resumed.err.split(":")[0]) == (1, "RUN_TERMINAL")
    assert cli("cancel", run, "--reason", "again", "--json").json["data"]["terminal"] is True


def test_any_tool_can_be_called(cli: Cli, graph_file: File) -> None:
    made = cli("call", "graph_create", json.dumps({"spec": TWO_STEPS}))
    assert (made.code, made.json["graph_id"]) == (0, "two_steps")
    assert cli("call", "graph_list").json["data"]["graphs"][0]["graph_id"] == "two_steps"
    assert cli("call", "graph_status", "-", stdin=b'{"resource": "templates"}').code == 0
    started = cli("call", "graph_run_start", '{"graph_id": "two_steps", "input": "x"}')
    assert started.json["data"]["status"] == "accepted"
    assert cli("runs", "--json").json["data"]["runs"][0]["status"] == "completed"


def test_the_status_shows_settings_with_their_source(cli: Cli, data_dir: Path) -> None:
    said = cli("status", "--model", "named").out.decode()
    assert str(data_dir) in said
    assert "flag --model" in said
    assert "default named" in said
    assert cli("status", "--json").json["data"]["provider"]["provider"] == "scripted"


def test_the_weights_that_are_there_are_not_fetched_again(
    cli: Cli, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def there(models_dir: Path, *, tell: Callable[[str], None]) -> Path:
        return models_dir / "weights.gguf"

    monkeypatch.setattr("agent_graph.llm.local_setup.fetch_weights", there)
    done = cli("local", "setup", "--json")
    assert (done.code, done.json) == (0, {"ok": True, "data": {"weights": str(data_dir / "models" / "weights.gguf")}})
    assert data_dir.stat().st_mode & 0o777 == 0o700
    assert "is ready" in cli("local", "setup").err
    assert cli("local", "setup", "--data-dir", ":memory:").code == 1


def test_a_reader_that_has_seen_enough_is_no_error_of_ours(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        done = cli("schema")
    assert done.code == 1
    assert done.err == ""


def to(target: str, *arguments: str, data_dir: Path, **more: str) -> tuple[int, bytes, str]:
    """(exit code, stdout, stderr) of a command whose output a shell sends to `target`."""
    shell = f"exec {sys.executable} -m agent_graph {shlex.join(arguments)} {target}"
    done = subprocess.run(["sh", "-c", shell], env=environment(data_dir, **more), capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize(
    ("command", "target", "reason"),
    [
        (("schema",), ">/dev/full", "No space left on device"), (("schema",), ">&-", "it is closed"),
        (("runs", "show", "x", "--json"), ">/dev/full", "No space left on device"),
        (("--help",), ">/dev/full", "No space left on device"),
        (("--version",), ">/dev/full", "No space left on device"),
    ],
)  # fmt: skip
def test_a_full_or_closed_standard_output_is_one_line_and_no_bug(
    data_dir: Path, command: tuple[str, ...], target: str, reason: str
) -> None:
    code, _, said = to(target, *command, data_dir=data_dir)
    assert (code, said) == (1, f"INVALID_ARGUMENT: standard output cannot be written: {reason}\n")


def test_a_run_whose_result_cannot_be_printed_is_kept_and_named(
    cli: Cli, graph_file: File, data_dir: Path, script: Path
) -> None:
    ran = ("run", graph_file(TWO_STEPS), "hi")
    code, _, said = to(">/dev/full", *ran, data_dir=data_dir, AGENT_GRAPH_SCRIPT=str(script))
    (run,) = cli("runs", "--json").json["data"]["runs"]
    assert (code, run["status"]) == (1, "completed")
    assert said.endswith(
        f"The run is kept; read it with: agent-graph runs show {run['run_id']}\n"
        "INVALID_ARGUMENT: standard output cannot be written: No space left on device\n"
    )


def test_without_standard_error_the_result_is_alone_on_standard_output(
    graph_file: File, data_dir: Path, script: Path
) -> None:
    ran = ("run", graph_file(TWO_STEPS), "hi")
    code, out, _ = to("2>&-", *ran, data_dir=data_dir, AGENT_GRAPH_SCRIPT=str(script))
    assert (code, out) == (0, b"a fine answer\n")


def test_a_list_that_a_filter_left_empty_says_so(cli: Cli) -> None:
    assert cli("runs").out == b"no runs yet\n"
    assert cli("runs", "--status", "failed").out == cli("runs", "--graph", "x").out == b"no runs match\n"
    assert cli("graphs").out == b"no graphs yet\n"
    assert cli("graphs", "--query", "x").out == b"no graphs match\n"
    assert cli("approvals", "list").out == b"nothing waits for a decision\n"
    assert cli("approvals", "list", "--status", "rejected").out == b"no approvals match\n"


def test_a_node_that_is_none_is_refused_with_those_there_are(cli: Cli, graph_file: File) -> None:
    cli("run", graph_file(TWO_STEPS), "hi")
    run_id = cli("runs", "--json").json["data"]["runs"][0]["run_id"]
    done = cli("runs", "show", run_id, "--node", "drft")
    assert (done.code, done.out) == (1, b"")
    assert done.err == (
        f"INVALID_ARGUMENT: the graph of {run_id} has no node 'drft'; did you mean \"draft\"? it has draft, review\n"
    )
    assert cli("runs", "show", run_id, "--node", "drft", "--json").json["error_code"] == "INVALID_ARGUMENT"
    assert cli("runs", "show", run_id, "--node", "draft").code == 0


def test_a_name_in_the_wrong_place_is_told_where_it_belongs(cli: Cli) -> None:
    assert "agent-graph runs show run-1" in cli("runs", "run-1").err
    assert "agent-graph templates show parallel_council" in cli("templates", "parallel_council").err
    assert "agent-graph render --run run-1" in cli("render", "run-1").err
    assert "did you mean parallel_council?" in cli("render", "paralel_council").err
    validated = cli("validate", "parallel_council")
    assert (validated.code, "agent-graph render parallel_council --details" in validated.err) == (1, True)


def test_what_happened_before_a_decision_is_not_told_again(cli: Cli, graph_file: File) -> None:
    first = cli("run", graph_file(GATED), "hi")
    assert first.code == 3
    assert "draft  started" in first.err
    approval = cli("approvals", "list", "--json").json["data"]["approvals"][0]["approval_id"]
    done = cli("approvals", "decide", approval, "approve")
    assert (done.code, done.out) == (0, b"a fine answer\n")
    assert "act  started" in done.err
    assert "draft  started" not in done.err


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_a_template_takes_no_empty_text(cli: Cli, text: str) -> None:
    done = cli("run", "council_deliberation", text)
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith("INPUT_INVALID: ")
    assert cli("runs").out == b"no runs yet\n"
