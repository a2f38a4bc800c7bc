"""`validate`: what is wrong with a graph in a file, line by line, and its repair."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_graph.cli import sources
from agent_graph.cli.desk import Desk
from agent_graph.cli.documents import Document, Place, document, spec_of, write_back
from agent_graph.cli.findings import counted, github, line, sarif
from agent_graph.cli.options import AsJson, DataDir, OutFile, settings_of
from agent_graph.cli.output import DONE, REFUSED, finish, give, one_line, pretty, refuse, say
from agent_graph.core.jsonvalue import JsonObject, compact
from agent_graph.core.patch import PatchFailed
from agent_graph.errors import AgentGraphError, InvalidArgument

if TYPE_CHECKING:
    from agent_graph.settings import Settings

_ROUNDS: Final = 200
"""Repairs made one after the other, at most."""
LEVELS: Final = ("structure", "semantic", "strict")
ABSENT: Final = "SUBGRAPH_NOT_FOUND"
MENDED: Final = ("error", "warning")
"""What `--fix` repairs: a remark (info) may describe what was meant, and its repair changes what a graph does."""
FORMATS: Final = ("text", "json", "sarif", "github")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("validate")(validate)


def validate(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON or YAML; - reads stdin.", show_default=False)],
    *, level: Annotated[str, typer.Option(help="structure, semantic or strict (no warnings).")] = "semantic",
    fix: Annotated[bool, typer.Option("--fix", help="Repair errors and warnings; of stdin, print the result.")] = False,
    fix_all: Annotated[bool, typer.Option("--fix-all", help="Make the repairs of remarks (info) too.")] = False,
    kind: Annotated[str, typer.Option("--format", help="text, json, sarif or github.")] = "text",
    output: OutFile = None, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Check a graph without storing it: everything that is wrong at once, with its place and its repair."""
    kind = "json" if as_json else kind
    fixes = (*MENDED, "info") if fix_all else MENDED if fix else ()

    async def work() -> int:
        _known("level", level, LEVELS)
        _known("format", kind, FORMATS)
        settings = settings_of(data_dir)
        sources.check_no_template(file, data_dir=settings.data_dir)
        found = sources.read_document(file, limits=settings.limits)
        async with AsyncExitStack() as opened:
            desk, answer = await looked_into(opened, found, level, settings=settings)
            if fixes and answer["ok"]:
                found, answer = await _repaired(desk, found, answer, level=level, output=output, severities=fixes)
        if not answer["ok"]:
            return refuse(answer, as_json=kind == "json")
        _tell(found, answer, kind=kind, output=None if fixes else output, silent=bool(fixes) and file == sources.STDIN)
        return DONE if answer["data"]["valid"] else REFUSED

    finish(work(), as_json=kind == "json")


