"""Pages: links lead somewhere, the verbs and folders named are there, README keeps its promise of two commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]


def block(number: int) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "readme_block"), str(number)], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert not [link for link in links if link and not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_json_in_pages_is_json(page: Path) -> None:
    for text in re.findall(r"^```json\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL):
        json.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_pages_speak_of_the_project_alone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"(?:^|[\s\"'(=`])/(?:root|home|work|tmp)/\w", text)
    assert not re.findall("[\U0001f000-\U0001faff\u2600-\u27bf]", text)


def test_every_page_can_be_reached_from_the_index() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "docs" / "index.md"]
    while todo:
        page = todo.pop().resolve()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        todo += [page.parent / link for link in links if "://" not in link]
    assert not [page for page in PAGES if page.name != "README.md" and page.resolve() not in seen]


def test_the_first_two_blocks_are_one_command_each() -> None:
    first, second = block(1), block(2)
    assert first.count("\n") == second.count("\n") == 1
    assert first.startswith("python3 -m venv")
    assert "agent-graph run council_deliberation" in first
    assert second.startswith("python3 -m venv")
    assert second.endswith("-m pytest -q\n")


def test_the_house_page_names_the_makefile_verbs_and_no_others() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE)) - {"help", "clean"}
    assert set(re.findall(r"^\| `make ([a-z]+)`", page, flags=re.MULTILINE)) == verbs


def test_the_house_page_names_what_is_there() -> None:
    page = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z_/.]+)` \|", page, flags=re.MULTILINE)
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]
    packages = {path.parent.name for path in (ROOT / "agent_graph").glob("*/__init__.py")}
    assert packages == {name.split("/")[1] for name in named if name.count("/") == 2 and name.endswith("/")}


def test_every_table_of_words_is_in_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [w for w in re.findall(r"^\| ([a-z, ]+) \|", text, flags=re.MULTILINE) if w != "word"]
    assert words == sorted(words)
