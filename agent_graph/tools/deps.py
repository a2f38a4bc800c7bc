"""What a tool may use, and who calls it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import Limits
from agent_graph.core.policy.book import PolicyBook
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import Clock
from agent_graph.engine.models import Models
from agent_graph.engine.supervisor import Supervisor
from agent_graph.store.base import Store

Progress: TypeAlias = Callable[[int, str], Awaitable[None]]
"""Takes a count that rises and a sentence."""
SCOPES: Final = frozenset({"runs:read", "runs:write", "approvals:decide", "admin"})
"""What a caller may be allowed: to read, to change and to decide what is its own, and to see and do all."""
Via: TypeAlias = Literal["assistant", "cli", "console", "elicitation"]


def local_user() -> str:
    """The name the system has for the user this program runs as; no variable of the environment changes it."""
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # a system that has no such book, or a user who is not in it
        return ""


@dataclass(frozen=True, slots=True)
class Deps:
    """One open data folder and everything over it."""

    limits: Limits
    store: Store
    clock: Clock
    catalog: Catalog
    supervisor: Supervisor
    models: Models
    data_dir: str
    """The data folder, or ``:memory:``."""
    settings: JsonObject
    """The settings in force with their sources, secrets masked."""
    started_at_ms: int = 0
    policies: PolicyBook = field(default_factory=PolicyBook)
    """What graphs are held to before they run."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the channel a vote is recorded with, the client's own name, how to tell of progress, who it is."""

    via: Via
    client: str = ""
    progress: Progress | None = None
    """Called now and then while a call waits."""
    principal: str = ""
    """Who was authenticated; "" is the local user, whom the operating system has let in."""
    scopes: frozenset[str] = SCOPES
    """Those of `SCOPES` it holds; the local user holds all."""
