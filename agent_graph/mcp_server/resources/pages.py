"""The pages of the documentation that come with the program, by name; nothing else can be read through them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from agent_graph.core.jsonvalue import JsonObject

_PACKAGE: Final = Path(__file__).resolve().parent.parent.parent
_TITLE: Final = re.compile(r"^# (.+)$", flags=re.MULTILINE)


def folder() -> Path:
    """Where they are: inside the installed package, in a checkout beside it."""
    inside = _PACKAGE / "docs"
    return inside if inside.is_dir() else _PACKAGE.parent / "docs"


@cache
def names() -> Mapping[str, Path]:
    """Every page by its name (``index``, ``howto/wait``) in the order of the names. What is not in here is no page,
    however it is spelt: no path is ever made of what a client sent."""
    root = folder()
    found = {page.relative_to(root).with_suffix("").as_posix(): page for page in sorted(root.rglob("*.md"))}
    return MappingProxyType(found)


def give(name: str) -> JsonObject | None:
    """{page, title, markdown} of a page; None when there is none of that name."""
    page = names().get(name)
    if page is None:
        return None
    text = page.read_text(encoding="utf-8")
    return {"page": name, "title": title(name), "markdown": text}


def title(name: str) -> str:
    """What a page is called; its name where it has no heading."""
    found = _TITLE.search(names()[name].read_text(encoding="utf-8"))
    return found[1].strip() if found else name
