"""What recorded outcomes amount to: a template version's record, and which graphs ran well enough to become templates.

The rule is here and nowhere else, and every answer that applies it says it. Nothing is promoted by it: it only finds
what a person may want to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final, Literal, TypeAlias

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.store.base import Outcome

LEAST_RUNS: Final = 3
LEAST_RATE: Final = 0.8
RULE: Final = (
    "The current version of a graph that was made of no template is a candidate when at least "
    f"{LEAST_RUNS} of its runs completed, and of those that completed or failed at least {LEAST_RATE:.0%} completed. "
    "Cancelled runs count for nothing. Whether what it answers is any good, no count can say: a person looks, and the "
    "operator promotes it with: agent-graph templates promote GRAPH"
)
State: TypeAlias = Literal["candidate", "not_yet", "promoted", "damaged"]
"""``damaged``: what was counted is not what this program wrote."""


@dataclass(slots=True)
class Record:
    """What runs came to, added up."""

    versions: set[tuple[str, str]] = field(default_factory=set)
    by_status: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    completed: list[Outcome] = field(default_factory=list)
    first_at_ms: int | None = None
    last_at_ms: int | None = None

    def add(self, outcome: Outcome) -> None:
        self.versions.add((outcome.graph_id, outcome.graph_version))
        self.by_status[outcome.status] = self.by_status.get(outcome.status, 0) + outcome.runs
        if outcome.status == "failed":
            self.errors[outcome.code] = self.errors.get(outcome.code, 0) + outcome.runs
        if outcome.status == "completed":
            self.completed.append(outcome)
        first, last = self.first_at_ms, self.last_at_ms
        self.first_at_ms = outcome.first_at_ms if first is None else min(first, outcome.first_at_ms)
        self.last_at_ms = outcome.last_at_ms if last is None else max(last, outcome.last_at_ms)

    @property
    def rate(self) -> float | None:
        """Completed runs of those that completed or failed; None without any."""
        done, failed = self.by_status.get("completed", 0), self.by_status.get("failed", 0)
        return done / (done + failed) if done + failed else None

    def lacking(self) -> tuple[str, ...]:
        """What the rule finds missing, a sentence each."""
        done, rate = self.by_status.get("completed", 0), self.rate
        found = [] if done >= LEAST_RUNS else [f"{done} of {LEAST_RUNS} runs completed"]
        if rate is not None and rate < LEAST_RATE:
            found.append(f"{rate:.0%} of the runs completed, not {LEAST_RATE:.0%}")
        return tuple(found)

    def to_json(self) -> JsonObject:
        """{runs, completed, failed, cancelled, success_rate, per_run, errors, first_at_ms, last_at_ms}; `per_run` is
        the mean of completed runs, null where there is none."""
        errors: JsonObject = dict(sorted(self.errors.items()))
        return {
            "runs": sum(self.by_status.values()),
            **{status: self.by_status.get(status, 0) for status in ("completed", "failed", "cancelled")},
            "success_rate": None if self.rate is None else round(self.rate, 3), "per_run": self._per_run(),
            "errors": errors, "first_at_ms": self.first_at_ms, "last_at_ms": self.last_at_ms,
        }  # fmt: skip

    def _per_run(self) -> JsonObject:
        runs = sum(one.runs for one in self.completed)
        told = sum(one.token_runs for one in self.completed)
        return {
            "llm_calls": round(sum(one.llm_calls for one in self.completed) / runs, 1) if runs else None,
            "tokens": round(sum(one.tokens for one in self.completed) / told) if told else None,
            "wall_clock_ms": round(sum(one.wall_clock_ms for one in self.completed) / runs) if runs else None,
        }


def by_template_version(outcomes: Iterable[Outcome]) -> dict[str, Record]:
    """The records of one template's versions."""
    found: dict[str, Record] = {}
    for outcome in outcomes:
        found.setdefault(outcome.template_version, Record()).add(outcome)
    return found


def candidates(outcomes: Iterable[Outcome], promoted: Sequence[str]) -> list[tuple[State, str, str, Record]]:
    """(state, graph id, version, record) of each graph, the one with the most completed runs first; `promoted` are
    versions that templates were made of."""
    records: dict[tuple[str, str], Record] = {}
    damaged: set[tuple[str, str]] = set()
    for outcome in outcomes:
        if outcome.damaged:
            damaged.add((outcome.graph_id, outcome.graph_version))
        records.setdefault((outcome.graph_id, outcome.graph_version), Record()).add(outcome)
    found: list[tuple[State, str, str, Record]] = []
    for (graph_id, version), record in records.items():
        state: State = "promoted" if version in promoted else "not_yet" if record.lacking() else "candidate"
        if (graph_id, version) in damaged:  # nothing of it can be believed
            state, record = "damaged", Record()
        found.append((state, graph_id, version, record))
    return sorted(found, key=lambda one: (-one[3].by_status.get("completed", 0), one[1]))


def shown(state: State, graph_id: str, version: str, record: Record) -> JsonObject:
    """A graph as `graph_template_candidates` lists it."""
    lacking: list[JsonValue] = list(record.lacking())
    body: JsonObject = {"graph_id": graph_id, "graph_version": version, "state": state, **record.to_json()}
    return {**body, "lacking": lacking} if state == "not_yet" else body
