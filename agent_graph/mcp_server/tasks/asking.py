"""What a run waits for a person to decide, as questions to the human behind the client, and their answers as votes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonObject, JsonValue, compact

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


def question(approval: Any) -> JsonObject:
    return {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": f"{approval['prompt']}\n\n{_subject(approval)}",
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
