"""A graph, or how a run went through it, as an SVG whose colours are those of the page around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from agent_graph.console.drawing.layers import Plan, Point, Room, Way, planned
from agent_graph.console.rendering import UNSEEN, fragment
from agent_graph.core.classes import dataclass
from agent_graph.core.graph import END, END_RUN, START

NODES: Final = 150
WAYS: Final = 400
"""Most of a drawing; nobody reads more on a page."""
PLANS: Final = 64
CHARACTERS: Final = 28
WAY_CHARACTERS: Final = 26
LETTER: Final = 7.4
SMALL: Final = 6.3
"""Width a letter is given in titles, and in what is smaller."""
HEIGHT: Final = 46.0
APART: Final = 46.0
MARGIN: Final = 16.0
DOT: Final = 20.0
LOOP: Final = 34.0
"""How far a way to itself stands out of its node."""
ASIDE: Final = 16.0
"""How far the two ways between nodes that lead to each other are moved out of each other's way."""


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
    whole: str
    anchor: str = ""
    """Where the label's place is: "" is its middle, else ``start`` or ``end``."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """What is to be said of a way."""

    label: str
    whole: str
    taken: int
    near: str
    """The end its label stands at."""
    both: bool
    """Whether another leads back."""


def drawn(graph: Any) -> Markup | None:
    """The drawing of what ``graph_render`` answers as json; None where that is too large for one."""
    nodes, ways = {node["id"]: node for node in graph["nodes"]}, _ways(graph)
    if len(nodes) > NODES or len(ways) > WAYS:
        return None
    observed = graph.get("observed", {"nodes": {}, "ways": []})
    ends = [name for name in (START, END, END_RUN) if any(name in way for way in ways)]
    names = [*[name for name in ends if name == START], *nodes, *[name for name in ends if name != START]]
    boxes = {name: _box(name, nodes.get(name), observed["nodes"].get(name, {})) for name in names}
    said = {way: _text(label, WAY_CHARACTERS) for way, label in ways.items()}
    taken: dict[tuple[str, str], int] = {}
    for way in observed["ways"]:
        taken[way["from"], way["to"]] = taken.get((way["from"], way["to"]), 0) + way["times"]
    said |= {way: f"{said[way]} ({times} times)".strip() for way, times in taken.items() if times > 1 and way in said}
    near = _near(said)
    room = _room(boxes, said, near)
    plan = _planned(tuple(room.widths.items()), tuple(room.heights.items()), tuple(room.bends.items()), tuple(ways))
    placed = [replace(box, x=round(plan.places[name][0], 1), y=round(plan.places[name][1], 1))
              for name, box in boxes.items()]  # fmt: skip
    lines = [
        _line(plan, boxes, way, _Mark(said[way], whole, taken.get(way, 0), near[way], way[::-1] in said))
        for way, whole in ways.items()
    ]
    return fragment(
        "drawing.html", boxes=placed, lines=lines, width=round(plan.width), height=round(plan.height),
        counts=f"{len(nodes)} nodes, {len(ways)} ways",
    )  # fmt: skip


@lru_cache(maxsize=PLANS)
def _planned(
    widths: tuple[tuple[str, float], ...], heights: tuple[tuple[str, float], ...],
    bends: tuple[tuple[Way, float], ...], ways: tuple[Way, ...],
) -> Plan:  # fmt: skip
    """Kept: a run that is followed is drawn again at each change, and its nodes stay where they are."""
    return planned(Room(dict(widths), dict(heights), dict(bends)), ways, apart=APART, margin=MARGIN)


def _room(boxes: Mapping[str, Box], said: Mapping[Way, str], near: Mapping[Way, str]) -> Room:
    """What nodes need, with the labels that stand beside them."""
    widths = {name: box.width for name, box in boxes.items()}
    for (source, target), label in said.items():
        wide = len(label) * SMALL + 8
        if source == target:
            widths[source] = max(widths[source], boxes[source].width + 2 * (LOOP + wide))
        elif label and (target, source) in said:
            widths[target] = max(widths[target], 2 * (ASIDE + wide))
        elif label:
            beside = near[source, target]
            widths[beside] = max(widths[beside], wide)
    return Room(
        widths, {name: box.height for name, box in boxes.items()},
        {way: len(label) * SMALL + 8 for way, label in said.items() if label},
    )  # fmt: skip


def _near(said: Mapping[Way, str]) -> dict[Way, str]:
    """The end each label stands at: where ways part at their targets, where they meet at their sources."""
    parting = Counter(source for (source, _), label in said.items() if label)
    meeting = Counter(target for (_, target), label in said.items() if label)
    return {
        (source, target): target if parting[source] > 1 and meeting[target] <= parting[source] else source
        for source, target in said
    }


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
    width = max(96.0, len(title) * LETTER + 28, len(kind) * SMALL + 28)
    return Box(0, 0, width, HEIGHT, title, kind, status, UNSEEN.sub("\ufffd", whole))


def _line(plan: Plan, boxes: Mapping[str, Box], way: Way, mark: _Mark) -> Line:
    source, target = way
    label, taken = mark.label, mark.taken
    whole = UNSEEN.sub("\ufffd", ": ".join(filter(None, (f"{source} to {target}", mark.whole))))
    if source == target:
        x, y = plan.places[source]
        edge = x + boxes[source].width / 2
        out = edge + LOOP
        path = f"M{edge:.1f},{y - 8:.1f} C{out:.1f},{y - 26:.1f} {out:.1f},{y + 26:.1f} {edge + 2:.1f},{y + 8:.1f}"
        return Line(path, label, round(out - 4, 1), round(y + 4, 1), taken, whole, "start")
    points = list(plan.ways[way])
    up = points[0][1] > points[-1][1]
    aside = (ASIDE if up else -ASIDE) if mark.both else 0.0
    points[0] = (points[0][0] + aside, points[0][1] + boxes[source].height / 2 * (-1 if up else 1))
    points[-1] = (points[-1][0] + aside, points[-1][1] + (boxes[target].height / 2 + 2) * (1 if up else -1))
    x, y, anchor = _label_place(points, at_source=mark.near == source, aside=aside)
    return Line(_curve(points), label, round(x, 1), round(y, 1), taken, whole, anchor)


def _label_place(points: Sequence[Point], *, at_source: bool, aside: float) -> tuple[float, float, str]:
    if len(points) > 2:
        return points[1][0], points[1][1] + 4, ""
    (x0, y0), (x1, y1) = points
    if aside:
        return (x0 + x1) / 2 + aside / 4, (y0 + y1) / 2 + 4, "start" if aside > 0 else "end"
    (x, y), other = ((x0, y0), y1) if at_source else ((x1, y1), y0)
    return x, y + (16 if other > y else -11), ""


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
