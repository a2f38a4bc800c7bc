"""What a command prints, and the exit code it ends with: results on stdout, all else on stderr, nothing that a terminal
would obey."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import sys
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import typer

from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.errors import AgentGraphError, InvalidArgument

DONE: Final = 0
REFUSED: Final = 1
WAITING: Final = 3
UNREACHABLE: Final = 4
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells have it."""

_OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys or what turns the reading order: all control characters but newline and tab."""


def plain(text: str) -> str:
    """`text` with nothing in it that a terminal would obey; lone surrogates become question marks."""
    return _OBEYED.sub("", text).encode(errors="replace").decode()


def one_line(text: str, width: int = 0) -> str:
    """`text` on one line, cut to `width` characters where one is given."""
    line = " ".join(plain(text).split())
    return line if not width or len(line) <= width else line[: max(0, width - 3)] + "..."


def say(text: str) -> None:
    """A line for the person, on stderr; where that is closed or full, nobody reads it."""
    if sys.stderr is not None:  # else print would take stdout, which is for results
        with contextlib.suppress(OSError):
            print(plain(text), file=sys.stderr, flush=True)


class OutputLost(Exception):
    """Standard output takes nothing; what it says is the reason."""


def pretty(value: JsonValue) -> str:
    """A value for people: a text as it is, anything else as indented JSON."""
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def give(text: str, *, to: Path | None = None) -> None:
    """The result: to a file, or to stdout byte for byte; only a terminal is spared what it would obey.

    One newline ends it, whether it had one or not. Raises `InvalidArgument` when the file cannot be written,
    `OutputLost` when stdout cannot, BrokenPipeError when its reader has gone.
    """
    text = text if text.endswith("\n") else text + "\n"
    if to is None and sys.stdout is not None and sys.stdout.isatty():
        text = plain(text)
    give_bytes(text.encode(), to=to)


def give_bytes(data: bytes, *, to: Path | None = None) -> None:
    """The same for what is no text. Raises what `give` raises."""
    if to is not None:
        try:
            to.write_bytes(data)
        except OSError as error:
            raise InvalidArgument(f"{to} cannot be written: {error.strerror}", argument="output") from error
        return
    if sys.stdout is None:
        raise OutputLost("it is closed")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error.strerror or str(error)) from error


def give_json(envelope: JsonObject, *, to: Path | None = None) -> None:
    """An envelope: one document of JSON."""
    give(pretty(envelope), to=to)


def table(rows: Iterable[Sequence[object]], *, head: Sequence[str]) -> str:
    """Rows under a head, in columns; empty when there are no rows."""
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    if not cells:
        return ""
    cells.insert(0, list(head))
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells) + "\n"


class _Line(logging.Formatter):
    """A record in one line that a terminal does not obey; with its trace where somebody looks for a bug."""

    def format(self, record: logging.LogRecord) -> str:
        said = f"{record.levelname.lower()}: {one_line(record.getMessage())}"
        if record.exc_info and logging.getLogger().isEnabledFor(logging.DEBUG):
            said += "\n" + plain(record.exc_text or self.formatException(record.exc_info))
        return said


def log_to_stderr(level: str) -> None:
    """Show the log from `level` on, for as long as the command runs."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Line())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


# -- how a command ends --------------------------------------------------------------------------------------------


def finish(work: Coroutine[Any, Any, int], *, as_json: bool) -> NoReturn:
    """Run a command to its exit code. A refusal becomes one line, or an envelope where JSON is asked for."""
    try:
        try:
            code = asyncio.run(work)
        except AgentGraphError as refusal:
            code = refuse(envelope_of(refusal), as_json=as_json)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # whoever read our stdout has seen enough
        _drop()
        code = REFUSED
    except OutputLost as lost:
        _drop()
        say(f"{InvalidArgument.code}: standard output cannot be written: {lost}")
        code = REFUSED
    raise typer.Exit(code)


def _drop() -> None:
    """What stdout still holds is written nowhere, so that leaving does not fail on it."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def envelope_of(refusal: AgentGraphError) -> JsonObject:
    """The envelope of a refusal that no tool answered."""
    body: JsonObject = {"ok": False, "error_code": refusal.code, "error": refusal.message}
    body["retryable"] = refusal.retryable
    return body | ({"details": dict(refusal.details)} if refusal.details else {})


def refuse(envelope: JsonObject, *, as_json: bool) -> int:
    """Say why not; returns the exit code."""
    code = str(envelope.get("error_code", "INTERNAL"))
    if as_json:
        give_json(envelope)
    else:
        say(f"{code}: {one_line(str(envelope.get('error', '')))}")
        for issue in issues(envelope):
            say(issue_line(issue))
    return exit_code(code)


def issues(envelope: JsonObject) -> list[JsonObject]:
    """The findings of the checker in a refusal or an answer."""
    body: Any = envelope.get("data") or envelope.get("details") or {}
    return [issue for issue in body.get("issues", []) if isinstance(issue, dict)]


def issue_line(issue: JsonObject) -> str:
    """A finding in one line, its repair in the next where there is one."""
    from agent_graph.core.jsonvalue import compact

    line = f"  {issue['severity']} {issue['code']} at {issue['pointer'] or '/'}: {one_line(str(issue['message']))}"
    return line + (f"\n    repair: {compact(issue['fix'])}" if issue.get("fix") else "")


def exit_code(code: str) -> int:
    """The exit code of an error code."""
    todo: list[type[AgentGraphError]] = [AgentGraphError]
    while todo:
        kind = todo.pop()
        if kind.code == code and kind is not AgentGraphError:
            return kind.exit_code
        todo += kind.__subclasses__()
    return REFUSED
