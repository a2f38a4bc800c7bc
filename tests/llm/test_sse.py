"""Server-sent events are the same however the bytes were cut, and bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.errors import ModelBadReply
from agent_graph.llm.sse import event_data

LINES = st.sampled_from(
    [b"data: a", b"data:b", b"data:  c", b"data", b": hm", b"id: 1", b"dataset: x", b"", b"data: \xc3\xa9"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def read(pieces: list[bytes], most: int = 1_000) -> list[bytes]:
    async def source() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def gather() -> list[bytes]:
        return [data async for data in event_data(source(), who="host", max_event=most)]

    return asyncio.run(gather())


def plainly(lines: list[bytes]) -> list[bytes]:
    """A second reading: line by line, as the standard says it."""
    found: list[bytes] = []
    data: list[bytes] = []
    for line in [*lines, b""]:
        if line == b"" and data:
            found.append(b"\n".join(data))
            data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            data.append(b"")
    return found


@given(st.lists(LINES, max_size=12), ENDS, st.lists(st.integers(0, 80), max_size=6))
def test_however_the_bytes_are_cut_the_events_are_the_same(lines: list[bytes], end: bytes, cuts: list[int]) -> None:
    whole = b"".join(line + end for line in lines)
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(places)]
    assert read(pieces) == plainly(lines)


@pytest.mark.parametrize("pieces", [[b"x" * 1_001], [b"data: 1234\n"] * 300, [b"data: " + b"x" * 999 + b"\n"]])
def test_a_line_and_an_event_are_bounded(pieces: list[bytes]) -> None:
    with pytest.raises(ModelBadReply) as caught:
        read(pieces, most=900)
    assert caught.value.details == {"reason": "too_large", "max_bytes": 900}


def test_many_small_lines_let_others_have_their_turn() -> None:
    turns = 0

    async def source() -> AsyncIterator[bytes]:
        yield b": hm\n" * 5_000 + b"data: x\n\n"

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def both() -> list[bytes]:
        other = asyncio.create_task(count())
        found = [data async for data in event_data(source(), who="host", max_event=100)]
        other.cancel()
        return found

    assert asyncio.run(both()) == [b"x"]
    assert turns >= 5
