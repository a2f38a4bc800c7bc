"""The profiles of a server: which one holds, and what a caller may change in it; it judges nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from agent_graph.core.classes import dataclass
from agent_graph.core.policy.case import Case
from agent_graph.core.policy.profile import BUILT_IN, Problem, Profile, read_profile, tighten
from agent_graph.core.policy.verdict import Verdict, denied, judge


@dataclass(frozen=True, slots=True)
class PolicyBook:
    """`default` is the profile every run is held to; `own` are the operator's, by name; `loosen` lets a caller's
    override bound less than the profile does."""

    default: str = "baseline"
    own: Mapping[str, Profile] = field(default_factory=dict)
    loosen: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The profiles there are."""
        return (*BUILT_IN, *(name for name in self.own if name not in BUILT_IN))

    def judge(self, case: Case, *, name: str = "", override: Mapping[str, Any] | None = None) -> Verdict:
        """The verdict under the profile `name` ("" = the default) with `override`; never raises."""
        name, given = name or self.default, override or {}
        profile = BUILT_IN.get(name) or self.own.get(name)
        if profile is None:
            known = ", ".join(self.names)
            return denied([Problem("POLICY_PROFILE_UNKNOWN", f"there is no profile {name!r}; there are {known}")])
        wanted, problems = read_profile("override", given)
        if not problems:
            profile, problems = tighten(profile, wanted, given, loosen=self.loosen)
        return denied(problems, profile) if problems else judge(profile, case)
