"""`run`: what comes out where, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import GATED, TWO_STEPS, Done, asks, gate, spec

Cli = Callable[..., Done]
File = Callable[[Any], str]


def run_id_of(done: Done) -> str:
    return next(word for word in done.err.split() if word.startswith("run-"))


def echo(prompt: str = "{input}", **more: Any) -> Any:
    return spec("echo", asks("say", prompt), edges=[("say", "END")], **more)


def passes(**more: Any) -> Any:
    """A graph whose result is its input."""
    return spec("passes", {"id": "on", "type": "passthrough"}, edges=[("on", "END")], **more)


def test_a_template_is_run_and_only_its_result_is_on_stdout(cli: Cli) -> None:
    done = cli("run", "plan_critique_refine", "Should we?")
    assert (done.code, done.out) == (0, b"a fine answer\n")
    assert "refine  done" in done.err


def test_a_graph_in_a_file_is_stored_under_its_name_and_run(cli: Cli, graph_file: File) -> None:
    assert cli("run", graph_file(TWO_STEPS), "hello").out == b"a fine answer\n"
    assert cli("run", "two_steps", "again").code == 0
    (stored,) = cli("graphs", "--json").json["data"]["graphs"]
    assert stored["graph_id"] == "two_steps"


def test_a_changed_file_is_a_new_version_and_the_old_run_stays_with_the_old_one(cli: Cli, graph_file: File) -> None:
    first = cli("run", graph_file(echo()), "hello", "--json").json
    second = cli("run", graph_file(echo("Now {input}")), "hello", "--json")
    assert "new version" in second.err
    assert second.json["graph_version"] != first["graph_version"]
    again = cli("runs", "show", first["run_id"], "--json").json
    assert again["graph_version"] == first["graph_version"]


def test_parameters_of_a_template_are_read_by_its_schema(cli: Cli) -> None:
    done = cli("run", "approval_gated_action", "Do it", "--param", "words=55", "--param", "style=plain", "--json")
    assert done.code == 3
    drawn = cli("render", "approval_gated_action", "--param", "words=55", "--format", "json", "--details").out
    assert b"55 words" in drawn
    wrong = cli("run", "approval_gated_action", "Do it", "--param", "words=many", "--param", "wrods=1")
    assert wrong.code == 1
    assert wrong.err.startswith("TEMPLATE_PARAMS_INVALID: ")
    assert "wrods" in wrong.err
    assert "words" in wrong.err


@pytest.mark.parametrize(
    "text", ["  Gr\u00fc\u00dfe\n\n", "a\ttab", "\x1b[31mred\x1b[0m", "line\r\nline", "\u202eflip"]
)
def test_a_text_comes_out_byte_for_byte_when_stdout_is_no_terminal(cli: Cli, graph_file: File, text: str) -> None:
    body = json.dumps(text).encode()
    (Path(graph_file(passes())).parent / "input.json").write_bytes(body)
    done = cli("run", graph_file(passes()), "--input", str(Path(graph_file(passes())).parent / "input.json"))
    assert done.code == 0
    assert done.out == text.encode() + (b"" if text.endswith("\n") else b"\n")


@pytest.mark.parametrize("value", [{"b": [1, 2.5, None], "a": "\u00fc"}, [1, {"x": True}], 3, None, False])
def test_any_other_value_comes_out_as_json(cli: Cli, graph_file: File, tmp_path: Path, value: Any) -> None:
    (tmp_path / "input.json").write_text(json.dumps(value), encoding="utf-8")
    done = cli("run", graph_file(passes()), "--input", str(tmp_path / "input.json"))
    assert (done.code, json.loads(done.out)) == (0, value)
    assert "\\u" not in done.out.decode()


def test_the_input_is_piped_in_without_its_last_newline(cli: Cli, graph_file: File) -> None:
    assert (
        cli("run", graph_file(passes()), "-", stdin="Frage\u2026\nzwei\n\n".encode()).out
        == "Frage\u2026\nzwei\n".encode()
    )


def test_the_graph_itself_can_be_piped_in(cli: Cli) -> None:
    assert cli("run", "-", "hello", stdin=json.dumps(passes()).encode()).out == b"hello\n"


def test_the_result_goes_to_a_file_and_stdout_stays_empty(cli: Cli, graph_file: File, tmp_path: Path) -> None:
    done = cli("run", graph_file(passes()), "hello", "-o", str(tmp_path / "out.txt"))
    assert (done.code, done.out) == (0, b"")
    assert (tmp_path / "out.txt").read_bytes() == b"hello\n"


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_started(cli: Cli, graph_file: File) -> None:
    done = cli("run", graph_file(passes()), "hello", "-o", "no/such/folder/out.txt")
    assert (done.code, done.err) == (1, "INVALID_ARGUMENT: no/such/folder/out.txt cannot be written\n")
    assert cli("runs", "--json").json["data"]["runs"] == []


def test_json_is_the_tools_envelope_and_nothing_else(cli: Cli, graph_file: File) -> None:
    done = cli("run", graph_file(TWO_STEPS), "hello", "--json", "--thread-id", "mine")
    assert done.code == 0
    assert done.json["ok"] is True
    assert done.json["data"]["final_state"] == "a fine answer"
    assert done.json["data"]["thread_id"] == "mine"


def test_a_failed_run_says_where_and_exits_with_1(cli: Cli, graph_file: File) -> None:
    done = cli("run", graph_file(echo("BAD {input}")), "hello")
    assert (done.code, done.out) == (1, b"")
    assert done.err.splitlines()[-1] == "MODEL_BAD_REPLY: it rambles (node say)"
    shown = cli("runs", "show", run_id_of(done), "--json").json["data"]
    assert shown["status"] == "failed"
    asked = cli("run", graph_file(echo("BAD {input}")), "hello", "--json")
    assert (asked.code, asked.json["ok"], asked.json["data"]["status"]) == (1, True, "failed")


@pytest.mark.parametrize(("prompt", "code"), [("REFUSED", 1), ("ABSENT", 4)])
def test_a_failed_run_exits_with_the_code_of_its_error(cli: Cli, graph_file: File, prompt: str, code: int) -> None:
    done = cli("run", graph_file(echo(prompt)), "hello")
    assert (done.code, done.out) == (code, b"")
    assert cli("runs", "show", run_id_of(done), "--json").json["data"]["status"] == "failed"
    assert cli("run", graph_file(echo(prompt)), "hello", "--json").code == code


def test_a_host_out_of_reach_interrupts_the_run_and_exits_with_4(cli: Cli, graph_file: File) -> None:
    done = cli("run", graph_file(echo("LOST {input}")), "hello")
    assert (done.code, done.out) == (4, b"")
    assert "MODEL_UNREACHABLE: nobody is there" in done.err
    assert f"agent-graph resume {run_id_of(done)}" in done.err
    assert cli("resume", run_id_of(done)).code == 4


def test_a_gate_where_nobody_can_be_asked_exits_with_3_and_says_how_to_decide(cli: Cli, graph_file: File) -> None:
    done = cli("run", graph_file(GATED), "hello")
    assert (done.code, done.out) == (3, b"")
    (waiting,) = cli("approvals", "list", "--json").json["data"]["approvals"]
    assert f"agent-graph approvals decide {waiting['approval_id']} approve|reject" in done.err
    as_json = cli("run", graph_file(GATED), "hello", "--json")
    assert (as_json.code, as_json.json["data"]["status"]) == (3, "waiting")


def test_nothing_is_kept_of_a_run_in_memory(cli: Cli, graph_file: File, data_dir: Path) -> None:
    assert cli("run", graph_file(passes()), "hello", "--data-dir", ":memory:").out == b"hello\n"
    assert not data_dir.exists()


def test_two_gates_are_decided_one_after_the_other(cli: Cli, graph_file: File) -> None:
    twice = spec("twice", gate("one"), gate("two"), edges=[("one", "two"), ("two", "END")])
    assert cli("run", graph_file(twice), "x").code == 3
    (first,) = cli("approvals", "list", "--json").json["data"]["approvals"]
    assert cli("approvals", "decide", first["approval_id"], "approve").code == 3
    (second,) = cli("approvals", "list", "--json").json["data"]["approvals"]
    assert second["node_id"] == "two"
    assert cli("approvals", "decide", second["approval_id"], "approve").code == 0


def test_an_answer_that_was_kept_is_taken_by_the_next_program(cli: Cli, graph_file: Callable[[Any], str]) -> None:
    node = {"id": "a", "type": "llm", "config": {"prompt": "JSON", "cache": True, "seed": 1, "json_mode": True}}
    path = graph_file({"name": "g", "entry": "a", "nodes": [node], "edges": [{"from": "a", "to": "END"}]})
    first, again = cli("run", path, "x", "--json"), cli("run", path, "x", "--json")
    assert (
        first.json["data"]["final_state"]
        == again.json["data"]["final_state"]
        == {"verdict": "go", "why": "b\u00fcrgerlich"}
    )
    assert again.json["data"]["usage"]["cache_hits"] == 1
