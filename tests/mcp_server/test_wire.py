"""One line in, one message out, and what is answered to a line that is none."""

from __future__ import annotations

import json
import os
import threading
import tracemalloc
from typing import Any

import pytest
from mcp import types

from agent_graph.mcp_server import lines
from agent_graph.mcp_server.lines import Reader, TooLong
from agent_graph.mcp_server.wire import Unread, read, written


def _answered(line: bytes) -> Any:
    unread = read(line, max_depth=20)
    assert isinstance(unread, Unread)
    assert unread.answer.endswith(b"\n")
    return json.loads(unread.answer)


def test_a_message_goes_through_with_integers_exact() -> None:
    message = read(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":100000000000000000000000001}}', max_depth=20)
    assert isinstance(message, types.JSONRPCRequest)
    assert written(message) == b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":100000000000000000000000001}}\n'


def test_text_is_utf_8_and_never_more_than_one_line() -> None:
    response = types.JSONRPCResponse(jsonrpc="2.0", id="x", result={"text": "Größe\n中文 \U0001f642"})
    line = written(response)
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("utf-8"))["result"]["text"] == "Größe\n中文 \U0001f642"


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"id":1,"x":"[{","method":"m","params":[[NaN]],"jsonrpc":"2.0"}', 1),
        (b'{"id":"a\\"b","method":"m","params":{"y":{"id":2},"z":NaN},"jsonrpc":"2.0"}', 'a"b'),
        (b'{"params":{"deep":' + b"[" * 99 + b"]" * 99 + b'},"id":3,"method":"m","jsonrpc":"2.0"}', 3),
        (b'{"id":1,"id":2,"method":"m"}', None),
        (b'{"id":{},"method":"m","params":NaN}', None),
        (b'{"id":true,"method":"m","params":[NaN]}', None),
        (b"}{", None),
        (b'"', None),
        (b"\xff\xfe", None),
    ],
)
def test_the_id_of_an_unreadable_line_is_found_where_there_is_one(line: bytes, request_id: Any) -> None:
    answer = _answered(line)
    assert (answer["id"], answer["error"]["code"]) == (request_id, -32700)


@pytest.mark.parametrize("request_id", [b"null", b"1.5", b"true", b"[]", b"{}"])
def test_a_request_with_an_id_that_is_none_is_answered_and_no_notification(request_id: bytes) -> None:
    answer = _answered(b'{"jsonrpc":"2.0","id":' + request_id + b',"method":"tools/list"}')
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("line", [b'"' + b"\\" * 2_000_000, b'"' * 3_000_000, b'{"a":' + b"1," * 1_000_000])
def test_an_unreadable_line_is_looked_at_in_bounded_memory(line: bytes) -> None:
    tracemalloc.start()
    try:
        assert _answered(line)["error"]["code"] == -32700
        assert tracemalloc.get_traced_memory()[1] < 10 * len(line)
    finally:
        tracemalloc.stop()


def test_an_unreadable_call_of_a_tool_is_the_tools_refusal() -> None:
    answer = _answered(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x","arguments":{"a":1e999}}}')
    assert answer["result"]["isError"] is True
    assert answer["result"]["structuredContent"]["error_code"] == "INPUT_INVALID"


def test_a_line_that_was_too_long_to_keep_is_said_to_be() -> None:
    answer = _answered(TooLong)
    assert answer["error"]["message"].startswith("INPUT_TOO_LARGE")


class _Read:
    """What a reader hands over of what is written to it."""

    def __init__(self, *chunks: bytes) -> None:
        self.lines: list[bytes] = []
        self.why = ""
        done = threading.Event()
        reading, feeding = os.pipe()
        other, writing = os.pipe()

        def end(why: str) -> None:
            self.why = why
            done.set()

        Reader(reading, writing, on_line=self.lines.append, on_end=end).start()
        for chunk in chunks:
            os.write(feeding, chunk)
        os.close(feeding)
        assert done.wait(10)
        for descriptor in (reading, other, writing):
            os.close(descriptor)


def test_lines_are_put_together_from_pieces() -> None:
    seen = _Read(b"on", b"e\ntwo\n\n  \nth", b"ree")
    assert (seen.lines, seen.why) == ([b"one", b"two", b"three"], "end of input")


def test_a_line_that_is_too_long_is_skipped_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES", 10)
    seen = _Read(b"short\n", b"x" * 50, b"y" * 50, b"\n", b"again\n")
    assert seen.lines == [b"short", TooLong, b"again"]


def test_a_client_that_closes_its_end_is_noticed_without_a_word() -> None:
    reading, feeding = os.pipe()
    other, writing = os.pipe()
    told: list[str] = []
    done = threading.Event()
    Reader(reading, writing, on_line=lambda line: None, on_end=lambda why: (told.append(why), done.set())).start()
    os.close(other)
    assert done.wait(10)
    assert told == ["nobody reads"]
    for descriptor in (reading, feeding, writing):
        os.close(descriptor)
