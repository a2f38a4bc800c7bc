"""Long texts are written once, text for text and back, whatever they hold."""

from __future__ import annotations

import json

import pytest

from agent_graph.core import checkpoint, packed
from tests.core.played import compiled, llm, play, writes
from tests.fakes.pictures import data_url

LONG = 'x"\\\u0000\u2028\n\U0001f600' * 1_000
OTHER = "y," * 4_000


@pytest.mark.parametrize("value", [LONG, [LONG, 7, OTHER], {"a": {"b": [OTHER]}}, ["z" * 5_000] * 100, 7, None])
def test_what_is_packed_comes_back(value: object) -> None:
    text = json.dumps([value, value, {"again": value}], ensure_ascii=False, separators=(",", ":"))
    short = packed.pack(text, value)  # type: ignore[arg-type]  # JSON
    assert packed.unpack(short) == text
    if len(text) < packed.LONG:
        assert short == text
    else:
        assert len(short) < len(text) / 2


def test_a_text_that_looks_like_a_mark_or_like_structure_comes_back() -> None:
    numbers = "1," * 4_000
    tricky = [numbers, {"a": f"\0{'0' * 64}"}, json.loads(f"[{numbers}1]"), numbers]
    text = json.dumps(tricky, separators=(",", ":"))
    assert packed.unpack(packed.pack(text, numbers)) == text
    mark = packed.pack(json.dumps([LONG, LONG], ensure_ascii=False), LONG).partition("\n")[0]
    once = next(iter(json.loads(mark)))
    text = json.dumps([LONG, LONG, json.loads(once)], ensure_ascii=False)
    assert packed.unpack(packed.pack(text, LONG)) == text


def test_so_many_texts_are_looked_for_at_most() -> None:
    many = [f"{number:05}" * 1_000 for number in range(100)]
    text = json.dumps([many, many], separators=(",", ":"))
    short = packed.pack(text, many)  # type: ignore[arg-type]  # JSON
    assert len(json.loads(short.partition("\n")[0])) == packed.MOST
    assert packed.unpack(short) == text


def test_a_picture_is_in_a_snapshot_once() -> None:
    picture = data_url("image/png", b"\x89PNG\r\n\x1a\n" + bytes(100_000))
    graph = compiled([writes("w", kept=1), llm("a", images=["{photo}"])], "w>a a>END")
    run = play(graph, {"photo": picture, "other": [picture]})
    data = checkpoint.dump(run.run)
    assert len(data) < 1.2 * len(picture)
    assert checkpoint.dump(checkpoint.load(graph, data)) == data
    again = checkpoint.load(graph, data)
    assert again.input == {"photo": picture, "other": [picture]}


@pytest.mark.parametrize("data", [b"", b"{}", b"\n{}", b'[]\n{"format": 1}', b'{"a"', b"\xff"])
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        checkpoint.load(compiled([llm("a")], "a>END"), data)
