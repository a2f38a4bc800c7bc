"""What a tool may use, and who calls it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agent_graph.core.limits import Limits
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import Clock
from agent_graph.engine.models import Models
from agent_graph.engine.supervisor import Supervisor
from agent_graph.engine.templates import Templates
from agent_graph.settings import Settings
from agent_graph.store.base import Store

Via: TypeAlias = Literal["assistant", "cli", "console", "elicitation"]


@dataclass(frozen=True, slots=True)
class Deps:
    """One open data folder and everything over it."""

    settings: Settings
    store: Store
    clock: Clock
    catalog: Catalog
    supervisor: Supervisor
    models: Models
    templates: Templates
    started_at_ms: int = 0

    @property
    def limits(self) -> Limits:
        return self.settings.limits


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the channel a vote is recorded with, the client's own name, and how to tell of progress."""

    via: Via
    client: str = ""
    capabilities: frozenset[str] = field(default_factory=frozenset)
