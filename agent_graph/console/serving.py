"""The console as `agent-graph serve` puts it beside ``/mcp``, and what it tells whoever started it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute

from agent_graph.console.sessions import LINK_MS, LetIn, Sessions
from agent_graph.console.web import Console
from agent_graph.core.classes import dataclass
from agent_graph.settings.http import HttpSettings
from agent_graph.tools.deps import Deps


@dataclass(frozen=True, slots=True)
class Served:
    """The console of one server."""

    routes: Sequence[BaseRoute]
    sessions: Sessions
    link: bool
    """Whether the local user gets a link to log in with."""

    def remarks(self, root: str) -> Sequence[str]:
        """Where the console is, and a link that works once where there is somebody to use it."""
        said = [f"console at {root}/ (log in with a token)"]
        if self.link:
            minutes = LINK_MS // 60_000
            said.append(
                f"log in as the local user, once, within {minutes} minutes: {root}/login?link={self.sessions.link()}"
            )
        return said

    def end(self) -> None:
        """The server stops: pages that go on end now, and ask again when it is back."""
        self.sessions.over.set()


def beside(deps: Deps, http: HttpSettings, *, let_in: LetIn, take: Callable[[str], None]) -> Served:
    """The console over `deps`. A link is only told to a terminal, and only where this machine alone is served: a log is
    read by others, and the link opens everything."""
    sessions = Sessions(deps.clock, let_in)
    console = Console(deps, sessions, take, http.body_bytes)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return Served(console.routes(), sessions, link=http.loopback and terminal)
