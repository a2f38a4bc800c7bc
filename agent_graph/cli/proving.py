"""Asks for an approver's secret: at a terminal without showing it, else a line of stdin; never from the arguments."""

from __future__ import annotations

import asyncio
import sys
from getpass import getpass
from typing import Any

from agent_graph.cli.asking import can_ask, line
from agent_graph.cli.output import say
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.approvers import Approvers, Proof
from agent_graph.errors import InvalidArgument
from agent_graph.settings import Settings
from agent_graph.system.modules import optional

termios: Any = optional("termios")


async def proof_for(settings: Settings, approval: JsonObject, *, approver: str = "") -> Proof | None:
    """What proves a person at the gate of this approval; None where it asks for none, or nobody can be asked.

    Raises `InvalidArgument` when no secret comes, `StoreUnusable`.
    """
    if approver:
        return Proof(approver, await secret(f"Secret of {approver}: "))
    channels: Any = approval["channels"]
    if not channels or "assistant" in channels or not can_ask():
        return None
    names = await Approvers(settings.data_dir).names()
    if not names:
        return None
    say(f"This gate is closed to models, so an approver has to prove to be here: {', '.join(names)}.")
    name = await line("Who are you: ")
    return Proof(name, await secret(f"Secret of {name}: ")) if name else None


async def secret(prompt: str) -> str:
    """One secret. Raises `InvalidArgument` when none comes."""
    if sys.stdin is None:
        raise InvalidArgument("a secret is read from the terminal or from stdin, and that is closed", argument="secret")
    typed = await _unseen(prompt) if can_ask() else await asyncio.to_thread(sys.stdin.readline)
    text = (typed or "").rstrip("\r\n")
    if not text:
        raise InvalidArgument("no secret was given", argument="secret")
    return text


async def new_secret(name: str) -> str:
    """A secret to be kept, typed twice at a terminal."""
    first = await secret(f"New secret of {name}: ")
    if can_ask() and await secret("The same again: ") != first:
        raise InvalidArgument("the two are not the same; nothing was changed", argument="secret")
    return first


async def _unseen(prompt: str) -> str | None:
    if termios is None:
        return await asyncio.to_thread(getpass, prompt, sys.stderr)
    stdin = sys.stdin.fileno()
    before = termios.tcgetattr(stdin)
    silent = [*before]
    silent[3] = int(before[3]) & ~termios.ECHO
    termios.tcsetattr(stdin, termios.TCSADRAIN, silent)
    try:
        return await line(prompt, exact=True)
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        say("")
