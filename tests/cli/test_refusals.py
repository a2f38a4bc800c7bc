"""Bad input: one line with its code on stderr, or the envelope on stdout; the exit code; and nothing changed."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_graph import errors
from agent_graph.cli import main as entry
from agent_graph.cli.output import exit_code
from tests.cli.terminal import TWO_STEPS, Done

Cli = Callable[..., Done]
File = Callable[[Any], str]

UNKNOWN = [
    (("runs", "show", "run-x"), "RUN_NOT_FOUND"),
    (("runs", "show", "run-x", "--node", "a"), "RUN_NOT_FOUND"),
    (("events", "run-x"), "RUN_NOT_FOUND"),
    (("events", "run-x", "--follow"), "RUN_NOT_FOUND"),
    (("resume", "run-x"), "RUN_NOT_FOUND"),
    (("cancel", "run-x", "--reason", "why"), "RUN_NOT_FOUND"),
    (("render", "--run", "run-x"), "RUN_NOT_FOUND"),
    (("render", "nothing"), "GRAPH_NOT_FOUND"),
    (("render",), "INVALID_ARGUMENT"),
    (("run", "nothing", "x"), "GRAPH_NOT_FOUND"),
    (("run", "nothing.json", "x"), "INVALID_ARGUMENT"),
    (("validate", "nothing.json"), "INVALID_ARGUMENT"),
    (("run", "nothing", "x", "--param", "a=b"), "INVALID_ARGUMENT"),
    (("run", "parallel_council", "x", "--param", "a"), "INVALID_ARGUMENT"),
    (("run", "parallel_council"), "INVALID_ARGUMENT"),
    (("run", "parallel_council", "x", "--input", "nothing.json"), "INVALID_ARGUMENT"),
    (("templates", "show", "nothing"), "TEMPLATE_NOT_FOUND"),
    (("approvals", "show", "apr-x"), "APPROVAL_NOT_FOUND"),
    (("approvals", "decide", "apr-x", "approve"), "APPROVAL_NOT_FOUND"),
    (("approvals", "decide", "apr-x", "perhaps"), "INVALID_ARGUMENT"),
    (("approvals", "list", "--status", "perhaps"), "INVALID_ARGUMENT"),
    (("runs", "--status", "perhaps"), "INVALID_ARGUMENT"),
    (("run", "\udcff", "x"), "INPUT_INVALID"),
    (("run", "parallel_council", "\udcff"), "INPUT_INVALID"),
]


@pytest.mark.parametrize(("arguments", "code"), UNKNOWN, ids=[" ".join(map(ascii, a)) for a, _ in UNKNOWN])
def test_what_is_not_there_is_refused_in_one_line_or_one_envelope(
    cli: Cli, arguments: tuple[str, ...], code: str
) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith(f"{code}: ")
    assert done.err.count("\n") == 1
    refusal = cli(*arguments, "--json")
    assert (refusal.code, refusal.json["ok"], refusal.json["error_code"]) == (1, False, code)
    assert refusal.err == ""
    assert cli("runs", "--json").json["data"]["runs"] == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"{", "INPUT_INVALID"), (b"", "INPUT_INVALID"), (b'{"a": NaN}', "INPUT_INVALID"), (b"\xff", "INPUT_INVALID"),
        (b'{"a": 1, "a": 2}', "INPUT_INVALID"), (b'"\\ud800"', "INPUT_INVALID"), (b"[" * 10_000, "INPUT_TOO_DEEP"),
        (b'"' + b"x" * 5_000_000 + b'"', "INPUT_TOO_LARGE"), (b"[]", "INPUT_INVALID"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_graph_is_refused(cli: Cli, text: bytes, code: str) -> None:
    for command in (("validate", "-"), ("run", "-", "x")):
        done = cli(*command, stdin=text)
        assert (done.code, done.out) == (1, b"")
        assert done.err.startswith(f"{code}: ")
    assert cli("graphs", "--json").json["data"]["graphs"] == []


def test_an_empty_graph_is_told_what_it_lacks_and_not_run(cli: Cli) -> None:
    done = cli("validate", "-", stdin=b"{}")
    assert (done.code, done.err.splitlines()[-1].split(":")[0]) == (1, "SPEC_INVALID")
    done = cli("run", "-", "x", stdin=b"{}")
    assert (done.code, done.err.split(":")[0]) == (1, "SOURCE_REQUIRED")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "INPUT_INVALID"),
        ("[]", "INPUT_INVALID"),
        ('{"a": 1, "a": 2}', "INPUT_INVALID"),
        ("[" * 999, "INPUT_TOO_DEEP"),
    ],
)
def test_arguments_of_a_tool_that_are_no_object_are_refused(cli: Cli, text: str, code: str) -> None:
    done = cli("call", "graph_list", text)
    assert (done.code, done.json["error_code"]) == (1, code)


def test_a_tool_says_what_is_wrong_with_its_arguments(cli: Cli) -> None:
    assert cli("call", "graph_lst").json["error_code"] == "TOOL_NOT_FOUND"
    assert cli("call", "graph_list", '{"limt": 1}').json["error_code"] == "UNKNOWN_ARGUMENT"
    assert cli("call", "graph_list", '{"limit": 0}').code == 1


def test_an_input_that_is_too_large_or_no_text_is_refused(cli: Cli, graph_file: File) -> None:
    large = cli("run", graph_file(TWO_STEPS), "-", stdin=b"x" * 10_000_000)
    assert (large.code, large.err.split(":")[0]) == (1, "INPUT_TOO_LARGE")
    binary = cli("run", graph_file(TWO_STEPS), "-", stdin=b"\xff\xfe")
    assert (binary.code, binary.err) == (1, "INPUT_INVALID: standard input is not UTF-8\n")
    both = cli("run", graph_file(TWO_STEPS), "x", "--input", graph_file(TWO_STEPS))
    assert (both.code, both.err) == (1, "INVALID_ARGUMENT: give a text or --input, not both\n")
    assert cli("runs", "--json").json["data"]["runs"] == []


def test_a_wrong_setting_is_wrong_usage(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    done = cli("runs", "--data-dir", __file__)
    assert (done.code, done.err.split(":")[0]) == (2, "SETTING_INVALID")
    monkeypatch.setenv("AGENT_GRAPH_LIMITS__NODES", "many")
    assert cli("runs", "--json").json["error_code"] == "SETTING_INVALID"
    assert cli("mcp", "--in-process").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("runs", "--nonsense"), "No such option: --nonsense"), (("runs", "--limit", "0"), "Invalid value"),
        (("cancel", "run-x"), "Missing option '--reason'"), (("nonsense",), "No such command 'nonsense'"),
        (("runs", "showw", "x"), "say `runs`, or `runs show RUN`"), (("run",), "Missing argument"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_is_an_envelope_where_json_is_asked_for(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert said in done.err
    refusal = cli(*arguments, "--json")
    assert (refusal.code, refusal.err) == (2, "")
    assert (refusal.json["ok"], refusal.json["error_code"], refusal.json["retryable"]) == (
        False, "INVALID_ARGUMENT", False,
    )  # fmt: skip
    assert said in refusal.json["error"]


@pytest.mark.parametrize("written", ["nonsense::::", "ftp://gpu", "a b"])
def test_a_host_that_is_none_is_refused_before_anything_is_created(
    in_process: Cli, graph_file: File, data_dir: Path, written: str
) -> None:
    done = in_process("run", graph_file(TWO_STEPS), "x", "--ollama-host", written)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"SETTING_INVALID: --ollama-host is {written!r}: ")
    assert done.err.count("\n") == 1
    assert not data_dir.exists()


def test_a_script_that_is_none_is_refused_before_anything_is_created(
    cli: Cli, graph_file: File, data_dir: Path, script: Path
) -> None:
    script.write_text('{"replies": [{"txt": "no"}]}', encoding="utf-8")
    done = cli("run", graph_file(TWO_STEPS), "x")
    assert (done.code, done.out) == (2, b"")
    assert done.err == (f'SETTING_INVALID: the script {script}, replies/0: has no field "txt"; did you mean "text"?\n')
    assert cli("mcp", "--in-process").code == 2
    assert not data_dir.exists()


def test_a_port_that_is_none_is_remarked_on_at_the_start_by_commands_that_may_ask_a_model(
    cli: Cli, graph_file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "localhost:99999")
    assert "is no port" not in cli("run", graph_file(TWO_STEPS), "x").err  # the script answers
    monkeypatch.delenv("AGENT_GRAPH_SCRIPT")
    gone = cli("cancel", "run-x", "--reason", "why")
    assert gone.err.startswith('OLLAMA_HOST: "99999" is no port, 11434 is used\n')
    assert cli("runs").err == ""


def test_a_folder_of_another_program_exits_with_5_and_is_left_alone(cli: Cli, data_dir: Path) -> None:
    data_dir.mkdir()
    with sqlite3.connect(data_dir / "agent-graph.db") as theirs:
        theirs.execute("CREATE TABLE notes (text)")
    theirs.close()
    before = (data_dir / "agent-graph.db").read_bytes()
    done = cli("runs")
    assert (done.code, done.err.split(":")[0]) == (5, "STORE_FOREIGN")
    assert cli("run", "parallel_council", "x", "--json").json["error_code"] == "STORE_FOREIGN"
    assert (data_dir / "agent-graph.db").read_bytes() == before


def test_the_code_of_every_refusal_has_its_exit_code() -> None:
    assert exit_code("RUN_NOT_FOUND") == exit_code("SPEC_INVALID") == exit_code("APPROVAL_DECISION_NOT_ALLOWED") == 1
    assert exit_code("SETTING_INVALID") == 2
    assert exit_code("MODEL_UNREACHABLE") == exit_code("MODEL_NOT_CONFIGURED") == 4
    assert exit_code("STORE_FOREIGN") == exit_code("DATA_DIR_LOCKED") == exit_code("INTERNAL") == 5
    assert exit_code("MODEL_BAD_REPLY") == exit_code("MODEL_REFUSED") == exit_code("NEVER_HEARD_OF") == 1
    assert errors.RunCapacity.exit_code == exit_code("RUN_CAPACITY") == 1


def test_a_bug_of_ours_is_one_line_and_exits_with_5(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ZeroDivisionError("oh")
    with pytest.raises(SystemExit) as end:
        entry._bug(ZeroDivisionError, wrong, None)
    assert end.value.code == 5
    assert capsys.readouterr().err == (
        "INTERNAL: a bug of ours (ZeroDivisionError: oh); AGENT_GRAPH_LOG=debug shows where\n"
    )
    monkeypatch.setenv("AGENT_GRAPH_LOG", "debug")
    with pytest.raises(SystemExit):
        entry._bug(ZeroDivisionError, wrong, None)
    assert capsys.readouterr().err.startswith("ZeroDivisionError: oh\n")


def test_a_bug_is_told_by_the_hook_of_the_process(cli: Cli) -> None:
    cli("version")
    assert sys.excepthook is not sys.__excepthook__


def test_no_model_anywhere_names_the_ways_out_and_exits_with_4(
    cli: Cli, graph_file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_GRAPH_SCRIPT")
    done = cli("run", graph_file(TWO_STEPS), "x", "--ollama-host", "http://127.0.0.1:9", "--provider", "ollama")
    assert done.code == 4
    assert "MODEL_UNREACHABLE" in done.err
    assert "agent-graph resume" in done.err
    status = cli("status", "--ollama-host", "http://127.0.0.1:9", "--provider", "ollama")
    assert status.code == 0
    assert b"MODEL_UNREACHABLE" in status.out
    assert json.loads(cli("runs", "--json").out)["data"]["runs"][0]["status"] == "interrupted"


def test_a_graph_whose_model_calls_tools_nobody_configured_is_refused_at_its_start(cli: Cli, graph_file: File) -> None:
    node = {"id": "a", "type": "llm", "config": {"prompt": "x", "tools": ["weather/forecast"]}}
    path = graph_file({"name": "g", "entry": "a", "nodes": [node], "edges": [{"from": "a", "to": "END"}]})
    done = cli("run", path, "x")
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith("CONNECTION_NOT_FOUND: ")
    assert "none is configured" in done.err
    assert cli("runs", "--json").json["data"]["runs"] == []
