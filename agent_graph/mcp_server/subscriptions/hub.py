"""Who follows which address, and what has changed for whom since it was last told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from agent_graph.core import events as e
from agent_graph.core.classes import dataclass
from agent_graph.mcp_server.resources.table import find
from agent_graph.store.base import RunRow
from agent_graph.tools.deps import Caller, Deps

MOST_ADDRESSES: Final = 200
"""What one client follows at most on one connection or one stream."""
PAUSE_S: Final = 0.25
"""Seconds between two rounds of notifications to one client."""
LIST: Final = "list"
"""What is followed beside addresses: which resources there are."""
PENDING: Final = "graph://approvals/pending"
_ABOUT_APPROVALS: Final = (
    e.ApprovalOpened, e.ApprovalVoted, e.ApprovalDecided, e.ApprovalExpired, e.ApprovalWithdrawn,
)  # fmt: skip


class Mailbox:
    """What one follower is still to be told; the same thing twice is one thing."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()

    def put(self, what: str) -> None:
        self._changed[what] = None
        self._wake.set()

    async def take(self) -> list[str]:
        """All that changed, in order, as soon as there is something."""
        await self._wake.wait()
        self._wake.clear()
        changed, self._changed = list(self._changed), {}
        return changed


@dataclass(frozen=True, slots=True)
class Following:
    """One thing that one follower follows: told under the name `told`, which is how the client called it."""

    box: Mailbox
    told: str


class Hub:
    """All followers of a server. While there are none it listens to nothing."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._followers: dict[str, dict[Following, None]] = {}
        self._stop: tuple[Callable[[], None], ...] = ()

    def __len__(self) -> int:
        """How many things are followed, by whomever."""
        return sum(len(row) for row in self._followers.values())

    def follow(self, what: str, box: Mailbox, *, told: str = "") -> None:
        """Put `told` into `box` whenever `what` changes. `what` is an address in its plain form or `LIST`."""
        if not self._followers:
            notify = self._deps.supervisor.shell.notify
            self._stop = (notify.listen(self._on_commit), self._deps.catalog.listen(self._on_graph))
        self._followers.setdefault(what, {})[Following(box, told or what)] = None

    def leave(self, box: Mailbox, what: str = "", *, told: str = "") -> None:
        """End following `what` under that name, or all there is when nothing is named."""
        for name in [what] if what else list(self._followers):
            row = self._followers.get(name, {})
            for following in [one for one in row if one.box is box and (not told or one.told == told)]:
                del row[following]
            if not row:
                self._followers.pop(name, None)
        if not self._followers:
            for stop in self._stop:
                stop()
            self._stop = ()

    def _on_commit(self, row: RunRow, events: Sequence[e.Event]) -> None:
        mine = row.principal
        self._tell(f"graph://runs/{row.run_id}", mine)
        if not events or any(isinstance(event.fact, _ABOUT_APPROVALS) for event in events):
            self._tell(PENDING, mine, approvals=True)
        if any(isinstance(event.fact, e.RunAccepted) for event in events):
            self._tell(LIST, mine)

    def _on_graph(self, graph_id: str) -> None:
        for what in ("graph://graphs", f"graph://graphs/{graph_id}", LIST):
            self._tell(what, None)

    def _tell(self, what: str, principal: str | None, *, approvals: bool = False) -> None:
        """Those who may know: graphs (None) are everybody's, a run its principal's and theirs who see all; the local
        user's, who has no name, theirs alone."""
        for one in self._followers.get(what, ()):
            caller = one.box.caller
            sees = caller.sees_approvals if approvals else caller.sees_all
            if principal is None or sees or caller.principal == principal:
                one.box.put(one.told)


def plain(uri: str) -> str:
    """The address without percent-encoding, so that one thing has one name."""
    found = find(uri)
    if found is None:
        return uri
    row, parts = found
    text = row.uri
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", value)
    return text
