"""`prune`, `export`, `doctor` and pins from the shell."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_graph.engine.keys import open_keys
from agent_graph.store import folder, row_seals
from agent_graph.store.lock import lock_folder
from tests.cli.terminal import TWO_STEPS, Done, Terminal
from tests.fakes.ollama_server import Gate, OllamaServer, encoded, last_line, line, stream

Cli = Callable[..., Done]
File = Callable[[Any], str]
Beside = Callable[..., Awaitable[Done]]


def ran(cli: Cli, graph_file: File, count: int = 1) -> list[str]:
    """Ids of runs that have ended, the newest first."""
    path = graph_file(TWO_STEPS)
    for number in range(count):
        assert cli("run", path, f"text {number}").code == 0
    return [run["run_id"] for run in cli("runs", "--json").json["data"]["runs"]]


def test_a_dry_run_shows_what_would_go_and_takes_nothing(cli: Cli, graph_file: File) -> None:
    newest, *older = ran(cli, graph_file, 3)
    shown = cli("prune", "--keep", "1", "--dry-run")
    assert shown.code == 0
    assert all(run_id.encode() in shown.out for run_id in older)
    assert newest.encode() not in shown.out
    assert b"2 record(s)" in shown.out
    assert b"would go" in shown.out
    assert b"pruned" not in cli("runs", "show", older[0]).out


def test_pruning_keeps_results_and_tells_of_the_gap(cli: Cli, graph_file: File) -> None:
    newest, older = ran(cli, graph_file, 2)
    done = cli("prune", "--keep", "1", "--json").json["data"]
    assert [run["run_id"] for run in done["runs"]] == [older]
    shown = cli("runs", "show", older).out
    assert b"pruned" in shown
    assert b"a fine answer" in shown
    events = cli("events", older)
    assert (events.code, events.out) == (0, b"")
    assert "event(s) from seq 0 on were pruned" in events.err
    assert cli("events", newest).err == ""
    assert cli("events", older, "--json").json["data"]["gap"] is True
    assert cli("events", older, "--follow").code == 0
    assert cli("render", "--run", older).err.startswith("RUN_PRUNED: ")


def test_a_pin_keeps_a_run_until_it_is_taken_off(cli: Cli, graph_file: File) -> None:
    (run_id,) = ran(cli, graph_file)
    assert cli("runs", "pin", run_id).err == f"{run_id} is pinned\n"
    assert b"pinned" in cli("runs", "show", run_id).out
    kept = cli("prune", run_id)
    assert f"kept: {run_id}".encode() in kept.out
    assert cli("runs", "unpin", run_id, "--json").json["data"]["changed"] is True
    assert [run["run_id"] for run in cli("prune", run_id, "--json").json["data"]["runs"]] == [run_id]
    assert cli("runs", "pin", "run-x").err.startswith("RUN_NOT_FOUND: ")
    assert cli("runs", "frob", run_id).code == 2


def test_the_policy_of_the_settings_is_used_when_nothing_else_is_said(
    cli: Cli, graph_file: File, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = cli("prune")
    assert (nothing.code, nothing.err.split(":")[0]) == (1, "INVALID_ARGUMENT")
    run_ids = ran(cli, graph_file, 2)
    (data_dir / "settings.toml").write_text("[retention]\nruns = 1\n", encoding="utf-8")
    assert [run["run_id"] for run in cli("prune", "--dry-run", "--json").json["data"]["runs"]] == run_ids[1:]
    monkeypatch.setenv("AGENT_GRAPH_RETENTION_RUNS", "2")
    assert cli("prune", "--dry-run", "--json").json["data"]["runs"] == []
    (data_dir / "settings.toml").write_text("[retention]\nrun = 1\n", encoding="utf-8")
    assert "did you mean retention_runs" in cli("prune").err


def test_an_export_is_one_document(cli: Cli, graph_file: File, tmp_path: Path) -> None:
    (run_id,) = ran(cli, graph_file)
    document = cli("export", run_id).json
    assert document["run"]["run_id"] == run_id
    assert cli("export", run_id, "-o", str(tmp_path / "run.json")).out == b""
    written = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert written["events"] == document["events"]
    assert cli("export", run_id, "--json").json["data"]["events"] == document["events"]
    assert cli("export", "run-x").err.startswith("RUN_NOT_FOUND: ")


def test_a_run_is_exported_before_it_goes_or_it_does_not_go(cli: Cli, graph_file: File, tmp_path: Path) -> None:
    newest, middle, oldest = ran(cli, graph_file, 3)
    out = tmp_path / "deep" / "kept"
    assert cli("prune", oldest, "--export", str(out)).code == 0
    assert [path.name for path in out.iterdir()] == [f"{oldest}.json"]
    assert len(json.loads((out / f"{oldest}.json").read_text(encoding="utf-8"))["events"]) > 5
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for blocked in (tmp_path / "file", tmp_path / "file" / "below"):
        refused = cli("prune", middle, "--export", str(blocked))
        assert (refused.code, refused.err.split(":")[0]) == (1, "INVALID_ARGUMENT")
    (out / f"{middle}.json").mkdir()
    refused = cli("prune", newest, middle, "--export", str(out))
    assert "nothing was pruned" in refused.err
    for run_id in (newest, middle):
        assert cli("events", run_id, "--json").json["data"]["gap"] is False
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]
    nothing_to_do = cli("prune", oldest, "--export", str(out))
    assert (nothing_to_do.code, b"0 record(s)" in nothing_to_do.out) == (0, True)


@pytest.mark.process
async def test_it_all_works_through_a_process_that_owns_the_folder(
    terminal: Terminal, ollama: OllamaServer, tmp_path: Path, beside: Beside
) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(TWO_STEPS), encoding="utf-8")
    assert (await beside("run", str(path), "first")).code == 0
    holding = Gate()
    ollama.on("DRAFT second", stream(holding, *encoded([line("x"), last_line()])))
    running = await terminal.start("run", str(path), "second")
    await ollama.arrived("DRAFT second")
    live, ended = (run["run_id"] for run in (await beside("runs", "--json")).json["data"]["runs"])
    assert len((await beside("export", ended)).json["events"]) > 5
    pruned = (await beside("prune", live, ended, "--json")).json["data"]
    assert ([run["run_id"] for run in pruned["runs"]], pruned["kept"]) == ([ended], [live])
    looked = await beside("doctor", "--json")
    (owner,) = [each for each in looked.json["data"]["findings"] if each["name"] == "owner"]
    assert (looked.code, owner["details"]["pid"]) == (0, running.process.pid)
    holding.open()
    assert (await running.done()).code == 0


# -- doctor --------------------------------------------------------------------------------------------------------


def levels(done: Done) -> dict[str, str]:
    return {each["name"]: each["level"] for each in done.json["data"]["findings"]}


def test_the_doctor_finds_nothing_wrong_with_what_is_sound(cli: Cli, graph_file: File, data_dir: Path) -> None:
    assert set(levels(cli("doctor", "--json")).values()) == {"ok"}
    assert not data_dir.exists()
    ran(cli, graph_file)
    before = {path.name: path.read_bytes() for path in data_dir.iterdir() if path.is_file()}
    for arguments in (("--json",), ("--json", "--full")):
        done = cli("doctor", *arguments)
        assert (done.code, done.json["data"]["sound"], set(levels(done).values())) == (0, True, {"ok"})
        assert list(levels(done)) == [
            "versions",
            "folder",
            "room",
            "owner",
            "database",
            "events",
            "rows",
            "keys",
            "clock",
            "model",
        ]
    assert {path.name: path.read_bytes() for path in data_dir.iterdir() if path.is_file()} == before
    said = cli("doctor").out.decode()
    assert said.count("\n") == 10
    assert "quick_check ok" in said
    assert set(levels(cli("doctor", "--json", "--data-dir", ":memory:"))) == {"versions", "clock", "model"}


def damage_a_page(path: Path) -> None:
    data = path.read_bytes()
    page = data.rindex(b"a fine answer") // 4096 * 4096
    path.write_bytes(data[:page] + b"\xa5" * 4096 + data[page + 4096 :])


def sql(path: Path, text: str, seals: row_seals.RowSeals | None = None) -> None:
    with sqlite3.connect(path) as connection:
        if seals is not None:
            row_seals.register(connection, seals)
        connection.execute(text)
    connection.close()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def does(text: str) -> Callable[[Path], None]:
    return lambda path: sql(path, text)


DAMAGES = {
    "a damaged page": (damage_a_page, "database", "STORE_CORRUPT"),
    "a cut file": (cut, "database", "STORE_CORRUPT"),
    "a changed event": (does("UPDATE events SET body = replace(body, 'fine', 'poor')"), "events", "STORE_CORRUPT"),
    "a lost event": (does("DELETE FROM events WHERE event_no % 7 = 3"), "events", "STORE_CORRUPT"),
    "a row of nothing": (does("UPDATE runs SET graph_version = 'none'"), "database", "STORE_CORRUPT"),
    "a changed row": (does("UPDATE graphs SET updated_at_ms = 1"), "rows", "STORE_CORRUPT"),
    "a newer schema": (does("PRAGMA user_version = 999"), "database", "STORE_NEWER"),
    "another program's": (does("PRAGMA application_id = 7"), "database", "STORE_FOREIGN"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_unsound_store_exits_with_5_and_is_left_alone(
    cli: Cli, graph_file: File, data_dir: Path, damage: str
) -> None:
    ran(cli, graph_file)
    change, name, code = DAMAGES[damage]
    path = data_dir / "agent-graph.db"
    change(path)
    before = path.read_bytes()
    done = cli("doctor", "--json")
    assert (done.code, done.json["data"]["sound"]) == (5, False)
    found, *more = [each for each in done.json["data"]["findings"] if each["level"] == "unsound"]
    assert [each["name"] for each in more] == (["rows"] if damage == "a row of nothing" else [])
    assert (found["name"], found["said"].split(":")[0]) == (name, code)
    assert cli("doctor").code == 5
    assert path.read_bytes() == before


def test_a_missing_host_a_wrong_clock_and_little_room_are_warnings(
    cli: Cli, graph_file: File, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(cli, graph_file)
    ahead = row_seals.sealing("runs", {"created_at_ms": "created_at_ms + 100000000"}, "made_seal")
    keys = open_keys(data_dir, now_ms=0)
    sql(
        data_dir / "agent-graph.db",
        f"UPDATE runs SET created_at_ms = created_at_ms + 100000000, made_seal = {ahead}",
        row_seals.RowSeals(keys),
    )
    monkeypatch.setattr("agent_graph.store.diagnosis.free_bytes", lambda folder: 1)
    monkeypatch.delenv("AGENT_GRAPH_SCRIPT")
    done = cli("doctor", "--json", "--provider", "ollama", "--ollama-host", "http://127.0.0.1:9")
    assert (done.code, done.json["data"]["sound"]) == (4, True)
    warned = {name for name, level in levels(done).items() if level == "warning"}
    assert warned == {"model", "clock", "room"}


def test_a_folder_on_a_network_is_refused_by_name(
    cli: Cli, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    spaced = str(tmp_path / "far away").replace(" ", "\\040")
    root = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"
    mounts.write_text(f"{root}\n22 21 0:50 / {spaced} rw - nfs4 server:/export rw\n", encoding="utf-8")
    monkeypatch.setattr(folder, "_MOUNTS", mounts)
    far = tmp_path / "far away" / "data"
    assert (folder.file_system(data_dir), folder.file_system(far)) == ("ext4", "nfs4")
    done = cli("runs", "--data-dir", str(far))
    assert (done.code, done.err.split(":")[0]) == (5, "STORE_UNUSABLE")
    assert "network file system (nfs4)" in done.err
    assert not far.exists()
    far.mkdir(parents=True)
    found = cli("doctor", "--json", "--data-dir", str(far))
    assert (found.code, levels(found)["folder"]) == (5, "unsound")
    assert not list(far.iterdir())


def test_a_folder_mounted_read_only_is_refused_by_name(
    cli: Cli, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs

    class ReadOnly:
        f_flag = os.ST_RDONLY

    data_dir.mkdir()
    monkeypatch.setattr(os, "statvfs", lambda path: ReadOnly() if Path(path) == data_dir else real(path))
    done = cli("runs")
    assert (done.code, done.err.split(":")[0]) == (5, "STORE_UNUSABLE")
    assert "mounted read-only" in done.err
    assert not list(data_dir.iterdir())


async def test_the_doctor_does_not_keep_anybody_out(data_dir: Path, beside: Beside) -> None:
    async with await lock_folder(data_dir, now_ms=1, reach="a socket"):
        looked = await beside("doctor")
        assert b"process " in looked.out
        assert b"reached through a socket" in looked.out
    look = asyncio.create_task(beside("doctor"))
    while not look.done():
        async with await lock_folder(data_dir, now_ms=1):
            await asyncio.sleep(0)
    assert b"unsound" not in (await look).out


# -- the keys of a folder ------------------------------------------------------------------------------------------


def left(folder: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return {name: data for name, data in found.items() if not name.endswith(".lock")}


def test_where_runs_were_sealed_no_key_is_made_anew_and_the_folder_does_not_become_keyless(
    cli: Cli, graph_file: File, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(cli, graph_file)
    for name in ("integrity.key", "keys.json"):
        (data_dir / name).unlink()
    before = left(data_dir)
    for command in (("runs",), ("keys", "show")):
        refused = cli(*command)
        assert (refused.code, refused.err.split(":")[0]) == (5, "INTEGRITY_KEY_REQUIRED")
        assert "back from a copy" in refused.err
        with monkeypatch.context() as without:
            without.setenv("AGENT_GRAPH_INTEGRITY_KEY", "off")
            refused = cli(*command)
        assert (refused.code, refused.err.split(":")[0]) == (5, "KEY_MODE_MISMATCH")
    assert left(data_dir) == before


def test_a_keyless_folder_whose_book_is_gone_does_not_get_a_key(
    cli: Cli, graph_file: File, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_GRAPH_INTEGRITY_KEY", "off")
    assert cli("run", graph_file(TWO_STEPS), "text").code == 0
    monkeypatch.delenv("AGENT_GRAPH_INTEGRITY_KEY")
    (data_dir / "keys.json").unlink()
    refused = cli("runs")
    assert (refused.code, refused.err.split(":")[0]) == (5, "KEY_MODE_MISMATCH")
    assert not (data_dir / "integrity.key").exists()
    monkeypatch.setenv("AGENT_GRAPH_INTEGRITY_KEY", "off")
    assert cli("runs").code == 0


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda folder: (folder / "integrity.key").unlink(), "INTEGRITY_KEY_REQUIRED"),
        (lambda folder: (folder / "keys.json").unlink(), "INTEGRITY_KEY_REQUIRED"),
        (lambda folder: (folder / "integrity.key").chmod(0o640), "INTEGRITY_KEY_INVALID"),
        (lambda folder: (folder / "integrity.key").write_bytes(b"k" * 40), "INTEGRITY_KEY_INVALID"),
    ],
    ids=["no key", "no book", "readable", "foreign"],
)
def test_the_doctor_says_what_is_wrong_with_the_keys_and_accuses_no_row(
    cli: Cli, graph_file: File, data_dir: Path, harm: Callable[[Path], object], code: str
) -> None:
    ran(cli, graph_file)
    harm(data_dir)
    before = left(data_dir)
    done = cli("doctor", "--json")
    (found,) = [each for each in done.json["data"]["findings"] if each["level"] == "unsound"]
    assert (done.code, found["name"], found["details"]["error_code"]) == (5, "keys", code)
    assert left(data_dir) == before


def test_the_doctor_names_the_key_that_seals_or_that_there_is_none(
    cli: Cli, graph_file: File, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(cli, graph_file)
    (found,) = [each for each in cli("doctor", "--json").json["data"]["findings"] if each["name"] == "keys"]
    assert found["said"].startswith(open_keys(data_dir, now_ms=0).key_id)
    other = str(tmp_path / "other")
    monkeypatch.setenv("AGENT_GRAPH_INTEGRITY_KEY", "off")
    assert cli("runs", "--data-dir", other).code == 0
    done = cli("doctor", "--json", "--data-dir", other)
    (found,) = [each for each in done.json["data"]["findings"] if each["name"] == "keys"]
    assert found["said"] == "none: the folder was begun without one"
