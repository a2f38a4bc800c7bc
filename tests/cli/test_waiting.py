"""Runs that wait for the clock or for a message, as the command line shows them and sends to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.cli.terminal import Done
from tests.specs import gate, node, put, spec

Cli = Callable[..., Done]
File = Callable[[Any], str]
WAITS = spec(
    node("s", "signal", name="paid", schema={"type": "object"}, output_key="x"),
    node("t", "timer", delay_ms=5), edges="s>t t>END", output_key="x",
)  # fmt: skip


def test_a_message_is_sent_and_the_run_seen_through(cli: Cli, graph_file: File) -> None:
    begun = cli("run", graph_file(WAITS))
    run = begun.err.split()[0]
    assert begun.code == 3
    assert f"{run} waits for a message:\n  agent-graph signal {run} paid TEXT\n" in begun.err
    assert "waits    for a message paid (s)\n" in cli("runs", "show", run).out.decode()
    refused = cli("signal", run, "paid", "text")
    assert (refused.code, "INPUT_INVALID" in refused.err) == (1, True)
    assert cli("signal", run, "paif", "{}").code == 1
    done = cli("signal", run, "paid", "-", stdin=b'{"n": 1}\n')
    assert (done.code, json.loads(done.out)) == (0, {"n": 1}), done.err
    assert "s has it\n" in done.err
    ended = cli("signal", run, "paid", "{}", "--json")
    assert (ended.code, ended.json["error_code"]) == (1, "RUN_TERMINAL")


def test_a_moment_beyond_the_calendar_can_be_shown(cli: Cli, graph_file: File) -> None:
    far = node("t", "timer", until="9999-12-31T23:59:60-23:59")
    graph = spec(put("s", x=1), gate("g"), far, edges="s>g s>t g>END t>END", output_key="x")
    begun = cli("run", graph_file(graph))
    assert begun.code == 3, begun.err
    shown = cli("runs", "show", begun.err.split()[0])
    assert (shown.code, "after the year 9998 (t)" in shown.out.decode()) == (0, True), shown.err


def test_a_message_that_comes_early_is_kept(cli: Cli, graph_file: File) -> None:
    graph = spec(gate("g"), node("s", "signal", output_key="x"), edges="g>s s>END", output_key="x")
    run = cli("run", graph_file(graph)).err.split()[0]
    assert cli("signal", run, "s", "hello").err == "nobody waits for s yet; it is kept\n"
    assert cli("signal", run, "s", "--json").json["data"]["delivered"] is False
    gate_id = cli("approvals", "list", "--json").json["data"]["approvals"][0]["approval_id"]
    assert cli("approvals", "decide", gate_id, "approve").out == b"hello\n"


def test_a_run_that_waits_for_the_clock_is_waited_for(cli: Cli, graph_file: File) -> None:
    graph = spec(node("t", "timer", delay_ms=30), put("z", x="done"), edges="t>z z>END", output_key="x")
    done = cli("run", graph_file(graph))
    assert (done.code, done.out) == (0, b"done\n")
