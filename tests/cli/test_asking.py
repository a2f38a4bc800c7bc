"""A decision asked for at a terminal of the operating system's own, and what a model may not do to it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import pytest

from agent_graph.engine import approvers
from agent_graph.tools.socket_client import Owner
from tests.cli.terminal import GATED, PATIENCE_S, Done, Terminal, asks, spec
from tests.fakes.ollama_server import Gate, OllamaServer, answer, encoded, last_line, line, stream

Beside = Callable[..., Awaitable[Done]]
pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


class Screen:
    """A terminal: what a command shows there, and what a person types."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self.shown = ""
        self._lent: list[IO[str]] = []

    async def shows(self, text: str) -> str:
        loop = asyncio.get_running_loop()
        more = asyncio.Event()

        def read() -> None:
            self.shown += os.read(self._ours, 65_536).decode()
            more.set()

        loop.add_reader(self._ours, read)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while text not in self.shown:
                    more.clear()
                    await more.wait()
        except TimeoutError:
            pytest.fail(f"it never shows {text!r}: {self.shown!r}")
        finally:
            loop.remove_reader(self._ours)
        return self.shown

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def lend(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stdin and stderr of this process are this terminal."""
        for name, mode in (("stdin", "r"), ("stderr", "w")):
            stream_ = os.fdopen(os.dup(self.theirs), mode, buffering=1, encoding="utf-8")
            self._lent.append(stream_)
            monkeypatch.setattr(sys, name, stream_)

    def close(self) -> None:
        for stream_ in self._lent:
            stream_.close()
        os.close(self._ours)
        os.close(self.theirs)


@pytest.fixture
async def screen() -> AsyncIterator[Screen]:
    opened = Screen()
    yield opened
    opened.close()


def gated(tmp_path: Path, **config: Any) -> str:
    """A file with a graph that has one gate."""
    path = tmp_path / "gated.json"
    body: Any = json.loads(json.dumps(GATED))
    for one in body["nodes"]:
        if one["type"] == "human_approval":
            one["config"] |= config
    path.write_text(json.dumps(body), encoding="utf-8")
    return str(path)


async def test_a_person_at_the_terminal_is_asked_and_the_run_goes_on(
    screen: Screen, beside: Beside, ollama: OllamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen.lend(monkeypatch)
    ollama.on("DRAFT", answer("\x1b]0;owned\x07ship it\x1b[2Jnow\u202e\nApproval apr-0 of run nobody", chunks=4))
    ollama.on("ACT", answer("acted"))
    running = asyncio.create_task(beside("run", gated(tmp_path), "hello", stdin=None))
    shown = await screen.shows("approve / reject / request_changes, or nothing to leave it open: ")
    assert "  | May it be done?" in shown
    assert "  | ]0;ownedship it[2Jnow\r\n  | Approval apr-0 of run nobody" in shown
    assert not {"\x07", "\u202e"} & set(shown)
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown
    screen.type("perhaps\n")
    await screen.shows("'perhaps' is none of them.")
    screen.type("a\n")
    await screen.shows("A note, or nothing: ")
    screen.type("looks fine\n")
    await screen.shows("looks fine")
    done = await running
    assert (done.code, done.out) == (0, b"acted\n")
    assert ollama.count("ACT") == 1


async def test_a_decision_left_open_exits_with_3(
    screen: Screen, terminal: Terminal, ollama: OllamaServer, tmp_path: Path
) -> None:
    ollama.on("DRAFT", answer("ship it"))
    running = await terminal.start("run", gated(tmp_path), "hello", stdin=screen.theirs, stderr=screen.theirs)
    await screen.shows("to leave it open: ")
    screen.type("\x04")  # end of the input
    assert "agent-graph approvals decide apr-" in await screen.shows("approve|reject|request_changes")
    assert (await running.done()).code == 3


async def test_a_question_is_taken_back_when_somebody_else_decides(
    screen: Screen,
    beside: Beside,
    ollama: OllamaServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    data_dir: Path,
) -> None:
    screen.lend(monkeypatch)
    ollama.on("DRAFT", answer("ship it"))
    ollama.on("ACT", answer("acted"))
    running = asyncio.create_task(beside("run", gated(tmp_path), "hello", stdin=None))
    await screen.shows("to leave it open: ")
    owner = Owner(data_dir)
    listed: Any = await owner.call("graph_approval_list", {})
    (pending,) = listed["data"]["approvals"]
    decision = {"approval_id": pending["approval_id"], "decision": "approve", "decided_by": "Ada"}
    assert (await owner.call("graph_approval_decide", decision))["ok"]
    await screen.shows("decided: approve by Ada (cli)")
    done = await running
    assert (done.code, done.out) == (0, b"acted\n")


async def test_a_models_words_are_shown_as_they_come(
    screen: Screen, beside: Beside, ollama: OllamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen.lend(monkeypatch)
    holding = Gate()
    ollama.on(
        "SAY", stream(*encoded([line("Once upon a \x1b[31mtime there")]), holding, *encoded([line("."), last_line()]))
    )
    path = tmp_path / "say.json"
    body: Any = spec("say", asks("teller", "SAY {input}"), edges=[("teller", "END")])
    path.write_text(json.dumps(body), encoding="utf-8")
    running = asyncio.create_task(beside("run", str(path), "hello", stdin=None))
    shown = await screen.shows("teller: Once upon a [31mtime")
    assert "\x1b[31m" not in shown
    holding.open()
    await screen.shows("teller  done")
    done = await running
    assert (done.code, done.out) == (0, b"Once upon a \x1b[31mtime there.\n")


async def test_a_closed_gate_asks_who_is_there_and_shows_no_secret(
    screen: Screen, beside: Beside, ollama: OllamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    data_dir: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr(approvers, "_COST", {"n": 2**4, "r": 8, "p": 1})
    await approvers.Approvers(data_dir).add(approvers.Proof("ada", "correct horse"), voucher=None, now_ms=0)
    screen.lend(monkeypatch)
    ollama.on("DRAFT", answer("ship it"))
    ollama.on("ACT", answer("acted"))
    running = asyncio.create_task(beside("run", gated(tmp_path, channels=["console", "cli"]), "hello", stdin=None))
    await screen.shows("to leave it open: ")
    screen.type("approve\n")
    await screen.shows("A note, or nothing: ")
    screen.type("\n")
    assert "an approver has to prove to be here: ada." in await screen.shows("Who are you: ")
    screen.type("ada\n")
    await screen.shows("Secret of ada: ")
    screen.type("correct horse\n")
    await screen.shows("gate  done")
    assert "correct horse" not in screen.shown
    done = await running
    assert (done.code, done.out) == (0, b"acted\n")
