"""The verdict on a case: every rule asked, and what follows from what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final, Literal, TypeAlias

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.policy.case import Case, Finding
from agent_graph.core.policy.profile import Problem, Profile
from agent_graph.core.policy.rules import RULES

Decision: TypeAlias = Literal["allow", "review", "deny"]
NOBODY: Final = Profile("none")
BROKEN: Final = "POLICY_RULE_BROKEN"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`violations` deny; `warnings` a person may waive, or are only told; with none of those the graph may run."""

    profile: Profile
    violations: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    budgets: dict[str, int] = field(default_factory=dict)
    """What a run gets at most, whether or not it asks."""

    @property
    def decision(self) -> Decision:
        """allow, review (a person may start it) or deny."""
        waits = any(finding.severity == "review" for finding in self.warnings)
        return "deny" if self.violations else "review" if waits else "allow"

    def to_json(self) -> JsonObject:
        """{decision, violations, warnings, effective_policy}"""
        return {
            "decision": self.decision,
            "violations": [finding.to_json() for finding in self.violations],
            "warnings": [finding.to_json() for finding in self.warnings],
            "effective_policy": self.profile.describe(),
        }


def judge(profile: Profile, case: Case) -> Verdict:
    """Ask every rule. A rule that breaks denies: what it would have said nobody knows."""
    found = [finding for name in RULES for finding in _asked(name, profile, case)]
    violations = tuple(finding for finding in found if finding.severity == "deny")
    warnings = tuple(finding for finding in found if finding.severity != "deny")
    return Verdict(profile, violations, warnings, profile.run_budgets())


def _asked(name: str, profile: Profile, case: Case) -> Iterator[Finding]:
    try:
        found = list(RULES[name](profile, case))
    except Exception as bug:
        yield Finding(BROKEN, f"a bug in this rule: {type(bug).__name__}: {bug}", rule=name)
        return
    for finding in found:
        waived = finding.severity == "deny" and name in profile.review
        yield replace(finding, rule=name, severity="review" if waived else finding.severity)


def denied(problems: Sequence[Problem], profile: Profile = NOBODY) -> Verdict:
    """The verdict where the profile or what was to be changed in it cannot be used."""
    return Verdict(profile, tuple(Finding(one.code, one.message, rule=one.field) for one in problems))
