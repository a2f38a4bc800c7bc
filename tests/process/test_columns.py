"""Every column of the database is classified, and one that matters is noticed when somebody else has changed it."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import diagnose, open_app
from agent_graph.engine.keys import keys_of
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.settings import Settings, load
from agent_graph.store import chain, logs, row_seals
from agent_graph.tools.deps import Caller, Deps
from tests.fakes.opened import Tools
from tests.sizes import FULL

MARK = "Zebra-7731"
"""What a forger writes; it is to be told by nothing."""
HARMLESS = {
    ("graph_versions", "version_no"): "the order of versions in a list",
    ("approvals", "approval_no"): "the order of approvals in a list",
    ("answers", "answer_no"): "which answer is forgotten first",
    ("outbox", "notice_no"): "which notice is told first",
    ("witnesses", "witness_no"): "the order of witnesses, and who cites one (below)",
    ("witness_uses", "witness_no"): "how long retention keeps a witness; what it holds is sealed",
    ("witness_uses", "run_no"): "how long retention keeps a witness; what it holds is sealed",
}
DERIVED = {
    ("runs", "run_no"): "events, snapshots and approvals hang on it: they say, sealed, which run they are of",
    ("snapshots", "run_no"): "as runs.run_no: the seal names the run",
    ("approvals", "run_no"): "as runs.run_no: the seal names the run",
    ("answers", "run_no"): "as runs.run_no: the seal names the run",
    ("graph_versions", "spec"): "`content` is its digest",
    ("graph_versions", "compiled"): "`content` is its digest",
    ("snapshots", "data"): "`digest` is its digest",
}
"""Covered by a check against another column that is sealed."""
CHAINED = {("events", "event_no"), ("events", "body")}
"""Covered by the chain, whose head is sealed in the run's row."""
ITS_OWN = {("witnesses", name) for name in (
    "witness_id", "principal", "locator", "media_type", "authority_class", "retrieved_at_ms", "captured_at_ms", "via",
    "digest", "content", "key_id", "seal",
)} | {("runs", "seal")}  # fmt: skip
"""Covered by a seal of another kind: a witness's, a receipt's."""


def sealed() -> set[tuple[str, str]]:
    found = set()
    for (table, column), names in row_seals.SEALED.items():
        found |= {(table, column)} | {(table, name) for name in names if name.isidentifier()}
    return found


def schema(path: Path) -> set[tuple[str, str]]:
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return {
            (table, row[1])
            for (table,) in tables.fetchall()
            for row in connection.execute(f"PRAGMA table_info({table})")
        }


GRAPH: dict[str, Any] = {
    "name": "case", "entry": "ask", "output_key": "said", "description": "a case",
    "nodes": [
        {"id": "ask", "type": "llm", "config": {"prompt": "{input}", "output_key": "said", "cache": True}},
        *[{"id": f"s{i}", "type": "passthrough"} for i in range(40)],
        {"id": "gate", "type": "human_approval", "config": {"prompt": "Go on?", "subject_key": "said"}},
    ],
    "edges": [
        {"from": "ask", "to": "s0"}, *[{"from": f"s{i}", "to": f"s{i + 1}"} for i in range(39)],
        {"from": "s39", "to": "gate"},
    ],
}  # fmt: skip
OPERATOR = Caller("cli", "a test")
TOLD = {"target": "webhook", "notice_id": "n-1", "at_ms": 1, "body": "{}", "tries": 0, "next_at_ms": 0}


def settings(folder: Path) -> Settings:
    return load(environ={"AGENT_GRAPH_DATA_DIR": str(folder), "AGENT_GRAPH_SYNCHRONOUS": "normal"})


