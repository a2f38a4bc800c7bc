"""What is cut stays JSON, keeps what is small, and says where."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.jsonvalue import compact, parse_json
from agent_graph.core.jsonvalue import size as bytes_of
from agent_graph.tools.fitting import fitted
from tests.sizes import size

ROOM = 8_192
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(), inner, max_size=5)),
    max_leaves=12,
)


def _swollen(value: Any, times: int, *, depth: int = 0) -> Any:
    """The same with longer texts and lists."""
    match value:
        case str():
            return value * times
        case list():
            return [_swollen(item, times, depth=depth + 1) for item in value] * (times if depth == 1 else 1)
        case dict():
            return {name * min(times, 99): _swollen(item, times, depth=depth + 1) for name, item in value.items()}
        case _:
            return value


@settings(max_examples=size(60, 600), deadline=None)
@given(st.dictionaries(st.text(max_size=20), VALUES, max_size=8), st.integers(1, 900))
def test_it_never_holds_more_than_there_is_room_for(small: Any, times: int) -> None:
    data = _swollen(small, times)
    fit = fitted(data, max_bytes=ROOM)
    assert bytes_of(fit) <= ROOM
    parse_json(compact(fit), max_bytes=ROOM, max_depth=100)
    if bytes_of(data) <= ROOM:
        assert fit is data
    else:
        assert fit["truncated"] is True
        assert fit["whole_bytes"] == bytes_of(data)
        assert fit["cut"]


def test_small_members_survive_beside_large_ones() -> None:
    data = {"run_id": "run-1", "status": "completed", "state": {"text": "x" * 1_000_000, "n": 3}, "next_cursor": 7}
    fit: Any = fitted(data, max_bytes=30_000)
    assert (fit["run_id"], fit["status"], fit["next_cursor"], fit["state"]["n"]) == ("run-1", "completed", 7, 3)
    assert fit["state"]["text"].startswith("x" * 20_000)
    assert fit["state"]["text"].endswith("... [cut: 1000000 characters in all]")
    assert fit["cut"] == [{"pointer": "/state/text", "characters": 1_000_000}]
    assert bytes_of(fit) > 25_000


def test_three_long_texts_share_the_room() -> None:
    fit: Any = fitted({"texts": ["a" * 200_000, "b" * 200_000, "c" * 200_000]}, max_bytes=30_000)
    lengths = [len(text) for text in fit["texts"]]
    assert max(lengths) - min(lengths) < 10
    assert min(lengths) > 8_000


def test_a_long_list_loses_its_end_and_says_how_long_it_was() -> None:
    fit: Any = fitted({"numbers": list(range(100_000))}, max_bytes=30_000)
    assert fit["numbers"] == list(range(len(fit["numbers"])))
    assert len(fit["numbers"]) > 2_000
    assert fit["cut"] == [{"pointer": "/numbers", "members": 100_000}]


def test_only_the_first_places_are_named() -> None:
    fit: Any = fitted({f"k/{n}": "x" * 9_000 for n in range(50)}, max_bytes=30_000)
    assert len(fit["cut"]) == 6
    assert fit["cut"][0]["pointer"] == "/k~10"


def test_an_integer_of_thousands_of_digits_is_a_mark() -> None:
    fit: Any = fitted({"numbers": [10**4_000] * 10}, max_bytes=ROOM)
    assert "..." in fit["numbers"]
