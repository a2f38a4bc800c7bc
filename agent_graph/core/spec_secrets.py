"""Takes secrets out of a spec, by their shape alone, and says where they stood; knows no field of a spec.

A graph is kept for ever and shown to everybody, so it is no place for a secret. Names of keys count for nothing here:
a spec is full of them, in schemas and in what its nodes write.
"""

from __future__ import annotations

from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.redact import Redactor


def without_secrets(redactor: Redactor, spec: JsonValue) -> tuple[JsonValue, tuple[Issue, ...]]:
    """The spec to compile, and a warning for each text that is not as it was sent."""
    clean = redactor.shapes(spec)
    return (spec, ()) if clean is spec else (clean, tuple(map(_issue, _places(spec, clean))))


def _places(spec: JsonValue, clean: JsonValue) -> list[str]:
    found, todo = [], [(spec, clean, "")]
    while todo:
        was, now, at = todo.pop()
        if isinstance(was, dict) and isinstance(now, dict):
            todo += [(was[key], now[key], at + pointer(key)) for key in was]
        elif isinstance(was, list) and isinstance(now, list):
            todo += [(one, other, at + pointer(i)) for i, (one, other) in enumerate(zip(was, now, strict=True))]
        elif was != now:
            found.append(at)
    return sorted(found)


def _issue(at: str) -> Issue:
    message = (
        "here stood what looks like a secret; it was taken out, and the graph says [redacted] in its place. A graph is"
        " kept and shown to everybody: put the secret into the settings of a host or a connection"
    )
    return Issue("SECRET_IN_SPEC", message, "warning", at)
