"""The door on loopback, in place of a socket in the data folder: who comes in through it, and who does not."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_graph.app import open_app
from agent_graph.errors import DataDirLocked, StoreUnusable
from agent_graph.settings import Settings, load
from agent_graph.tools import socket_address, socket_door, socket_loopback
from agent_graph.tools import socket_wire as wire
from agent_graph.tools.socket_client import Owner
from agent_graph.tools.socket_loopback import CLIENT, HELLO, NONCE, PROOF, proven

HOST = socket_loopback.HOST


def settings_for(folder: Path, door: str = "loopback") -> Settings:
    script = folder.parent / "script.json"
    script.write_text('{"default": {"text": "fine"}}', encoding="utf-8")
    environ = {"AGENT_GRAPH_SCRIPT": str(script), "AGENT_GRAPH_DOOR": door}
    return load({"data_dir": str(folder)}, environ=environ)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def door_in(folder: Path) -> Path:
    return folder / "owner.door"


def written(door: Path) -> dict[str, str]:
    said: dict[str, str] = json.loads(door.read_bytes())
    return said


@asynccontextmanager
async def through(door: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the port, with nothing said."""
    reader, writer = await asyncio.open_connection(HOST, int(written(door)["port"]))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What still comes until the end of the connection, however that ends."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_who_has_read_the_file_comes_in_and_the_door_goes_with_its_owner(folder: Path) -> None:
    async with open_app(settings_for(folder)):
        door = door_in(folder)
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        assert not (folder / wire.SOCKET_NAME).exists()
        note = json.loads((folder / "owner.lock").read_bytes())
        assert note["reach"] == str(door)
        assert await Owner(folder).answers()
        assert (await Owner(folder).call("graph_list", {}))["ok"]
    assert not door.exists()
    assert not await Owner(folder).answers()
    with pytest.raises(ConnectionError):
        await Owner(folder).call("graph_list", {})


async def test_the_token_is_another_each_time(folder: Path) -> None:
    seen = set()
    for _ in range(2):
        async with open_app(settings_for(folder)):
            seen.add(written(door_in(folder))["token"])
    assert len(seen) == 2


@pytest.mark.parametrize(("before", "after"), [("auto", "loopback"), ("loopback", "auto")])
async def test_a_door_of_the_other_kind_that_a_dead_owner_left_is_taken_away(
    folder: Path, before: str, after: str
) -> None:
    left = socket_door.door(folder / wire.SOCKET_NAME, loopback=before == "loopback")
    left._listener.close()
    found = folder / {"auto": "owner.sock", "loopback": "owner.door"}[before]
    assert found.exists()
    async with open_app(settings_for(folder, after)):
        assert not found.exists()
        assert (await Owner(folder).call("graph_list", {}))["ok"]


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        wire.line({"tool": "graph_list", "arguments": {}}),
        HELLO + bytes(NONCE) + bytes(PROOF) + wire.line({"tool": "graph_list", "arguments": {}}),
    ],
    ids=["another protocol", "no token", "a wrong proof"],
)
async def test_who_has_not_read_it_is_broken_off_and_told_nothing(folder: Path, said: bytes) -> None:
    async with open_app(settings_for(folder)):
        token = written(door_in(folder))["token"]
        async with through(door_in(folder)) as (reader, writer):
            writer.write(said)
            got = await rest_of(reader)
        assert len(got) in (0, NONCE + PROOF), "at most the owner's own proof"
        assert bytes.fromhex(token) not in got
        assert (await Owner(folder).call("graph_list", {}))["ok"], "the owner goes on"


async def test_a_proof_serves_one_connection_and_one_side(folder: Path) -> None:
    async with open_app(settings_for(folder)):
        token = bytes.fromhex(written(door_in(folder))["token"])
        ours = os.urandom(NONCE)
        async with through(door_in(folder)) as (reader, writer):
            writer.write(HELLO + ours)
            theirs, proof = await reader.readexactly(NONCE), await reader.readexactly(PROOF)
            writer.write(proof)  # the owner's own, sent back
            assert await rest_of(reader) == b""
        async with through(door_in(folder)) as (reader, writer):
            writer.write(HELLO + ours + proven(token, CLIENT, ours, theirs))  # heard on another connection
            assert len(await rest_of(reader)) == NONCE + PROOF