def _known(name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise InvalidArgument(f"--{name} can be {', '.join(known)}, not {given!r}", argument=name)


async def looked_into(
    opened: AsyncExitStack, found: Document, level: str, *, settings: Settings
) -> tuple[Desk, Any]:  # fmt: skip
    """The answer, and the desk it came from: the data folder's where the graph names others that may be stored there,
    if there is one; it is opened for nothing else, and nothing is stored."""
    from agent_graph.app import DATABASE
    from agent_graph.cli.graphs import nowhere

    desk = await opened.enter_async_context(nowhere())
    answer = await _checked(desk, found, level)
    missing = [one for one in answer["data"]["issues"] if one["code"] == ABSENT] if answer["ok"] else []
    folder = settings.data_dir
    if not missing or folder is None:
        return desk, answer
    if (folder / DATABASE).exists():
        try:
            there = await opened.enter_async_context(Desk(settings, drives=False, remark=say))
            return there, await _checked(there, found, level)
        except AgentGraphError as error:
            why = f"the data folder {folder} cannot be looked into: {error.message}"
    else:
        why = f"there is no data folder {folder} to look into (--data-dir names another)"
    for one in missing:
        one["message"] = f"{one['message']}; {why}"
    return desk, answer


async def _checked(desk: Desk, found: Document, level: str) -> Any:
    return await desk.call("graph_validate", {"spec": spec_of(found) or {"name": ""}, "level": level})


async def _repaired(
    desk: Desk, found: Document, answer: Any, *, level: str, output: Path | None, severities: Sequence[str]
) -> tuple[Document, Any]:  # fmt: skip
    """The repairs that were announced and no others, one after the other, each checked; then the file is written, or
    printed where it came by stdin. What a repair brings to light is shown, and left to the next time."""
    before, made = found.text, 0
    announced = Counter(_key(issue) for issue in _mendable(answer, severities))
    for _ in range(_ROUNDS):
        issue = next((one for one in _mendable(answer, severities) if announced[_key(one)] > 0), None)
        if issue is None:
            break
        announced[_key(issue)] -= 1
        try:
            text = found.mended(issue["fix"])
        except PatchFailed as error:
            say(f"not repaired: {issue['code']} at {issue['pointer'] or '/'}: {one_line(str(error))}")
            continue
        found = document(found.name, text.encode(), limits=desk.settings.limits)
        answer = await _checked(desk, found, level)
        say(f"repaired: {issue['code']} at {issue['pointer'] or '/'}: {one_line(str(issue['message']))}")
        made += 1
    if made:
        say(f"{made} repair{'s' if made > 1 else ''} made")
    if output is not None or found.name == sources.named(sources.STDIN):
        give(found.text, to=output)
    elif found.text != before:
        write_back(Path(found.name), found.text, before=before.encode())
    return found, answer


def _mendable(answer: Any, severities: Sequence[str] = MENDED) -> list[Any]:
    """The findings with a repair, each repair once."""
    fixed = {compact(one["fix"]): one for one in answer["data"]["issues"]
             if one.get("fix") and one["severity"] in severities}  # fmt: skip
    return list(fixed.values())


def _key(issue: Any) -> tuple[str, str, str]:
    """What stays of an issue when others before it in the file go."""
    return issue["code"], issue.get("node_id", ""), issue["message"]


def _tell(found: Document, answer: Any, *, kind: str, output: Path | None, silent: bool) -> None:
    """The findings: for people on stderr, in every other form on stdout, unless that has the graph on it."""
    issues: list[JsonObject] = answer["data"]["issues"]
    places = found.places({str(one) for issue in issues for one in (issue["pointer"], *_related(issue))})
    issues.sort(key=lambda issue: places[str(issue["pointer"])])
    if kind == "text":
        for issue in issues:
            _say_line(line(found.name, issue, places[str(issue["pointer"])]), str(issue["severity"]))
            if issue.get("fix"):
                say(f"    repair: {compact(issue['fix'])}")
        _conclude(found, answer, silent=silent)
    elif not silent:
        give(_formatted(found, answer, places, kind=kind), to=output)


def _formatted(found: Document, answer: Any, places: dict[str, Place], *, kind: str) -> str:
    issues = answer["data"]["issues"]
    if kind == "sarif":
        return pretty(sarif(found.name, issues, places))
    if kind == "github":
        return "\n".join(github(found.name, issue, places[issue["pointer"]]) for issue in issues)
    for issue in issues:
        issue["line"], issue["column"] = places[issue["pointer"]]
    return pretty(answer)


def _conclude(found: Document, answer: Any, *, silent: bool) -> None:
    data = answer["data"]
    counts = counted(data["counts"])
    fixable = len(_mendable(answer))
    hint = f"; --fix makes {fixable} of the repairs" if fixable else ""
    if not data["valid"]:
        say(f"SPEC_INVALID: {found.name} is not valid: {counts}{hint}")
        return
    if not silent:
        version = data.get("graph_version", f"as far as its {data['level']} goes")
        give(f"{data.get('graph_id', found.name)} is valid: {version}")
    if counts:
        say(f"{counts}{hint}")


def _related(issue: JsonObject) -> list[str]:
    related = issue.get("related")
    return [str(one) for one in related] if isinstance(related, list) else []


def _say_line(text: str, severity: str) -> None:
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        say(text)
        return
    colour = {"error": "red", "warning": "yellow"}.get(severity, "cyan")
    where, word, rest = text.partition(f": {severity} ")
    typer.secho(where, err=True, nl=False, bold=True)
    typer.secho(word, err=True, nl=False, fg=colour, bold=True)
    typer.secho(rest, err=True)
