"""What a front knows by itself, without a daemon."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from agent_graph import errors
from agent_graph.mcp_server import proxy_facts
from agent_graph.mcp_server.proxy import Proxy
from agent_graph.mcp_server.proxy_arguments import MEMORY, Arguments, default_folder, given, parse
from agent_graph.mcp_server.proxy_book import Book, Message, refused
from agent_graph.mcp_server.proxy_link import Link
from agent_graph.mcp_server.server import build
from agent_graph.settings import default_data_dir, load
from tests.fakes.opened import opened
from tests.mcp_server.process import ROOT, call, initialize

OURS = {
    "agent_graph", "agent_graph.mcp_server", "agent_graph.mcp_server.hello", "agent_graph.mcp_server.instructions",
    "agent_graph.mcp_server.proxy", "agent_graph.mcp_server.proxy_arguments", "agent_graph.mcp_server.proxy_book",
    "agent_graph.mcp_server.proxy_facts", "agent_graph.mcp_server.proxy_link", "agent_graph.tools",
    "agent_graph.mcp_server.proxy_client", "agent_graph.system", "agent_graph.system.modules",
    "agent_graph.system.processes", "agent_graph.tools.socket_address", "agent_graph.cli", "agent_graph.cli.main",
    "agent_graph.mcp_server.legacy",
}  # fmt: skip
LOADED = """
import sys
before = set(sys.modules)
from agent_graph.cli import main
from agent_graph.mcp_server import legacy, proxy
for name in set(sys.modules) - before:
    if name.partition(".")[0] not in sys.stdlib_module_names:
        print(name)
