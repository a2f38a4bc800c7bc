"""`report` from the shell: a page on standard output or in a file, of a run that has ended or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.terminal import Done
from tests.tools.specs import gated

Cli = Callable[..., Done]


def test_a_report_is_written_to_a_file_and_says_when_the_run_goes_on(cli: Cli, tmp_path: Path) -> None:
    graph, page = tmp_path / "graph.json", tmp_path / "report.html"
    graph.write_text(json.dumps(gated()), encoding="utf-8")
    given = tmp_path / "input.json"
    given.write_text('{"draft": "Dear Dana"}', encoding="utf-8")
    run_id = cli("run", str(graph), "--input", str(given), "--json").json["run_id"]
    done = cli("report", run_id, "-o", str(page), "--json")
    assert done.code == 0
    assert done.json["data"] == {
        "run_id": run_id, "status": "waiting", "ended": False, "bytes": page.stat().st_size, "file": str(page),
    }  # fmt: skip
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    shown = cli("report", run_id)
    assert shown.out.startswith(b"<!doctype html>")
    assert "the run has not ended (waiting)" in shown.err
    refused = cli("report", "run-0", "--json")
    assert (refused.code, refused.json["error_code"]) == (1, "RUN_NOT_FOUND")
