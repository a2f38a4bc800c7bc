"""What the checker says about a spec: data, all at once, each with a place and where possible a repair."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding. `pointer` is an RFC 6901 pointer into the spec as it was sent, `fix` an RFC 6902 patch."""

    code: str
    message: str
    severity: Severity = "error"
    pointer: str = ""
    node_id: str = ""
    edge: str = ""
    related: tuple[str, ...] = ()
    fix: tuple[JsonObject, ...] = ()

    def to_json(self) -> JsonObject:
        body: dict[str, JsonValue] = {
            "code": self.code, "severity": self.severity, "message": self.message, "pointer": self.pointer,
            "related": list(self.related),
        }  # fmt: skip
        if self.node_id:
            body["node_id"] = self.node_id
        if self.edge:
            body["edge"] = self.edge
        if self.fix:
            body["fix"] = list(self.fix)
        return body


def pointer(*segments: str | int) -> str:
    """The RFC 6901 pointer of `segments`."""
    return "".join("/" + str(segment).replace("~", "~0").replace("/", "~1") for segment in segments)


def suggest(name: str, known: Iterable[str]) -> str:
    """A "did you mean" to put behind a sentence, or "" when nothing known is close to `name`."""
    from difflib import get_close_matches  # here: only a mistake needs it

    near = get_close_matches(name[:100], list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


def unknown_fields(body: JsonObject, known: Collection[str], at: str, *, node_id: str = "") -> list[Issue]:
    """UNKNOWN_FIELD for every key of `body` that is not `known`; `at` is the pointer of `body`."""
    return [
        Issue(
            "UNKNOWN_FIELD",
            f'there is no field "{name}" here{suggest(name, known)}',
            pointer=at + pointer(name),
            node_id=node_id,
        )
        for name in body
        if name not in known
    ]
