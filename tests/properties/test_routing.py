"""What is said of a router's rules is true of every value: compared with asking the rules themselves."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.checks.reasoning import Reasoning, Unknown, contains_text, rule
from agent_graph.core.checks.samples import Sample, samples
from agent_graph.core.effects import MISSING
from agent_graph.core.jsonvalue import text_of
from agent_graph.core.ops import predicates
from tests.sizes import size


class Anything:
    """Nothing is known of the values."""

    def values(self, path: str) -> list[Any]:
        return []

    def fits(self, path: str, sample: Sample) -> bool:
        return True


pytestmark = pytest.mark.timeout(size(120, 3_600))
VALUES: list[Any] = [
    MISSING, None, True, False, 0, 1, 1.0, 2, 3, -1, 0.5, 1.5, 2.5, 10**20, "", "a", "ab", "abc", "b", "B", "aB", "a\0",
    "xabx", [], [1], ["a"], ["ab", 2], {}, {"a": 1}, {"b": None},
]  # fmt: skip
"""Small, and with something in every class the rules below can tell apart."""
NUMBERS = st.sampled_from([0, 1, 1.0, 2, 2.5, -1, 3])
TEXTS = st.sampled_from(["", "a", "ab", "b", "B", "abc", "x"])
LITERALS = st.one_of(NUMBERS, TEXTS, st.sampled_from([None, True, False, [], [1], {}, {"a": 1}]))
PATTERNS = st.sampled_from(["^a$", "^a", "b$", "a", "^$", "^ab", "(a|b)", "^[ab]+$"])


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Any]:
    op = draw(st.sampled_from([*predicates.TESTS, "regex"]))
    body: dict[str, Any] = {"path": draw(st.sampled_from(["p", "p", "p", "q"])), "op": op}
    if op in ("exists", "not_exists", "empty", "not_empty"):
        return body
    if op in ("in", "not_in"):
        body["value"] = draw(st.lists(LITERALS, max_size=3))
    elif op == "is_type":
        body["value"] = draw(st.sampled_from([*predicates.TYPES, ["string", "null"]]))
    elif op == "regex":
        body["value"] = draw(PATTERNS)
    elif op in ("starts_with", "ends_with"):
        body["value"] = draw(TEXTS)
    elif op in ("lt", "lte", "gt", "gte"):
        body["value"] = draw(NUMBERS | TEXTS)
    elif draw(st.integers(0, 9)) == 0:
        body["value_path"] = "r"
    else:
        body["value"] = draw(LITERALS)
    if op in predicates._TEXTUAL and draw(st.integers(0, 5)) == 0:
        body["ignore_case"] = True
    return body


RULES = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=4,
)


def said(bodies: list[dict[str, Any]]) -> tuple[dict[int, list[int] | None], bool, Any]:
    reasoning = Reasoning([rule(body) for body in bodies], Anything())
    found: dict[int, list[int] | None] = {}
    try:
        found.update(reasoning.run())
        return found, reasoning.exhaustive(), reasoning.uncovered()
    except Unknown:
        return found, False, MISSING


@settings(max_examples=size(600, 20_000), deadline=None)
@given(st.lists(RULES, min_size=1, max_size=6))
def test_what_is_said_of_rules_holds_for_every_value(bodies: list[dict[str, Any]]) -> None:
    for body in bodies:
        assert not predicates.check(body, "")
    claims, complete, uncovered = said(bodies)
    holds = [predicates.prepare(body) for body in bodies]
    for p, q, r in product(VALUES, [MISSING, 1, "a", [1]], [None, "a", 1]):
        there = {"p": p, "q": q, "r": r}
        held = [one(lambda path: there[path]) for one in holds]  # noqa: B023  (asked at once)
        for place, before in claims.items():
            if before is None:
                assert not held[place], "it can never hold"
            else:
                assert not held[place] or any(held[:place]), "one before it holds too"
        assert not complete or any(held)
    if uncovered is not MISSING and all("value_path" not in str(body) for body in bodies):
        assert not any(one(lambda path: uncovered) for one in holds)


@settings(max_examples=size(100, 2_000), deadline=None)
@given(st.lists(st.sampled_from(["a", "ab", "abc", "b", "1", "null", ""]), min_size=1, max_size=4, unique=True))
def test_what_is_said_of_the_older_routes_holds_for_every_value(texts: list[str]) -> None:
    claims = dict(Reasoning([contains_text("", text) for text in texts], Anything()).run())
    for value in VALUES:
        held = [value is not MISSING and text in text_of(value) for text in texts]
        for place in claims:
            assert not held[place] or any(held[:place])


@settings(max_examples=size(300, 5_000), deadline=None)
@given(st.lists(LITERALS, max_size=5), LITERALS | st.floats(-5, 5), st.sampled_from(["eq", "lt", "lte", "gt", "gte"]))
def test_every_value_has_a_sample_that_answers_for_it(constants: list[Any], value: Any, op: str) -> None:
    given_ = samples(constants)
    asked = [predicates.prepare({"path": "p", "op": op, "value": one}) for one in constants]
    kinds = [predicates.prepare({"path": "p", "op": "is_type", "value": kind}) for kind in predicates.TYPES]
    answers = [[one(lambda _: sample.value) for one in (*asked, *kinds)] for sample in given_]  # noqa: B023  (at once)
    assert [one(lambda _: value) for one in (*asked, *kinds)] in answers
