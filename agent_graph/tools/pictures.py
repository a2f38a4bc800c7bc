"""A graph's Mermaid text as a picture: SVG, PNG, or boxes for a terminal, drawn by the extra `draw`."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import CapabilityMissing, InputTooLarge
from agent_graph.tools.parts import part
from agent_graph.tools.registry import PNG, Call

INSTALL: Final = "pip install 'agent-graph[draw]' brings what draws it; the format mermaid needs nothing"
NODES: Final = 400
"""Most nodes of a picture: drawing takes more than their number in time, and nobody reads more on one page."""
PNG_BYTES: Final = 1_000_000
"""Most bytes of a picture in an answer."""


def _svg(text: str) -> str:
    import mmdr

    return str(mmdr.render(text).svg())


def _png(text: str) -> bytes:
    import mmdr

    return bytes(mmdr.render(text).png())


def _boxes(text: str) -> str:
    import termaid

    return str(termaid.render(text))


DRAWN: Final[Mapping[str, tuple[str, Callable[[str], str | bytes]]]] = {
    "svg": ("image/svg+xml", _svg),
    "png": (PNG, _png),
    "ascii": ("text/plain", _boxes),
}
"""By format: its media type, and what draws it."""


async def picture(call: Call[Any], text: str, *, kind: str, nodes: int, offset: int) -> JsonObject:
    """The Mermaid `text` drawn as `kind`: {media_type, text} (a long one in parts, from `offset`), or for png
    {media_type, bytes, data (base64)}.

    Raises `CapabilityMissing` without the extra, `InputTooLarge` for more than a picture can show.
    """
    media_type, draw = DRAWN[kind]
    if nodes > NODES:
        message = f"a picture shows at most {NODES} nodes, and this graph has {nodes}; ask for mermaid or json"
        raise InputTooLarge(message, limit=NODES, nodes=nodes)
    try:
        drawn = await asyncio.to_thread(draw, text)
    except ImportError as lacks:
        raise CapabilityMissing(f"nothing here draws {kind}: {INSTALL}", extra="draw") from lacks
    except ValueError as refused:  # its own bounds: how many pixels, how much to lay out
        message = f"the graph is too large to be drawn as {kind}; ask for svg, mermaid or json"
        raise InputTooLarge(message, nodes=nodes) from refused
    if isinstance(drawn, str):
        return {"media_type": media_type, **part(call, drawn, offset=offset, name="text")}
    if len(drawn) > PNG_BYTES:
        message = f"the picture has {len(drawn)} bytes, more than the {PNG_BYTES} of an answer; ask for svg"
        raise InputTooLarge(message, limit=PNG_BYTES, bytes=len(drawn))
    return {"media_type": media_type, "bytes": len(drawn), "data": base64.b64encode(drawn).decode()}
