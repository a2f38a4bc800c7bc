"""A graph, or how a run went through it, as an SVG whose colours are those of the page around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from agent_graph.console.drawing.layers import Plan, Point, planned
from agent_graph.console.rendering import UNSEEN, fragment
from agent_graph.core.graph import END, END_RUN, START

NODES: Final = 150
WAYS: Final = 400
"""Most of a drawing; nobody reads more on a page."""
CHARACTERS: Final = 26
WAY_CHARACTERS: Final = 22
LETTER: Final = 7.4
"""Width a letter is given."""
HEIGHT: Final = 46.0
ROW: Final = 96.0
MARGIN: Final = 28.0
DOT: Final = 26.0


@dataclass(frozen=True, slots=True)
class Box:
    """A node as it is drawn; a dot is a beginning or an end."""

    x: float
    y: float
    width: float
    height: float
    title: str
    kind: str
    status: str
    whole: str
    """All there is to say, for who points at it."""
    dot: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A way as it is drawn, with the place of its label."""

    path: str
    label: str
    x: float
    y: float
    taken: int


def drawn(graph: Any) -> Markup | None:
    """The drawing of what ``graph_render`` answers as json; None where that is too large for one."""
    nodes, ways = {node["id"]: node for node in graph["nodes"]}, _ways(graph)
    if len(nodes) > NODES or len(ways) > WAYS:
        return None
    observed = graph.get("observed", {"nodes": {}, "ways": []})
    ends = [name for name in (START, END, END_RUN) if any(name in way for way in ways)]
    names = [*[name for name in ends if name == START], *nodes, *[name for name in ends if name != START]]
    boxes = {name: _box(name, nodes.get(name), observed["nodes"].get(name, {})) for name in names}
    plan = planned({name: box.width for name, box in boxes.items()}, list(ways), row=ROW, margin=MARGIN)
    taken: dict[tuple[str, str], int] = {}
    for way in observed["ways"]:
        taken[way["from"], way["to"]] = taken.get((way["from"], way["to"]), 0) + way["times"]
    placed = [_at(box, plan.places[name]) for name, box in boxes.items()]
    lines = [_line(plan, boxes, way, label, taken.get(way, 0)) for way, label in ways.items()]
    right = max([plan.width, *[line.x + 90 for line in lines if line.label]])
    return fragment(
        "drawing.html", boxes=placed, lines=lines, width=round(right), height=round(plan.height),
        counts=f"{len(nodes)} nodes, {len(ways)} ways",
    )  # fmt: skip


def _ways(graph: Any) -> dict[tuple[str, str], str]:
    """By source and target, what chooses the way; ways that lead alike are one."""
    found: dict[tuple[str, str], list[str]] = {(START, graph["entry"]): []}
    for edge in graph["edges"]:
        labels = found.setdefault((edge["from"], edge["to"]), [])
        if edge.get("label"):
            labels.append(edge["label"])
    return {way: " / ".join(labels) for way, labels in found.items()}


def _box(name: str, node: Any, seen: Any) -> Box:
    if node is None:
        title = {START: "start", END: "end", END_RUN: "end of the run"}[name]
        return Box(0, 0, DOT, DOT, title, "", "", title, dot=True)
    title, status = _text(node.get("label") or name, CHARACTERS), seen.get("status", "")
    kind = node["type"].replace("_", " ")
    if seen.get("firings", 0) > 1:
        kind += f", {seen['firings']} times"
    if seen.get("failed"):
        kind += f", {seen['failed']} failed"
    kind = _text(kind, CHARACTERS + 4)
    whole = ": ".join(filter(None, (name, node["type"], status, node.get("description", ""))))
    width = max(96.0, len(title) * LETTER + 28, len(kind) * LETTER * 0.86 + 28)
    return Box(0, 0, width, HEIGHT, title, kind, status, UNSEEN.sub("\ufffd", whole))


def _at(box: Box, place: Point) -> Box:
    return Box(
        round(place[0], 1), round(place[1], 1), round(box.width, 1), box.height, box.title, box.kind, box.status,
        box.whole, box.dot,
    )  # fmt: skip


def _line(plan: Plan, boxes: dict[str, Box], way: tuple[str, str], label: str, taken: int) -> Line:
    source, target = way
    said = _text(label, WAY_CHARACTERS) + (f" ({taken} times)" if taken > 1 else "")
    if source == target:
        x, y = plan.places[source]
        edge = x + boxes[source].width / 2
        out = edge + 34
        path = f"M{edge:.1f},{y - 8:.1f} C{out:.1f},{y - 26:.1f} {out:.1f},{y + 26:.1f} {edge + 2:.1f},{y + 8:.1f}"
        return Line(path, said.strip(), round(edge + 40, 1), round(y, 1), taken)
    points = list(plan.ways[way])
    up = points[0][1] > points[-1][1]
    points[0] = (points[0][0], points[0][1] + boxes[source].height / 2 * (-1 if up else 1))
    points[-1] = (points[-1][0], points[-1][1] + (boxes[target].height / 2 + 2) * (1 if up else -1))
    (x0, y0), (x1, y1) = points[0], points[1]
    return Line(_curve(points), said.strip(), round(x0 + (x1 - x0) * 0.5, 1), round(y0 + (y1 - y0) * 0.5, 1), taken)


def _curve(points: Sequence[Point]) -> str:
    """Down through all points, without a corner."""
    said = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (y0 + y1) / 2
        said += f" C{x0:.1f},{half:.1f} {x1:.1f},{half:.1f} {x1:.1f},{y1:.1f}"
    return said


def _text(text: str, most: int) -> str:
    line = " ".join(UNSEEN.sub("\ufffd", text).split())
    return line if len(line) <= most else line[: most - 1] + "\u2026"
