"""Whether the settings a client or a command asks for are those in force in the process that serves it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.llm.hosts import parse_host, parse_openai
from agent_graph.settings import MEMORY, SETTINGS, Settings, load

FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that was asked for here, and is another in the process that owns the data folder."""

    name: str
    here: str
    there: str
    where: str
    """The flag or the variable that asks for it."""
    by_flag: bool

    def __str__(self) -> str:
        return f"{self.name} is {self.there!r} there and {self.here!r} here ({self.where})"


def unlike(settings: Settings, theirs: Mapping[str, JsonValue], *, names: Iterable[str]) -> tuple[Difference, ...]:
    """Where a flag or a variable of this process asks for something else than `theirs`, as `Settings.describe` shows
    values, says. What stands in settings.toml is left out: both read the same file."""
    found = []
    for name in names:
        kind, _, where = settings.sources[name].partition(" ")
        here, there = str(getattr(settings, name) or ""), str(theirs.get(name) or "")
        if kind in (FLAG, "environment") and _comparable(name, here) != _comparable(name, there):
            found.append(Difference(name, here, there, where, by_flag=kind == FLAG))
    return tuple(found)


def differences(settings: Settings, asked: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    """A clause for each setting of `asked` (by name: the text, and ``flag`` or ``environment``) that differs.

    What is not asked for never differs. Raises `SettingInvalid` where a text cannot be read.
    """
    table = {setting.name: setting for setting in SETTINGS if setting.name in asked}
    flags = {name: text for name, (text, where) in asked.items() if where == FLAG and name in table}
    variables = {table[name].env: text for name, (text, where) in asked.items() if where != FLAG and name in table}
    ours = {name: value for name, value in os.environ.items() if name not in {s.env for s in SETTINGS}}
    theirs = load({**flags, "data_dir": str(settings.data_dir or MEMORY)}, environ={**ours, **variables})
    found = []
    for name, setting in table.items():
        here, there = _comparable(name, getattr(settings, name)), _comparable(name, getattr(theirs, name))
        if here != there and theirs.named(name):
            by_flag = asked[name][1] == FLAG
            in_force, where = str(getattr(settings, name) or ""), setting.flag if by_flag else setting.env
            found.append(str(Difference(name, asked[name][0], in_force, where, by_flag=by_flag)))
    return tuple(found)


def _comparable(name: str, value: object) -> object:
    if name == "ollama_host":
        return parse_host(str(value)).url
    if name == "openai_base_url":
        return parse_openai(str(value)).url
    return value
