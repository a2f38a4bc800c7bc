"""What became of approvals, as the lines of an audit, and these as CSV; of values it tells digests alone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonObject, digest
from agent_graph.tools.views import rfc3339

COLUMNS: Final = (
    "at", "approval_id", "graph_id", "graph_version", "run_id", "node_path", "round", "what", "decision", "by",
    "principal", "on_behalf_of", "via", "note", "subject_digest",
)  # fmt: skip
_FORMULA: Final = re.compile(
    "(?<![\\s\"';])([\\s\"';]*+)(?=[=+@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212-])"
)
"""What a spreadsheet calculates with, full width and small forms too, and the blanks and quotes that it passes over."""
_NEXT: Final = re.compile(r"[;\t\n\v\f\r\x85\u2028\u2029]")
"""Where another cell begins in a spreadsheet that separates by something else and so sees no quotes here."""


def lines(approvals: Iterable[JsonObject]) -> list[JsonObject]:
    """One line for each thing that happened to each approval (as `views.approval` shows it), oldest first."""
    found = [line for approval in approvals for line in _of(approval)]
    ordered: list[Any] = sorted(found, key=lambda pair: pair[0])
    return [line for _, line in ordered]


def as_csv(rows: Sequence[JsonObject]) -> str:
    """The lines under a head. What a spreadsheet would calculate with has an apostrophe in front, also where only one
    that separates by semicolons would see a cell begin."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(row.get(name, "")) for name in COLUMNS] for row in rows)
    return file.getvalue()


def _cell(value: object) -> str:
    text = _FORMULA.sub(_defused, str(value))
    return f"'{text}" if _NEXT.match(text) else text


def _defused(found: re.Match[str]) -> str:
    begins = found.start() == 0 or _NEXT.search(found[1]) is not None
    return f"{found[1]}'" if begins else found[1]


def _of(approval: Any) -> Iterator[tuple[int, JsonObject]]:
    named = {name: approval[name] for name in COLUMNS[1:6]} | {"round": approval.get("round", 1)}

    def line(at_ms: int, what: str, **more: Any) -> tuple[int, JsonObject]:
        return at_ms, {"at": rfc3339(at_ms), **named, "what": what, **{k: v for k, v in more.items() if v}}

    if approval.get("damaged"):  # there is nothing in it that can be believed
        yield line(0, "damaged")
        return
    edited = "original_subject" in approval
    asked = digest(approval["original_subject"]) if edited else approval["subject_digest"]
    yield line(approval["created_at_ms"], "opened", subject_digest=asked)
    for vote in approval["votes"]:
        yield line(
            vote["at_ms"], "voted", decision=vote["decision"], by=vote["decided_by"], principal=vote.get("principal"),
            on_behalf_of=vote.get("on_behalf_of"), via=vote["via"], note=vote.get("decision_note"),
            subject_digest=vote.get("subject_digest"),
        )  # fmt: skip
    decision = approval.get("decision")
    if decision:
        yield line(
            decision["at_ms"], "decided", decision=decision["decision"], by=decision["by"], via=decision["via"],
            note=decision["note"], subject_digest=approval["subject_digest"],
        )  # fmt: skip
    elif approval["status"] != "pending":
        closed_ms = approval.get("closed_at_ms", approval["expires_at_ms"])
        yield line(closed_ms, approval["status"], subject_digest=approval["subject_digest"])
