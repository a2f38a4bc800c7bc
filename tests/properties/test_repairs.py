"""Every code can be brought about, and every repair removes its issue and brings no other."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from agent_graph.core.compile import Compiled, compile_graph
from agent_graph.core.issues import Issue
from tests.properties.mutations import MUTATIONS, mutated, stored
from tests.sizes import size

PAGE = (Path(__file__).parent.parent.parent / "docs" / "reference" / "issues.md").read_text(encoding="utf-8")
STRICT = {"KEY_MAYBE_UNWRITTEN"}
"""Said at that level alone."""
BY_THE_CATALOG = {"SECRET_IN_SPEC"}
"""Said where a graph is kept, of what was taken out before it is compiled: `tests/engine`."""
REPAIRED = re.findall(r"^\| `([A-Z_]+)` \|", PAGE.partition("## Repairs")[2], flags=re.MULTILINE)
pytestmark = pytest.mark.timeout(size(60, 1_200))


def test_there_is_a_mutation_for_every_code_of_the_page() -> None:
    codes = set(re.findall(r"^\| `([A-Z_]+)` \|", PAGE.partition("## Repairs")[0], flags=re.MULTILINE))
    assert codes - BY_THE_CATALOG == set(MUTATIONS)


def checked(spec: Any, code: str) -> Compiled:
    return compile_graph(spec, stored=stored(), level="strict" if code in STRICT else "semantic")


def counted(issues: tuple[Issue, ...]) -> Counter[tuple[str, str]]:
    return Counter((issue.code, issue.node_id) for issue in issues)


@pytest.mark.parametrize("code", list(MUTATIONS))
def test_a_code_is_hit_again_and_again_and_its_repair_repairs(code: str) -> None:
    hit = repaired = 0
    for seed in range(size(25, 200)):
        spec = mutated(code, seed)
        found = checked(spec, code)
        mine = [issue for issue in found.issues if issue.code == code]
        hit += bool(mine)
        for issue in found.issues:
            assert issue.message
            assert issue.severity in ("error", "warning", "info")
            if not issue.fix:
                continue
            repaired += issue.code == code
            again = checked(jsonpatch.apply_patch(spec, list(issue.fix)), code)
            before, after = counted(found.issues), counted(again.issues)
            key = (issue.code, issue.node_id)
            assert after[key] < before[key], "the issue is gone"
            assert {one for one, _ in after} <= {one for one, _ in before}, "and no other has come"
    assert hit >= 20
    assert bool(repaired) == (code in REPAIRED), "the page lists what has a repair"


def test_at_least_twelve_codes_have_a_repair() -> None:
    assert len(set(REPAIRED)) >= 12
