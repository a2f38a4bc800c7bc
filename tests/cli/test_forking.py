"""`fork` and `resume --from failed` from the shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.terminal import TWO_STEPS, Done
from tests.cli.test_keeping import ran

Cli = Callable[..., Done]
File = Callable[[Any], str]


def test_a_fork_takes_over_what_was_done_and_is_seen_through(cli: Cli, graph_file: File, tmp_path: Path) -> None:
    (run_id,) = ran(cli, graph_file)
    last = TWO_STEPS["nodes"][-1]["id"]
    done = cli("fork", run_id, "--before", last)
    assert done.code == 0, done.err
    assert "1 model call(s) are not paid again" in done.err
    (fork, _) = cli("runs", "--json").json["data"]["runs"]
    assert fork["forked_from"]["run_id"] == run_id
    shown = cli("runs", "show", fork["run_id"]).out.decode()
    assert f"forked   from {run_id}" in shown
    patch = tmp_path / "patch.json"
    patch.write_text('[{"op": "add", "path": "/more", "value": 1}]', encoding="utf-8")
    done = cli(
        "fork", run_id, "--before", last, "--set", "k=[1]", "--set", "w=word", "--patch", str(patch),
        "--output-of", f"{last}=given", "--json",
    )  # fmt: skip
    assert done.code == 0
    newest = cli("runs", "--json").json["data"]["runs"][0]["run_id"]
    state = cli("runs", "show", newest, "--state", "--json").json["data"]["state"]
    assert (state["k"], state["w"], state["more"]) == ([1], "word", 1)


def test_what_cannot_be_forked_is_refused(cli: Cli, graph_file: File, tmp_path: Path) -> None:
    (run_id,) = ran(cli, graph_file)
    assert cli("fork", run_id).err.startswith("INVALID_ARGUMENT")
    assert cli("resume", run_id, "--from", "failed").err.startswith("FORK_POINT_INVALID")
    assert cli("resume", run_id, "--from", "here").err.startswith("INVALID_ARGUMENT")
    wrong = tmp_path / "patch.json"
    wrong.write_text("{}", encoding="utf-8")
    assert cli("fork", run_id, "--at", "0", "--patch", str(wrong)).err.startswith("INVALID_ARGUMENT")


def test_two_runs_are_compared_firing_by_firing(cli: Cli, graph_file: File) -> None:
    (run_id,) = ran(cli, graph_file)
    last = TWO_STEPS["nodes"][-1]["id"]
    assert cli("fork", run_id, "--before", last, "--output-of", f"{last}=given").code == 0
    fork = cli("runs", "--json").json["data"]["runs"][0]["run_id"]
    same = cli("compare", run_id, run_id)
    assert (same.code, same.out.split()[0]) == (0, b"same")
    differs = cli("compare", run_id, fork)
    assert differs.code == 1
    assert f"they part at {last}#1".encode() in differs.out
    assert b"taken over" in differs.out
    assert cli("compare", run_id, fork, "--json").json["data"]["first_divergence"]["node_id"] == last
    assert cli("compare", run_id, "run-none").err.startswith("RUN_NOT_FOUND")
