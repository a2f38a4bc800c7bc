"""Votes in any order, by anybody, any number of times: a gate is decided as its rules say and never otherwise.

The rules are written down a second time here, over sets of names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core import approval, checkpoint
from agent_graph.core.approval import Ballot
from agent_graph.core.jsonvalue import canonical, digest
from agent_graph.core.record import canonical_record
from agent_graph.errors import AgentGraphError
from tests.core.played import compiled, folded, gate, play, stored
from tests.sizes import size

PEOPLE = st.sampled_from(["ann", "Ann", "bob", "carl"])
DECISIONS = st.sampled_from(["approve", "approve", "approve", "edit", "reject", "request_changes"])
CHANNELS = st.sampled_from(["cli", "console", "assistant"])


@dataclass
class Rules:
    """What the gate may come to, told anew."""

    quorum: int
    open_to: set[str]
    takes: set[str]
    subject: Any = "draft"
    approved: set[str] = field(default_factory=set)
    edited: bool = False
    decided: str = ""

    def takes_vote(self, ballot: Ballot) -> bool:
        """Apply a vote; False when it is refused, and then nothing changes."""
        name = (ballot.principal or ballot.by).lower()
        known = not ballot.subject_digest or ballot.subject_digest == digest(self.subject)
        blind = self.edited and not ballot.subject_digest and ballot.decision in ("approve", "edit")
        if self.decided or ballot.via not in self.open_to or ballot.decision not in self.takes or not known or blind:
            return False
        match ballot.decision:
            case "approve":
                if name in self.approved:
                    return False
                self.approved.add(name)
            case "edit":
                new = ballot.patch[0]["value"]
                if new == self.subject:
                    return False
                self.subject, self.approved, self.edited = new, {name}, True
            case against:
                self.decided = against
        if not self.decided and len(self.approved) >= self.quorum:
            self.decided = "edit" if self.edited else "approve"
        return True


@st.composite
def ballots(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "decision": draw(DECISIONS), "by": draw(PEOPLE), "via": draw(CHANNELS),
        "principal": draw(st.sampled_from(["", "", "", "bob"])), "value": draw(st.sampled_from(["draft", "x", "y"])),
        "sees": draw(st.sampled_from(["now", "now", "first", "", "other"])),
    }  # fmt: skip


@settings(max_examples=size(100, 5_000), deadline=None)
@given(
    quorum=st.integers(1, 3), open_to=st.sets(CHANNELS, min_size=1), edits=st.booleans(),
    cast=st.lists(ballots(), max_size=12),
)  # fmt: skip
def test_a_gate_is_decided_as_its_rules_say(
    quorum: int, open_to: set[str], edits: bool, cast: list[dict[str, Any]]
) -> None:
    allowed = ["approve", "reject", "request_changes", *(["edit"] if edits else [])]
    graph = compiled(
        [gate("g", quorum=quorum, channels=sorted(open_to), allowed_decisions=allowed, on_reject="continue",
              on_request_changes="continue")], "g>END", output_key="g",
    )  # fmt: skip
    at = play(graph, "draft")
    (open_,) = at.run.open_approvals
    name, rules = open_.approval_id, Rules(quorum, open_to, set(allowed))
    for one in cast:
        kept = at.run.gates[name]
        seen = {"now": kept.subject_digest, "first": digest("draft"), "": "", "other": "sha256:0"}[one["sees"]]
        patch = ({"op": "replace", "path": "", "value": one["value"]},) if one["decision"] == "edit" else ()
        ballot = Ballot(
            one["decision"], one["by"], one["via"], principal=one["principal"], patch=patch, subject_digest=seen
        )
        before = len(kept.votes)
        try:
            facts = approval.vote(at.run, name, ballot, now_ms=1_500)
        except AgentGraphError:
            assert not rules.takes_vote(ballot)
            assert len(kept.votes) == before
            continue
        assert rules.takes_vote(ballot)
        at.go(*facts)
        assert (at.run.gates[name].decision or {}).get("decision", "") == rules.decided
        assert at.run.gates[name].subject == rules.subject
        assert approval.missing(at.run.gates[name]) == max(0, quorum - len(rules.approved))
    assert at.run.status == ("completed" if rules.decided else "waiting")
    again = folded(graph, at.log)
    loaded = checkpoint.load(graph, checkpoint.dump(at.run))
    assert again.gates == loaded.gates == at.run.gates
    assert (again.status, loaded.status) == (at.run.status,) * 2
    record = canonical(canonical_record(graph, at.log))
    assert canonical(canonical_record(graph, [stored(event) for event in at.log])) == record
