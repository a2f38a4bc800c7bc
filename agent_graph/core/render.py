"""Draws a graph as Mermaid text or as JSON; no label of the graph can become markup, no secret is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agent_graph.core import images
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import END, END_RUN, START, Graph, Node
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact, digest
from agent_graph.core.redact import redact
from agent_graph.core.ways import Way, WayKey, ways
from agent_graph.errors import InvalidArgument

DIRECTIONS: Final = ("TD", "TB", "LR", "RL", "BT")
MAX_EDGES: Final = 500
"""What viewers draw with Mermaid's default ``maxEdges``."""
MAX_CHARACTERS: Final = 50_000
"""Mermaid's default ``maxTextSize``."""

SHAPES: Final = {
    "llm": ("[", "]"),
    "router": ("{", "}"),
    "passthrough": ("(", ")"),
    "state_transform": ("[/", "/]"),
    "join": ("[\\", "/]"),
    "parallel": ("[/", "\\]"),
    "loop": ("([", "])"),
    "human_approval": ("{{", "}}"),
    "subgraph": ("[[", "]]"),
    "tool": ("[\\", "\\]"),
    "http": ("[\\", "\\]"),
    "graphql": ("[\\", "\\]"),
    "signal": (">", "]"),
    "timer": ("[(", ")]"),
}
"""By node type: what stands around its label. START is a circle, END a double circle."""

STATUSES: Final = {
    "completed": "fill:#d9f2d9,stroke:#2e7d32",
    "running": "fill:#d6e8fb,stroke:#1565c0",
    "waiting": "fill:#fff3cd,stroke:#b8860b",
    "failed": "fill:#fbdada,stroke:#b71c1c",
    "cancelled": "fill:#eeeeee,stroke:#757575",
    "skipped": "fill:#fafafa,stroke:#bdbdbd,stroke-dasharray:4 3",
}
"""By a node's status in a run: how it is coloured. A status of another name is not coloured."""

_DETAIL_CHARS: Final = 120
_DRAWN_AS_WAYS: Final = frozenset((
    "branches", "default", "entry", "exit", "join", "on_deadlock", "on_expire", "on_limit", "on_reject",
    "on_request_changes", "routes", "rules", "until",
))  # fmt: skip
_ABOUT: Final = frozenset(("id", "type", "label", "description", "config", "metadata"))


@dataclass(frozen=True, slots=True)
class Rendered:
    """A diagram. `counts` is {nodes, edges, characters}, edges as drawn; `warnings` are {code, message}."""

    text: str
    counts: dict[str, int]
    warnings: tuple[JsonObject, ...] = ()


def mermaid(
    graph: Graph,
    *,
    direction: str = "TD",
    include_details: bool = False,
    statuses: Mapping[str, str] | None = None,
    taken: Mapping[WayKey, int] | None = None,
    firings: Mapping[str, int] | None = None,
    failed: Mapping[str, int] | None = None,
) -> Rendered:
    """The flowchart of `graph`: the same bytes for the same arguments.

    Node i is ``n<i>`` whatever it is called. Every legal way is one link, with the rule or decision that chooses it.
    `statuses` (node id -> status) colours nodes, `taken` (`core.ways.taken`) thickens ways and counts them, `firings`
    (node id -> number) tells how often a node ran, `failed` how often of these it failed.
    Raises InvalidArgument for an unknown direction.
    """
    if direction not in DIRECTIONS:
        raise InvalidArgument(f"direction is one of {', '.join(DIRECTIONS)}", direction=direction)
    links = ways(graph)
    lines = [f"flowchart {direction}", f'  start(("{START}"))']
    for node in graph.nodes:
        left, right = SHAPES.get(node.type, SHAPES["llm"])
        fired = (firings or {}).get(node.id, 0), (failed or {}).get(node.id, 0)
        text = _node_text(graph, node, details=include_details, fired=fired)
        lines.append(f'  n{node.index}{left}"{escape(text)}"{right}')
    if any(way.target == END for way in links):
        lines.append(f'  finish((("{END}")))')
    if any(way.target == END_RUN for way in links):
        lines.append(f'  stop((("{END_RUN}")))')
    lines += [_link(graph, way, taken or {}) for way in links]
    lines += _colours(graph, statuses or {})
    text = "\n".join(lines) + "\n"
    counts = {"nodes": len(graph.nodes), "edges": len(links), "characters": len(text)}
    return Rendered(text, counts, tuple(_warnings(counts)))


def as_json(graph: Graph, *, include_details: bool = False) -> JsonObject:
    """{graph_id, graph_version, entry, nodes, edges, topology_hash}; a node's config, redacted, only with details."""
    nodes: list[JsonValue] = []
    for node in graph.nodes:
        row: JsonObject = {"id": node.id, "type": node.type}
        if node.label:
            row["label"] = node.label
        if node.description:
            row["description"] = node.description
        if include_details:
            row["config"] = redact(_config(graph, node))
        nodes.append(row)
    links = ways(graph)
    return {
        "graph_id": graph.name,
        "graph_version": graph.version,
        "entry": links[0].target,
        "nodes": nodes,
        "edges": [_edge_json(way) for way in links[1:]],
        "topology_hash": _hash(graph, links),
    }


def topology_hash(graph: Graph) -> str:
    """``sha256:`` over node ids, their types and all ways between them: prompts, labels and models do not count."""
    return _hash(graph, ways(graph))


