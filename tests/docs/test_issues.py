"""The page of issue codes names every code the checker can give, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CODE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")


def given() -> Iterator[str]:
    """The codes that stand in a call of `Issue`, and those in tables from which one is taken."""
    for path in (ROOT / "agent_graph" / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="Issue"), args=[ast.Constant(value=str(code)), *_]):
                    yield code
                case ast.Constant(value=str(code)) if path.parent.name == "checks" and CODE.fullmatch(code):
                    yield code
                case ast.Tuple(elts=[ast.Constant(), ast.Constant(value=str(code))]) if code.startswith("DUPLICATE_"):
                    yield code


def test_every_issue_code_is_on_the_page_and_none_that_is_not_given() -> None:
    page = (ROOT / "docs" / "reference" / "issues.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:error|warning|info) \| \S.*\|$", page, flags=re.MULTILINE)
    assert all(CODE.fullmatch(code) for code in rows)
    assert sorted(rows) == sorted(set(given()))
