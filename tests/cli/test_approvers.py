"""A gate that is closed to models, at the command line: it asks for an approver's secret once there is one."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from agent_graph.core.jsonvalue import digest
from agent_graph.engine import approvers as module
from tests.cli.terminal import PATIENCE_S, Done, Started, Terminal
from tests.specs import gate, llm, put, spec

Cli = Callable[..., Done]
File = Callable[[Any], str]
CLOSED = ["elicitation", "console", "cli"]
ADA = b"correct horse\n"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COST", {"n": 2**4, "r": 8, "p": 1})


def asked(cli: Cli, graph_file: File, **config: Any) -> str:
    """The approval of a run that waits."""
    graph = spec(put("a", letter="Dear Dana"), gate("g", **config), edges="a>g g>END", output_key="letter")
    assert cli("run", graph_file(graph), "x").code == 3
    listed = cli("approvals", "list", "--json").json["data"]["approvals"]
    return str(listed[-1]["approval_id"])


def test_without_approvers_the_shell_is_trusted(cli: Cli, graph_file: File) -> None:
    name = asked(cli, graph_file, channels=CLOSED)
    assert b"trust the shell" in cli("approvers", "list").out
    assert cli("approvals", "decide", name, "approve").code == 0


def test_with_an_approver_a_closed_gate_wants_the_secret(cli: Cli, graph_file: File) -> None:
    assert cli("approvers", "add", "ada", stdin=ADA).code == 0
    assert cli("approvers", "list", "--json").json["data"]["approvers"] == ["ada"]
    name = asked(cli, graph_file, channels=CLOSED)
    bare = cli("approvals", "decide", name, "approve", "--json")
    assert (bare.code, bare.json["error_code"]) == (1, "APPROVER_REQUIRED")
    assert f"agent-graph approvals decide {name} approve --approver NAME" in bare.json["error"]
    for who, secret in (("ada", b"a guess of mine\n"), ("eve", ADA)):
        wrong = cli("approvals", "decide", name, "approve", "--approver", who, "--json", stdin=secret)
        assert (wrong.code, wrong.json["error_code"]) == (1, "APPROVER_SECRET_WRONG")
    none = cli("approvals", "decide", name, "approve", "--approver", "ada", "--json", stdin=b"")
    assert none.json["error_code"] == "INVALID_ARGUMENT"
    (gate_,) = cli("approvals", "list", "--json").json["data"]["approvals"]
    assert (gate_["status"], gate_["votes"]) == ("pending", [])
    done = cli("approvals", "decide", name, "approve", "--approver", "Ada", stdin=ADA)
    assert (done.code, done.out) == (0, b"Dear Dana\n"), done.err
    (vote,) = cli("approvals", "show", name, "--json").json["data"]["approval"]["votes"]
    assert (vote["principal"], vote["decided_by"], vote["via"]) == ("ada", "Ada", "cli")


def test_an_open_gate_asks_for_no_secret_and_takes_one(cli: Cli, graph_file: File) -> None:
    cli("approvers", "add", "ada", stdin=ADA)
    assert cli("approvals", "decide", asked(cli, graph_file), "approve").code == 0
    name = asked(cli, graph_file, self_approval=False)
    refused = cli("approvals", "decide", name, "approve", "--json")
    assert refused.json["error_code"] == "APPROVAL_SELF_DECISION"
    assert cli("approvals", "decide", name, "approve", "--approver", "ada", stdin=ADA).code == 0


def test_an_approver_is_added_and_removed_by_those_there_are(cli: Cli) -> None:
    cli("approvers", "add", "ada", stdin=ADA)
    for command in (("add", "bob"), ("remove", "bob")):
        stranger = cli("approvers", *command, "--json", stdin=b"battery staple\n")
        assert stranger.json["error_code"] == "INVALID_ARGUMENT"
        assert "--approver NAME" in stranger.json["error"]
    assert cli("approvers", "add", "bob", "--approver", "ada", stdin=ADA + b"battery staple\n").code == 0
    wrong = cli("approvers", "remove", "ada", "--json", stdin=b"battery staple\n")
    assert wrong.json["error_code"] == "APPROVER_SECRET_WRONG"
    assert cli("approvers", "remove", "ada", "--json", stdin=ADA).json["data"] == {"name": "ada"}
    assert cli("approvers", "list").out == b"bob\n"
    memory = cli("approvers", "add", "ada", "--data-dir", ":memory:", "--json", stdin=ADA)
    assert memory.json["error_code"] == "INVALID_ARGUMENT"


# -- edit ----------------------------------------------------------------------------------------------------------

EDITS = {"allowed_decisions": ["approve", "edit"], "subject_key": "letter"}


def test_a_subject_is_edited_from_a_file_and_the_difference_shown(cli: Cli, graph_file: File, tmp_path: Any) -> None:
    name = asked(cli, graph_file, **EDITS)
    (tmp_path / "letter.txt").write_text("Dear Eve\n", encoding="utf-8")
    done = cli("approvals", "decide", name, "edit", "--subject", str(tmp_path / "letter.txt"))
    assert (done.code, done.out) == (0, b"Dear Eve\n"), done.err
    assert "-Dear Dana\n+Dear Eve\n" in done.err
    shown = cli("approvals", "show", name).out.decode()
    assert "It was edited:\n--- as it was asked\n" in shown
    assert "-Dear Dana\n+Dear Eve\n" in shown


def test_a_subject_is_edited_by_a_patch_or_from_stdin(cli: Cli, graph_file: File, tmp_path: Any) -> None:
    step = '[{"op": "replace", "path": "", "value": "Dear Eve"}]'
    name = asked(cli, graph_file, **EDITS)
    assert cli("approvals", "decide", name, "edit", "--patch", step).out == b"Dear Eve\n"
    (tmp_path / "p.json").write_text(step, encoding="utf-8")
    name = asked(cli, graph_file, **EDITS)
    assert cli("approvals", "decide", name, "edit", "--patch", f"@{tmp_path / 'p.json'}").out == b"Dear Eve\n"
    name = asked(cli, graph_file, **EDITS)
    assert cli("approvals", "decide", name, "edit", "--subject", "-", stdin=b"Dear Fay\n").out == b"Dear Fay\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("edit",), "INVALID_ARGUMENT"), (("edit", "--patch", "{}"), "INVALID_ARGUMENT"),
        (("edit", "--patch", "[1]"), "INVALID_ARGUMENT"), (("edit", "--patch", "["), "INPUT_INVALID"),
        (("edit", "--patch", "[]", "--subject", "-"), "INVALID_ARGUMENT"),
        (("edit", "--patch", "[]"), "APPROVAL_EDIT_INVALID"),
        (("edit", "--patch", '[{"op": "remove", "path": "/a"}]'), "APPROVAL_EDIT_INVALID"),
        (("edit", "--subject", "nowhere.txt"), "INVALID_ARGUMENT"), (("approve", "--patch", "[]"), "INVALID_ARGUMENT"),
        (("approve", "--digest", "sha256:0"), "APPROVAL_STALE"), (("reject",), "APPROVAL_DECISION_NOT_ALLOWED"),
    ],
)  # fmt: skip
def test_an_edit_that_is_none_is_refused_and_nothing_changed(
    cli: Cli, graph_file: File, arguments: tuple[str, ...], code: str
) -> None:
    name = asked(cli, graph_file, **EDITS)
    done = cli("approvals", "decide", name, *arguments, "--json")
    assert (done.code, done.json["error_code"]) == (1, code)
    assert cli("approvals", "list", "--json").json["data"]["approvals"][0]["votes"] == []


def test_a_vote_that_is_not_the_last_says_so(cli: Cli, graph_file: File) -> None:
    name = asked(cli, graph_file, quorum=2)
    first = cli("approvals", "decide", name, "approve", "--by", "Ada", "--for", "Carl")
    assert first.code == 3
    assert f"{name}: your vote is kept; 2 people have to approve\n" in first.err
    shown = cli("approvals", "show", name).out.decode()
    assert "approve by Ada for Carl (cli)" in shown
    assert cli("approvals", "decide", name, "approve", "--by", "Bob").code == 0


# -- log -----------------------------------------------------------------------------------------------------------


def test_the_log_tells_what_was_asked_and_decided_and_no_spreadsheet_calculates_with_it(
    cli: Cli, graph_file: File, tmp_path: Any
) -> None:
    assert cli("approvals", "log").out == b"nothing was asked\n"
    name = asked(cli, graph_file)
    evil = '=HYPERLINK("http://example.org","x")'
    cli("approvals", "decide", name, "approve", "--by", "+Ada", "--note", evil)
    waits = asked(cli, graph_file, expiry_ms=86_400_000)
    rows = json.loads(cli("approvals", "log", "--format", "json").out)
    assert [(row["approval_id"], row["what"]) for row in rows] == [
        (name, "opened"), (name, "voted"), (name, "decided"), (waits, "opened"),
    ]  # fmt: skip
    assert (rows[1]["by"], rows[1]["via"], rows[1]["note"]) == ("+Ada", "cli", evil)
    assert cli("approvals", "log", "--format", "csv", "-o", str(tmp_path / "log.csv")).code == 0
    text = (tmp_path / "log.csv").read_bytes().decode()
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["what"] for row in table] == ["opened", "voted", "decided", "opened"]
    assert (table[1]["by"], table[1]["note"]) == ("'+Ada", "'" + evil)
    assert b"approve" in cli("approvals", "log", "--graph", rows[0]["graph_id"]).out
    assert cli("approvals", "log", "--graph", "other").out == b"nothing was asked\n"
    assert cli("approvals", "log", "--json").json["data"]["log"] == rows
    assert cli("approvals", "log", "--format", "xml").code == 1


def test_the_log_tells_of_what_nobody_decided(cli: Cli, graph_file: File) -> None:
    name = asked(cli, graph_file)
    run = cli("approvals", "show", name, "--json").json["data"]["approval"]["run_id"]
    cli("cancel", run, "--reason", "enough")
    rows = json.loads(cli("approvals", "log", "--run", run, "--format", "json").out)
    assert [row["what"] for row in rows] == ["opened", "withdrawn"]


def test_the_log_says_what_was_asked_before_it_was_edited(cli: Cli, graph_file: File) -> None:
    name = asked(cli, graph_file, **EDITS)
    cli("approvals", "decide", name, "edit", "--patch", '[{"op": "replace", "path": "", "value": "Dear Eve"}]')
    opened, voted, decided = json.loads(cli("approvals", "log", "--format", "json").out)
    assert opened["subject_digest"] == digest("Dear Dana")
    assert voted["subject_digest"] == decided["subject_digest"] == digest("Dear Eve")


def test_a_spec_with_every_way_of_a_gate_is_drawn_and_run(cli: Cli, graph_file: File) -> None:
    graph = spec(
        llm("a", output_key="letter"), gate("g", on_expire={"goto": ["late"]}, on_reject=["late"], **EDITS),
        put("late", letter="none"), edges="a>g g>END late>END", output_key="letter",
    )  # fmt: skip
    drawn = cli("validate", graph_file(graph))
    assert drawn.code == 0, drawn.err


@pytest.mark.process
@pytest.mark.timeout(60)
async def test_watching_tells_what_comes_and_what_became_of_it_and_keeps_nobody_out(
    terminal: Terminal, graph_file: File
) -> None:
    async def told(watching: Started) -> list[str]:
        assert watching.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            return (await watching.process.stdout.readline()).decode().split()

    graph = spec(put("a", letter="Dear Dana"), gate("g"), edges="a>g g>END", output_key="letter")
    assert (await terminal.run("run", graph_file(graph), "x")).code == 3
    watching = await terminal.start("approvals", "list", "--watch")
    name, *row = await told(watching)
    assert row[:3] == ["pending", "case", "g"]
    decided = await terminal.run("approvals", "decide", name, "approve")
    assert (decided.code, decided.out) == (0, b"Dear Dana\n"), decided.err
    assert (await told(watching))[:2] == [name, "approved"]
    watching.process.send_signal(signal.SIGINT)
    assert (await watching.done()).code == 130
