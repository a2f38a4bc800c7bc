"""What a tool may use, and who calls it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Final, Literal, Protocol, TypeAlias

from agent_graph.core.classes import dataclass
from agent_graph.core.events import Event
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import Limits
from agent_graph.core.policy.book import PolicyBook
from agent_graph.core.run import Run
from agent_graph.engine.approvers import Approvers
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import Clock
from agent_graph.engine.commands import Command
from agent_graph.engine.keys import KeyRing, open_keys
from agent_graph.engine.models import Models
from agent_graph.engine.outbox import Outbox
from agent_graph.engine.shell import Shell
from agent_graph.errors import StoreCorrupt
from agent_graph.store.base import Answered, RunRow, Store
from agent_graph.system.modules import optional

Progress: TypeAlias = Callable[[int, str], Awaitable[None]]
"""Takes a count that rises and a sentence."""
ADMIN: Final = "admin"
SCOPES: Final = frozenset({"runs:read", "runs:write", "approvals:decide", ADMIN})
"""What a caller may be allowed: to read, to change and to decide what is its own, and to see and do all."""
Sharing: TypeAlias = Literal["none", "approvals", "all"]
"""What one principal sees of another: nothing, approvals if it may decide, or all."""
Via: TypeAlias = Literal["assistant", "cli", "console", "elicitation"]


def local_user() -> str:
    """The name the system has for the user this program runs as; no variable of the environment changes it."""
    book, me = optional("pwd"), getattr(os, "geteuid", None)
    try:
        if book is None or me is None:
            return os.getlogin()  # on Windows the process's user
        return str(book.getpwuid(me()).pw_name)
    except (KeyError, OSError):  # one who is not in the book
        return ""


class Supervising(Protocol):
    """What of `engine.supervisor.Supervisor` a tool may ask for."""

    @property
    def shell(self) -> Shell: ...

    async def start(
        self, graph: Graph, value: JsonValue, *, thread_id: str = "", model: str = "", started_by: str = "",
        principal: str = "", started_as: str = "", budgets: JsonObject | None = None, policy: JsonObject | None = None,
        answer: Callable[[RunRow], Answered] | None = None, key: str = "",
    ) -> RunRow: ...  # fmt: skip

    async def begin(
        self, graph: Graph, run: Run, log: Sequence[Event], *, answer: Callable[[RunRow], Answered] | None = None,
        key: str = "",
    ) -> RunRow: ...  # fmt: skip

    def check(self, graph: Graph, value: JsonValue, *, budgets: JsonObject | None) -> JsonObject: ...

    def check_capacity(self) -> None: ...

    async def fold(self, run_id: str) -> tuple[Graph, Run]: ...

    async def ask(self, run_id: str, command: Command) -> Run: ...

    async def write_off(self, run_id: str, damage: StoreCorrupt, reason: str, answered: Answered | None) -> None: ...

    async def wait(self, run_id: str, *, timeout_ms: int, until: Callable[[RunRow], bool] = ...) -> RunRow: ...

    def load(self) -> dict[str, int]: ...

    def drives(self, run_id: str) -> bool: ...

    async def rest(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Deps:
    """One open data folder and everything over it."""

    limits: Limits
    store: Store
    clock: Clock
    catalog: Catalog
    supervisor: Supervising
    models: Models
    data_dir: str
    """The data folder, or ``:memory:``."""
    settings: Callable[[], JsonObject]
    """Tells the settings in force with their sources, secrets masked."""
    started_at_ms: int = 0
    policies: PolicyBook = field(default_factory=PolicyBook)
    """What graphs are held to before they run."""
    approvers: Approvers = field(default_factory=Approvers)
    """Who can prove to be a person at a gate that is closed to models."""
    deletion: str = "anyone"
    """Who may delete graphs: anyone, or operator."""
    keys: KeyRing = field(default_factory=lambda: open_keys(None, now_ms=0))
    """What seals and checks; by default a key in memory."""
    outbox: Outbox | None = None
    """Who is told of approvals and ends; None where nobody is."""
    console: str = ""
    """The address at which the console is served, "" where it is not."""


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
    sharing: Sharing = "none"
    """What the operator lets it see of others."""
    approver: str = ""
    """The approver whose secret came with this call and was right."""

    def may(self, scope: str) -> bool:
        """``admin`` is allowed everything."""
        return scope in self.scopes or ADMIN in self.scopes

    @property
    def sees_all(self) -> bool:
        """Everybody's runs are visible to it."""
        return not self.principal or ADMIN in self.scopes or self.sharing == "all"

    @property
    def sees_approvals(self) -> bool:
        """Everybody's approvals are."""
        return self.sees_all or (self.sharing == "approvals" and self.may("approvals:decide"))
