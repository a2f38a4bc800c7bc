"""Joins: what each mode makes of its inputs, and what a missing one means: the same for all."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core.effects import MISSING
from agent_graph.core.ops import joins
from agent_graph.core.ops.joins import MODES, join, succeeds
from agent_graph.errors import NodeFailure

ENVELOPES = ["dedupe_by_identity", "contradiction_matrix", "minority_report", "proof_carrying_join"]


@dataclass(frozen=True)
class Config:
    """The fields of a join with their defaults."""

    on_missing: str = "null"
    required: int = 1
    of: Any = None
    require: bool = False
    identity_path: str = ""
    scope_path: str = "scope"
    claim_path: str = "claim"
    time_path: str = "time"
    strict: bool = False
    dissent_path: str = "dissent"
    required_fields: list[str] = field(default_factory=lambda: ["evidence", "checks", "receipt"])


def joined(mode: str, *values: Any, **config: Any) -> Any:
    """The join of inputs named a, b, c ..."""
    inputs = [(chr(ord("a") + place), value) for place, value in enumerate(values)]
    before = copy.deepcopy([value for value in values if value is not MISSING])
    result = join(mode, inputs, Config(**config))
    assert [value for value in values if value is not MISSING] == before
    return result


@pytest.mark.parametrize(
    ("mode", "values", "config", "expected"),
    [
        ("collect_array", [2, "x", {"y": 1}], {}, [2, "x", {"y": 1}]),
        ("collect_object", [2, "x"], {}, {"a": 2, "b": "x"}),
        ("merge_objects", [{"k": 1, "x": 1}, {"k": 2}], {}, {"k": 2, "x": 1}),
        ("merge_objects", [{"k": 1}, 5, {"b": 6}], {}, {"k": 1, "b": 6}),
        ("first_non_null", [None, 0, 1], {}, 0), ("first_non_null", [MISSING, False, 1], {}, False),
        ("all_success", [True, "text", {"x": 1}, {"success": True}, 0], {}, {"all_success": True, "values": [True,
        "text", {"x": 1}, {"success": True}, 0]}),
        ("all_success", [True, False], {}, {"all_success": False, "values": [True, False]}),
        ("all_success", [1, {"success": "yes"}], {}, {"all_success": False, "values": [1, {"success": "yes"}]}),
        ("all_success", [1, {"error": {"code": "X"}}], {}, {"all_success": False,
        "values": [1, {"error": {"code": "X"}}]}),
        ("quorum", [True, False, True], {"required": 2}, {"met": True, "approvals": 2, "required": 2}),
        ("quorum", [True, False], {"required": 2}, {"met": False, "approvals": 1, "required": 2}),
        ("quorum", [{"v": "yes"}, {"v": "no"}, {"v": "yes"}], {"required": 2, "of": {"path": "v", "op": "eq",
        "value": "yes"}}, {"met": True, "approvals": 2, "required": 2}),
        ("quorum", ["yes", "no"], {"of": {"path": "", "op": "eq", "value": "yes"}}, {"met": True, "approvals": 1,
        "required": 1}),
        ("quorum", [False], {"required": 0}, {"met": True, "approvals": 0, "required": 0}),
        ("quorum", [MISSING, {"error": "x"}, 1], {"of": {"path": "no", "op": "not_exists"},
        "required": 1}, {"met": True, "approvals": 1, "required": 1}),
    ],
)  # fmt: skip
def test_a_mode_joins_its_inputs(mode: str, values: Any, config: Any, expected: Any) -> None:
    assert joined(mode, *values, **config) == expected


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("on_missing", ["null", "skip", "error"])
def test_nothing_to_join_is_an_error_whatever_is_said_of_missing_inputs(mode: str, on_missing: str) -> None:
    for values in ([], [MISSING], [None, MISSING]):
        with pytest.raises(NodeFailure, match="no input holds a value") as caught:
            joined(mode, *values, on_missing=on_missing)
        assert caught.value.code == "JOIN_NO_INPUTS"
        assert caught.value.details["inputs"] == ["a", "b"][: len(values)]


@pytest.mark.parametrize("mode", sorted(MODES))
def test_a_missing_input_means_the_same_in_every_mode(mode: str) -> None:
    values: list[Any] = [{"k": 1}, MISSING, {"k": 2}]
    present: list[Any] = [("a", values[0]), ("c", values[2])]
    assert joined(mode, *values, on_missing="skip") == join(mode, present, Config())
    assert joined(mode, *values) == joined(mode, values[0], None, values[2])
    with pytest.raises(NodeFailure, match="hold no value: b") as caught:
        joined(mode, *values, on_missing="error")
    assert caught.value.code == "JOIN_INPUT_MISSING"
    assert caught.value.details["inputs"] == ["b"]
    assert caught.value.failure_class == "invalid"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("collect_array", [None, 1]), ("collect_object", {"a": None, "b": 1}),
        ("merge_objects", {"a": None, "b": 1}), ("first_non_null", 1),
        ("all_success", {"all_success": False, "values": [None, 1]}),
        ("quorum", {"met": True, "approvals": 1, "required": 1}),
    ],
)  # fmt: skip
def test_a_missing_input_takes_part_as_null(mode: str, expected: Any) -> None:
    assert joined(mode, MISSING, 1) == expected
    if mode in ENVELOPES:
        assert joined(mode, MISSING, 1)["value"] == [None, 1]


def test_an_unmet_quorum_is_an_error_when_it_is_required() -> None:
    with pytest.raises(NodeFailure, match="1 of the 2 required") as caught:
        joined("quorum", True, False, required=2, require=True)
    assert caught.value.code == "JOIN_QUORUM_NOT_MET"
    assert caught.value.details == {"approvals": 1, "required": 2}
    with pytest.raises(NodeFailure, match="not every input succeeded: b, c") as caught:
        joined("all_success", 1, False, None, require=True)
    assert caught.value.code == "JOIN_QUORUM_NOT_MET"
    assert caught.value.details == {"failed": ["b", "c"]}
    assert joined("quorum", True, True, required=2, require=True)["met"]
    assert joined("all_success", True, require=True)["all_success"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True), (1, True), (0, True), ("", True), ("no", True), ([], True), ({}, True),
        ({"success": True, "error": "x"}, True),
        ({"error": None}, True), (None, False), (False, False), ({"success": False}, False), ({"success": 1}, False),
        ({"success": None}, False), ({"error": "x"}, False), ({"error": {}}, False),
    ],
)  # fmt: skip
def test_when_an_item_succeeds(value: Any, expected: bool) -> None:
    assert succeeds(value) is expected


def test_the_order_is_that_of_the_inputs_and_never_another() -> None:
    for values in permutations([{"k": 1, "a1": 1}, {"k": 2, "b1": 1}, {"k": 3, "c1": 1}]):
        assert joined("collect_array", *values) == list(values)
        assert list(joined("collect_object", *values)) == ["a", "b", "c"]
        assert joined("merge_objects", *values)["k"] == values[-1]["k"]


def test_duplicates_by_identity_are_left_out_and_the_first_stays() -> None:
    items = [{"id": 1, "t": "x"}, {"id": 1.0, "t": "y"}, {"id": True}, {"t": "z"}, {"id": {"n": 1}}, {"t": "w"}]
    result = joined("dedupe_by_identity", *items, identity_path="id")
    assert result == {
        "join": "dedupe_by_identity", "certification": "quarantine", "contradictions": [], "minority_report": [],
        "value": [items[0], items[2], items[3], items[4], items[5]], "notes": ["d: nothing at id", "f: nothing at id"],
    }  # fmt: skip
    nested = joined("dedupe_by_identity", {"meta": {"id": 1}}, {"meta": {"id": 1}}, identity_path="meta.id")
    assert (nested["value"], nested["certification"]) == ([{"meta": {"id": 1}}], "certified")


def test_without_a_path_the_whole_item_is_its_identity() -> None:
    assert joined("dedupe_by_identity", {"a": 1, "b": 2}, {"b": 2.0, "a": 1}, "x", "x", "1", 1)["value"] == [
        {"a": 1, "b": 2}, "x", "1", 1,
    ]  # fmt: skip


def test_contradictions_are_different_claims_of_one_scope_and_time() -> None:
    items = [
        {"scope": "s", "time": 1, "claim": "up"}, {"scope": "s", "time": 1.0, "claim": "down"}, {"scope": "s",
        "time": 2, "claim": "down"},
        {"scope": "s", "time": 1, "claim": "up"}, {"claim": "x"}, {"claim": "y"}, {"scope": "s", "time": 1}, "text",
    ]  # fmt: skip
    result = joined("contradiction_matrix", *items)
    pairs = [(pair["left"], pair["right"]) for pair in result["contradictions"]]
    assert pairs == [("a", "b"), ("b", "d"), ("e", "f")]
    assert result["contradictions"][0] == {
        "left": "a", "right": "b", "scope": "s", "time": 1, "left_claim": "up", "right_claim": "down",
    }  # fmt: skip
    assert result["contradictions"][2]["scope"] is None
    assert result["value"] == items
    assert result["certification"] == "certified"
    assert joined("contradiction_matrix", *items, strict=True)["certification"] == "quarantine"
    assert joined("contradiction_matrix", *items[2:4], strict=True)["certification"] == "certified"


def test_claims_are_found_where_the_paths_say() -> None:
    items = [{"m": {"s": 1}, "c": 1}, {"m": {"s": 1}, "c": 2}]
    result = joined("contradiction_matrix", *items, scope_path="m.s", claim_path="c", time_path="m.t")
    assert len(result["contradictions"]) == 1
    assert len(joined("contradiction_matrix", "up", "down", claim_path="")["contradictions"]) == 1


def test_the_list_of_contradictions_is_bounded() -> None:
    inputs: list[Any] = [(str(number), {"claim": number}) for number in range(60)]
    result: Any = join("contradiction_matrix", inputs, Config())
    assert len(result["contradictions"]) == joins.MAX_CONTRADICTIONS
    assert result["notes"] == [f"{60 * 59 // 2 - joins.MAX_CONTRADICTIONS} more contradictions are not listed"]


def test_a_minority_is_reported_apart() -> None:
    items = [{"v": 1, "dissent": False}, {"v": 2, "dissent": True}, {"v": 3}, "text", {"dissent": "true"}]
    assert joined("minority_report", *items) == {
        "join": "minority_report", "certification": "certified", "contradictions": [], "notes": [],
        "value": [items[0], items[2], items[3], items[4]], "minority_report": [{"input": "b", "value": items[1]}],
    }  # fmt: skip
    assert joined("minority_report", True, False, dissent_path="")["value"] == [False]


EVIDENCE = [{"witness_id": "w", "digest": "sha256:0"}]
CHECKS = [{"status": "passed"}]


@pytest.mark.parametrize(
    ("item", "note"),
    [
        ({"evidence": EVIDENCE, "checks": CHECKS}, "no receipt"),
        ({"evidence": EVIDENCE, "checks": CHECKS, "receipt": None}, "no receipt"),
        ({"evidence": [], "checks": CHECKS, "receipt": 1}, "evidence is not"),
        ({"evidence": "yes", "checks": CHECKS, "receipt": 1}, "evidence is not"),
        ({"evidence": [{"witness_id": "", "digest": "d"}], "checks": CHECKS, "receipt": 1}, "evidence is not"),
        ({"evidence": [{"witness_id": "w"}], "checks": CHECKS, "receipt": 1}, "evidence is not"),
        ({"evidence": EVIDENCE, "checks": [{"status": "failed"}], "receipt": 1}, "checks are not"),
        ({"evidence": EVIDENCE, "checks": ["passed"], "receipt": 1}, "checks are not"),
        ({"evidence": EVIDENCE, "checks": [], "receipt": 1}, "checks are not"), (None, "missing"),
        ("text", "not an object"),
    ],
)  # fmt: skip
def test_an_item_without_its_proof_is_dropped_and_told(item: Any, note: str) -> None:
    proven = {"evidence": EVIDENCE, "checks": CHECKS, "receipt": {"id": 1}}
    result = joined("proof_carrying_join", proven, item)
    assert result["value"] == [proven]
    assert result["certification"] == "quarantine"
    [told] = result["notes"]
    assert told.startswith(f"b: {note}")


def test_items_with_their_proof_are_certified() -> None:
    proven = {"evidence": EVIDENCE, "checks": CHECKS, "receipt": {"id": 1}}
    assert joined("proof_carrying_join", proven, proven)["certification"] == "certified"
    assert joined("proof_carrying_join", {"x": 1}, required_fields=["x"])["certification"] == "certified"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "claim"]) | st.just(MISSING),
    lambda inner: (
        st.lists(inner.filter(lambda v: v is not MISSING), max_size=2)
        | st.dictionaries(
            st.sampled_from(["claim", "scope", "success", "error", "id"]), inner.filter(lambda v: v is not MISSING)
        )
    ),
    max_leaves=5,
)


@given(
    st.sampled_from(sorted(MODES)),
    st.lists(VALUES, max_size=5),
    st.sampled_from(["null", "skip", "error"]),
    st.booleans(),
)
def test_a_join_gives_a_value_or_one_of_its_three_errors(
    mode: str, values: Any, on_missing: str, require: bool
) -> None:
    try:
        joined(mode, *values, on_missing=on_missing, require=require, identity_path="id")
    except NodeFailure as failure:
        code = failure.code
    else:
        code = ""
    missing = [value is MISSING or value is None for value in values]
    if all(missing):
        assert code == "JOIN_NO_INPUTS"
    elif any(missing) and on_missing == "error":
        assert code == "JOIN_INPUT_MISSING"
    else:
        assert code in ("", "JOIN_QUORUM_NOT_MET")
