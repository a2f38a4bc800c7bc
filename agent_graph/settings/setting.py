"""One thing that can be set, and where it is looked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agent_graph.core.classes import dataclass

GROUPS: Final = ("retention", "http", "notify")
"""Settings whose names begin so stand in a table of that name in settings.toml."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set. `name` is its field in `Settings`."""

    name: str
    meaning: str
    parse: Callable[[str], Any]
    """Turns the text into the value of the field; ValueError says what is wrong with it."""
    default: str = ""
    flag: str = ""
    env: str = ""
    secret: bool = False
    """Shown by nothing: not by `Settings.describe`, not in a refusal."""
    in_file: bool = True
    as_json: bool = False
    """A list in settings.toml reaches `parse` as JSON; else joined by commas."""

    @property
    def key(self) -> str:
        """Its key in settings.toml; those of `GROUPS` are tables."""
        group, _, rest = self.name.partition("_")
        return f"{group}.{rest}" if group in GROUPS else self.name