def escape(text: str) -> str:
    """`text` for a double-quoted Mermaid label, in one pass: what is drawn is exactly `text`.

    Entities are ``#<decimal>;`` and ``#quot;``, the only escapes Mermaid has; a new line is ``<br/>``, the only markup.
    """
    escaped = "<br/>".join(_SPECIAL.sub(_entity, line) for line in _NEW_LINE.split(text))
    # Mermaid cuts the semicolon off `style...:...#...;` and `classDef...:...#...;`, even inside a label.
    return escaped.replace(":", "#58;") if "style" in text or "classDef" in text else escaped


_NEW_LINE = re.compile(r"\r\n|\r|\n")
_SPECIAL = re.compile(
    r"[#\"`<>&]"
    r"|%(?=[%{])|(?<=%)%"  # comments and directives
    r"|(?<=\\)(?=n)|(?<=\$)(?=\$)"  # line breaks and formulas, read after entities are resolved
    r"|(?<=\ufb02)(?=\u00b0)|(?<=\u00b6)(?=\u00df)"  # what Mermaid itself puts in an entity's place
    r"|(?<=\bfa:)(?=fa-)|(?<=\bfa[bklrs]:)(?=fa-)"  # icons
    r"|[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udfff]"
)
_WORD_JOINER: Final = "\u2060"


def _entity(match: re.Match[str]) -> str:
    found = match.group()
    if not found:  # between two characters that mean something only side by side
        return _WORD_JOINER
    if found == '"':
        return "#quot;"
    code = ord(found)
    if code < 32 and found != "\t":
        return chr(0x2400 + code)  # the picture of a control character: SVG cannot hold the character itself
    if 127 <= code < 160 or 0xD800 <= code < 0xE000:
        return "\ufffd"
    return f"#{code};"


def _node_text(graph: Graph, node: Node, *, details: bool, fired: tuple[int, int]) -> str:
    title = node.label if node.label.strip() else node.id
    lines = [title] if title == node.id or title.lower().replace(" ", "_") == node.id else [title, node.id]
    times, failures = fired
    if times > 1:
        lines.append(f"ran {times} times" + (f", {failures} failed" if failures else ""))
    if details:
        lines.append(node.type)
        if node.description:
            lines.append(_short(node.description))
        shown: Any = redact(_config(graph, node))
        drawn = _DRAWN_AS_WAYS | ({"on_error"} if isinstance(node.config.on_error, dict) else set())
        lines += [f"{key}: {_short(_words(shown[key]))}" for key in sorted(shown) if key not in drawn]
    return "\n".join(lines)


def _config(graph: Graph, node: Node) -> JsonObject:
    """The node's config as the spec says it, wherever it stands, on the node or in ``config``; pictures by digest."""
    rows: Any = graph.spec["nodes"]
    row: JsonObject = rows[node.index]
    inner = row.get("config")
    beside = {key: value for key, value in row.items() if key not in _ABOUT}
    whole: Any = images.named({**beside, **inner} if isinstance(inner, dict) else beside)
    config: JsonObject = whole
    return config


def _words(value: JsonValue) -> str:
    return value if isinstance(value, str) else compact(value)


def _short(text: str) -> str:
    return text if len(text) <= _DETAIL_CHARS else text[: _DETAIL_CHARS - 1] + "\u2026"


def _ref(graph: Graph, name: str) -> str:
    """START and END are no node ids, so nothing can be taken for them."""
    if name == START:
        return "start"
    return {END: "finish", END_RUN: "stop"}.get(name) or f"n{graph.index[name]}"


def _link(graph: Graph, way: Way, taken: Mapping[WayKey, int]) -> str:
    times = sum(taken.get((way.source, name, way.target), 0) for name in way.transitions or ("",))
    label = way.label if times < 2 else f"{way.label} ({times} times)".strip()
    arrow = "==>" if times else "-->"
    text = f'|"{escape(label)}"|' if label.strip() else ""
    return f"  {_ref(graph, way.source)} {arrow}{text} {_ref(graph, way.target)}"


def _colours(graph: Graph, statuses: Mapping[str, str]) -> Iterable[str]:
    for status, style in STATUSES.items():
        members = [f"n{node.index}" for node in graph.nodes if statuses.get(node.id) == status]
        if members:
            yield f"  classDef {status} {style}"
            yield f"  class {','.join(members)} {status}"


def _warnings(counts: dict[str, int]) -> Iterable[JsonObject]:
    bounds = (("edges", MAX_EDGES, "DIAGRAM_MANY_EDGES"), ("characters", MAX_CHARACTERS, "DIAGRAM_LONG"))
    for what, bound, code in bounds:
        if counts[what] > bound:
            message = f"{counts[what]:,} {what}: viewers stop at {bound:,}; ask for the json format instead"
            yield {"code": code, "message": message}


def _edge_json(way: Way) -> JsonObject:
    row: JsonObject = {"from": way.source, "to": way.target}
    if way.transitions:
        row["transitions"] = list(way.transitions)
    if way.label:
        row["label"] = way.label
    return row


def _hash(graph: Graph, links: Iterable[Way]) -> str:
    return digest({
        "nodes": [[node.id, node.type] for node in graph.nodes],
        "ways": [[way.source, way.target, list(way.transitions)] for way in links],
    })  # fmt: skip