@asynccontextmanager
async def app(folder: Path) -> AsyncIterator[Deps]:
    async with open_app(settings(folder), recover=True, serve=True, model=ScriptedModel([Reply(text="yes")])) as deps:
        yield deps


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with a row in every table, and the ids of what is in it."""
    folder = tmp_path_factory.mktemp("made")
    return folder, asyncio.run(_make(folder))


async def _make(folder: Path) -> dict[str, str]:
    async with app(folder) as deps:
        tools, operator = Tools(deps), Tools(deps, OPERATOR)
        made = await tools.ok("graph_create", template={"id": "council_deliberation", "name": "made"})
        await tools.ok("graph_create", spec=GRAPH)
        done = await tools.run("case", "why?", idempotency_key="key-1")
        await tools.ok("graph_run_wait", run_id=done, until="waiting")
        (gate,) = (await tools.ok("graph_approval_list", run_id=done))["approvals"]
        await tools.ok(
            "graph_approval_decide", approval_id=gate["approval_id"], decision="approve", decided_by="ann",
        )  # fmt: skip
        await tools.ok("graph_run_wait", run_id=done)
        waiting = await tools.run("case", "what?")
        await tools.ok("graph_run_wait", run_id=waiting, until="waiting")
        (open_gate,) = (await tools.ok("graph_approval_list", run_id=waiting))["approvals"]
        await operator.ok("graph_token_create", name="ann", scopes=["runs:read"])
        database: Any = deps.store.database  # type: ignore[attr-defined]  # only SQLite has one
        values = ", ".join("?" for _ in TOLD)
        await database.write(lambda c: c.execute(
            f"INSERT INTO outbox ({', '.join(TOLD)}, row_seal) VALUES ({values}, '')", tuple(TOLD.values())
        ))  # fmt: skip
        await database.write(lambda c: c.execute("INSERT INTO told VALUES ('webhook', 1, 0, 1, NULL, '', '')"))
        await database.write(
            lambda c: (
                c.execute("INSERT INTO answers SELECT 1, 'k', run_no, 3, '' FROM runs LIMIT 1")
                if not c.execute("SELECT 1 FROM answers").fetchone()
                else None
            )
        )
        await database.write(row_seals.seal_all)
    return {
        "done": done, "waiting": waiting, "gate": gate["approval_id"], "open": open_gate["approval_id"],
        "made": made["graph_id"],
    }  # fmt: skip


def test_every_column_is_classified(made: tuple[Path, dict[str, str]]) -> None:
    known = sealed() | set(HARMLESS) | set(DERIVED) | CHAINED | ITS_OWN
    found = schema(made[0] / "agent-graph.db")
    assert found - known == set(), "a column nobody has said of what keeps it, or why it needs nothing"
    assert known - found == set(), "a column that is no more"


async def reads(tools: Tools, operator: Tools, ids: dict[str, str]) -> dict[str, Any]:
    """Every tool that tells of what is stored, on everything there is."""
    answers: dict[str, Any] = {}
    asked: list[tuple[Tools, str, dict[str, Any]]] = [
        (tools, "graph_list", {}), (tools, "graph_inspect", {"graph_id": "case"}), (tools, "graph_run_list", {}),
        (tools, "graph_approval_list", {"status": "all"}), (operator, "graph_token_list", {}),
        (tools, "graph_template_candidates", {}),
        (tools, "graph_template_outcomes", {"template_id": "council_deliberation"}),
        (tools, "graph_status", {}), (tools, "graph_approval_get", {"approval_id": ids["gate"]}),
        (tools, "graph_approval_get", {"approval_id": ids["open"]}),
        (tools, "graph_run_start", {"graph_id": "case", "input": "why?", "idempotency_key": "key-1"}),
    ]  # fmt: skip
    about = ("get", "events", "state", "checkpoint")
    for run in ("done", "waiting"):
        asked += [(tools, f"graph_run_{name}", {"run_id": ids[run]}) for name in about]
    for caller, name, arguments in asked:
        answers[f"{name} {json.dumps(arguments)}"] = await caller.envelope(name, **arguments)
    return answers


def noticed(answers: dict[str, Any]) -> list[str]:
    """The calls that say something is damaged."""
    codes = ("STORE_CORRUPT", "CHECKPOINT_INTEGRITY_FAILURE", "APPROVAL_INTEGRITY_FAILURE", '"damaged"')
    return [name for name, answer in answers.items() if any(code in json.dumps(answer) for code in codes)]


NAMING = {"graph_id", "graph_version", "run_id", "approval_id", "token_id", "target"}
"""A row has to be called somehow when it is said to be damaged."""
SILENT = {
    "requests", "answers", "outbox", "told",
}  # fmt: skip
"""Tables of which no reading tool tells: the engine acts on them, or the doctor and the start find them."""


def changed(column: str, value: Any) -> Any:
    if isinstance(value, int):
        return value + 1_000_003 if column.endswith("_ms") else value + 1
    if isinstance(value, bytes):
        return value[:-1] + bytes([value[-1] ^ 1])
    return f'"{MARK}"' if value is None else f"{value[:-1]}{MARK}" if value else MARK


def forge(path: Path, table: str, column: str) -> bool:
    """Change one column of every row as any program could; False where the schema itself does not let it."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        rows = connection.execute(f"SELECT {column} FROM {table}").fetchall()
        assert rows, f"{table} has a row to change"
        for place, (value,) in enumerate(rows):
            new = changed(column, value)
            new = f"{new}{place}" if isinstance(new, str) else new
            try:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS ?", (new, value))
            except sqlite3.IntegrityError:
                return False
    connection.close()
    return True


