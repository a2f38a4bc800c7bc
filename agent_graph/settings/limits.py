"""The limits of `core.limits` as settings: ``AGENT_GRAPH_LIMITS__<NAME>``, or ``[limits]`` in settings.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from agent_graph.core.limits import DEFAULTS, LATER, Limits, ceiling
from agent_graph.errors import SettingInvalid
from agent_graph.settings import values as read

PREFIX: Final = "AGENT_GRAPH_LIMITS__"
DEFAULT: Final = "default"


def read_limits(environ: Mapping[str, str], in_file: Mapping[str, Any], sources: dict[str, str], *,
    file_name: str,
) -> Limits:  # fmt: skip
    """The defaults with what the environment and settings.toml change; every name known, no value above its ceiling."""
    known = tuple(f.name for f in fields(Limits))
    asked = {name.lower(): (str(value), file_name, f"{file_name}: limits.{name}") for name, value in in_file.items()}
    for variable, text in environ.items():
        if variable.startswith(PREFIX) and text:
            asked[variable.removeprefix(PREFIX).lower()] = (text, f"environment {variable}", variable)

    changed: dict[str, int] = {}
    for name, (text, source, where) in asked.items():
        if name in LATER:
            raise SettingInvalid(f"{where} is set, but {LATER[name]}. Unset it.", setting=f"limits.{name}")
        if name not in known:
            from difflib import get_close_matches

            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {PREFIX}{close[0].upper()}?" if close else ""
            raise SettingInvalid(f"{where}: there is no such limit.{hint}", setting=f"limits.{name}", known=list(known))
        changed[name] = _limit(name, text, where)
        sources[f"limits.{name}"] = source
    for name in known:
        sources.setdefault(f"limits.{name}", DEFAULT)
    return Limits(**{name: changed.get(name, getattr(DEFAULTS, name)) for name in known})


def _limit(name: str, text: str, where: str) -> int:
    top = ceiling(name)
    try:
        value = read.count(text)
    except ValueError as wrong:
        raise SettingInvalid(f"{where} is {text!r}: {wrong}.", setting=f"limits.{name}", ceiling=top) from None
    if value > top:
        raise SettingInvalid(f"{where} is {text}: the ceiling is {top}.", setting=f"limits.{name}", ceiling=top)
    return value
