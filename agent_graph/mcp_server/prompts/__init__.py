"""The prompts a person can pick in a client: one module each, under its name, with what it asks for as ``PROMPT``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agent_graph.mcp_server.prompts import decide_approval, import_diagram, review_graph, start_council
from agent_graph.mcp_server.prompts.base import Prompt

PROMPTS: Final[Mapping[str, Prompt]] = MappingProxyType(
    {
        module.__name__.rpartition(".")[2]: module.PROMPT
        for module in (start_council, review_graph, decide_approval, import_diagram)
    }
)
