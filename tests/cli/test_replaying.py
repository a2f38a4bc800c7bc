"""`replay` and `runs show --at` from the shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cli.terminal import TWO_STEPS, Done
from tests.cli.test_keeping import ran

Cli = Callable[..., Done]
File = Callable[[Any], str]


def test_a_replay_says_same_or_where_the_way_differs(cli: Cli, graph_file: File) -> None:
    (run_id,) = ran(cli, graph_file)
    done = cli("replay", run_id)
    assert (done.code, done.out.split()) == (0, [run_id.encode(), b"same"])
    shorter = {**TWO_STEPS, "nodes": TWO_STEPS["nodes"][:1], "edges": []}
    shorter["nodes"] = [{**shorter["nodes"][0]}]
    shorter.pop("output_key", None)
    other = cli("replay", run_id, "--graph", graph_file(shorter))
    assert other.code == 1
    assert b"differs at" in other.out
    verified = cli("replay", run_id, "--level", "verify", "--json").json["data"]
    assert verified["same"]
    assert cli("replay", run_id, "--level", "verify").out.split()[1:4] == [b"the", b"record", b"holds"]
    for wrong in (["--level", "guess"], ["--level", "verify", "--graph", "x"], [run_id, "--level", "rerun"]):
        assert cli("replay", run_id, *wrong).err.startswith("INVALID_ARGUMENT")
    again = cli("replay", run_id, "--level", "rerun")
    assert again.code == 0
    assert "a new run" in again.err
    assert len(cli("runs", "--json").json["data"]["runs"]) == 2


def test_the_state_after_any_event_is_shown(cli: Cli, graph_file: File) -> None:
    (run_id,) = ran(cli, graph_file)
    first = cli("runs", "show", run_id, "--at", "0", "--json").json["data"]
    assert first["state_version"] == 0
    assert cli("runs", "show", run_id, "--at", "0").code == 0
    assert cli("runs", "show", run_id, "--at", "100000").err.startswith("INVALID_ARGUMENT")
