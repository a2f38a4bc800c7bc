"""Whether the settings a client asks for are those in force in the process that serves it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agent_graph.llm.hosts import parse_host, parse_openai
from agent_graph.settings import MEMORY, SETTINGS, Settings, load

FLAG = "flag"


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
            where = setting.flag if asked[name][1] == FLAG else setting.env
            in_force = str(getattr(settings, name) or "")
            found.append(f"{name} is {in_force!r} there and {asked[name][0]!r} here ({where})")
    return tuple(found)


def _comparable(name: str, value: object) -> object:
    if name == "ollama_host":
        return parse_host(str(value)).url
    if name == "openai_base_url":
        return parse_openai(str(value)).url
    return value
