"""What the catalog of graphs decides by size."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.engine.catalog import LARGE, is_large


def nested(values: int) -> dict[str, Any]:
    """An object with so many values in all, one within another."""
    inner: dict[str, Any] = {}
    for _ in range(values):
        inner = {"x": inner}
    return inner


SHAPES = {
    "an object": lambda values: {str(number): number for number in range(values)},
    "a list": lambda values: list(range(values)),
    "nested": nested,
    "a spec": lambda values: {"nodes": [{"id": n, "type": "llm"} for n in range((values - 1) // 3)],
                              **{str(n): n for n in range((values - 1) % 3)}},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_spec_is_large_beyond_its_bound_and_not_at_it(shape: str) -> None:
    made = SHAPES[shape]
    assert not is_large(made(LARGE - 1))
    assert not is_large(made(LARGE))
    assert is_large(made(LARGE + 1))


@pytest.mark.parametrize("value", [None, 7, "x" * 10_000, {}, []])
def test_what_holds_nothing_is_not_large(value: Any) -> None:
    assert not is_large(value)


def test_no_more_is_looked_at_than_says_it() -> None:
    class Counted(dict[str, Any]):
        looks = 0

        def values(self) -> Any:
            Counted.looks += 1
            return super().values()

    value = [Counted(x=1) for _ in range(LARGE)] + [[0] * LARGE]
    assert is_large([Counted(x=1), [0] * LARGE, Counted(x=1)])
    assert Counted.looks <= 1
    Counted.looks = 0
    assert is_large(value)
    assert Counted.looks == 0, "the list alone has said it"
