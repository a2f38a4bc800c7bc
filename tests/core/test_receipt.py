"""Receipts made of graphs and events by hand: leaves, roots, and what a check says of each part that is wrong."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_graph.core import dsse, merkle
from agent_graph.core import events as e
from agent_graph.core.jsonvalue import canonical, canonical_text, digest
from agent_graph.core.receipt import BUNDLE, graphs_of, integrity_of, receipt_of
from agent_graph.core.receipt_chain import NO_EVENT, chain_faults, links_of
from agent_graph.core.receipt_check import check
from agent_graph.core.receipt_file import check_file
from agent_graph.core.receipt_leaves import Leaves, exact
from agent_graph.core.receipt_seal import seal_body
from agent_graph.core.sealing import Ed25519Pair, HmacKey, Retired
from tests.core.played import Played, accepted, compiled, gate, llm, plain, play, sub

KEY = HmacKey(b"k" * 32)
PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
PAIR = compiled(
    [plain("s"), llm("a", output_key="ka", images=[PIXEL], requirements=["REQ-7"]), llm("b", output_key="kb"),
     {"id": "j", "type": "join", "config": {"inputs": ["a", "kb"], "output": "all"}}],
    "s>a s>b a>j b>j", output_key="all",
)  # fmt: skip


def texts(at: Played) -> tuple[list[str], str]:
    """The log as it is stored, and the head of its chain."""
    head, stored = NO_EVENT, []
    for event in at.log:
        stored.append(canonical_text({**e.to_json(event.fact), "seq": event.seq, "at_ms": event.at_ms, "prev": head}))
        head = hashlib.sha256(stored[-1].encode()).hexdigest()
    return stored, f"sha256:{head}"


def document(at: Played, *, bundle: bool = True, key: Any = KEY, late: bool = False) -> Any:
    """What a server gives of a run that has ended."""
    stored, head = texts(at)
    run = at.run
    body = seal_body(run_id=run.run_id, status=run.lifecycle, events=len(stored), head=head, sealed_at_ms=9, late=late)
    sealed = {**key.seal(canonical(body)).to_json(), "sealed_at_ms": 9, "late": late}
    receipt = receipt_of(at.graph, at.log, head=head, sealed=sealed)
    integrity = {"verified": True, **integrity_of(receipt), **key.seal(canonical(receipt)).to_json()}
    made: Any = {"receipt": receipt, "integrity": integrity}
    if bundle:
        made["bundle"] = {
            "kind": BUNDLE, "receipt": integrity["digest"], "events": stored,
            "graphs": [canonical_text(one.spec) for one in graphs_of(at.graph)],
        }  # fmt: skip
        integrity["bundle_digest"] = digest(made["bundle"])
    return json.loads(json.dumps(made))


def forged(made: Any, key: Any = KEY) -> Any:
    """The same with all digests and the seal made anew: what somebody with the key can do."""
    receipt, integrity = made["receipt"], made["integrity"]
    integrity |= {**integrity_of(receipt), **key.seal(canonical(receipt)).to_json()}
    if "bundle" in made:
        made["bundle"]["receipt"] = integrity["digest"]
        integrity["bundle_digest"] = digest(made["bundle"])
    return made


@pytest.fixture(scope="module")
def whole() -> Any:
    return document(play(PAIR).answer_all())


def found(made: Any, keys: Any = None) -> list[tuple[str, str]]:
    verifiers = {KEY.key_id: KEY} if keys is None else keys
    return [(fault.place, fault.said) for fault in check(made, verifiers).faults]


# -- the tree --------------------------------------------------------------------------------------------------------


def test_the_root_is_that_of_rfc_6962() -> None:
    assert merkle.root([]) == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert merkle.leaf_hash({}) == hashlib.sha256(b"\x00{}").hexdigest()
    a, b, c = (merkle.leaf_hash(n) for n in range(3))
    inner = hashlib.sha256(b"\x01" + bytes.fromhex(a) + bytes.fromhex(b)).hexdigest()
    assert merkle.root([a]) == f"sha256:{a}"
    assert merkle.root([a, b]) == f"sha256:{inner}"
    three = hashlib.sha256(b"\x01" + bytes.fromhex(inner) + bytes.fromhex(c)).hexdigest()
    assert merkle.root([a, b, c]) == f"sha256:{three}"


def split(leaves: list[str]) -> bytes:
    """The definition, word by word: the left half is the largest power of two below the number."""
    if len(leaves) == 1:
        return bytes.fromhex(leaves[0])
    left = 1
    while 2 * left < len(leaves):
        left *= 2
    return hashlib.sha256(b"\x01" + split(leaves[:left]) + split(leaves[left:])).digest()


@pytest.mark.parametrize("count", range(1, 34))
def test_level_by_level_is_the_same_tree_as_by_halves(count: int) -> None:
    leaves = [merkle.leaf_hash(n) for n in range(count)]
    assert merkle.root(leaves) == "sha256:" + split(leaves).hex()


# -- leaves ----------------------------------------------------------------------------------------------------------


def test_a_leaf_tells_of_calls_pictures_and_requirements(whole: Any) -> None:
    leaves = {leaf["node_path"]: leaf for leaf in whole["receipt"]["leaves"]}
    assert list(leaves) == ["s#1", "a#1", "b#1", "j#1"]
    [call] = leaves["a#1"]["calls"]
    picture = hashlib.sha256(base64.b64decode(PIXEL.partition(",")[2])).hexdigest()
    assert call["images"] == [f"sha256:{picture}"]
    assert leaves["a#1"]["requirements"] == ["REQ-7"]
    assert "images" not in leaves["b#1"]["calls"][0]
    assert (leaves["s#1"]["performer"], leaves["s#1"]["seq"] < leaves["a#1"]["seq"]) == ("engine", True)


def test_firings_that_failed_and_that_were_cancelled_have_leaves() -> None:
    made = document(play(PAIR).fail("a#1"))
    leaves = {leaf["node_path"]: leaf for leaf in made["receipt"]["leaves"]}
    assert (leaves["a#1"]["outcome"], leaves["a#1"]["error_code"]) == ("failed", "MODEL_NOT_FOUND")
    assert (leaves["b#1"]["outcome"], leaves["b#1"]["output"]) == ("cancelled", None)
    assert made["receipt"]["output"] is None
    assert found(made) == []


def test_tool_calls_and_answers_used_again_are_in_the_leaf() -> None:
    graph = compiled([llm("a", tools=["weather/forecast"]), llm("b", output_key="kb")], "a>b", output_key="kb")
    asked = {"id": "", "name": "forecast", "arguments": {"city": "Oslo"}}
    at = play(graph).answer("a#1", "", tool_calls=(asked,))
    at.calls.pop("a#1")
    [called] = at.facts(e.ToolCalled)
    at.go(e.ToolAnswered("a#1", called.call_id, "rain"))
    at.answer("a#1", "Take an umbrella.", performer="server:x/y", model_digest="ab")
    at.calls.pop("b#1")
    at.go(e.CacheHit("b#1", {"text": "known"}, "key", "run-0"))
    made = document(at)
    first, second = made["receipt"]["leaves"]
    [tool] = first["tools"]
    assert tool == {
        "seq": tool["seq"], "name": "forecast", "arguments": digest({"city": "Oslo"}), "connection": "weather",
        "tool": "forecast", "answer": digest("rain"), "failed": False,
    }  # fmt: skip
    assert [call["seq"] for call in first["calls"]] == [3, 6]
    assert first["performer"] == "server:x/y@ab"
    assert (second["calls"][0]["cached_from"], second["performer"]) == ("run-0", "unknown")
    assert found(made) == []


def test_a_tool_the_node_does_not_have_is_named_as_the_model_named_it() -> None:
    graph = compiled([llm("a", tools=["weather/forecast"], output_key="k")], "a>END", output_key="k")
    asked = {"id": "", "name": "other", "arguments": {}}
    at = play(graph).answer("a#1", "", tool_calls=(asked,))
    for call in [*at.calls.values()]:
        at.answer(call.firing, "well then")
    [tool] = document(at)["receipt"]["leaves"][0]["tools"]
    assert (tool["name"], "connection" in tool) == ("other", False)


def test_budgets_subgraphs_votes_and_firings_that_never_ended_are_told() -> None:
    inner = compiled([llm("x", output_key="k")], "x>END", output_key="k", name="inner")
    middle = compiled([sub("i", "inner", output_key="k")], "i>END", output_key="k", name="middle", inner=[inner])
    graph = compiled([sub("c", "inner"), sub("m", "middle"), gate("g")], "c>m m>g", inner=[inner, middle])
    at = accepted(graph, budgets={"max_nodes": 9}).go(e.RunStarted()).answer_all()
    [approval] = at.run.open_approvals
    vote = {"decision": "edit", "decision_note": "so", "decided_by": "ann", "via": "cli", "subject_digest": "d"}
    at.feed(e.ApprovalVoted("g#1", approval.approval_id, vote), e.RunFailed({"code": "X", "message": "m"}))
    receipt = document(at, bundle=False)["receipt"]
    inside = {(one["graph_id"], one["graph_version"]) for one in receipt["graph"]["subgraphs"]}
    assert inside == {(one.name, one.version) for one in (inner, middle)}
    assert receipt["budgets"]["max_nodes"]["max"] == 9
    [told] = receipt["approvals"][0]["votes"]
    assert told == {
        "decision": "edit",
        "decided_by": "ann",
        "via": "cli",
        "at_ms": 1000,
        "subject_digest": "d",
        "decision_note": digest("so"),
    }
    assert receipt["leaves"][-1]["outcome"] == "unfinished"
    assert "seq" not in receipt["leaves"][-1]
    assert receipt["error"] == {"code": "X", "node_path": None, "digest": digest({"code": "X", "message": "m"})}


def test_the_end_of_a_firing_that_is_not_there_makes_no_leaf() -> None:
    leaves = Leaves()
    leaves.note(play(PAIR).run, e.Event(9, 0, e.FiringCancelled("nobody#1", "why")))
    assert leaves.ended == []


def test_numbers_that_not_every_parser_keeps_are_texts() -> None:
    assert exact({"a": [2**53, 2**53 - 1, 1.5, True, None, "x"]}) == {
        "a": ["9007199254740992", 9007199254740991, "1.5", True, None, "x"]
    }


# -- what holds ------------------------------------------------------------------------------------------------------


def test_what_is_whole_holds_with_its_key_and_without_says_so(whole: Any) -> None:
    checked = check(whole, {KEY.key_id: KEY})
    assert (checked.faults, checked.authentic, checked.notes, checked.leaves) == ((), True, (), 4)
    assert checked.events == whole["receipt"]["chain"]["events"]
    without = check(whole, {})
    assert (without.faults, without.authentic) == ((), None)
    assert "NOT checked" in without.notes[0]
    alone = document(play(PAIR).answer_all(), bundle=False)
    assert (check(alone, {KEY.key_id: KEY}).authentic, check(alone, {}).events) == (True, None)


def test_sealed_late_and_by_a_key_that_is_not_there_is_told() -> None:
    late = document(play(PAIR).answer_all(), late=True)
    assert "sealed late" in check(late, {KEY.key_id: KEY}).notes[0]
    other = HmacKey(b"o" * 32)
    assert "was not checked" in check(forged(copy.deepcopy(late), other), {other.key_id: other}).notes[0]


def test_a_pair_seals_too() -> None:
    pair = Ed25519Pair(b"s" * 32)
    made = document(play(PAIR).answer_all(), key=pair)
    assert check(made, {pair.key_id: pair.public}).authentic is True
    made["integrity"]["seal"] = KEY.mac(canonical(made["receipt"]))
    assert check(made, {pair.key_id: pair.public}).faults[0].to_json()["place"] == "integrity.seal"
    assert found(made, {pair.key_id: pair.public}) == [
        ("integrity.seal", f"is not the seal of this receipt by {pair.key_id}")
    ]


# -- what does not ---------------------------------------------------------------------------------------------------


def change(path: str, value: Any) -> Callable[[Any], None]:
    def do(made: Any) -> None:
        *above, last = path.split(".")
        for name in above:
            made = made[int(name) if name.isdigit() else name]
        if value is ...:
            del made[last]
        elif isinstance(made, list):
            made[int(last)] = value
        else:
            made[last] = value

    return do


def swap(made: Any) -> None:
    made["receipt"]["leaves"][0:2] = made["receipt"]["leaves"][1::-1]


@pytest.mark.parametrize(
    ("alter", "place", "said"),
    [
        (change("receipt.times.started_at_ms", 1), "receipt.times", "was changed"),
        (change("receipt.more", 1), "receipt.more", "was added"),
        (change("receipt.usage", ...), "receipt.usage", "was removed"),
        (change("receipt.leaves.1.depth", 9), "receipt.leaves[1] (a#1)", "was changed"),
        (swap, "receipt.leaves[0] (a#1)", "was reordered"),
        (lambda made: made["receipt"]["leaves"].pop(), "receipt.leaves[3]", "was removed: there are 3 of 4"),
        (lambda made: made["receipt"]["leaves"].append({}), "receipt.leaves[4]", "was added: there are 5 of 4"),
        (change("receipt.merkle.root", "sha256:00"), "receipt.merkle", "is not the root"),
        (change("integrity.digest", "sha256:00"), "integrity.digest", "was changed"),
        (change("integrity.members.times", "sha256:00"), "integrity.members.times", "was changed"),
        (change("integrity.members.times", ...), "integrity.members.times", "was removed"),
        (change("integrity.members.more", "sha256:00"), "integrity.members.more", "was added"),
        (change("integrity.leaves.2", "00"), "integrity.leaves[2]", "was changed"),
        (change("integrity.leaves.2", 7), "integrity.leaves[2]", "was changed"),
        (change("integrity.verified", False), "integrity.verified", "is not true"),
        (change("integrity.key_id", "hmac:0"), "integrity.key_id", "is hmac:0, and what was given is hmac:"),
        (change("integrity.seal", "hmac-sha256:00"), "integrity.seal", "is not the seal"),
        (change("integrity.more", 1), "integrity.more", "has no place here"),
        (change("more", 1), "more", "has no place here"),
        (change("bundle", ...), "bundle", "was removed"),
        (change("bundle.events.1", 7), "bundle.events[1]", "is not an event"),
        (change("bundle.kind", "other"), "bundle.kind", "is not agent-graph-bundle-v1"),
        (change("bundle.receipt", "sha256:00"), "bundle.receipt", "another receipt"),
        (change("bundle.graphs.0", "{}"), "bundle.graphs[0]", "was changed"),
        (change("bundle.graphs", []), "bundle.graphs", "there are 0, and the receipt names 1"),
        (change("integrity.bundle_digest", "sha256:00"), "integrity.bundle_digest", "was changed"),
        (change("receipt.kind", "other"), "receipt.kind", "is not agent-graph-receipt-v1"),
        (change("receipt", []), "receipt", "is missing, or is not what it has to be"),
        (change("receipt.leaves.0", 7), "receipt.leaves[0]", "is not an object"),
    ],
)
def test_what_was_changed_is_named(whole: Any, alter: Callable[[Any], None], place: str, said: str) -> None:
    made = copy.deepcopy(whole)
    alter(made)
    faults = found(made)
    assert any(at == place and said in what for at, what in faults), faults


def test_a_root_and_hashes_that_were_both_made_anew_are_caught_by_the_rest(whole: Any) -> None:
    made = copy.deepcopy(whole)
    made["receipt"]["leaves"][1]["depth"] = 9
    made["integrity"]["leaves"] = [merkle.leaf_hash(leaf) for leaf in made["receipt"]["leaves"]]
    assert ("receipt.merkle", "was changed: it is not the root over the leaves") in found(made)
    made = copy.deepcopy(whole)
    made["receipt"]["leaves"][1]["depth"] = 9
    made["receipt"]["merkle"]["root"] = merkle.root([merkle.leaf_hash(leaf) for leaf in made["receipt"]["leaves"]])
    assert [at for at, _ in found(made)] == ["integrity.leaves[1]", "receipt.merkle"]
    made["receipt"]["merkle"]["root"] = "sha256:00"
    assert [at for at, _ in found(made)] == ["receipt.leaves[1] (a#1)", "receipt.merkle", "receipt.merkle"]


def test_somebody_with_the_key_cannot_make_leaves_say_something_else_than_events(whole: Any) -> None:
    for alter, place in (
        (change("receipt.leaves.1.output", "sha256:00"), "receipt.leaves[1] (a#1)"),
        (change("receipt.leaves.1.node_path", "z#1"), "receipt.leaves[1] (z#1)"),
        (change("receipt.leaves.1.attempt", 2), "receipt.leaves[1] (a#1)"),
        (change("receipt.leaves.1.seq", 0), "receipt.leaves[1] (a#1)"),
    ):
        made = copy.deepcopy(whole)
        alter(made)
        hashes = [merkle.leaf_hash(leaf) for leaf in made["receipt"]["leaves"]]
        made["receipt"]["merkle"]["root"] = merkle.root(hashes)
        assert place in [at for at, _ in found(forged(made))]
    made = copy.deepcopy(whole)
    gone = made["receipt"]["leaves"].pop()
    hashes = [merkle.leaf_hash(leaf) for leaf in made["receipt"]["leaves"]]
    made["receipt"]["merkle"] = {"leaves": 3, "root": merkle.root(hashes)}
    assert found(forged(made)) == [(f"bundle.events[{gone['seq']}]", "ends a firing of which there is no leaf")]
    cancelled = document(play(PAIR).fail("a#1"))
    [at] = [n for n, leaf in enumerate(cancelled["receipt"]["leaves"]) if leaf["outcome"] == "cancelled"]
    cancelled["receipt"]["leaves"][at]["output"] = "sha256:00"
    hashes = [merkle.leaf_hash(leaf) for leaf in cancelled["receipt"]["leaves"]]
    cancelled["receipt"]["merkle"]["root"] = merkle.root(hashes)
    assert found(forged(cancelled))[0][0] == f"receipt.leaves[{at}] (b#1)"


def test_the_seal_of_the_end_is_checked_by_itself(whole: Any) -> None:
    made = copy.deepcopy(whole)
    made["receipt"]["sealed"]["seal"] = "hmac-sha256:00"
    assert found(forged(made)) == [
        ("receipt.sealed", "is not the seal of the events' head that was made when the run ended")
    ]


# -- the chain -------------------------------------------------------------------------------------------------------


def chained(count: int) -> tuple[list[Any], str]:
    head, made = NO_EVENT, []
    for seq in range(count):
        made.append(canonical_text({"seq": seq, "prev": head, "n": seq}))
        head = hashlib.sha256(made[-1].encode()).hexdigest()
    return made, f"sha256:{head}"


def places(events: list[Any], *, count: Any, head: str) -> list[str]:
    links, faults = links_of(events)
    return [
        f"{fault.place} {fault.said.split(':')[0]}" for fault in faults or chain_faults(links, count=count, head=head)
    ]


def test_a_whole_chain_has_no_fault_and_an_empty_one_is_none() -> None:
    events, head = chained(5)
    assert places(events, count=5, head=head) == []
    assert places([], count=0, head=f"sha256:{NO_EVENT}") == ["events[0] was removed"]


@pytest.mark.parametrize("at", range(5))
def test_each_event_that_was_changed_is_named(at: int) -> None:
    events, head = chained(5)
    for changed in (events[at].replace('"n":', '"m":'), events[at].replace('"prev":"', '"prev":"ab')):
        now = [*events[:at], changed, *events[at + 1 :]]
        assert places(now, count=5, head=head) == [f"events[{at}] was changed"]
    numbered = [*events[:at], events[at].replace(f'"seq":{at}', '"seq":77'), *events[at + 1 :]]
    assert places(numbered, count=5, head=head) == [f"events[{at}] was changed"]


def test_events_that_were_removed_added_or_reordered_are_told_apart() -> None:
    events, head = chained(5)
    assert places(events[:4], count=5, head=head) == ["events[4] was removed"]
    assert places([*events[:1], *events[2:]], count=5, head=head) == ["events[1] was removed"]
    assert places([*events[:2], events[1], *events[2:]], count=5, head=head) == ["events[2] was added"]
    assert places([*events, events[0]], count=5, head=head) == ["events[5] was added"]
    assert places([*events, chained(6)[0][5]], count=5, head=head) == ["events[5] was added"]
    assert places([events[0], events[2], events[1], *events[3:]], count=5, head=head) == ["events[1] was reordered"]
    assert places(events, count="5", head=head) == ["events[4] was added"]


def test_another_head_is_said_of_the_last_event_and_a_first_that_follows_something_of_the_first() -> None:
    events, _ = chained(3)
    assert places(events, count=3, head="sha256:00") == ["events[2] was changed"]
    link = {"seq": 0, "prev": "ab", "hash": hashlib.sha256(events[0].encode()).hexdigest()}
    assert places([link, *events[1:]], count=3, head=chained(3)[1]) == ["events[0] was changed"]


def test_a_withheld_event_stands_in_the_chain_by_its_hash() -> None:
    events, head = chained(3)
    link = {"seq": 1, "prev": json.loads(events[1])["prev"], "hash": hashlib.sha256(events[1].encode()).hexdigest()}
    assert places([events[0], link, events[2]], count=3, head=head) == []
    assert places([events[0], {**link, "hash": "ab"}, events[2]], count=3, head=head) == ["events[1] was changed"]
    for none in ({**link, "more": 1}, 7, "no json", "[]", "{}"):
        assert places([events[0], none, events[2]], count=3, head=head) == ["events[1] is not an event"]


def test_a_withheld_event_and_graph_are_counted_and_hold(whole: Any) -> None:
    made = copy.deepcopy(whole)
    events = made["bundle"]["events"]
    for at, text in enumerate(events):
        prev = json.loads(text)["prev"]
        events[at] = {"seq": at, "prev": prev, "hash": hashlib.sha256(text.encode()).hexdigest()}
    made["bundle"]["graphs"] = [None]
    checked = check(forged(made), {KEY.key_id: KEY})
    assert (checked.faults, checked.authentic) == ((), True)
    of_events, of_graph = checked.notes
    assert of_events.startswith(f"{len(events)} of {len(events)} events are withheld, by whoever passed the bundle on")
    assert of_graph.startswith("a graph is withheld")


# -- files and envelopes ---------------------------------------------------------------------------------------------


def test_a_file_is_canonical_or_said_to_be_laid_out_anew(whole: Any) -> None:
    keys = {KEY.key_id: KEY}
    data = canonical(whole)
    assert check_file(data, keys).authentic is True
    assert check_file(data + b"\n", keys).authentic is True
    for other in (data + b"\n\n", data + b" ", json.dumps(whole).encode(), data.replace(b'"', b' "', 1)):
        assert check_file(other, keys).faults[0].place == "file"
        assert check_file(other, keys, any_form=True).authentic is True
    assert "cannot be read" in check_file(data[:-1], keys).faults[0].said
    assert check_file(b"[]", keys).faults[0].place == "file"


def test_an_envelope_is_what_its_specification_says(whole: Any) -> None:
    receipt = whole["receipt"]
    made = json.loads(json.dumps(dsse.envelope(receipt, KEY)))
    payload = base64.b64decode(made["payload"])
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicate"] == receipt
    assert [one["digest"]["sha256"] for one in statement["subject"]] == [
        receipt["chain"]["head"][7:], receipt["output"][7:],
    ]  # fmt: skip
    signed = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)
    assert "hmac-sha256:" + base64.b64decode(made["signatures"][0]["sig"]).hex() == KEY.mac(signed)
    assert check_file(canonical(made), {KEY.key_id: KEY}).authentic is True
    without = check_file(canonical(made), {})
    assert (without.faults, without.authentic, without.leaves) == ((), None, 4)
    pair = Ed25519Pair(b"s" * 32)
    assert check_file(canonical(dsse.envelope(receipt, pair)), {pair.key_id: pair}).authentic is True
    failed = document(play(PAIR).fail("a#1"))["receipt"]
    assert len(dsse.statement(failed)["subject"]) == 1  # type: ignore[arg-type]  # a list


def enveloped(predicate: Any, **more: Any) -> Any:
    data = predicate if isinstance(predicate, bytes) else canonical(predicate)
    return {
        "payload": base64.b64encode(data).decode(), "payloadType": dsse.PAYLOAD_TYPE,
        "signatures": [{"keyid": KEY.key_id, "sig": base64.b64encode(b"0").decode()}], **more,
    }  # fmt: skip


def test_an_envelope_with_anything_else_in_it_does_not_hold(whole: Any) -> None:
    made: Any = dsse.statement(whole["receipt"])
    other: Any = copy.deepcopy(made)
    other["predicate"]["leaves"][0]["depth"] = 7
    for envelope, place in (
        (enveloped(made, payloadType="text/plain"), "payloadType"),
        (enveloped(made, more=1), "payloadType"),
        (enveloped(made, signatures=[]), "signatures"),
        (enveloped(made, signatures=7), "signatures"),
        (enveloped(made, signatures=[{"keyid": "k", "sig": "?"}]), "signatures"),
        (enveloped(made, signatures=[{"keyid": "k", "sig": "MB=="}]), "signatures"),
        (enveloped(made, payload=7), "payload"),
        (enveloped(made, payload="?"), "payload"),
        (enveloped(b"no json"), "payload"),
        (enveloped([]), "payload"),
        (enveloped({"predicate": {}}), "payload"),
        (enveloped({"predicate": {"leaves": 7}}), "payload"),
        (enveloped(other), "payload"),
        (enveloped({**made, "subject": []}), "payload"),
        (enveloped(made, signatures=[{"keyid": "hmac:0", "sig": "MA=="}]), "signatures[0].keyid"),
        (enveloped(made), "signatures[0].sig"),
    ):
        assert [fault.place for fault in dsse.check_envelope(envelope, {KEY.key_id: KEY}).faults] == [place]


def test_a_leaf_names_the_sources_its_answer_cites_and_an_altered_name_is_noticed() -> None:
    claims = {"claims": [{"text": "so", "witness_id": "w", "span": {"start": 0, "end": 2}}]}
    named = {"witness_id": "w", "digest": "sha256:0", "locator_digest": "sha256:1"}
    at = play(compiled([llm("a", json_mode=True, evidence_required=True)], "a>END")).answer("a#1", json.dumps(claims))
    at.calls.clear()
    at.go(e.EvidenceChecked("a#1", (named,)))
    made = document(at)
    assert made["receipt"]["leaves"][0]["evidence"] == [named]
    checked = check(made, {KEY.key_id: KEY})
    assert checked.faults == ()
    made["receipt"]["leaves"][0]["evidence"][0]["digest"] = "sha256:2"
    assert check(made, {KEY.key_id: KEY}).faults != ()


def test_what_a_retired_key_sealed_later_does_not_hold_and_the_rest_is_noted() -> None:
    made = document(play(PAIR).answer_all())
    at_ms = made["receipt"]["sealed"]["sealed_at_ms"]
    assert found(made, {KEY.key_id: Retired(KEY, at_ms)}) == []
    [note] = check(made, {KEY.key_id: Retired(KEY, at_ms)}).notes
    assert f"was retired at {at_ms}" in note
    early = {KEY.key_id: Retired(KEY, at_ms - 1)}
    assert [place for place, _ in found(made, early)] == ["receipt.sealed"]
    envelope = dsse.envelope(made["receipt"], KEY)
    assert [fault.place for fault in dsse.check_envelope(envelope, early).faults] == ["receipt.sealed"]


def test_an_envelope_says_of_its_receipt_what_the_receipt_alone_says() -> None:
    late = document(play(PAIR).answer_all(), late=True)["receipt"]
    assert "sealed late" in dsse.check_envelope(dsse.envelope(late, KEY), {KEY.key_id: KEY}).notes[0]
    other = dsse.check_envelope(dsse.envelope({**late, "kind": "something-else"}, KEY), {KEY.key_id: KEY})
    assert [fault.place for fault in other.faults] == ["receipt.kind"]
    unsealed = {**late, "sealed": {**late["sealed"], "seal": "hmac-sha256:" + "0" * 64}}
    broken = dsse.check_envelope(dsse.envelope(unsealed, KEY), {KEY.key_id: KEY})
    assert [fault.place for fault in broken.faults] == ["receipt.sealed"]
    listed = dsse.check_envelope(
        dsse.envelope({**late, "sealed": {**late["sealed"], "late": 1}}, KEY), {KEY.key_id: KEY}
    )
    assert [fault.place for fault in listed.faults] == ["receipt.sealed.late"]


def test_a_graph_that_is_withheld_is_told_and_a_leaf_of_no_event_is_named() -> None:
    made = document(play(PAIR).answer_all())
    made["bundle"]["graphs"] = [None] * len(made["bundle"]["graphs"])
    made["integrity"]["bundle_digest"] = digest(made["bundle"])
    checked = check(made, {KEY.key_id: KEY})
    assert (checked.faults, "a graph is withheld" in checked.notes[0]) == ((), True)
    made["receipt"]["leaves"][0]["seq"] = [1]
    assert found(forged(made)) != []
