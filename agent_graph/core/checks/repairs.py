"""Whether a repair keeps its word: the issue goes away and no other comes; found by trying it, within a bound.

A repair that is not tried, because the graph is large and others came first, is not offered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonValue, compact
from agent_graph.core.patch import PatchFailed, applied

WORK: Final = 400_000
"""Characters of specs checked again in all, at most, to try repairs."""
LEAST: Final = 1
MOST: Final = 200
"""Repairs tried however large the graph is, and however small."""

Check = Callable[[JsonValue], tuple[bool, Sequence[Issue]]]
"""A spec to (whether the graph as a whole was judged, its issues)."""


def proved(raw: JsonValue, issues: Sequence[Issue], *, judged: bool, check: Check) -> tuple[Issue, ...]:
    """`issues` without the repairs that do not hold. While a graph is not judged as a whole, what a repair brings to
    light there was hidden before and is not of its making."""
    tries = min(MOST, max(LEAST, WORK // len(compact(raw))))
    before = _counted(issues)
    found = []
    for issue in issues:
        if issue.fix:
            tries -= 1
            if tries < 0 or not _holds(raw, issue, before, judged=judged, check=check):
                issue = replace(issue, fix=())
        found.append(issue)
    return tuple(found)


def _holds(raw: JsonValue, issue: Issue, before: Counter[tuple[str, str]], *, judged: bool, check: Check) -> bool:
    if any(step["op"] == "move" and _is_there(raw, str(step["path"])) for step in issue.fix):
        return False  # nothing that was said is written over
    try:
        mended = applied(raw, issue.fix)
    except PatchFailed:
        return False
    then_judged, left = check(mended)
    if judged and not then_judged:
        return False
    if then_judged and not judged:
        known = {"NODE_UNREACHABLE", *(code for code, _ in before)}  # a wrong guess of an id leaves another one aside
        left = [one for one in left if one.code in known or one.severity == "error"]
    after = _counted(left)
    return after[_key(issue)] < before[_key(issue)] and after <= before


def _is_there(raw: JsonValue, at: str) -> bool:
    try:
        applied(raw, [{"op": "remove", "path": at}])
    except PatchFailed:
        return False
    return True


def _counted(issues: Sequence[Issue]) -> Counter[tuple[str, str]]:
    return Counter(_key(issue) for issue in issues)


def _key(issue: Issue) -> tuple[str, str]:
    return issue.code, issue.node_id
