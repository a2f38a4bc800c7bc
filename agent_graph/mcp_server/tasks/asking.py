"""What a run waits for a person to decide, as questions to the human behind the client, and their answers as votes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent_graph.core.approval import Ballot, started
from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact
from agent_graph.tools.deps import Caller, Deps

VIA: Final = "elicitation"
"""The channel a vote comes by that was asked for in this way."""
PLAIN: Final = ("approve", "reject", "request_changes")
"""Decisions a form of plain fields can carry."""
SHOWN: Final = 20_000
"""Characters of a subject that fit into a question; nobody is asked about a longer one here, as nothing may be left
out of what a person decides about."""


def questions(approvals: list[Any]) -> JsonObject:
    """By key, the question about each approval that can be asked in this way. The key holds the number of votes: for
    the next voter it is another question."""
    return {key_of(one): question(one) for one in approvals if can_be_asked(one)}


async def may_answer(deps: Deps, approval: Any, caller: Caller) -> bool:
    """Whether the human behind this client may decide it at all: not where whoever started the run is barred, and that
    is who asks, or the program it was started through."""
    if approval.get("self_approval", True):
        return True
    _, run = await deps.supervisor.fold(approval["run_id"])
    voter = Ballot("", "", VIA, principal=caller.principal or caller.approver, client=caller.client)
    return not started(run, voter)


def key_of(approval: Any) -> str:
    return f"{approval['approval_id']}#{len(approval['votes'])}"


def vote(approval: Any, response: object) -> JsonObject | None:
    """The arguments of `graph_approval_decide`; None when the human declined to answer, which decides nothing."""
    if not isinstance(response, Mapping) or response.get("action") != "accept":
        return None
    content = response.get("content")
    given: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
    wanted = {name: given[name] for name in ("decision", "decided_by", "decision_note") if name in given}
    return {"approval_id": approval["approval_id"], "subject_digest": approval["subject_digest"], **wanted}


def can_be_asked(approval: Any) -> bool:
    open_ = not approval["channels"] or VIA in approval["channels"]
    return open_ and bool(_decisions(approval)) and len(_subject(approval)) <= SHOWN


def _decisions(approval: Any) -> list[JsonValue]:
    return [decision for decision in approval["allowed_decisions"] if decision in PLAIN]


def _subject(approval: Any) -> str:
    subject = approval["subject"]
    return subject if isinstance(subject, str) else compact(subject)


def _message(approval: Any) -> str:
    """The prompt, what exactly is decided about, its digest, and who has approved so far."""
    said = f"{approval['prompt']}\n\n{_subject(approval)}\n\n({approval['subject_digest']})"
    edits = [place for place, vote in enumerate(approval["votes"]) if vote["decision"] == "edit"]
    names = [vote["decided_by"] for vote in approval["votes"][edits[-1] if edits else 0 :]]
    if approval["quorum"] > 1:
        said += f"\n\n{approval['quorum']} people have to approve; so far: {', '.join(names) or 'nobody'}"
    return said


def question(approval: Any) -> JsonObject:
    return {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": _message(approval),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "decision": {"type": "string", "title": "Decision", "enum": _decisions(approval)},
                    "decided_by": {
                        "type": "string", "title": "Your name", "minLength": 1, "maxLength": 200,
                        "description": "As it is to stand in the record.",
                    },
                    "decision_note": {
                        "type": "string", "title": "Note", "maxLength": 10_000,
                        "description": "Why, or what to change.",
                    },
                },
                "required": ["decision", "decided_by"],
            },
        },
    }  # fmt: skip
