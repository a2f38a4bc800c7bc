"""What is in a page: its fenced blocks with the mark above each, and its marked tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- ([^\n]*?) -->\n\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `mark` is the text of an HTML comment on the line above it, "" without one."""

    page: Path
    number: int
    language: str
    text: str
    mark: str
    line: int

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for number, match in enumerate(_FENCE.finditer(text)):
        mark = _MARK.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, number, match[1], match[2], mark[1] if mark else "", line))
    return found


def marked(page: Path, mark: str) -> str:
    """The text of the one block under `mark`."""
    (found,) = [block.text for block in blocks(page) if block.mark == mark]
    return found


def table(page: Path, name: str) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table under ``<!-- table: name -->``."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"<!-- table: {name} -->") + 1
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    assert set("".join(rows[1])) == {"-"}
    return rows[0], rows[2:]
