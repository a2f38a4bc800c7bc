"""Captured sources: sealed when they come in, checked whenever they are shown, kept while a run cites them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.limits import DEFAULTS
from agent_graph.engine.keys import KeyRing, open_keys
from agent_graph.engine.retention import DAY_MS
from agent_graph.llm.scripted import ScriptedModel
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools, opened
from tests.specs import llm, spec

PAGE = {"locator": "https://example.org/bridge", "content": "Größe: 12 m.\r\nThe bridge opened in 1932.\n"}
MOMENT = "2026-01-31T12:00:00Z"


def key_of(folder: Path) -> KeyRing:
    return open_keys(folder / "keys", now_ms=1)


async def captured(tools: Tools, **more: Any) -> Any:
    return await tools.ok("graph_source_witness_capture", **{**PAGE, **more})


async def test_a_source_is_kept_to_the_byte_with_what_was_said_of_it(tools: Tools) -> None:
    made = await captured(tools, media_type="text/markdown", authority_class="local_primary_capture")
    got = await tools.ok("graph_source_witness_get", witness_id=made["witness_id"])
    assert {**made, "content": PAGE["content"]} == {**got, "created": True}
    assert got["content_bytes"] == len(PAGE["content"].encode())
    assert (got["media_type"], got["authority_class"]) == ("text/markdown", "local_primary_capture")
    assert (got["locator"], got["captured_via"]) == (PAGE["locator"], "assistant")
    assert got["retrieved_at_ms"] == got["captured_at_ms"]


async def test_with_its_moment_the_same_source_is_the_same_witness(tools: Tools) -> None:
    first = await captured(tools, retrieved_at=MOMENT)
    assert await captured(tools, retrieved_at="2026-01-31T13:00:00+01:00") == {**first, "created": False}
    for changed in ({"content": "other"}, {"locator": "other"}, {"media_type": "text/html"}):
        assert (await captured(tools, retrieved_at=MOMENT, **changed))["witness_id"] != first["witness_id"]


async def test_two_captures_at_once_make_one_witness(tools: Tools) -> None:
    made = await asyncio.gather(*(captured(tools, retrieved_at=MOMENT) for _ in range(5)))
    assert len({one["witness_id"] for one in made}) == 1
    assert [one["created"] for one in made].count(True) == 1


async def test_an_idempotency_key_gives_the_first_answer_again(tools: Tools) -> None:
    first = await captured(tools, idempotency_key="k")
    assert await captured(tools, idempotency_key="k") == first
    refused = await tools.refused("graph_source_witness_capture", **{**PAGE, "content": "x"}, idempotency_key="k")
    assert refused["error_code"] == "IDEMPOTENCY_CONFLICT"


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        ({"media_type": "application/pdf"}, "INVALID_ARGUMENT", "text/markdown"),
        ({"media_type": "image/png"}, "INVALID_ARGUMENT", "media_type"),
        ({"content": ""}, "INVALID_ARGUMENT", "content"), ({"locator": ""}, "INVALID_ARGUMENT", "locator"),
        ({"locator": "a\nb"}, "INVALID_ARGUMENT", "locator"),
        ({"authority_class": "notarised"}, "INVALID_ARGUMENT", "authority_class"),
        ({"retrieved_at": "yesterday"}, "INVALID_ARGUMENT", "RFC 3339"),
        ({"retrieved_at": "2999-01-01T00:00:00Z"}, "INVALID_ARGUMENT", "future"),
        ({"url": "https://example.org"}, "UNKNOWN_ARGUMENT", "url"),
        ({"content": "\ud800"}, "INPUT_INVALID", "surrogate"),
    ],
)  # fmt: skip
async def test_what_is_no_source_is_refused_and_nothing_kept(
    tools: Tools, wrong: dict[str, Any], code: str, said: str
) -> None:
    refused = await tools.refused("graph_source_witness_capture", **{**PAGE, **wrong})
    assert refused["error_code"] == code, refused
    assert said in refused["error"]
    assert await tools.deps.store.witnesses.idle(before_ms=2**53) == ((), 0)


async def test_a_source_has_so_many_bytes_and_not_one_more(tools: Tools) -> None:
    limit = DEFAULTS.witness_bytes
    assert limit == 256 * 1024
    text = "ö" * (limit // 2)
    made = await captured(tools, content=text)
    assert made["content_bytes"] == limit
    refused = await tools.refused("graph_source_witness_capture", **{**PAGE, "content": text + "x"})
    assert (refused["error_code"], refused["details"]) == ("INPUT_TOO_LARGE", {"limit": limit, "bytes": limit + 1})
    parts, offset = "", 0
    while offset is not None:
        got = await tools.ok("graph_source_witness_get", witness_id=made["witness_id"], offset=offset)
        parts, offset = parts + got["content"], got["next_offset"]
    assert parts == text


async def test_a_source_that_holds_a_secret_is_refused_and_told_where(tools: Tools) -> None:
    content = f"{PAGE['content']}token: ghp_{'a1B2' * 9}"
    refused = await tools.refused("graph_source_witness_capture", **{**PAGE, "content": content})
    assert refused["error_code"] == "INPUT_INVALID"
    assert content[refused["details"]["start"] : refused["details"]["end"]].endswith("a1B2")
    assert "ghp_" not in json.dumps(refused)


async def test_a_secret_in_an_address_is_not_kept(tools: Tools) -> None:
    made = await captured(tools, locator="https://ann:hunter2secret@example.org/")
    assert made["locator"] == "https://[redacted]@example.org/"


async def test_a_witness_nobody_captured_is_not_there(tools: Tools) -> None:
    refused = await tools.refused("graph_source_witness_get", witness_id="wit-0")
    assert refused["error_code"] == "WITNESS_NOT_FOUND"


async def test_what_another_has_captured_is_as_if_it_were_not_there(tools: Tools) -> None:
    scopes = frozenset({"runs:read", "runs:write"})
    ann, bob = (Tools(tools.deps, Caller("assistant", "c", principal=name, scopes=scopes)) for name in ("ann", "bob"))
    made = await captured(ann, retrieved_at=MOMENT)
    assert made["principal"] == "ann"
    assert (await captured(bob, retrieved_at=MOMENT))["witness_id"] != made["witness_id"]
    refused = await bob.refused("graph_source_witness_get", witness_id=made["witness_id"])
    assert refused["error_code"] == "WITNESS_NOT_FOUND"
    assert (await tools.ok("graph_source_witness_get", witness_id=made["witness_id"]))["principal"] == "ann"


@pytest.mark.parametrize("scopes", [frozenset({"runs:read"}), frozenset({"approvals:decide"})])
async def test_capturing_needs_the_right_to_write(tools: Tools, scopes: frozenset[str]) -> None:
    weak = Tools(tools.deps, Caller("assistant", "c", principal="ann", scopes=scopes))
    refused = await weak.refused("graph_source_witness_capture", **PAGE)
    assert refused["error_code"] == "INSUFFICIENT_SCOPE"


async def test_without_a_key_nothing_is_captured_or_shown(tmp_path: Path) -> None:
    async with opened(folder=tmp_path, keys=key_of(tmp_path)) as deps:
        made = await captured(Tools(deps))
    async with opened(folder=tmp_path, keys=open_keys(None, now_ms=1, keyless=True)) as deps:
        keyless = Tools(deps)
        for name, arguments in (
            ("graph_source_witness_capture", PAGE), ("graph_source_witness_get", {"witness_id": made["witness_id"]}),
        ):  # fmt: skip
            refused = await keyless.refused(name, **arguments)
            assert refused["error_code"] == "INTEGRITY_KEY_REQUIRED"
            assert "1932" not in json.dumps(refused)
        assert len((await deps.store.witnesses.idle(before_ms=2**53))[0]) == 1


async def test_a_key_of_another_folder_proves_nothing(tmp_path: Path) -> None:
    async with opened(folder=tmp_path, keys=key_of(tmp_path)) as deps:
        made = await captured(Tools(deps))
    async with opened(folder=tmp_path, keys=open_keys(None, now_ms=1)) as deps:
        refused = await Tools(deps).refused("graph_source_witness_get", witness_id=made["witness_id"])
        assert refused["error_code"] == "WITNESS_INTEGRITY_FAILURE"


CHANGES = {
    "principal": "'bob'", "locator": "'other'", "media_type": "'text/html'", "authority_class": "'primary'",
    "retrieved_at_ms": "retrieved_at_ms + 1", "captured_at_ms": "captured_at_ms + 1", "via": "'cli'",
    "digest": "'sha256:' || substr(digest, 8, 63) || '0'", "content": "CAST('The bridge opened in 1933.' AS BLOB)",
    "key_id": "'hmac:0'", "seal": "substr(seal, 1, length(seal) - 1) || 'g'",
}  # fmt: skip


def changed(path: Path, setting: str) -> None:
    with sqlite3.connect(path / "agent-graph.db") as connection:
        assert connection.execute(f"UPDATE witnesses SET {setting}").rowcount == 1
    connection.close()


@pytest.mark.parametrize("setting", [
    *(f"{column} = {value}" for column, value in CHANGES.items()),
    "content = 'text'", "content = X''", "captured_at_ms = 'x'", "retrieved_at_ms = 1.5", "seal = X'00'", "digest = 7",
])  # fmt: skip
async def test_whatever_was_changed_is_noticed_and_not_shown(tmp_path: Path, setting: str) -> None:
    keys = key_of(tmp_path)
    async with opened(folder=tmp_path, keys=keys) as deps:
        made = await captured(Tools(deps), retrieved_at=MOMENT)
    changed(tmp_path, setting)
    async with opened(folder=tmp_path, keys=keys) as deps:
        tools = Tools(deps)
        asked: list[tuple[str, Any]] = [("graph_source_witness_get", {"witness_id": made["witness_id"]}),
                                        ("graph_source_witness_capture", {**PAGE, "retrieved_at": MOMENT})]  # fmt: skip
        for name, arguments in asked:
            refused = await tools.refused(name, **arguments)
            assert refused["error_code"] == "WITNESS_INTEGRITY_FAILURE"
            assert "bridge" not in json.dumps(refused).replace("example.org/bridge", "")


def test_every_column_of_a_witness_but_its_place_and_name_is_among_those_changed(tmp_path: Path) -> None:
    from agent_graph.store.base import WitnessRow

    assert {"witness_id", *CHANGES} == set(WitnessRow.__dataclass_fields__)


async def test_a_witness_under_another_name_is_noticed(tmp_path: Path) -> None:
    keys = key_of(tmp_path)
    async with opened(folder=tmp_path, keys=keys) as deps:
        await captured(Tools(deps))
    changed(tmp_path, "witness_id = 'wit-other'")
    async with opened(folder=tmp_path, keys=keys) as deps:
        refused = await Tools(deps).refused("graph_source_witness_get", witness_id="wit-other")
        assert refused["error_code"] == "WITNESS_INTEGRITY_FAILURE"


# What is kept


class Later:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.at_ms = 1_900_000_000_000

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep_ms(self, _ms: int) -> None:
        await asyncio.Event().wait()


async def test_pruning_takes_old_sources_and_says_which_a_run_still_cites() -> None:
    clock = Later()
    claims: dict[str, Any] = {"claims": []}

    async def answer(_call: Any) -> Any:
        return claims

    graph = spec(llm("a", "cite", json_mode=True, evidence_required=True), edges="a>END")
    async with opened(ScriptedModel(answer), clock=clock) as deps:
        tools = Tools(deps, Caller("cli"))
        cited, spare = await captured(tools), await captured(tools, content="nobody cites this")
        claims["claims"] = [{"text": "Gr", "witness_id": cited["witness_id"], "span": {"start": 0, "end": 2}}]
        await tools.ok("graph_create", spec=graph)
        run = await tools.ended(graph["name"])
        assert run["status"] == "completed", run
        await deps.store.runs.pin(run["run_id"], pinned=True)
        clock.at_ms += 2 * DAY_MS
        fresh = await captured(tools, content="this is new")
        planned = await tools.ok("graph_store_prune", days=1, dry_run=True)
        assert (planned["witnesses"], planned["witnesses_cited"]) == (
            [{"witness_id": spare["witness_id"], "bytes": 17}], 1,
        )  # fmt: skip
        assert (await tools.ok("graph_store_prune", days=1))["witnesses"] == planned["witnesses"]
        await tools.ok("graph_source_witness_get", witness_id=cited["witness_id"])
        await deps.store.runs.pin(run["run_id"], pinned=False)
        gone = await tools.ok("graph_store_prune", days=1)
        assert [one["witness_id"] for one in gone["witnesses"]] == [cited["witness_id"]]
        assert (len(gone["runs"]), gone["witnesses_cited"]) == (1, 0)
        await tools.ok("graph_source_witness_get", witness_id=fresh["witness_id"])
        assert (await tools.ok("graph_store_prune", runs=1))["witnesses"] == []
