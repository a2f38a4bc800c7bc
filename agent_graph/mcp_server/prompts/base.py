"""What a prompt is: fixed words for the model, and beside them, never inside them, what the person gave.

A person's text is put into no sentence: it stands in a message of its own, as a value in JSON. So nothing in it is
read as a placeholder, as markup or as one of our words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject

MOST_CHARACTERS: Final = 200_000
"""Characters of one argument."""


@dataclass(frozen=True, slots=True)
class Argument:
    """Something the person is asked for. `completes` says what it names, where that can be completed."""

    name: str
    description: str
    required: bool = False
    completes: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. `about` is the tool, with its arguments, whose answer comes along; an argument that is a name in
    braces is what the person gave under that name."""

    title: str
    description: str
    arguments: tuple[Argument, ...]
    words: str
    about: tuple[str, Mapping[str, str]] | None = None

    def reads(self, given: Mapping[str, str]) -> tuple[str, JsonObject] | None:
        """The tool to call for this prompt and its arguments."""
        if self.about is None:
            return None
        tool, arguments = self.about
        return tool, {name: given[value[1:-1]] for name, value in arguments.items()}
