"""An edit of an approval's subject at the command line: what is to be in its place, as a patch, and how it differs."""

from __future__ import annotations

import asyncio
import difflib
import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent_graph.cli.asking import can_ask
from agent_graph.cli.output import plain, pretty
from agent_graph.cli.sources import read_json, read_text
from agent_graph.core.jsonvalue import JsonObject, JsonValue, parse_json
from agent_graph.core.limits import Limits
from agent_graph.core.patch import PatchFailed, applied
from agent_graph.errors import InvalidArgument


async def patch_for(subject: JsonValue, *, patch: str, replacement: str, limits: Limits) -> list[JsonObject]:
    """The JSON Patch of an edit: `patch` is its text, or the name of a file after ``@``; `replacement` names a file
    (``-`` is stdin) that holds what is to be in the subject's place. With neither, the person edits it.

    Raises `InvalidArgument` when that is no patch, or nobody can be asked, and what reading raises.
    """
    if patch and replacement:
        raise InvalidArgument("give --patch or --subject, not both", argument="patch")
    if patch:
        given = _patch(patch, limits)
        if not isinstance(given, list) or not all(isinstance(step, dict) for step in given):
            raise InvalidArgument("a patch is a list of steps, as in RFC 6902", argument="patch")
        return [step for step in given if isinstance(step, dict)]
    text = read_text(replacement, limits=limits) if replacement else await _typed(subject)
    return [{"op": "replace", "path": "", "value": _read(text, like=subject, limits=limits)}]


def difference(subject: JsonValue, patch: Sequence[JsonObject]) -> str:
    """What a patch changes, line by line; "" where it does not fit: whoever applies it says so."""
    try:
        return differing(subject, applied(subject, patch, max_bytes=16 * 1024 * 1024))
    except PatchFailed:
        return ""


def differing(before: JsonValue, after: JsonValue) -> str:
    """Two subjects line by line, as a unified difference."""
    old, new = (plain(pretty(value)).split("\n") for value in (before, after))
    return "\n".join(difflib.unified_diff(old, new, "as it was asked", "as it goes on", lineterm=""))


def _patch(patch: str, limits: Limits) -> JsonValue:
    bounds = {"max_bytes": limits.input_bytes, "max_depth": limits.json_depth}
    return read_json(patch[1:], **bounds) if patch.startswith("@") else parse_json(patch, **bounds)


def _read(text: str, *, like: JsonValue, limits: Limits) -> JsonValue:
    """A text is taken as it is in place of a text; anything else is JSON."""
    if isinstance(like, str):
        return text.removesuffix("\n")
    return parse_json(text, max_bytes=limits.input_bytes, max_depth=limits.json_depth)


async def _typed(subject: JsonValue) -> str:
    """The subject as the person leaves it in their editor."""
    if not can_ask():
        raise InvalidArgument("say what the subject is to be: --subject FILE or --patch JSON", argument="subject")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / ("subject.txt" if isinstance(subject, str) else "subject.json")
        file.write_text(pretty(subject), encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(file))
            code = await process.wait()
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"the editor {editor!r} cannot be started: {error}", argument="subject") from error
        if code:
            raise InvalidArgument("the editor ended with an error; nothing was changed", argument="subject")
        return file.read_text(encoding="utf-8")