print("asyncio" in sys.modules, "pathlib" in sys.modules)
"""


def test_it_imports_the_standard_library_and_neither_asyncio_nor_pathlib() -> None:
    # without what measures coverage in child processes, which is loaded before anything of ours
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, env=env)
    *names, last = done.stdout.split("\n")[:-1]
    assert set(names) <= OURS
    assert last == "False False"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"])
async def test_what_it_answers_first_is_what_the_server_answers(version: str) -> None:
    (request, _) = initialize(version)
    line = proxy_facts.answer(0, request["params"])
    assert line is not None
    ours = json.loads(line)["result"]
    async with opened() as deps, Client(build(deps), mode="legacy") as client:
        theirs = client.session.initialize_result.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert {**ours, "protocolVersion": "-"} == {**theirs, "protocolVersion": "-"}
    assert ours["protocolVersion"] == (version if version.startswith("202") else "2025-11-25")


@pytest.mark.parametrize("changed", [{"protocolVersion": 1}, {"clientInfo": None}, {"capabilities": []}])
def test_what_it_does_not_understand_is_the_servers_to_answer(changed: dict[str, Any]) -> None:
    (request, _) = initialize()
    assert proxy_facts.answer(0, {**request["params"], **changed}) is None


@pytest.mark.parametrize(
    "environ",
    [{}, {"XDG_DATA_HOME": "/data/of/mine"}, {"XDG_DATA_HOME": "relative"}, {"HOME": "relative"}, {"HOME": ""}],
)
def test_both_find_the_same_default_folder(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert default_folder() == str(default_data_dir())


@pytest.mark.parametrize("flag", ["", "~/flag", "here/../flag", MEMORY])
@pytest.mark.parametrize("variable", ["", "~/variable", "there", MEMORY])
def test_both_find_the_same_folder(
    flag: str, variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_GRAPH_DATA_DIR", variable)
    theirs = load({"data_dir": flag}).data_dir
    assert os.path.normpath(Arguments({"data_dir": flag}).folder) == os.path.normpath(str(theirs or MEMORY))


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ([], True), (["--model", "m", "--data-dir=x"], True), (["--toolsets", "core,author"], True),
        (["--help"], False), (["--in-process"], False), (["--model"], False), (["--nonsense", "x"], False),
        (["--data-dir", MEMORY], False), (["--data-dir=:memory:"], False),
    ],
)  # fmt: skip
def test_it_leaves_to_the_command_line_what_it_does_not_know(
    words: list[str], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_GRAPH_DATA_DIR", raising=False)
    assert (parse(words) is not None) is known


def test_the_daemon_is_started_with_the_clients_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_GRAPH_MODEL", raising=False)
    found = parse(["--model", "-m", "--toolsets", "author", "--data-dir", "x"])
    assert found is not None
    assert found.command()[1:] == ["-P", "-m", "agent_graph", "daemon", "--detached", "--data-dir=x", "--model=-m"]
    assert given(found.command()[6:]) == ({"data_dir": "x", "model": "-m"}, "")
    assert given(Arguments({}, socket="/a=b").command()[6:]) == ({}, "/a=b")
    assert found.hello()["toolsets"] == "author"
    assert dict(found.hello()["asked"])["model"] == ["-m", "flag"]  # type: ignore[call-overload]  # it is a dict


def _message(**body: Any) -> Message:
    return Message(json.dumps({"jsonrpc": "2.0", **body}).encode())


def test_the_book_knows_what_is_open_and_what_to_say_again() -> None:
    book = Book()
    one, two = object.__new__(Link), object.__new__(Link)
    for body in (
        initialize()[0], {"method": "notifications/initialized"}, call("a", "graph_list"), call(7, "graph_run_wait"),
        {"id": 8, "method": "resources/subscribe", "params": {"uri": "u"}}, {"id": 9, "method": "ping"},
        {"id": 10, "method": "resources/subscribe", "params": {"uri": "v"}},
        {"id": 11, "method": "resources/unsubscribe", "params": {"uri": "v"}}, call("ä", "graph_list"),
    ):  # fmt: skip
        book.sent(_message(**body), one)
    book.sent(_message(method="notifications/cancelled", params={"requestId": 7}), one)
    assert book.heard(b'{"jsonrpc":"2.0","id":0,"result":{}}')
    assert book.heard('{"jsonrpc":"2.0","id":"ä","result":{}}'.encode())
    assert book.heard(b'{"id":9,"jsonrpc":"2.0","result":{}}')
    for line in (b'{"jsonrpc":"2.0","method":"notifications/progress"}', b"[]", b"no json"):
        assert book.heard(line)
    assert book.lost(two) == []
    assert book.lost(one) == ['"a"', "8", "10", "11"]
    assert book.lost(one) == []
    again = [json.loads(line) for line in book.told_again()]
    assert [(each["method"], each.get("id")) for each in again] == [
        ("initialize", "agent-graph-front:1"), ("notifications/initialized", None),
        ("resources/subscribe", "agent-graph-front:2"),
    ]  # fmt: skip
    assert not book.heard(b'{"jsonrpc":"2.0","id":"agent-graph-front:1","result":{}}')


def test_a_daemon_that_dies_again_and_again_is_not_started_for_ever() -> None:
    front = Proxy(Arguments({}))
    started = []
    for _ in range(5):
        ours, theirs = socket.socketpair()
        theirs.close()
        front._gone(Link(ours, b"", 1), "")
        started.append(front._lost)
    assert started == [True, True, True, False, False]


def test_an_initialize_that_was_lost_is_not_said_again() -> None:
    book, link = Book(), object.__new__(Link)
    book.sent(_message(**initialize()[0]), link)
    assert book.lost(link) == ["0"]
    assert book.told_again() == []


@pytest.mark.parametrize("line", [b"{no json", b"[]", b"[" * 100_000, b'{"id":1}', b"\xff", b'{"method":5,"id":1}'])
def test_a_line_it_cannot_read_is_no_request(line: bytes) -> None:
    message = Message(line)
    assert (message.id, message.params) == ("", {})


@pytest.mark.parametrize("given", [1.5, None, True, [1], {"a": 1}])
def test_an_id_that_is_none_is_never_waited_for(given: Any) -> None:
    book, link = Book(), object.__new__(Link)
    book.sent(_message(id=given, method="ping"), link)
    assert book.lost(link) == []


def test_its_refusals_have_codes_of_the_contract() -> None:
    for code in ("DAEMON_LOST", "DAEMON_UNREACHABLE", "DAEMON_VERSION_MISMATCH", "DAEMON_SETTINGS_DIFFER"):
        known = {each.code for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "code")}
        assert code in known
    answer = json.loads(refused('"x"', "DAEMON_LOST", "why", retryable=True))
    assert answer["id"] == "x"
    assert answer["error"] == {
        "code": -32000, "message": "DAEMON_LOST: why", "data": {"error_code": "DAEMON_LOST", "retryable": True},
    }  # fmt: skip
