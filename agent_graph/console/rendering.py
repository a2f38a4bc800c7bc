"""Makes pages of templates: everything a graph, a model or a person has written is text in them, never markup."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from agent_graph import __version__
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.tools.views import rfc3339

FOLDER: Final = Path(__file__).parent / "pages"
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]|[\ud800-\udfff]"
)
"""What a reader does not see, or what turns the reading order, so that a text reads as another than it is."""
NOW_MS: Final = 5_000
STEPS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def page(template: str, /, *, http_status: int = 200, **values: Any) -> Response:
    """The page made of `template`."""
    text = _environment().get_template(template).render(values)
    return Response(text.encode("utf-8", "replace"), http_status, media_type="text/html; charset=utf-8")


def fragment(template: str, /, **values: Any) -> Markup:
    """A part of a page, made of `template`."""
    return Markup(_environment().get_template(template).render(values))  # noqa: S704  (all values in it are escaped)


def plainly(text: object) -> Markup:
    """`text`, with what cannot be seen in it marked by its number."""
    said, shown, end = str(text).replace("\r\n", "\n"), Markup(), 0
    for found in UNSEEN.finditer(said):
        shown += escape(said[end : found.start()])
        shown += Markup('<mark class="unseen">U+{}</mark>').format(f"{ord(found.group()):04X}")
        end = found.end()
    return shown + escape(said[end:])


def pretty(value: JsonValue) -> str:
    """A value for people: a text as it is, anything else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


_TOKEN: Final = re.compile(r'("(?:[^"\\]|\\.)*")(:)?|(-?\d[\d.eE+-]*)|(true|false|null)')


def coloured(value: JsonValue) -> Markup:
    """A value as `pretty` has it; of JSON, each kind of thing is marked for the colours of the page."""
    if isinstance(value, str):
        return plainly(value)
    said, shown, end = pretty(value), Markup(), 0
    for found in _TOKEN.finditer(said):
        shown += escape(said[end : found.start()])
        text, colon, number, _ = found.groups()
        kind = "key" if colon else "string" if text else "number" if number else "word"
        shown += Markup('<span class="j-{}">{}</span>{}').format(kind, plainly(text or found.group()), colon or "")
        end = found.end()
    return shown + escape(said[end:])


def ago(at_ms: int, now_ms: int) -> Markup:
    """How long ago a moment was, in words, with the moment itself for who asks."""
    span_ms = now_ms - at_ms
    said = "just now" if span_ms < NOW_MS else f"{lasting(span_ms)} ago"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(rfc3339(at_ms), _utc(at_ms), said)


def _utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def when(at_ms: int | None) -> Markup:
    """A moment, for people and for programs."""
    if at_ms is None:
        return Markup("&ndash;")
    return Markup('<time datetime="{}">{}</time>').format(rfc3339(at_ms), _utc(at_ms))


def since(at_ms: int, began_ms: int | None) -> Markup:
    """How long after the beginning something was, with the moment itself for who asks."""
    if began_ms is None:
        return when(at_ms)
    span_ms = max(0, at_ms - began_ms)
    said = f"+{span_ms / 1000:.2f} s" if 1_000 <= span_ms < 60_000 else f"+{lasting(span_ms)}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(rfc3339(at_ms), _utc(at_ms), said)


def lasting(span_ms: int) -> str:
    """A span of time in its two largest units: ``2 h 5 min``."""
    if span_ms < 1_000:
        return f"{max(0, span_ms)} ms"
    for place, (unit_ms, name) in enumerate(STEPS):
        if span_ms >= unit_ms:
            rest = span_ms % unit_ms
            smaller = STEPS[place + 1 : place + 2]
            more = f" {rest // smaller[0][0]} {smaller[0][1]}" if smaller and rest >= smaller[0][0] else ""
            return f"{span_ms // unit_ms} {name}{more}"
    return ""  # no span is left


def short(text: object, width: int = 160) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= width else line[: width - 1] + "\u2026"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "plainly": plainly, "pretty": pretty, "when": when, "lasting": lasting, "short": short,
        "coloured": coloured, "ago": ago, "since": since,
        "words": lambda text: str(text).replace("_", " "),
    }  # fmt: skip
    made.globals["version"] = __version__
    return made