ONE_OF = {
    "graph_versions": ("spec", "description"), "graphs": ("hidden",),
    "runs": ("status", "principal", "seq", "final_state"),
    "events": ("body",), "snapshots": ("data",), "approvals": ("body", "run_no"), "requests": ("answer",),
    "answers": ("seq",), "tokens": ("scopes",), "outcomes": ("graph_id",), "origins": ("template_id",),
    "outbox": ("body",), "told": ("failure",),
}  # fmt: skip
MATTERS = sorted((sealed() | CHAINED | set(DERIVED)) - {("events", "event_no")})


READ = MATTERS if FULL else [(table, column) for table, column in MATTERS if column in ONE_OF.get(table, ())]
"""Columns that are read through every tool, too: all of them, or some of each table."""


def test_a_change_of_any_column_breaks_a_seal_or_the_chain(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    for table, column in MATTERS:
        path = tmp_path / f"{table}.{column}.db"
        shutil.copy(made[0] / "agent-graph.db", path)
        if not forge(path, table, column):
            continue  # SQLite refuses it
        with sqlite3.connect(path) as connection:
            row_seals.register(connection, row_seals.RowSeals(keys_of(made[0])))
            damaged = {found for found, _ in row_seals.damaged_rows(connection)}
            heads = connection.execute("SELECT run_no, seq, head FROM runs").fetchall()
            broken = [
                chain.first_damaged(logs.stored(run_no, connection), count=seq, head=head)
                for run_no, seq, head in heads
            ] if table == "events" else []  # fmt: skip
        connection.close()
        assert damaged or any(seq is not None for seq in broken), (table, column)


@pytest.mark.parametrize(("table", "column"), READ)
async def test_a_column_that_somebody_else_has_changed_is_noticed(
    table: str, column: str, made: tuple[Path, dict[str, str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, ids = tmp_path / "data", made[1]
    shutil.copytree(made[0], folder, ignore=shutil.ignore_patterns("*.sock"))
    if not forge(folder / "agent-graph.db", table, column):
        return  # SQLite refuses it
    findings = await diagnose(settings(folder), full=False)
    assert any(one.level == "unsound" and "STORE_CORRUPT" in one.said for one in findings), "the doctor finds it"
    caplog.set_level(logging.ERROR)
    async with app(folder) as deps:
        (look,) = [task for task in asyncio.all_tasks() if task.get_name() == "look over rows"] or [None]
        if look is not None:
            await look
        answers = await reads(Tools(deps), Tools(deps, OPERATOR), ids)
    told = json.dumps(answers)
    assert column in NAMING or MARK not in told, "nothing of it is told"
    if table != "events":
        assert "STORE_CORRUPT" in caplog.text, "the start says so"
    if table not in SILENT:
        assert noticed(answers), "a tool that reads it says so"
    for lists in ("graph_list {}", "graph_run_list {}", 'graph_approval_list {"status": "all"}', "graph_token_list {}"):
        assert answers[lists]["ok"], "a list does not die of a row"


async def test_an_untouched_folder_has_nothing_to_be_noticed(
    made: tuple[Path, dict[str, str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made[0], folder, ignore=shutil.ignore_patterns("*.sock"))
    caplog.set_level(logging.ERROR)
    assert [one for one in await diagnose(settings(folder), full=True) if one.level == "unsound"] == []
    async with app(folder) as deps:
        answers = await reads(Tools(deps), Tools(deps, OPERATOR), made[1])
    assert noticed(answers) == []
    assert "CORRUPT" not in caplog.text


@pytest.mark.parametrize("statement", [
    "UPDATE runs SET status = 'completed', final_state = '1'", "UPDATE runs SET principal = 'Zebra-7731'",
    "UPDATE snapshots SET seq = seq - 1",
    "UPDATE approvals SET status = 'approved'", "UPDATE requests SET answer = '{\"run_id\":\"Zebra-7731\"}'",
])  # fmt: skip
async def test_a_digest_that_anybody_can_make_is_no_seal_where_there_is_a_key(
    statement: str, made: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made[0], folder, ignore=shutil.ignore_patterns("*.sock"))
    with sqlite3.connect(folder / "agent-graph.db") as connection:
        row_seals.register(connection, row_seals.RowSeals())  # as good as a forger without the key can do
        connection.execute(statement)
        row_seals.seal_all(connection)
    connection.close()
    findings = await diagnose(settings(folder), full=False)
    assert any(one.name == "rows" and one.level == "unsound" for one in findings)
    async with app(folder) as deps:
        answers = await reads(Tools(deps), Tools(deps, OPERATOR), made[1])
    assert MARK not in json.dumps(answers)
    assert noticed(answers)


async def test_a_gate_whose_row_was_changed_cannot_be_decided(
    made: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, ids = tmp_path / "data", made[1]
    shutil.copytree(made[0], folder, ignore=shutil.ignore_patterns("*.sock"))
    with sqlite3.connect(folder / "agent-graph.db") as connection:
        connection.execute("UPDATE approvals SET body = replace(body, 'yes', 'no')")
    connection.close()
    async with app(folder) as deps:
        tools = Tools(deps)
        vote = {"approval_id": ids["open"], "decision": "approve", "decided_by": "ann"}
        refused = await tools.envelope("graph_approval_decide", **vote)
        assert refused["error_code"] == "APPROVAL_INTEGRITY_FAILURE"
        assert (await tools.ok("graph_run_get", run_id=ids["waiting"], include_approvals=False))["status"] == "waiting"


async def test_a_database_of_before_seals_is_sealed_as_it_is_found_and_that_is_said(
    made: tuple[Path, dict[str, str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made[0], folder, ignore=shutil.ignore_patterns("*.sock"))
    with sqlite3.connect(folder / "agent-graph.db") as connection:
        for table, column in [*row_seals.SEALED, ("graph_versions", "content")]:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 11")
    connection.close()
    caplog.set_level(logging.WARNING)
    async with app(folder) as deps:
        answers = await reads(Tools(deps), Tools(deps, OPERATOR), made[1])
    assert noticed(answers) == []
    assert "made before rows were sealed" in caplog.text
    assert [one for one in await diagnose(settings(folder), full=True) if one.level == "unsound"] == []
