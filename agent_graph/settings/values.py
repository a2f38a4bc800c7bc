"""Reads one setting from its text: each function gives the value, or ValueError says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent_graph.errors import SettingInvalid
from agent_graph.llm.hosts import parse_host, parse_openai

MEMORY: Final = ":memory:"
"""The data folder that is none: everything is gone when the process ends."""


def text(value: str) -> str:
    """A text without the space around it."""
    return value.strip()


def folder(value: str) -> Path | None:
    """A folder; None for `MEMORY`."""
    return None if value.strip() == MEMORY else path(value)


def path(value: str) -> Path:
    """A path, absolute."""
    return Path(value).expanduser().absolute()


def path_or_none(value: str) -> Path | None:
    """A path, absolute; None for an empty text."""
    return path(value) if value else None


def file(value: str) -> Path | None:
    """A file that is there; None for an empty text."""
    named = path(value) if value else None
    if named is not None and not named.is_file():
        raise ValueError(f"there is no file {named}")
    return named


def host(value: str) -> str:
    """Ollama's address, in which no secret stands."""
    return _address(value, parse_host, key="OLLAMA_API_KEY")


def openai_host(value: str) -> str:
    """The base of an OpenAI-style server, in which no secret stands."""
    return _address(value, parse_openai, key="OPENAI_API_KEY")


def _address(value: str, parse: Callable[[str], object], *, key: str) -> str:
    if "@" in value.partition("://")[2] or "@" in value.partition("/")[0]:
        raise ValueError(f"it holds a user name or password; a key goes into {key}")
    try:
        parse(value)
    except SettingInvalid as wrong:
        raise ValueError(wrong.details.get("reason", wrong.message)) from None
    return value.strip()


def count(value: str) -> int:
    """A whole number above 0."""
    digits = value.strip().replace("_", "")
    if not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        raise ValueError("it must be a whole number above 0")
    return int(digits)


def bound(value: str) -> int:
    """A whole number, 0 for no bound."""
    return 0 if value.strip() == "0" else count(value)


def one_of(*known: str, later: tuple[str, ...] = ()) -> Callable[[str], str]:
    """The values that work, and those that are named in the contract while nothing acts on them yet."""

    def parse(value: str) -> str:
        name = value.strip().lower()
        if name in later:
            raise ValueError(f"{name!r} is not there yet; it can be {', '.join(known)}")
        if name not in known:
            raise ValueError(f"it can be {', '.join(known)}{suggestion(name, known)}")
        return name

    return parse


def toolsets(value: str) -> tuple[str, ...]:
    """Names by comma, each once."""
    one = one_of("core", "author", "test", later=("connect",))
    return tuple(dict.fromkeys(one(name) for name in value.split(",") if name.strip())) or ("core",)


def names(value: str) -> tuple[str, ...]:
    """Names by comma, each once."""
    return tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


def suggestion(name: str, known: tuple[str, ...]) -> str:
    """What was probably meant, as the end of a sentence."""
    from difflib import get_close_matches  # here: only a mistake needs it

    close = get_close_matches(name.lower(), known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