async def test_a_wrong_token_is_noticed_before_anything_is_said(folder: Path, tmp_path: Path) -> None:
    async with open_app(settings_for(folder)):
        wrong = tmp_path / "wrong.door"
        wrong.write_text(json.dumps({**written(door_in(folder)), "token": "00" * 32}), encoding="utf-8")
        with pytest.raises(ConnectionRefusedError, match="is not who wrote"):
            await asyncio.to_thread(socket_loopback.connected, str(wrong))


async def test_who_says_nothing_is_left_and_keeps_nobody_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_door, "UNPROVEN", 2)
    async with open_app(settings_for(folder)):
        async with through(door_in(folder)) as (first, _), through(door_in(folder)):
            assert (await Owner(folder).call("graph_list", {}))["ok"]
            assert await rest_of(first) == b"", "the one that had kept silent for longest made room"
        monkeypatch.setattr(socket_door, "PROOF_S", 0.01)
        async with through(door_in(folder)) as (silent, _):
            assert await rest_of(silent) == b""


async def test_one_that_keeps_silent_does_not_keep_the_owner(folder: Path) -> None:
    async with open_app(settings_for(folder)):
        silent = through(door_in(folder))
        reader, writer = await silent.__aenter__()
        writer.write(HELLO + bytes(NONCE))
        await reader.readexactly(NONCE + PROOF)
    assert await rest_of(reader) == b""
    await silent.__aexit__(None, None, None)


class Stranger:
    """A program that got the port of an owner that was killed, and notes what it is told."""

    def __init__(self, answer: bytes) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.told = b""
        self._answer = answer
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.sendall(self._answer)
            while chunk := connection.recv(4096):
                self.told += chunk

    def end(self) -> None:
        self._thread.join(5.0)
        self._listener.close()


async def test_a_stranger_on_a_dead_owners_port_is_told_nothing_and_believed_nothing(folder: Path) -> None:
    stranger = Stranger(bytes(NONCE + PROOF))
    token = os.urandom(32)
    door_in(folder).write_text(json.dumps({"port": stranger.port, "token": token.hex()}), encoding="utf-8")
    assert not await Owner(folder).answers()
    stranger.end()
    assert stranger.told.startswith(HELLO)
    assert len(stranger.told) == len(HELLO) + NONCE
    assert token not in stranger.told
    async with open_app(settings_for(folder)):
        assert written(door_in(folder))["port"] != stranger.port
        assert (await Owner(folder).call("graph_list", {}))["ok"]


@pytest.mark.parametrize("said", [b"", b"[]", b"{}", b'{"port": 1}', b'{"port": 1, "token": "zz"}', b"\xff"])
async def test_a_file_that_says_nothing_leads_nowhere(folder: Path, said: bytes) -> None:
    async with open_app(settings_for(folder)):
        door_in(folder).write_bytes(said)
        with pytest.raises(ConnectionRefusedError, match="does not say where"):
            await asyncio.to_thread(socket_address.connected, folder / wire.SOCKET_NAME)
        with pytest.raises(DataDirLocked) as refused:
            async with open_app(settings_for(folder)):
                pass
        assert refused.value.details["reach"] == str(door_in(folder))
        assert door_in(folder).read_bytes() == said


async def test_a_file_that_cannot_be_read_or_is_anothers_leads_nowhere(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(settings_for(folder)):
        kept = door_in(folder).rename(tmp_path / "kept")
        door_in(folder).mkdir()
        assert not await Owner(folder).answers()
        door_in(folder).rmdir()
        door_in(folder).symlink_to(kept)
        assert not await Owner(folder).answers(), "whoever can plant a link would choose the owner"
        door_in(folder).unlink()
        kept.rename(door_in(folder))
        assert await Owner(folder).answers()
        monkeypatch.setattr("os.geteuid", lambda: 4_242)
        with pytest.raises(PermissionError, match="another user's"):
            socket_loopback.read(str(door_in(folder)))


async def test_a_door_that_cannot_be_written_is_said_and_leaves_no_port(folder: Path) -> None:
    door_in(folder).mkdir()
    with pytest.raises(StoreUnusable) as refused:
        async with open_app(settings_for(folder)):
            pass
    assert refused.value.code == "STORE_UNUSABLE"
    assert str(door_in(folder)) in refused.value.message
    async with open_app(settings_for(folder), serve=False):
        pass


async def test_two_folders_have_two_ports(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with open_app(settings_for(one)), open_app(settings_for(two)):
        assert written(door_in(one))["port"] != written(door_in(two))["port"]
        for folder in (one, two):
            assert (await Owner(folder).call("graph_list", {}))["ok"]
