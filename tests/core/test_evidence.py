"""What an answer cites: claims, spans in UTF-8 bytes, and the words that have to stand there."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core import evidence
from agent_graph.core.compile import compile_graph
from agent_graph.core.effects import Citation
from agent_graph.core.evidence import MOST_CLAIMS, MOST_PROBLEMS, MOST_WITNESSES, cited, compared

SOURCE = "Größe: 12 m. The bridge opened in 1932. The bridge is open."
BYTES = SOURCE.encode()


def at(words: str) -> tuple[int, int]:
    start = BYTES.index(words.encode())
    return start, start + len(words.encode())


def claim(words: str = "The bridge opened in 1932.", **more: Any) -> dict[str, Any]:
    start, end = at(words)
    return {"text": words, "witness_id": "w", "span": {"start": start, "end": end}, **more}


def problems(*claims: Any) -> list[tuple[Any, Any]]:
    """(code, place of the claim) of all that is wrong, before the source is looked at and then."""
    citations, wrong = cited({"claims": [*claims]})
    wrong = wrong or compared(citations, {"w": BYTES})
    return [(one["code"], one.get("claim")) for one in wrong]


def test_a_claim_whose_words_stand_at_its_span_is_right() -> None:
    assert problems(claim()) == []
    assert cited({"claims": [claim()], "summary": 1})[0] == (Citation(0, "w", *at(claim()["text"]), claim()["text"]),)


def test_a_quote_stands_in_the_source_and_the_text_says_it_in_other_words() -> None:
    start, end = at("opened in 1932")
    paraphrased = {"text": "It is old.", "quote": "opened in 1932", "witness_id": "w"}
    assert problems({**paraphrased, "span": {"start": start, "end": end}}) == []


def test_spans_count_bytes_so_characters_of_several_bytes_move_what_follows() -> None:
    assert at("12 m") == (9, 13)
    assert SOURCE.index("12 m") == 7
    assert problems(claim("Größe"), claim("ö"), claim("12 m")) == []


def test_several_claims_may_share_and_overlap_their_spans() -> None:
    assert problems(claim(), claim(), claim("bridge opened"), claim("opened in 1932. The")) == []


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "EVIDENCE_MISSING"), ([], "EVIDENCE_MISSING"), ({}, "EVIDENCE_MISSING"),
        ({"claims": []}, "EVIDENCE_MISSING"), ({"claims": {"text": "a"}}, "EVIDENCE_MISSING"),
        ({"claims": ["a"]}, "EVIDENCE_INVALID"), ({"claims": [{"text": ""}]}, "EVIDENCE_INVALID"),
        ({"claims": [{"text": 5}]}, "EVIDENCE_INVALID"), ({"claims": [{"text": "a", "quote": ""}]}, "EVIDENCE_INVALID"),
        ({"claims": [{"text": "a", "quote": None}]}, "EVIDENCE_INVALID"),
        ({"claims": [{"text": "a"}]}, "WITNESS_BINDING_REQUIRED"),
        ({"claims": [{"text": "a", "witness_id": 7}]}, "WITNESS_BINDING_REQUIRED"),
        ({"claims": [{"text": "a", "witness_id": "w"}]}, "WITNESS_SPAN_REQUIRED"),
        ({"claims": [{"text": "a", "witness_id": "w", "span": [0, 1]}]}, "WITNESS_SPAN_REQUIRED"),
        ({"claims": [{"text": "a"}] * (MOST_CLAIMS + 1)}, "EVIDENCE_INVALID"),
    ],
)  # fmt: skip
def test_what_names_no_source_is_wrong_before_any_is_looked_at(value: Any, code: str) -> None:
    citations, wrong = cited(value)
    assert (citations, [one["code"] for one in wrong]) == ((), [code])


@pytest.mark.parametrize(
    "span", [{}, {"start": 0}, {"start": 0, "end": 0}, {"start": 4, "end": 3}, {"start": -1, "end": 2},
             {"start": 0.0, "end": 1.0}, {"start": False, "end": True}, {"start": "0", "end": "1"}],
)  # fmt: skip
def test_a_span_has_two_integers_and_holds_something(span: Any) -> None:
    assert problems({**claim(), "span": span}) == [("WITNESS_SPAN_INVALID", 0)]


def test_a_span_beyond_the_source_is_out_of_range_and_the_last_byte_is_not() -> None:
    assert problems(claim("is open.")) == []
    start, _ = at("is open.")
    over = {**claim("is open."), "span": {"start": start, "end": len(BYTES) + 1}}
    assert problems(over) == [("WITNESS_SPAN_OUT_OF_RANGE", 0)]
    assert problems({**over, "span": {"start": 10**30, "end": 10**31}}) == [("WITNESS_SPAN_OUT_OF_RANGE", 0)]


@pytest.mark.parametrize("span", [(3, 6), (2, 3), (3, 4)])
def test_a_span_that_cuts_a_character_is_invalid(span: tuple[int, int]) -> None:
    cut = {**claim("ö"), "span": {"start": span[0], "end": span[1]}}
    assert problems(cut) == [("WITNESS_SPAN_INVALID", 0)]


@pytest.mark.parametrize(
    "words", ["the bridge opened in 1932.", "The bridge opened in 1932", " The bridge opened in 1932"]
)
def test_words_are_compared_to_the_byte(words: str) -> None:
    assert problems({**claim(), "text": words}) == [("WITNESS_TEXT_DIFFERS", 0)]


def test_letters_that_look_alike_and_are_encoded_otherwise_differ() -> None:
    assert problems({**claim("ö"), "text": "o\u0308"}) == [("WITNESS_TEXT_DIFFERS", 0)]


def test_the_sentence_says_what_stands_there_and_where_the_words_do() -> None:
    (wrong,) = compared([Citation(0, "w", 0, 4, "The bridge")], {"w": BYTES})
    assert wrong["message"] == (
        'claims[0]: at bytes 0 to 4 stands "Grö", not "The bridge"; these words stand at bytes 15 to 25 and 42 to 52'
    )
    (wrong,) = compared([Citation(0, "w", 0, 2, "nowhere " * 30)], {"w": BYTES})
    assert str(wrong["message"]).endswith("these words are not in it")
    assert 'stands "Gr", not "nowhere' in str(wrong["message"])
    assert len(str(wrong["message"])) < 250


def test_a_source_nobody_captured_is_not_found() -> None:
    assert problems({**claim(), "witness_id": "other"}) == [("WITNESS_NOT_FOUND", 0)]


def test_every_claim_is_looked_at_and_so_many_problems_are_told() -> None:
    wrong = {**claim(), "witness_id": "other"}
    assert problems(claim(), wrong, claim(), wrong) == [("WITNESS_NOT_FOUND", 1), ("WITNESS_NOT_FOUND", 3)]
    assert len(problems(*[wrong] * 30)) == MOST_PROBLEMS
    assert len(problems(*[{"text": "a"}] * 30)) == MOST_PROBLEMS


def test_so_many_witnesses_can_be_cited_by_one_answer() -> None:
    many = [{**claim(), "witness_id": f"w{number}"} for number in range(MOST_WITNESSES + 1)]
    assert cited({"claims": many[:-1]})[1] == []
    assert [one["code"] for one in cited({"claims": many})[1]] == ["EVIDENCE_INVALID"]


# Whether a node can cite


CLAIM = {"type": "object", "properties": {"text": {}, "witness_id": {}, "span": {}},
         "required": ["text", "witness_id", "span"]}  # fmt: skip
GOOD: dict[str, Any] = {
    "type": "object", "properties": {"claims": {"type": "array", "items": CLAIM}}, "required": ["claims"],
}  # fmt: skip


def judged(schema: Any, **more: Any) -> list[tuple[str, str, str]]:
    made = evidence.issues(schema, json_mode=False, node_id="n", **more)
    return [(issue.code, issue.severity, issue.pointer) for issue in made]


def items(**changed: Any) -> dict[str, Any]:
    return {**GOOD, "properties": {"claims": {"type": "array", "items": {**CLAIM, **changed}}}}


@pytest.mark.parametrize(
    "schema",
    [GOOD, {**GOOD, "additionalProperties": False}, items(additionalProperties=False), {**GOOD, "type": ["object"]},
     {**GOOD, "properties": {"claims": True}}, {**GOOD, "properties": {"claims": {"items": True}}},
     {"anyOf": [GOOD]}, {"properties": 3}, {"required": 3}, {**GOOD, "type": 7}],
)  # fmt: skip
def test_a_schema_under_which_claims_can_be_made_is_let_be(schema: Any) -> None:
    assert judged(schema) == []


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "array"}, ""), ({"type": "object", "additionalProperties": False}, ""),
        ({"properties": {"claims": False}}, ""),
        ({**GOOD, "properties": {"claims": {"type": "object"}}}, "/properties/claims"),
        (items(type="string"), "/properties/claims/items"),
        (items(properties={"text": {}, "span": {}}, additionalProperties=False), "/properties/claims/items"),
    ],
)  # fmt: skip
def test_a_schema_that_allows_no_claims_is_an_error(schema: Any, place: str) -> None:
    assert judged(schema) == [("EVIDENCE_NOT_IN_SCHEMA", "error", f"/output_schema{place}")]


def test_a_schema_that_lets_claims_be_left_out_is_a_warning() -> None:
    assert judged({"type": "object"}) == [("EVIDENCE_OPTIONAL", "warning", "/output_schema")]
    assert judged(items(required=["text"])) == [
        ("EVIDENCE_OPTIONAL", "warning", "/output_schema/properties/claims/items")
    ]


def test_without_json_the_repair_turns_it_on() -> None:
    node = {"id": "a", "type": "llm", "config": {"prompt": "cite", "evidence_required": True}}
    spec = {"spec_version": "2", "name": "g", "entry": "a", "nodes": [node], "edges": [{"from": "a", "to": "END"}]}
    (issue,) = compile_graph(spec).issues
    assert (issue.code, issue.pointer) == ("EVIDENCE_NEEDS_JSON", "/nodes/0/config/evidence_required")
    assert issue.fix == ({"op": "add", "path": "/nodes/0/config/json_mode", "value": True},)
