"""The owner's socket: who may use it, what it answers, and that no client can hurt the owner."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import open_app
from agent_graph.engine import approvers
from agent_graph.errors import InputInvalid, StoreUnusable
from agent_graph.settings import Settings, load
from agent_graph.tools import socket_address, socket_server
from agent_graph.tools import socket_wire as wire
from agent_graph.tools.deps import Deps
from agent_graph.tools.socket_client import Owner

GATED = {
    "spec_version": "2", "name": "gated", "entry": "gate",
    "nodes": [{"id": "gate", "type": "human_approval", "config": {"prompt": "May it?"}}],
    "edges": [{"from": "gate", "to": "END"}],
}  # fmt: skip


def settings_for(folder: Path) -> Settings:
    script = folder.parent / "script.json"
    script.write_text('{"default": {"text": "fine"}}', encoding="utf-8")
    return load({"data_dir": str(folder)}, environ={"AGENT_GRAPH_SCRIPT": str(script)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def deps(folder: Path) -> AsyncIterator[Deps]:
    async with open_app(settings_for(folder)) as opened:
        yield opened


@pytest.fixture
def owner(deps: Deps, folder: Path) -> Owner:
    return Owner(folder, "test")


async def said(folder: Path, sent: bytes) -> dict[str, Any]:
    """What the owner answers to these bytes."""
    reader, writer = await asyncio.open_unix_connection(str(folder / wire.SOCKET_NAME))
    writer.write(sent)
    writer.write_eof()
    body: dict[str, Any] = json.loads(await reader.readline())
    writer.close()
    return body


async def started(owner: Owner) -> str:
    assert (await owner.call("graph_create", {"spec": GATED}))["ok"]
    return str((await owner.call("graph_run_start", {"graph_id": "gated"}))["run_id"])


async def until_waiting(owner: Owner, run_id: str) -> None:
    waited = await owner.call("graph_run_wait", {"run_id": run_id, "until": "waiting"})
    assert waited["data"]["status"] == "waiting"  # type: ignore[index, call-overload]  # it is an object


async def test_only_its_user_can_reach_it_and_it_goes_with_its_owner(folder: Path) -> None:
    async with open_app(settings_for(folder)):
        mode = (folder / wire.SOCKET_NAME).lstat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        assert await Owner(folder).answers()
    assert not (folder / wire.SOCKET_NAME).exists()
    assert not await Owner(folder).answers()
    with pytest.raises(ConnectionError):
        await Owner(folder).call("graph_list", {})


async def test_another_users_process_is_turned_away(deps: Deps, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4_242)
    with pytest.raises(ConnectionError, match="another user"):
        await owner.call("graph_list", {})
    monkeypatch.setattr(socket_address, "is_same_user", lambda connection: connection.getpeername() != "")
    with pytest.raises(ConnectionError):
        await owner.call("graph_list", {})
    assert deps.supervisor.load()["active"] == 0


@pytest.fixture
def left_by_the_dead(folder: Path) -> None:
    folder.mkdir()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(folder / wire.SOCKET_NAME))
    dead.close()


@pytest.fixture
def no_socket(folder: Path) -> Iterator[None]:
    folder.mkdir()
    path = folder / wire.SOCKET_NAME
    path.write_text("mine", encoding="utf-8")
    yield
    assert path.read_text(encoding="utf-8") == "mine"


async def test_a_socket_that_a_dead_owner_left_is_replaced(folder: Path, left_by_the_dead: None) -> None:
    assert not await Owner(folder).answers()
    async with open_app(settings_for(folder)):
        assert await Owner(folder).answers()


async def test_what_is_no_socket_is_not_replaced(folder: Path, no_socket: None) -> None:
    with pytest.raises(StoreUnusable, match="is not a socket"):
        async with open_app(settings_for(folder)):
            pass
    async with open_app(settings_for(folder), serve=False):
        pass


async def test_a_folder_deeper_than_a_sockets_address_is_served_all_the_same(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-folder-with-a-name-of-some-length"] * 5)
    deep.parent.mkdir(parents=True)
    async with open_app(settings_for(deep)):
        assert (await Owner(deep).call("graph_list", {}))["ok"]
    assert not (deep / wire.SOCKET_NAME).exists()


async def test_a_tool_answers_as_it_does_at_every_door(owner: Owner) -> None:
    assert (await owner.call("graph_list", {}))["data"] == {"graphs": [], "next_cursor": None, "truncated": False}
    assert (await owner.call("graph_lst", {}))["error_code"] == "TOOL_NOT_FOUND"
    assert (await owner.call("graph_list", {"limt": 1}))["error_code"] == "UNKNOWN_ARGUMENT"
    assert (await owner.call("graph_run_resume", {"run_id": "run-x"}))["error_code"] == "RUN_NOT_FOUND"
    with pytest.raises(InputInvalid):
        await owner.call("graph_list", {"query": "\ud800"})


async def test_a_decision_that_comes_this_way_says_so_whatever_the_client_claims(owner: Owner, folder: Path) -> None:
    run_id = await started(owner)
    await until_waiting(owner, run_id)
    pending: Any = await owner.call("graph_approval_list", {})
    asked = {
        "tool": "graph_approval_decide", "client": "x", "via": "console", "caller": {"via": "console"},
        "arguments": {
            "approval_id": pending["data"]["approvals"][0]["approval_id"], "decision": "approve", "decided_by": "Ada",
        },
    }  # fmt: skip
    answer = await said(folder, json.dumps(asked).encode() + b"\n")
    assert [vote["via"] for vote in answer["data"]["approval"]["votes"]] == ["cli"]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"nonsense\n", "INPUT_INVALID"), (b"[]\n", "INVALID_ARGUMENT"), (b"{}\n", "INVALID_ARGUMENT"),
        (b'{"tool": 3}\n', "INVALID_ARGUMENT"), (b'{"tool": "graph_list", "arguments": []}\n', "INVALID_ARGUMENT"),
        (b'{"tool": "a", "tool": "b"}\n', "INPUT_INVALID"), (b'{"watch": "run-x"}\n', "RUN_NOT_FOUND"),
        (b'{"watch": "run-x", "cursor": -1}\n', "INVALID_ARGUMENT"), (b'{"watch": 3}\n', "INVALID_ARGUMENT"),
        (b"[" * 5_000 + b"\n", "INPUT_TOO_DEEP"), (b"\xff\n", "INPUT_INVALID"),
    ],
)  # fmt: skip
async def test_nonsense_is_refused_and_the_owner_goes_on(owner: Owner, folder: Path, sent: bytes, code: str) -> None:
    assert (await said(folder, sent))["error_code"] == code
    assert (await owner.call("graph_list", {}))["ok"]


async def test_a_line_without_an_end_is_refused(owner: Owner, deps: Deps, folder: Path) -> None:
    answer = await said(folder, b"x" * (wire.request_bytes(deps.limits) + 100_000))
    assert answer["error_code"] == "INPUT_TOO_LARGE"
    assert (await owner.call("graph_list", {}))["ok"]


async def test_a_line_that_is_too_long_is_refused_also_when_the_client_still_writes(owner: Owner, deps: Deps) -> None:
    text = "x" * (2 * wire.request_bytes(deps.limits))
    assert (await owner.call("graph_list", {"query": text}))["error_code"] == "INPUT_TOO_LARGE"
    assert (await owner.call("graph_list", {}))["ok"]


async def test_the_owner_says_who_it_is_and_which_settings_are_in_force(owner: Owner) -> None:
    answer = await owner.settings(["provider", "http_auth", "no_such_setting", "limits"])
    assert answer["data"] == {"pid": os.getpid(), "settings": {"provider": "scripted", "http_auth": "required"}}


async def test_settings_are_asked_for_by_a_list_of_names(folder: Path, deps: Deps) -> None:
    assert (await said(folder, b'{"settings": "provider"}\n'))["error_code"] == "INVALID_ARGUMENT"


async def test_clients_that_vanish_cost_only_themselves(owner: Owner, folder: Path, deps: Deps) -> None:
    run_id = await started(owner)
    await until_waiting(owner, run_id)
    for sent in (b"", b'{"tool": ', wire.line({"watch": run_id}), wire.line({"tool": "graph_status", "arguments": {}})):
        _, writer = await asyncio.open_unix_connection(str(folder / wire.SOCKET_NAME))
        writer.write(sent)
        writer.transport.abort()
    silent = [await asyncio.open_unix_connection(str(folder / wire.SOCKET_NAME)) for _ in range(8)]
    assert (await owner.call("graph_run_get", {"run_id": run_id}))["ok"]
    for _, writer in silent:
        writer.close()


async def test_more_requests_than_there_is_room_for_are_turned_away(
    owner: Owner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_server, "CONNECTIONS", 1)
    run_id = await started(owner)
    await until_waiting(owner, run_id)
    reader, writer = await asyncio.open_unix_connection(str(folder / wire.SOCKET_NAME))
    writer.write(wire.line({"watch": run_id}))
    assert json.loads(await reader.readline())["ok"]
    refused = await owner.call("graph_list", {})
    assert (refused["error_code"], refused["retryable"]) == ("STORE_BUSY", True)
    writer.close()
    while not (await owner.call("graph_list", {}))["ok"]:  # until the owner has seen it go
        pass


async def test_clients_that_say_nothing_keep_nobody_out(owner: Owner, folder: Path) -> None:
    first, *_ = silent = [
        await asyncio.open_unix_connection(str(folder / wire.SOCKET_NAME)) for _ in range(socket_server.UNHEARD)
    ]
    for _ in range(3):
        assert (await owner.call("graph_list", {}))["ok"]
    assert await first[0].read() == b"", "the one that had kept silent for longest made room"
    reader, writer = silent[-1]
    writer.write(wire.line({"tool": "graph_list", "arguments": {}}))
    assert json.loads(await reader.readline())["ok"], "the others are still heard"
    for _, each in silent:
        each.close()


async def test_a_client_that_never_sends_its_line_is_left(
    owner: Owner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_server, "REQUEST_S", 0.01)
    reader, writer = await asyncio.open_unix_connection(str(folder / wire.SOCKET_NAME))
    assert await reader.read() == b""
    writer.close()


async def test_a_run_is_watched_from_any_event_to_its_end(owner: Owner) -> None:
    run_id = await started(owner)
    await until_waiting(owner, run_id)
    seen: list[dict[str, Any]] = []
    async with aclosing(owner.watch(run_id, cursor=1)) as items:  # type: ignore[type-var]  # it is a generator
        async for item in items:
            seen.append(item)
            if item.get("status") == "waiting":
                pending: Any = await owner.call("graph_approval_list", {})
                await owner.call("graph_approval_decide", {
                    "approval_id": pending["data"]["approvals"][0]["approval_id"], "decision": "approve",
                    "decided_by": "Ada",
                })  # fmt: skip
    assert seen[0] == {"ok": True, "data": {"run_id": run_id}, "run_id": run_id}
    assert seen[-1]["type"] == "run_status"
    assert seen[-1]["status"] == "completed"
    seqs = [item["seq"] for item in seen if "seq" in item]
    assert seqs == list(range(1, 1 + len(seqs)))


async def test_who_watches_is_told_when_the_owner_goes(folder: Path) -> None:
    seen: list[dict[str, Any]] = []

    async def watch(watching: AsyncIterator[dict[str, Any]]) -> None:
        async for item in watching:
            seen[len(seen) :] = [item]  # what came before the end is kept

    async with open_app(settings_for(folder)):
        owner = Owner(folder)
        watching = owner.watch(await started(owner))
        assert (await anext(watching))["ok"]
    with pytest.raises(ConnectionError):
        await watch(watching)
    assert "run_interrupted" not in [item["type"] for item in seen]


async def test_an_approver_proves_to_be_there_and_whoever_does_not_decides_nothing(
    owner: Owner, deps: Deps, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvers, "_COST", {"n": 2**4, "r": 8, "p": 1})
    ada = approvers.Proof("ada", "correct horse")
    await deps.approvers.add(ada, voucher=None, now_ms=0)
    closed: Any = json.loads(json.dumps(GATED))
    closed["nodes"][0]["config"]["channels"] = ["console", "cli"]
    assert (await owner.call("graph_create", {"spec": closed}))["ok"]
    await owner.call("graph_run_start", {"graph_id": "gated", "input": "x"})
    pending: Any = {"data": {"approvals": []}}
    while not pending["data"]["approvals"]:
        pending = await owner.call("graph_approval_list", {})
    asked = {"approval_id": pending["data"]["approvals"][0]["approval_id"], "decision": "approve", "decided_by": "Ada"}
    call = {"tool": "graph_approval_decide", "arguments": asked, "client": "x", "via": "elicitation"}
    for more, code in (
        ({}, "APPROVER_REQUIRED"),  # the channel is cli, whatever the line says
        ({"approver": "ada", "secret": "a guess of mine"}, "APPROVER_SECRET_WRONG"),
        ({"approver": "ada"}, "INVALID_ARGUMENT"),
        ({"approver": True, "secret": "correct horse"}, "INVALID_ARGUMENT"),
    ):
        answer = await said(folder, wire.line({**call, **more}))
        assert answer["error_code"] == code
    assert (await owner.call("graph_approval_list", {})) == pending
    decided: Any = await owner.call("graph_approval_decide", asked, proof=ada)
    assert decided["data"]["approval"]["votes"][0]["principal"] == "ada"
