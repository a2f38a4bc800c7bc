"""The test vectors of docs/reference/receipt.md: the same bytes as ever, and what they say holds or is named."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core import dsse, merkle
from agent_graph.core import events as e
from agent_graph.core.jsonvalue import canonical, canonical_text, digest, parse_json
from agent_graph.core.receipt_file import check_file
from agent_graph.core.sealing import Ed25519Pair, Ed25519Public, HmacKey, Verifier
from tests.core.played import compiled, gate, llm, plain, play
from tests.core.test_receipt import document, forged

FOLDER = Path(__file__).parents[1] / "vectors" / "receipts"
KEY_BYTES = b"a key of these vectors, and of nothing else.\n"
SEED = bytes(range(32))
WRITE = os.environ.get("AGENT_GRAPH_GOLDEN") == "write"
TEXTS = (
    "null", "true", '""', "[]", "{}", " [ 1 , 2 ] ", "0", "-0", "-0.0", "1.0", "10.0", "1.5", "-1.25e2", "1e3", "1E3",
    "0.1", "0.000001", "0.0000001", "1e20", "1e21", "123456789012345680000.0", "5e-324", "1.7976931348623157e308",
    "0.1e-6",
    "333333333.33333329", "9007199254740991", "9007199254740993", "-9007199254740993",
    "1180591620717411303424", "9007199254740993.0", "12345678901234567890123456789012345678901234567890",
    '"\\u0000\\u0001\\u001f\\u007f"', '"\\b\\t\\n\\f\\r\\"\\\\\\/"', '"\\u0041\\u00e9\\u00E9"', '"\\ud83d\\ude00"',
    '"\\u2028\\u2029"', '"e\\u0301 \\u00e9"',
    '{"b":1,"a":2,"B":3,"A":4,"":5,"aa":6}', '{"\\ud83d\\ude00":1,"\\ufb33":2,"\\u20ac":3,"z":4}',
    '{"10":1,"9":2,"1":3}', '{"a":{"d":1,"c":[{"f":1.0,"e":2}]},"\\u00e9":"\\u00e9"}',
)  # fmt: skip


def council() -> Any:
    """A run with a gate, values of every kind, a failed attempt before an answer, and a model that says who it is."""
    graph = compiled(
        [plain("fork"), llm("a", "{topic}", requirements=["REQ-7"]), llm("b", "{topic}", temperature=0.7),
         {"id": "j", "type": "join", "config": {"inputs": ["a", "b"], "output": "said"}}, gate("g")],
        "fork>a fork>b a>j b>j j>g", output_key="said",
    )  # fmt: skip
    value: Any = {
        "topic": "tea, \u00e9 \U0001f600",
        "weight": 1.5,
        "big": 2**70,
        "small": 1e-7,
        "\ufb33": 1,
        "\U0001f600": 2,
    }
    at = play(graph, value)
    at.answer("a#1", "yes", performer="server:ollama/gemma3:1b", model_digest="sha256:8648f39daa8f", prompt_tokens=12)
    at.answer("b#1", "no \u201ctea\u201d", performer="server:ollama/gemma3:1b")
    [approval] = at.run.open_approvals
    vote: Any = {
        "decision": "approve", "decision_note": "fine", "decided_by": "ada", "via": "cli",
        "subject_digest": approval.subject_digest,
    }  # fmt: skip
    at.go(e.ApprovalVoted("g#1", approval.approval_id, vote))
    if at.run.open_approvals:
        at.vote("g#1", "approve", by="ada", note="fine")
    assert at.run.status == "completed"
    return at


def withheld(made: Any) -> Any:
    import hashlib

    events = made["bundle"]["events"]
    for at in (0, 4):
        prev, hashed = json.loads(events[at])["prev"], hashlib.sha256(events[at].encode()).hexdigest()
        events[at] = {"seq": at, "prev": prev, "hash": hashed}
    return forged(made, HmacKey(KEY_BYTES))


def written() -> Iterator[tuple[str, bytes]]:
    """Every file that holds, by name."""
    key, pair = HmacKey(KEY_BYTES), Ed25519Pair(SEED)
    yield "hmac.key", KEY_BYTES
    yield "ed25519.public", pair.public.raw.hex().encode()
    values = [(text, parse_json(text, max_bytes=10_000, max_depth=20)) for text in TEXTS]
    yield (
        "canonical.json",
        _rows([{"text": text, "canonical": canonical_text(value), "digest": digest(value)} for text, value in values]),
    )
    trees: list[Any] = [
        [],
        [{}],
        [{"n": 0}, {"n": 1}],
        [{"n": n, "s": "\u00e9"} for n in range(3)],
        [*range(7)],
        [*range(8)],
    ]
    hashes = [[merkle.leaf_hash(leaf) for leaf in leaves] for leaves in trees]
    yield (
        "merkle.json",
        _rows([{"leaves": a, "hashes": b, "root": merkle.root(b)} for a, b in zip(trees, hashes, strict=True)]),
    )
    yield "bundle-hmac.json", _file(document(council(), key=key))
    yield "bundle-ed25519.json", _file(document(council(), key=pair))
    yield "bundle-withheld.json", _file(withheld(document(council(), key=key)))
    yield "bundle-late.json", _file(document(council(), key=key, late=True))
    alone = document(council(), key=key, bundle=False)
    yield "receipt-hmac.json", _file(alone)
    yield "envelope-hmac.json", _file(dsse.envelope(alone["receipt"], key))
    yield "envelope-ed25519.json", _file(dsse.envelope(alone["receipt"], pair))


def _file(value: Any) -> bytes:
    return canonical(value) + b"\n"


def _rows(rows: list[Any]) -> bytes:
    return b"[\n" + b",\n".join(json.dumps(row).encode() for row in rows) + b"\n]\n"


def _text(at: int, old: str, new: str) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        events = made["bundle"]["events"]
        assert old in events[at]
        events[at] = events[at].replace(old, new, 1)

    return change


def _swap(rows: list[Any], one: int, other: int) -> None:
    rows[one], rows[other] = rows[other], rows[one]


def _anew(made: Any) -> None:
    seal = made["integrity"]["seal"]
    made["receipt"]["approvals"][0]["votes"][0]["decided_by"] = "eve"
    forged(made, HmacKey(KEY_BYTES))
    made["integrity"]["seal"] = seal


BROKEN: tuple[tuple[str, str, str, str, Callable[[Any], Any]], ...] = (
    ("event-changed", "bundle-hmac.json", "bundle.events[0]", "a letter of the input is another",
     _text(0, "tea", "sea")),
    ("event-prev-changed", "bundle-hmac.json", "bundle.events[5]", "its prev is another",
     _text(5, '"prev":"', '"prev":"0')),
    ("event-removed", "bundle-hmac.json", "bundle.events[6]", "it is gone",
     lambda made: made["bundle"]["events"].pop(6)),
    ("event-last-removed", "bundle-ed25519.json", "bundle.events[-1]", "the last is gone",
     lambda made: made["bundle"]["events"].pop()),
    ("event-added", "bundle-hmac.json", "bundle.events[3]", "the one before stands there twice",
     lambda made: made["bundle"]["events"].insert(3, made["bundle"]["events"][2])),
    ("event-reordered", "bundle-hmac.json", "bundle.events[2]", "2 and 3 have changed places",
     lambda made: _swap(made["bundle"]["events"], 2, 3)),
    ("withheld-changed", "bundle-withheld.json", "bundle.events[4]", "its hash is another",
     lambda made: made["bundle"]["events"][4].update(hash="0" * 64)),
    ("graph-changed", "bundle-hmac.json", "bundle.graphs[0]", "a prompt is another",
     lambda made: made["bundle"].update(graphs=[made["bundle"]["graphs"][0].replace("{topic}", "{input}", 1)])),
    ("leaf-changed", "bundle-hmac.json", "receipt.leaves[1]", "its depth is another",
     lambda made: made["receipt"]["leaves"][1].update(depth=9)),
    ("leaf-removed", "receipt-hmac.json", "receipt.leaves[2]", "it is gone",
     lambda made: made["receipt"]["leaves"].pop(2)),
    ("leaf-added", "receipt-hmac.json", "receipt.leaves[5]", "one more at the end",
     lambda made: made["receipt"]["leaves"].append({"node_path": "z#1"})),
    ("leaf-reordered", "receipt-hmac.json", "receipt.leaves[0]", "0 and 1 have changed places",
     lambda made: _swap(made["receipt"]["leaves"], 0, 1)),
    ("time-changed", "receipt-hmac.json", "receipt.times", "it ended a millisecond later",
     lambda made: made["receipt"]["times"].update(finished_at_ms=1_001)),
    ("member-added", "receipt-hmac.json", "receipt.verdict", "the receipt has one member more",
     lambda made: made["receipt"].update(verdict="good")),
    ("integrity-leaf-changed", "receipt-hmac.json", "integrity.leaves[3]", "a hash is another",
     lambda made: made["integrity"]["leaves"].__setitem__(3, "0" * 64)),
    ("all-made-anew", "bundle-hmac.json", "integrity.seal", "a vote is another, and all but the seal was computed anew",
     _anew),
    ("seal-of-another-key", "bundle-ed25519.json", "integrity.seal", "the seal is that of the other kind of key",
     lambda made: made["integrity"].update(seal=HmacKey(KEY_BYTES).mac(canonical(made["receipt"])))),
    ("end-seal-changed", "bundle-hmac.json", "receipt.sealed", "sealed anew with the key, but for the seal of the end",
     lambda made: (made["receipt"]["sealed"].update(seal="hmac-sha256:" + "0" * 64), forged(made, HmacKey(KEY_BYTES)))),
    ("bundle-removed", "bundle-hmac.json", "bundle", "the bundle is gone, its digest is not",
     lambda made: made.pop("bundle")),
)  # fmt: skip


def broken() -> Iterator[tuple[str, bytes]]:
    rows: list[Any] = []
    whole = dict(written())
    for name, base, place, how, change in BROKEN:
        made = json.loads(whole[base])
        before = copy.deepcopy(made)
        change(made)
        assert made != before, name
        named = place.replace("[-1]", f"[{len(before.get('bundle', {}).get('events', ())) - 1}]")
        rows.append({"file": f"broken/{name}.json", "base": base, "place": named, "how": how})
        yield f"broken/{name}.json", _file(made)
    yield "broken.json", _rows(rows)


def keys() -> dict[str, Verifier]:
    public = Ed25519Public(bytes.fromhex((FOLDER / "ed25519.public").read_text()))
    mac = HmacKey((FOLDER / "hmac.key").read_bytes())
    return {mac.key_id: mac, public.key_id: public}


@pytest.mark.parametrize("files", [written, broken])
def test_the_vectors_are_what_they_were(files: Callable[[], Iterator[tuple[str, bytes]]]) -> None:
    for name, data in files():
        path = FOLDER / name
        if WRITE:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        assert path.read_bytes() == data, name


def test_there_are_no_other_files() -> None:
    known = {name for files in (written(), broken()) for name, _ in files}
    assert {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()} == known


@pytest.mark.parametrize("name", [
    "bundle-hmac.json", "bundle-ed25519.json", "bundle-withheld.json", "bundle-late.json", "receipt-hmac.json",
    "envelope-hmac.json", "envelope-ed25519.json",
])  # fmt: skip
def test_what_holds_holds_with_the_keys_and_is_unknown_without(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    assert (check_file(data, keys()).faults, check_file(data, keys()).authentic) == ((), True)
    assert (check_file(data, {}).faults, check_file(data, {}).authentic) == ((), None)


@pytest.mark.parametrize("row", json.loads((FOLDER / "broken.json").read_text()) if not WRITE else [])
def test_what_is_broken_is_named(row: dict[str, str]) -> None:
    faults = check_file((FOLDER / row["file"]).read_bytes(), keys()).faults
    assert faults[0].place.split(" ")[0] == row["place"], faults


def test_the_ancestors_digests_are_these_where_it_could_write_the_value() -> None:
    """Sorted names, no white space, nothing escaped that need not be: without floats, characters beyond U+FFFF in names
    and integers beyond 64 bits the older form and this one are the same bytes."""
    same = [text for text in TEXTS if not any(mark in text.lower() for mark in (".", "e3", "e2", "ud83d"))]
    assert len(same) > 15
    for text in same:
        value = json.loads(text)
        older = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert canonical(value) == older.encode()
