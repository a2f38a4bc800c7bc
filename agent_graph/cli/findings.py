"""The checker's findings in the forms that others read: a line, GitHub's annotations, SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_graph import __version__
from agent_graph.cli.documents import Document, Place
from agent_graph.cli.output import exit_code, issues, one_line, refuse, say
from agent_graph.core.jsonvalue import JsonObject

_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}
_COMMANDS: Final = {"error": "error", "warning": "warning", "info": "notice"}


def line(file: str, issue: Mapping[str, Any], at: Place) -> str:
    """``file:line:column: severity CODE at /pointer: message``, as compilers write it and editors read it."""
    where = f"{file}:{at[0]}:{at[1]}"
    pointer = issue["pointer"] or "/"
    return f"{where}: {issue['severity']} {issue['code']} at {pointer}: {one_line(str(issue['message']))}"


def lines(found: Document, given: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each finding in its line, in the order of the file."""
    places = found.places({str(issue["pointer"]) for issue in given})
    ordered = sorted(given, key=lambda issue: places[str(issue["pointer"])])
    return [line(found.name, issue, places[str(issue["pointer"])]) for issue in ordered]


def counted(severities: Mapping[str, int]) -> str:
    """``2 errors, 1 warning``"""
    return ", ".join(f"{number} {name}{'s' if number > 1 and name != 'info' else ''}"
                     for name, number in severities.items() if number)  # fmt: skip


def refuse_graph(envelope: JsonObject, found: Document | None, *, as_json: bool) -> int:
    """Say why a graph is refused, in a file at the lines of it; returns the exit code."""
    given: list[Any] = list(issues(envelope))
    if as_json or found is None or not given:
        return refuse(envelope, as_json=as_json)
    for text in lines(found, given):
        say(text)
    number = {name: sum(1 for one in given if one["severity"] == name) for name in _LEVELS}
    code = str(envelope["error_code"])
    say(f"{code}: {found.name} is not valid: {counted(number)}")
    return exit_code(code)


def github(file: str, issue: Mapping[str, Any], at: Place) -> str:
    """A workflow command that GitHub shows at the line."""
    command = _COMMANDS[issue["severity"]]
    parts = {"file": file, "line": str(at[0]), "col": str(at[1]), "title": issue["code"]}
    given = ",".join(f"{name}={_property(value)}" for name, value in parts.items())
    return f"::{command} {given}::{_data(issue['message'])}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(file: str, issues: Sequence[Mapping[str, Any]], places: Mapping[str, Place]) -> JsonObject:
    """A log of one run of this checker."""
    codes = sorted({issue["code"] for issue in issues})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "agent-graph", "version": __version__,
                "rules": [{"id": code} for code in codes],
            }},
            "columnKind": "unicodeCodePoints",
            "results": [_result(file, issue, places, codes) for issue in issues],
        }],
    }  # fmt: skip


def _result(
    file: str, issue: Mapping[str, Any], places: Mapping[str, Place], codes: Sequence[str]
) -> JsonObject:  # fmt: skip
    body: JsonObject = {
        "ruleId": issue["code"], "ruleIndex": codes.index(issue["code"]), "level": _LEVELS[issue["severity"]],
        "message": {"text": issue["message"]},
        "locations": [_location(file, issue["pointer"], places[issue["pointer"]])],
    }  # fmt: skip
    if issue["related"]:
        body["relatedLocations"] = [_location(file, one, places[one]) for one in issue["related"]]
    return body


def _location(file: str, pointer: str, at: Place) -> JsonObject:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": file.replace("\\", "/")},
            "region": {"startLine": at[0], "startColumn": at[1]},
        },
        "logicalLocations": [{"fullyQualifiedName": pointer or "/"}],
    }
