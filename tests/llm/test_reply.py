"""What a watcher is told of a reply: thinking apart from the text, wherever the host puts it."""

from __future__ import annotations

import pytest

from agent_graph.llm.reply import InlineThinking

CASES = [
    ("<think>hm, yes</think>\n\nParis", "hm, yes", "Paris"),
    ("  \n<think>a</think><think>b</think>c", "ab", "c"),
    ("<think>a < b </thin k></think>c", "a < b </thin k>", "c"),
    ("<thinking is hard", "", "<thinking is hard"),
    ("Paris <think>no</think>", "", "Paris <think>no</think>"),
    ("<think>never closed", "never closed", ""),
    ('{"a": 1}', "", '{"a": 1}'),
    ("", "", ""),
]


@pytest.mark.parametrize(("said", "thinking", "text"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_thinking_in_the_text_is_told_apart_however_it_is_cut(said: str, thinking: str, text: str, size: int) -> None:
    inline = InlineThinking()
    told = [part for at in range(0, len(said), size) for part in inline.feed(said[at : at + size])]
    assert "".join(piece for kind, piece in told if kind == "thinking") == thinking
    assert "".join(piece for kind, piece in told if kind == "text").lstrip() == text
    assert all(piece for _, piece in told)
