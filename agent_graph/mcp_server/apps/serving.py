"""The page on which a person sees an approval and decides: shown to clients that declare MCP Apps, and to no others.

What its buttons do is a plain tool call of the client's, and counts as one: whoever renders the page could press them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from mcp import types
from mcp.server.lowlevel import Server

from agent_graph.mcp_server.calling import Context

EXTENSION: Final = "io.modelcontextprotocol/ui"
MIME: Final = "text/html;profile=mcp-app"
APPROVAL: Final = "ui://agent-graph/approval"
SHOWN_BY: Final = ("graph_approval_get", "graph_approval_list")
"""Tools whose answers the page shows; without it they are text like any other."""
META: Final[dict[str, Any]] = {"ui": {"csp": {}, "prefersBorder": True}}
"""Nothing is loaded from anywhere."""
DAY_MS: Final = 24 * 60 * 60 * 1000


def serve(server: Server[Any]) -> None:
    """Say that the extension is there."""
    server.extensions[EXTENSION] = {}


def declared(context: Context) -> bool:
    """Whether the client shows such pages, by its capabilities."""
    capabilities = context.session.client_capabilities
    known = capabilities.extensions if capabilities else None
    mime_types = ((known or {}).get(EXTENSION) or {}).get("mimeTypes")
    return isinstance(mime_types, list | tuple) and MIME in mime_types


def with_pages(tools: Sequence[types.Tool]) -> list[types.Tool]:
    """The tools as a client is shown them that shows pages."""
    ui = {"ui": {"resourceUri": APPROVAL, "visibility": ["model", "app"]}}
    return [tool.model_copy(update={"meta": ui}) if tool.name in SHOWN_BY else tool for tool in tools]


def listed() -> types.Resource:
    """The page, as ``resources/list`` shows it."""
    return types.Resource(
        uri=APPROVAL, name="approval", title="Decide an approval", mime_type=MIME, _meta=META,
        description="Shows what waits for a person, whole and as text, with a button for each decision.",
    )  # fmt: skip


def read() -> types.ReadResourceResult:
    """The page itself; it holds no data and is the same for everybody."""
    contents = types.TextResourceContents(uri=APPROVAL, mime_type=MIME, text=page(), _meta=META)
    return types.ReadResourceResult(contents=[contents], ttl_ms=DAY_MS, cache_scope="public")


@cache
def page() -> str:
    return (files(__package__) / "approval.html").read_text(encoding="utf-8")
