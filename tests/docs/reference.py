"""The reference pages as they follow from the code; `make golden` writes them, `test_reference` compares them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields

from agent_graph import errors
from agent_graph.core.limits import LATER, Limits
from agent_graph.settings import LIMITS_PREFIX, SETTINGS

FAMILIES = (
    errors.InvalidRequest, errors.NotFound, errors.Conflict, errors.Refused, errors.Upstream, errors.Corrupt,
)  # fmt: skip
GENERATED = "<!-- written from the code by `make golden` -->"


def classes() -> list[type[errors.AgentGraphError]]:
    """Every deliberate error a caller can meet, in the order of errors.py."""
    known = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.AgentGraphError)]
    return [c for c in known if c not in (errors.AgentGraphError, *FAMILIES)]


def errors_page() -> str:
    return "\n".join(_errors_lines()) + "\n"


def _errors_lines() -> Iterator[str]:
    yield "# Errors"
    yield ""
    yield GENERATED
    yield ""
    yield 'A refusal is `{"ok": false, "error_code", "error", "details"?, "retryable"}`.'
    yield "A code is stable; its sentence is for people and may change."
    yield "Nothing is created or changed by a call that is refused. What is wrong with a spec comes as a list in"
    yield "`details.issues`; what goes wrong in a node is an event of its run and, unless handled, the run's `error`."
    for family in FAMILIES:
        yield ""
        yield f"## {_words(family.__name__)}"
        yield ""
        yield f"{inspect.getdoc(family)}"
        yield ""
        yield "| code | meaning | try again | exit | HTTP |"
        yield "|---|---|---|---|---|"
        for error in classes():
            if issubclass(error, family):
                again = "yes" if error.retryable else "no"
                yield f"| `{error.code}` | {_line(error)} | {again} | {error.exit_code} | {error.http_status} |"


def settings_page() -> str:
    return "\n".join(_settings_lines()) + "\n"


def _settings_lines() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield GENERATED
    yield ""
    yield "A flag wins over the environment, that over `settings.toml` in the data folder, that over the default."
    yield "An empty variable counts as not set. `agent-graph status` shows what is in force and where it comes from."
    yield ""
    yield "| in settings.toml | flag | environment | default | meaning |"
    yield "|---|---|---|---|---|"
    for s in SETTINGS:
        key = f"`{s.name}`" if s.in_file else ""
        default = "the system's place for user data" if s.name == "data_dir" else s.default and f"`{s.default}`"
        yield f"| {key} | {s.flag and f'`{s.flag}`'} | `{s.env}` | {default} | {s.meaning} |"
    yield ""
    yield "## Limits"
    yield ""
    yield "In settings.toml under `[limits]`, by the name in small letters. No setting passes the ceiling."
    yield ""
    yield "| environment | default | ceiling | bounds |"
    yield "|---|---|---|---|"
    for f in fields(Limits):
        name = f"`{LIMITS_PREFIX}{f.name.upper()}`"
        yield f"| {name} | {f.default:,} | {f.metadata['ceiling']:,} | {f.metadata['meaning']} |"
    yield ""
    for late, reason in LATER.items():
        yield f"Setting `{LIMITS_PREFIX}{late.upper()}` is refused: {reason}."


def _line(error: type[errors.AgentGraphError]) -> str:
    return " ".join((inspect.getdoc(error) or "").split())


def _words(name: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(name))


PAGES = {"errors": errors_page, "settings": settings_page}
