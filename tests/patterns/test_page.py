"""The page of the patterns and the scenarios agree: which there are, how far each is met, supersteps."""

from __future__ import annotations

import re
from pathlib import Path

from tests.patterns.test_patterns import FILES, SCENARIOS

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "patterns.md"
ROW = re.compile(r"^\| (\d+) \|(.*)\|$", flags=re.MULTILINE)
LINK = re.compile(r"\[`([a-z0-9_]+)`\]\(\.\./\.\./tests/patterns/([a-z0-9_]+)\.py\)")
COUNT = 43


def rows() -> dict[int, list[str]]:
    """By number: pattern, here, how, scenario, under supersteps."""
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    numbers = [int(number) for number, _ in found]
    assert len(numbers) == len(set(numbers)), "a pattern stands twice"
    return {int(number): [cell.strip() for cell in rest.split("|")] for number, rest in found}


def test_every_pattern_is_on_the_page_once() -> None:
    assert sorted(rows()) == list(range(1, COUNT + 1))
    assert all(len(row) == 5 and row[2] for row in rows().values())


def test_a_file_is_named_after_its_number() -> None:
    assert [int(path.stem[1:3]) for path in FILES] == [scenario.number for scenario in SCENARIOS]


def test_what_the_page_says_is_met_has_a_scenario_and_what_has_a_scenario_is_on_the_page() -> None:
    told = {number: row[1] for number, row in rows().items()}
    assert {number: degree for number, degree in told.items() if degree != "no"} == {
        scenario.number: scenario.degree for scenario in SCENARIOS
    }
    names = {scenario.number: path.stem for scenario, path in zip(SCENARIOS, FILES, strict=True)}
    for number, row in rows().items():
        link = LINK.fullmatch(row[3])
        assert (link and link[1]) == names.get(number), f"pattern {number}"
        assert link is None or link[2] == link[1]


def test_the_page_says_what_supersteps_do_as_the_scenario_does() -> None:
    table = rows()
    for scenario in SCENARIOS:
        assert table[scenario.number][0] == scenario.name
        assert table[scenario.number][4] == (scenario.supersteps or "the same"), f"pattern {scenario.number}"


def test_the_page_counts_right() -> None:
    degrees = [row[1] for row in rows().values()]
    told = ", ".join(f"{degrees.count(degree)} {degree}" for degree in ("full", "partial", "no"))
    assert f"**{told}**" in PAGE.read_text(encoding="utf-8")
