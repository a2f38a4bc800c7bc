"""The reference pages as they follow from the code; `make golden` writes them, `test_reference` compares them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields

from agent_graph import errors
from agent_graph.core.limits import LATER, Limits
from agent_graph.core.policy.profile import BUILT_IN, MEANINGS, NAMES, SENSES
from agent_graph.llm import script_file
from agent_graph.llm.script_file import ANSWERS, TYPE_NAMES
from agent_graph.llm.scripted import ERRORS, SCRIPT_FIELDS, Reply
from agent_graph.settings import SETTINGS, redaction
from agent_graph.settings.hosts import FIELDS, PREFIX
from agent_graph.settings.limits import PREFIX as LIMITS_PREFIX
from tests.docs.nodes_page import nodes_page
from tests.docs.tools_page import tools_page

FAMILIES = (
    errors.InvalidRequest, errors.NotFound, errors.Conflict, errors.Refused, errors.Upstream, errors.Corrupt,
)  # fmt: skip
GENERATED = "<!-- written from the code by `make golden` -->"


def classes() -> list[type[errors.AgentGraphError]]:
    """Every deliberate error a caller can meet, in the order of `agent_graph.errors`."""
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
    yield ""
    yield "The exit code is that of a command that is refused with the code, and of `run`, `resume` and `approvals"
    yield "decide` when the run they watch fails with it; a run's error that is not on this page exits with 1."
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
        key = f"`{s.key}`" if s.in_file else ""
        default = "the system's place for user data" if s.name == "data_dir" else s.default and f"`{s.default}`"
        yield f"| {key} | {s.flag and f'`{s.flag}`'} | `{s.env}` | {default} | {s.meaning} |"
    yield ""
    yield "## Named hosts"
    yield ""
    yield "In settings.toml a table `[hosts.NAME]`, in the environment one variable a field. A name has small letters,"
    yield "digits, `-` and `_`. See [several model hosts](../howto/several-model-hosts.md)."
    yield ""
    yield "| field | environment | meaning |"
    yield "|---|---|---|"
    for name, meaning in FIELDS.items():
        yield f"| `{name}` | `{PREFIX}NAME__{name.upper()}` | {meaning} |"
    yield ""
    yield "## Secrets"
    yield ""
    yield "What is taken for a secret beside what the program knows; a table `[redaction]` in settings.toml with lists"
    yield "of texts, or in the environment one entry a line. See [redaction](../decisions/redaction.md)."
    yield ""
    yield "| field | environment | meaning |"
    yield "|---|---|---|"
    for name, meaning in redaction.FIELDS.items():
        yield f"| `{name}` | `{redaction.PREFIX}{name.upper()}` | {meaning} |"
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


def script_page() -> str:
    return "\n".join(_script_lines()) + "\n"


def _script_lines() -> Iterator[str]:
    said = inspect.getdoc(script_file) or ""
    example = inspect.cleandoc(said.partition("::\n\n")[2].rpartition("}\n")[0] + "}")
    yield "# Scripts"
    yield ""
    yield GENERATED
    yield ""
    yield "A file of answers in place of a model, for tests and for trying a graph: `AGENT_GRAPH_SCRIPT` names it (or"
    yield "`script` in `settings.toml`). It is read when the program starts; one that is wrong is `SETTING_INVALID`,"
    yield "and nothing is created."
    yield ""
    yield "```json"
    yield example
    yield "```"
    yield ""
    yield "The first of `replies` that fits the call is given, else `default`; where there is none, the call fails with"
    yield "`MODEL_REFUSED`. A reply has exactly one of `text`, `json`, `error` and `tool_calls`. The `code` of an"
    yield "error is one of " + _listed(sorted(ERRORS)) + "."
    yield ""
    yield "`when` is looked for in the last user message as it is sent, its line breaks included (a refusal shows them"
    yield "as spaces). When an answer is to be mended, that last message is the request to mend it."
    yield ""
    yield "| field | type | default | meaning |"
    yield "|---|---|---|---|"
    for f in fields(Reply):
        default = "" if f.name in ANSWERS or f.default is None or f.default == "" else f"`{f.default}`"
        kind = "any JSON" if f.name == "json" else TYPE_NAMES[SCRIPT_FIELDS[f.name]]
        yield f"| `{f.name}` | {kind} | {default} | {_meaning(f.name)} |"


def _meaning(name: str) -> str:
    """The docstring under a field."""
    under = rf'^    {name}: [^\n]*\n    """(.*?)"""'
    found = re.search(under, inspect.getsource(Reply), flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"the field {name} of a reply says nothing"
    text = " ".join(found[1].replace("``", "`").split())
    return text.replace("None = without end", "left out, without end").replace("None counts", "Left out, it counts")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def policy_page() -> str:
    return "\n".join(_policy_lines()) + "\n"


def _policy_lines() -> Iterator[str]:
    yield "# Rules of a policy profile"
    yield ""
    yield "<!-- written from the code by `make golden` -->"
    yield ""
    yield "How to use them: [hold graphs to a policy](../howto/set-a-policy.md). What a profile does not name"
    yield "it does not bound; `strict` is what the last column says, `baseline` names none."
    yield ""
    yield "| rule | takes | a caller may | bounds | in `strict` |"
    yield "|---|---|---|---|---|"
    strict = BUILT_IN["strict"].describe()
    for name in NAMES:
        takes, tighter = _SENSES[SENSES[name]]
        value = strict.get(name, "")
        shown = ", ".join(map(str, value)) if isinstance(value, list) else "yes" if value is True else str(value)
        yield f"| `{name}` | {takes} | {tighter} | {MEANINGS[name]} | {shown} |"


_SENSES = {
    "most": ("a number", "lower it"),
    "only": ("a list", "leave some out"),
    "need": ("a list", "add some"),
    "flag": ("true or false", "demand it"),
    "soft": ("a list of rules", "leave some out"),
}

PAGES = {
    "tools": tools_page,
    "nodes": nodes_page,
    "errors": errors_page,
    "settings": settings_page,
    "script": script_page,
    "policy": policy_page,
}
