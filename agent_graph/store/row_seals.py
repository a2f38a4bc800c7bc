"""Seals over rows: which columns of which table one covers, made in the statement that writes a row and checked in the
one that reads it; holds no key and may not mend a row.

Two functions of SQL do it: ``row_seal(name, values...)`` gives the text that is kept in the column ``row_seal``, and
``row_holds(row_seal, name, values...)`` says whether a row is what was written. So a row that somebody else has changed
is found wherever it is read, and one that is damaged is never sealed again by the way: `resealing` keeps the seal that
is wrong.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from agent_graph.core.jsonvalue import quoted
from agent_graph.core.sealing import HmacKey, Verifier
from agent_graph.errors import StoreCorrupt

STEP: Final = 200
"""Rows that are looked over in one go."""
_LOOK_S: Final = 1.0
_UNKEYED: Final = "sha256."

_RUN_ID: Final = "(SELECT owner.run_id FROM runs AS owner WHERE owner.run_no = {table}.run_no)"
MADE: Final = (
    "run_id",
    "graph_id",
    "graph_version",
    "thread_id",
    "created_at_ms",
    "principal",
    "forked_from",
    "pinned",
    "first_seq",
)
"""Of a run what no step changes: under a seal of its own, so that a step need not know it."""
MOVED: Final = (
    "run_id", "status", "seq", "head", "started_at_ms", "finished_at_ms", "error", "usage", "final_state", "budget",
    "wake_at_ms",
)  # fmt: skip
"""And what each does."""
SEALED: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("graph_versions", "row_seal"): (
        "graph_id", "graph_version", "description", "node_count", "edge_count", "stored_at_ms", "content",
    ),
    ("graphs", "row_seal"): ("graph_id", "graph_version", "updated_at_ms", "hidden"),
    ("runs", "made_seal"): MADE,
    ("runs", "row_seal"): MOVED,
    ("snapshots", "row_seal"): (_RUN_ID, "seq", "digest"),
    ("approvals", "row_seal"): (
        "approval_id", _RUN_ID, "status", "created_at_ms", "expires_at_ms", "audience", "body",
    ),
    ("requests", "row_seal"): ("key", "request_digest", "answer", "run_id"),
    ("answers", "row_seal"): ("key", _RUN_ID, "seq"),
    ("tokens", "row_seal"): (
        "token_id", "principal", "digest", "scopes", "created_at_ms", "expires_at_ms", "revoked_at_ms",
    ),
    ("outcomes", "row_seal"): (
        "graph_id", "graph_version", "status", "code", "runs", "llm_calls", "tokens", "token_runs", "wall_clock_ms",
        "first_at_ms", "last_at_ms",
    ),
    ("origins", "row_seal"): ("graph_id", "graph_version", "template_id", "template_version"),
    ("outbox", "row_seal"): ("target", "notice_id", "at_ms", "body", "tries", "next_at_ms"),
    ("told", "row_seal"): ("target", "delivered", "given_up", "delivered_at_ms", "failed_at_ms", "failure"),
}  # fmt: skip
"""By table and the column that holds the seal: what it covers, in order."""
IDENTITY: Final[Mapping[str, str]] = {
    "graph_versions": "graph_id || ' ' || graph_version", "graphs": "graph_id", "runs": "run_id",
    "snapshots": _RUN_ID, "approvals": "approval_id", "requests": "key", "answers": "key", "tokens": "token_id",
    "outcomes": "graph_id || ' ' || graph_version", "origins": "graph_id || ' ' || graph_version",
    "outbox": "notice_id", "told": "target",
}  # fmt: skip
"""How a row of a table is called in a finding."""


FOLLOWS: Final[Mapping[str, str]] = {
    "graph_versions": "graph_versions.content IS row_content(graph_versions.spec, graph_versions.compiled)",
    "snapshots": "snapshots.digest IS row_digest(CAST(snapshots.data AS BLOB))",
}
"""What else is to hold of a row, which readers of it check by themselves."""


class Ring(Protocol):
    """The keys of a folder (`engine.keys.KeyRing`)."""

    def mac_key(self) -> HmacKey: ...

    def verifier(self, key_id: str, *, sealed_at_ms: int | None = None) -> Verifier | None: ...


class RowSeals:
    """Makes and checks the seals of one database. Without a ring they are plain digests, which tell of an accident and
    not of somebody who knows how they are made."""

    __slots__ = ("_key", "_next", "_ring")

    def __init__(self, ring: Ring | None = None) -> None:
        self._ring = ring
        self._key: HmacKey | None = None
        self._next = 0.0

    def make(self, table: str, *values: Any) -> str:
        data = _data(table, values)
        key = self._key_now()
        return f"{key.key_id}.{key.mac(data)}" if key is not None else _UNKEYED + hashlib.sha256(data).hexdigest()

    def holds(self, seal: Any, table: str, *values: Any) -> bool:
        """Whether `seal` was made over these values, by a key that the folder has or had."""
        data = _data(table, values)
        if not isinstance(seal, str):
            return False
        if self._ring is None:
            return seal == _UNKEYED + hashlib.sha256(data).hexdigest()
        key_id, _, value = seal.partition(".")
        key = self._key_now()
        if key is not None and key_id == key.key_id:
            return key.verify(data, value)
        verifier = self._ring.verifier(key_id, sealed_at_ms=0)  # also one that was retired since
        return verifier is not None and verifier.verify(data, value)

    def _key_now(self) -> HmacKey | None:
        """The key that seals; another process may have rotated it a moment ago."""
        if self._ring is not None and time.monotonic() >= self._next:
            self._key = self._ring.mac_key()
            self._next = time.monotonic() + _LOOK_S
        return self._key


class NoSeals(RowSeals):
    """Of a database in memory, which nobody else can change."""

    __slots__ = ()

    def make(self, table: str, *values: Any) -> str:  # noqa: ARG002  (as its base has it)
        return ""

    def holds(self, seal: Any, table: str, *values: Any) -> bool:  # noqa: ARG002  (as its base has it)
        return True


def _data(table: str, values: tuple[Any, ...]) -> bytes:
    """Unambiguous, and quicker than JSON: texts in quotes, with every line break in them escaped."""
    said = [quoted(value) if type(value) is str else repr(value) for value in values]
    return "\n".join((table, *said)).encode("utf-8", "surrogatepass")


def register(connection: sqlite3.Connection, seals: RowSeals) -> None:
    """Give a connection the two functions."""
    connection.create_function("row_seal", -1, seals.make, deterministic=True)
    connection.create_function("row_holds", -1, seals.holds, deterministic=True)
    connection.create_function("row_content", 2, content, deterministic=True)
    connection.create_function("row_digest", 1, lambda data: hashlib.sha256(data).hexdigest(), deterministic=True)


def values(table: str, column: str = "row_seal") -> str:
    """The values a seal covers, as SQL over the columns of its table."""
    listed = (f"{table}.{one}" if one.isidentifier() else one.format(table=table) for one in SEALED[table, column])
    return ", ".join((f"'{table}.{column}'", *listed))


def seal(table: str, column: str = "row_seal") -> str:
    """The seal of a row as it is, as SQL."""
    return f"row_seal({values(table, column)})"


def holds(table: str, column: str = "row_seal") -> str:
    """Whether a row is what was written, as SQL."""
    return f"row_holds({table}.{column}, {values(table, column)})"


def sealing(table: str, given: Mapping[str, str], column: str = "row_seal") -> str:
    """The seal of a row that is about to be written, as SQL: `given` has the new value of columns by name, or of
    ``run_id`` where the table holds a number; the other columns stay."""
    listed = []
    for one in SEALED[table, column]:
        name = one if one.isidentifier() else "run_id"
        listed.append(given.get(name) or (f"{table}.{name}" if one.isidentifier() else one.format(table=table)))
    return f"row_seal('{table}.{column}', {', '.join(listed)})"


def resealing(table: str, given: Mapping[str, str], column: str = "row_seal") -> str:
    """As `sealing`, of a row that is there; the seal of one that is damaged stays wrong."""
    return f"CASE WHEN {holds(table, column)} THEN {sealing(table, given, column)} ELSE {table}.{column} END"


def content(spec: str, compiled: str) -> str:
    """The digest of the two texts of a version of a graph."""
    return hashlib.sha256(f"{len(str(spec))} {spec}{compiled}".encode("utf-8", "surrogatepass")).hexdigest()


def seal_all(connection: sqlite3.Connection) -> int:
    """Seal every row as it is found, once, when a database of before seals is brought up to date; how many."""
    count = 0
    for table, column in SEALED:
        count += connection.execute(f"UPDATE {table} SET {column} = {seal(table, column)}").rowcount
    return count


def damaged_rows(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """(table, name) of rows that are not what was written, the first of each table."""
    found: dict[tuple[str, str], None] = {}
    for table, column in SEALED:
        found.update(dict.fromkeys((table, name) for name in damaged_in(table, column, 0, connection)[0]))
    return list(found)


def damaged_in(
    table: str, column: str, offset: int, connection: sqlite3.Connection, *, limit: int = -1
) -> tuple[list[str], bool]:
    """How the damaged ones among `limit` rows of a table are called, and whether there are more behind those."""
    named = IDENTITY[table].format(table=table)
    sql = f"SELECT {named}, {holds(table, column)} AND {FOLLOWS.get(table, 1)} FROM {table} LIMIT ? OFFSET ?"
    rows = connection.execute(sql, (limit, offset)).fetchall()
    return [str(name) for name, whole in rows if not whole], len(rows) == limit


def damaged(table: str, name: str) -> StoreCorrupt:
    """The refusal of a row that cannot be trusted; says nothing of what stands in it."""
    return StoreCorrupt(
        f"The row of {name} in {table} is not what this program wrote: something else has changed the database. It was "
        "left as it is, and nothing of it is told: put a copy of the database back. `agent-graph doctor` names all "
        "rows that are damaged.",
        check="row seal", table=table, row=name,
    )  # fmt: skip
