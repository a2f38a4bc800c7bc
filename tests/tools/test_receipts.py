"""graph_run_receipt: what was sealed when a run ended is checked before anything is said, and fails closed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.dsse import check_envelope
from agent_graph.core.jsonvalue import digest
from agent_graph.core.receipt_check import check
from agent_graph.core.redact import redactor
from agent_graph.engine import receipts
from agent_graph.engine.key_changes import create_pair, retire, rotate
from agent_graph.engine.keys import KeyRing, open_keys
from tests.fakes.opened import Tools, opened
from tests.fakes.receipts import approved, checking, council_spec
from tests.specs import gate, llm, spec
from tests.tools.specs import keep


@pytest.fixture
def keys(tmp_path: Path) -> KeyRing:
    return open_keys(tmp_path, now_ms=0)


@pytest.fixture
async def tools(tmp_path: Path, keys: KeyRing) -> AsyncIterator[Tools]:
    async with opened(folder=tmp_path, keys=keys) as deps:
        yield Tools(deps)


def sql(folder: Path, statement: str, *values: Any) -> list[Any]:
    """Somebody with a shell and the database."""
    with sqlite3.connect(folder / "agent-graph.db") as another:
        found = another.execute(statement, values).fetchall()
    another.close()
    return found


def leaf(receipt: Any, path: str) -> Any:
    [found] = [one for one in receipt["leaves"] if one["node_path"] == path]
    return found


async def test_a_receipt_tells_of_every_firing_who_did_it_and_who_decided(tools: Tools) -> None:
    run_id = await approved(tools)
    answer = await tools.ok("graph_run_receipt", run_id=run_id)
    receipt, run = answer["receipt"], await tools.ok("graph_run_get", run_id=run_id)
    assert answer.keys() == {"receipt", "integrity"}
    assert answer["integrity"]["verified"] is True
    assert answer["integrity"]["digest"] == digest(receipt)
    assert (receipt["kind"], receipt["run_id"], receipt["status"]) == ("agent-graph-receipt-v1", run_id, "completed")
    assert receipt["graph"]["graph_version"] == run["graph_version"]
    assert receipt["times"] == {name: receipt["times"][name] for name in (
        "accepted_at_ms", "started_at_ms", "finished_at_ms"
    )}  # fmt: skip
    assert receipt["times"]["finished_at_ms"] == run["finished_at_ms"]
    assert receipt["input"] == digest({"topic": "tea é", "weight": 1.5, "big": 2**70})
    assert receipt["output"] == digest(run["final_state"])
    assert receipt["leaves"][0]["node_path"] == "fork#1"
    assert sorted(one["node_path"] for one in receipt["leaves"]) == [
        "a#1", "b#1", "c#1", "end#1", "fork#1", "g#1", "j#1",
    ]  # fmt: skip
    model = leaf(receipt, "a#1")
    assert (model["performer"], model["outcome"], model["attempt"]) == ("server:scripted/scripted", "finished", 1)
    [call] = model["calls"]
    assert (call["performer"], call["prompt_tokens"]) == ("server:scripted/scripted", 2)
    assert leaf(receipt, "j#1")["performer"] == "engine"
    assert leaf(receipt, "g#1")["performer"] == "person"
    [approval] = receipt["approvals"]
    [vote] = approval["votes"]
    assert (approval["status"], vote["decided_by"], vote["via"]) == ("approved", "ada", "assistant")
    assert vote["decision_note"] == digest("fine")
    assert receipt["sealed"]["late"] is False
    assert "that a model was called" in receipt["not_proven"][0]


async def test_two_runs_with_the_same_answers_share_their_record_and_no_receipt(tools: Tools) -> None:
    first, second = [
        (await tools.ok("graph_run_receipt", run_id=await approved(tools, value)))["receipt"]
        for value in ({"topic": "x", "n": 1}, {"n": 1, "topic": "x"})  # keys in another order
    ]
    assert (first["record"], first["input"], first["output"]) == (second["record"], second["input"], second["output"])
    assert digest(first) != digest(second)


async def test_the_digest_is_the_same_after_a_restart_and_with_another_key(tmp_path: Path, keys: KeyRing) -> None:
    async with opened(folder=tmp_path, keys=keys) as deps:
        tools = Tools(deps)
        run_id = await approved(tools)
        before = await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=True)
    rotate(keys, now_ms=5)
    async with opened(folder=tmp_path, keys=open_keys(tmp_path, now_ms=9)) as deps:
        after = await Tools(deps).ok("graph_run_receipt", run_id=run_id, include_bundle=True)
    assert after["receipt"] == before["receipt"]
    assert after["bundle"] == before["bundle"]
    assert after["integrity"]["digest"] == before["integrity"]["digest"]
    assert after["integrity"]["key_id"] != before["integrity"]["key_id"]
    assert check(before, checking(keys)).authentic is True
    assert check(after, checking(keys)).authentic is True


async def test_in_memory_there_are_receipts_too() -> None:
    async with opened() as deps:
        tools = Tools(deps)
        await tools.ok("graph_create", spec=keep())
        run = await tools.ended("keep", {"text": "x"})
        answer = await tools.ok("graph_run_receipt", run_id=run["run_id"], include_bundle=True)
    assert check(answer, checking(deps.keys)).faults == ()
    assert answer["receipt"]["sealed"]["late"] is False


async def test_a_pair_seals_for_others_to_check(tools: Tools, keys: KeyRing) -> None:
    create_pair(keys, now_ms=1)
    answer = await tools.ok("graph_run_receipt", run_id=await approved(tools), include_bundle=True)
    public = {key_id: key for key_id, key in checking(keys).items() if key_id.startswith("ed25519:")}
    assert answer["integrity"]["seal"].startswith("ed25519:")
    assert check(answer, public).authentic is True
    retire(keys, answer["integrity"]["key_id"], now_ms=2**50)
    again = await tools.ok("graph_run_receipt", run_id=answer["receipt"]["run_id"])
    assert again["receipt"] == answer["receipt"]
    assert again["integrity"]["seal"].startswith("hmac-sha256:")


async def test_what_a_key_sealed_after_it_was_retired_is_refused(tools: Tools, keys: KeyRing) -> None:
    pair = create_pair(keys, now_ms=1)
    run_id = await approved(tools)
    retire(keys, pair.key_id, now_ms=2)  # long before the run ended
    refusal = await tools.refused("graph_run_receipt", run_id=run_id)
    assert refusal["error_code"] == "RECEIPT_INTEGRITY_FAILURE"
    assert refusal["details"]["place"] == "seal"


async def test_as_an_envelope(tools: Tools, keys: KeyRing) -> None:
    run_id = await approved(tools)
    answer = await tools.ok("graph_run_receipt", run_id=run_id, format="dsse")
    assert check_envelope(answer["envelope"], checking(keys)).authentic is True
    refusal = await tools.refused("graph_run_receipt", run_id=run_id, format="dsse", include_bundle=True)
    assert refusal["error_code"] == "INVALID_ARGUMENT"


async def test_the_expected_digest_is_the_bundles_with_it_and_else_the_receipts(tools: Tools) -> None:
    run_id = await approved(tools)
    whole = (await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=True))["integrity"]
    for bundle, name, other in ((False, "digest", "bundle_digest"), (True, "bundle_digest", "digest")):
        await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=bundle, expected_digest=whole[name])
        refusal = await tools.refused(
            "graph_run_receipt", run_id=run_id, include_bundle=bundle, expected_digest=whole[other]
        )
        assert (refusal["error_code"], refusal["details"]["digest"]) == ("RECEIPT_DIGEST_MISMATCH", whole[name])


async def test_a_run_that_has_not_ended_has_none(tools: Tools) -> None:
    created = await tools.ok("graph_create", spec=spec(gate("g"), name="waits", output_key="g"))
    run_id = await tools.run(created["graph_id"])
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    refusal = await tools.refused("graph_run_receipt", run_id=run_id)
    assert (refusal["error_code"], refusal["details"]["status"]) == ("RECEIPT_NOT_READY", "waiting")
    assert (await tools.refused("graph_run_receipt", run_id="run-0"))["error_code"] == "RUN_NOT_FOUND"
    await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
    await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
    receipt = (await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=True))["receipt"]
    assert (receipt["status"], receipt["output"]) == ("cancelled", None)
    assert leaf(receipt, "g#1")["outcome"] == "cancelled"
    assert receipt["approvals"][0]["status"] == "withdrawn"


async def test_a_keyless_folder_has_no_receipts_and_runs_all_the_same(tmp_path: Path) -> None:
    async with opened(folder=tmp_path, keys=open_keys(tmp_path, now_ms=0, keyless=True)) as deps:
        tools = Tools(deps)
        run_id = await approved(tools)
        refusal = await tools.refused("graph_run_receipt", run_id=run_id)
        assert refusal["error_code"] == "INTEGRITY_KEY_REQUIRED"
        status = await tools.ok("graph_status", resource="receipt", run_id=run_id)
        assert (status["ready"], status["sealed"], status["key_mode"]) == (False, False, "keyless")


async def test_a_failed_run_tells_where_and_quotes_no_message(tools: Tools) -> None:
    await tools.ok("graph_create", spec=spec(llm("a", prompt="{nothing}"), name="fails", output_key="a"))
    run = await tools.ended("fails", {"x": 1})
    receipt = (await tools.ok("graph_run_receipt", run_id=run["run_id"]))["receipt"]
    assert (receipt["status"], receipt["error"]["code"]) == ("failed", "PROMPT_VALUE_MISSING")
    assert receipt["error"]["node_path"] == "a#1"
    assert leaf(receipt, "a#1") == {
        **leaf(receipt, "a#1"), "outcome": "failed", "error_code": "PROMPT_VALUE_MISSING", "performer": None,
    }  # fmt: skip


async def test_an_answer_used_again_is_marked_with_the_run_it_comes_from(tools: Tools) -> None:
    await tools.ok("graph_create", spec=spec(llm("a", prompt="{topic}", cache=True), name="again", output_key="a"))
    first, second = await tools.ended("again", {"topic": "x"}), await tools.ended("again", {"topic": "x"})
    [call] = leaf((await tools.ok("graph_run_receipt", run_id=second["run_id"]))["receipt"], "a#1")["calls"]
    assert call["cached_from"] == first["run_id"]


async def test_what_looks_like_a_secret_is_in_no_bundle_and_the_chain_still_holds(tools: Tools, keys: KeyRing) -> None:
    run_id = await approved(tools)
    deps = tools.deps
    row, log = await deps.store.runs.get(run_id), await deps.store.seals.of(run_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    issued = receipts.issue(graph, log, keys, withhold=redactor(patterns=("tea",)))
    answer: Any = {"receipt": issued.receipt, "integrity": issued.integrity, "bundle": issued.bundle}
    assert "tea" not in json.dumps(answer)
    assert answer["bundle"]["events"][0].keys() == {"seq", "prev", "hash"}
    checked = check(answer, checking(keys))
    assert checked.authentic is True
    assert "events are withheld" in checked.notes[0]


async def test_another_principals_receipt_is_not_found(tools: Tools) -> None:
    from agent_graph.tools.deps import Caller

    run_id = await approved(tools)
    other = Tools(tools.deps, Caller("assistant", principal="eve", scopes=frozenset({"runs:read"})))
    assert (await other.envelope("graph_run_receipt", run_id=run_id))["error_code"] == "RUN_NOT_FOUND"


# -- tampering -------------------------------------------------------------------------------------------------------

EVENT = "UPDATE events SET body = replace(body, 'tea', 'ale') WHERE event_no = (SELECT min(event_no) FROM events)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (EVENT, "events[0] was changed"),
        ("DELETE FROM events WHERE event_no = (SELECT max(event_no) FROM events)", "was removed"),
        ("DELETE FROM events WHERE event_no = (SELECT min(event_no) + 3 FROM events)", "events[3] was removed"),
        ("UPDATE runs SET head = 'ab' || substr(head, 3)", "was changed"),
        ("UPDATE runs SET status = 'failed'", "its seal is not one"),
        ("UPDATE runs SET seq = seq - 1", "was added"),
        ("UPDATE runs SET seal = replace(seal, 'hmac-sha256:', 'hmac-sha256:0')", "its seal is not one"),
        ("UPDATE runs SET seal = replace(seal, '\"late\":false', '\"late\":true')", "its seal is not one"),
        ("UPDATE runs SET seal = NULL", "there was a key already, and has no seal"),
        ("UPDATE runs SET seal = '{}'", "its seal is not one"),
    ],
)
async def test_what_was_tampered_with_gives_no_receipt_and_leaks_nothing(
    tools: Tools, tmp_path: Path, change: str, said: str
) -> None:
    run_id = await approved(tools)
    sql(tmp_path, change)
    before = sql(tmp_path, "SELECT * FROM runs"), sql(tmp_path, "SELECT * FROM events")
    refusal = await tools.envelope("graph_run_receipt", run_id=run_id, include_bundle=True)
    assert (refusal["ok"], refusal["error_code"]) == (False, "RECEIPT_INTEGRITY_FAILURE")
    assert said in refusal["error"]
    for secret in ("tea", "ada", "fine"):
        assert secret not in json.dumps(refusal)
    assert (sql(tmp_path, "SELECT * FROM runs"), sql(tmp_path, "SELECT * FROM events")) == before


async def test_a_chain_hashed_anew_by_somebody_without_the_key_is_refused(tools: Tools, tmp_path: Path) -> None:
    """Plain hashes anybody can make; the seal of the head nobody without the key."""
    from agent_graph.store import chain
    from agent_graph.store.base import StoredEvent

    run_id = await approved(tools)
    rows = sql(tmp_path, "SELECT event_no, body FROM events ORDER BY event_no")
    bodies = [json.loads(body.replace("tea", "ale")) for _, body in rows]
    events = [chain.event_of(run_id, StoredEvent(body["seq"], body["at_ms"], body)) for body in bodies]
    texts, head = chain.encode(events, seq=0, head=chain.NO_EVENT)
    for (event_no, _), text in zip(rows, texts, strict=True):
        sql(tmp_path, "UPDATE events SET body = ? WHERE event_no = ?", text, event_no)
    sql(tmp_path, "UPDATE runs SET head = ?", head)
    assert await tools.deps.store.runs.verify_chain(run_id) is None
    refusal = await tools.envelope("graph_run_receipt", run_id=run_id)
    assert refusal["error_code"] == "RECEIPT_INTEGRITY_FAILURE"
    assert "its seal is not one" in refusal["error"]


async def test_the_seal_of_another_run_does_not_fit(tools: Tools, tmp_path: Path) -> None:
    first, second = await approved(tools), await approved(tools)
    sql(tmp_path, "UPDATE runs SET seal = (SELECT seal FROM runs WHERE run_id = ?) WHERE run_id = ?", first, second)
    refusal = await tools.envelope("graph_run_receipt", run_id=second)
    assert refusal["error_code"] == "RECEIPT_INTEGRITY_FAILURE"


async def test_a_key_that_is_missing_is_named_and_the_database_is_not_accused(tools: Tools, keys: KeyRing) -> None:
    run_id = await approved(tools)
    missing = keys.key_id
    rotate(keys, now_ms=2_000)
    assert keys.folder is not None
    book = json.loads((keys.folder / "keys.json").read_text())
    del book["keys"][missing]
    (keys.folder / "keys.json").write_text(json.dumps(book))
    refusal = await tools.envelope("graph_run_receipt", run_id=run_id)
    assert refusal["error_code"] == "RECEIPT_INTEGRITY_FAILURE"
    assert refusal["details"]["reason"] == "key_missing"
    assert missing in refusal["error"]
    assert "copy of the database" not in refusal["error"]


# -- runs of before --------------------------------------------------------------------------------------------------


async def test_a_run_that_ended_before_there_was_a_key_is_sealed_late_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    async with opened(folder=tmp_path, keys=open_keys(tmp_path / "old", now_ms=0, keyless=True)) as deps:
        run_id = await approved(Tools(deps))
    keys = open_keys(tmp_path, now_ms=2**50)  # the first start of a program that seals
    async with opened(folder=tmp_path, keys=keys) as deps:
        tools = Tools(deps)
        status = await tools.ok("graph_status", resource="receipt", run_id=run_id)
        assert (status["ready"], status["sealed"]) == (True, False)
        first = await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=True)
        again = await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=True)
    assert first == again
    assert first["receipt"]["sealed"]["late"] is True
    assert first["receipt"]["sealed"]["sealed_at_ms"] > first["receipt"]["times"]["finished_at_ms"]
    checked = check(first, checking(keys))
    assert checked.authentic is True
    assert "sealed late" in checked.notes[-1]
    assert council_spec()["name"] == first["receipt"]["graph"]["graph_id"]


async def test_a_pruned_run_has_no_receipt(tools: Tools) -> None:
    run_id = await approved(tools)
    await tools.deps.store.retention.prune([run_id])
    assert (await tools.refused("graph_run_receipt", run_id=run_id))["error_code"] == "RUN_PRUNED"
