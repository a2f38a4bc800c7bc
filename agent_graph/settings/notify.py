"""The settings of what is told outside: a URL and a program, both the operator's, and what they hear of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from agent_graph.connect.base import KINDS
from agent_graph.connect.signing import key_of
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import SettingInvalid
from agent_graph.settings import values as read
from agent_graph.settings.http import is_loopback
from agent_graph.settings.setting import Setting

MOST_TIMEOUT_MS: Final = 60_000
MOST_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """Made by `notify_settings` only."""

    url: str = field(repr=False)
    """Where a notice is posted; not shown, since whoever knows such an address may often post to it."""
    secret: tuple[bytes, ...] = field(repr=False)
    """The keys it is signed with: several while one takes the other's place."""
    plain_http: bool
    ca_file: Path | None
    command: tuple[str, ...]
    """A program and its arguments."""
    events: tuple[str, ...]
    text: bool
    timeout_ms: int
    tries: int

    @property
    def loopback(self) -> bool:
        """The URL is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def where(self) -> str:
        """The URL without what may be a secret in it; "" without one."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/..." if self.url else ""

    def describe(self) -> JsonObject:
        """What is set up, for `agent-graph doctor`."""
        return {"webhook": self.where, "command": list(self.command[:1]), "events": list(self.events)}


def _url(value: str) -> str:
    text = value.strip()
    if not text:
        return ""
    wrong = ValueError("it is a URL that begins with https://, or with http:// on this machine")
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise wrong from None
    if not known or not text.isascii() or any(letter.isspace() for letter in text):
        raise wrong
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("it is a URL without user, password and fragment")
    return text


def _secret(value: str) -> tuple[bytes, ...]:
    return tuple(key_of(one) for one in value.split())


def _argv(value: str) -> tuple[str, ...]:
    """A program and its arguments, as a JSON list: nothing splits them, and no shell sees them."""
    try:
        argv = json.loads(value) if value else []
    except ValueError:
        argv = None
    if not isinstance(argv, list) or not all(isinstance(part, str) and "\0" not in part for part in argv):
        raise ValueError('it is a list of texts, the program first: ["notify-me", "--quiet"]')
    if argv and not argv[0]:
        raise ValueError("its first text names the program")
    return tuple(argv)


def _events(value: str) -> tuple[str, ...]:
    one = read.one_of(*KINDS)
    return tuple(dict.fromkeys(one(name) for name in value.split(",") if name.strip()))


def _switch(value: str) -> bool:
    return read.one_of("yes", "no")(value) == "yes"


def _at_most(most: int) -> Any:
    def parse(value: str) -> int:
        number = read.count(value)
        if number > most:
            raise ValueError(f"it is at most {most}")
        return number

    return parse


def _notify(name: str, meaning: str, parse: Any, default: str = "", *, secret: bool = False) -> Setting:
    env = f"AGENT_GRAPH_NOTIFY_{name.upper()}"
    return Setting(f"notify_{name}", meaning, parse, default=default, env=env, secret=secret, as_json=parse is _argv)


NOTIFY: Final[tuple[Setting, ...]] = (
    _notify("url", "where approvals and ends of runs are told to, by signed POST; https, or http on this machine", _url,
            secret=True),
    _notify("secret", "what that is signed with: `whsec_` and base64, or a text of 24 bytes or more without spaces; "
            "two with a space between them while one replaces the other", _secret, secret=True),
    _notify("plain_http", "yes lets `notify.url` be http on another machine too", _switch, "no"),
    _notify("ca_file", "a file of certificates that `notify.url` is held to, in place of the system's", read.file),
    _notify("command", "a program that is told too: a list of it and its arguments, never a shell's line", _argv),
    _notify("events", "what is told of, by comma", _events, ",".join(KINDS)),
    _notify("text", "yes tells prompt and subject of an approval too", _switch, "no"),
    _notify("timeout_ms", "milliseconds that one try may take, 60000 at most", _at_most(MOST_TIMEOUT_MS), "10000"),
    _notify("tries", "tries after which one notice is given up, 100 at most", _at_most(MOST_TRIES), "30"),
)  # fmt: skip


def notify_settings(values: Mapping[str, Any]) -> NotifySettings:
    """Them as one. Raises `SettingInvalid` for a URL without a secret, and for one that is neither https nor on this
    machine, unless that is wanted."""
    notify = NotifySettings(**{f.name: values[f"notify_{f.name}"] for f in fields(NotifySettings)})
    if notify.url and not notify.secret:
        raise SettingInvalid(
            "notify.url is set, and notify.secret is not: without a signature a receiver could believe anybody. "
            "Put one into AGENT_GRAPH_NOTIFY_SECRET.",
            setting="notify_secret",
        )
    if notify.url.startswith("http://") and not (notify.loopback or notify.plain_http):
        raise SettingInvalid(
            "notify.url is http on another machine: whoever is on the way could read and change it. Use https, or set "
            "notify.plain_http to yes.",
            setting="notify_url",
        )
    return notify
