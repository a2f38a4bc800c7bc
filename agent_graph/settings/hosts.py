"""The model hosts that settings name: ``[hosts.NAME]`` in settings.toml, or ``AGENT_GRAPH_HOSTS__NAME__FIELD``.

A host is known by its name alone to everything a graph can say: its address and its key come from here only. A key
stands in neither place: `key_env` is the name of the environment variable that holds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, Literal, NoReturn

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import SettingInvalid
from agent_graph.llm.hosts import HostAddress, parse_host, parse_openai
from agent_graph.settings import values as read

PREFIX: Final = "AGENT_GRAPH_HOSTS__"
KINDS: Final = ("ollama", "openai_compatible")
MOST: Final = 64
FIELDS: Final[Mapping[str, str]] = {
    "kind": "`ollama`, or `openai_compatible` for whatever serves `/v1/chat/completions`; needed",
    "url": "its address; of an `openai_compatible` one with the scheme, and `/v1` where no path is given; needed",
    "parallel": "calls in flight at once, from every run; default 4",
    "model": "the model asked there where none is named; default: one the host lists",
    "key_env": "the environment variable that holds its key, sent as a bearer token; default: no key",
}
"""What can be said of a host."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
"""No dot and no capital: a model's own name such as ``hf.co/Owner/Model`` is never taken for a host."""
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
"""Capitals only: a key put here by mistake is hardly ever one, and must not be shown as a name."""
_SECRETS: Final = ("key", "api_key", "token", "password", "secret", "authorization")


@dataclass(frozen=True, slots=True)
class HostSetting:
    """One named host. `model` is asked where a node says ``NAME/`` or the default host has to choose."""

    name: str
    kind: Literal["ollama", "openai_compatible"]
    address: HostAddress
    parallel: int = 4
    """Calls in flight at once, from every run of this process."""
    model: str = ""
    key_env: str = ""
    """The environment variable that holds the key; "" where none is sent."""
    key: str = field(default="", repr=False)
    source: str = ""

    @property
    def lacks_key(self) -> bool:
        """A key belongs to it and its variable is not set."""
        return bool(self.key_env) and not self.key

    def describe(self) -> JsonObject:
        """What may be shown: never the key."""
        state = "none" if not self.key_env else f"{self.key_env}, {'not set' if self.lacks_key else 'set, not shown'}"
        return {
            "kind": self.kind, "url": self.address.url, "parallel": self.parallel, "model": self.model, "key": state,
            "source": self.source,
        }  # fmt: skip


def _ollama(text: str) -> HostAddress:
    return parse_host(text, setting="url", key="key_env")


def _openai(text: str) -> HostAddress:
    return parse_openai(text, setting="url", key="key_env")


def read_hosts(in_file: Mapping[str, Any], environ: Mapping[str, str], *, file_name: str) -> tuple[HostSetting, ...]:
    """Every named host, in the order of their names. Raises `SettingInvalid` by the key or variable at fault."""
    said: dict[str, dict[str, tuple[str, str, str]]] = {}
    for name, table in in_file.items():
        if not isinstance(table, dict):
            _refuse(f"{file_name}: hosts.{name}", "it is a table with kind and url", f"hosts.{name}")
        said[name] = {key: (_text(value, name, key, file_name), file_name, f"{file_name}: hosts.{name}.{key}")
                      for key, value in table.items()}  # fmt: skip
    for variable, text in environ.items():
        name, mark, key = variable.removeprefix(PREFIX).lower().rpartition("__")
        if variable.startswith(PREFIX) and text:
            if not mark:
                _refuse(variable, f"it is {PREFIX}NAME__FIELD", variable)
            said.setdefault(name, {})[key] = (text, f"environment {variable}", variable)
    if len(said) > MOST:
        _refuse("hosts", f"there may be {MOST}, and there are {len(said)}", "hosts")
    return tuple(_host(name, said[name], environ) for name in sorted(said))


def _text(value: Any, name: str, key: str, file_name: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        _refuse(f"{file_name}: hosts.{name}.{key}", "it has the wrong type", f"hosts.{name}.{key}")
    return str(value)


def _host(name: str, said: Mapping[str, tuple[str, str, str]], environ: Mapping[str, str]) -> HostSetting:
    at = f"hosts.{name}"
    if not _NAME.fullmatch(name):
        _refuse(at, "a host is named with small letters, digits, - and _, at most 32", at)
    known = tuple(FIELDS)
    for key, (_, _, where) in said.items():
        if key in _SECRETS:
            _refuse(where, "a key is not written here: put it into an environment variable, name that in key_env", at)
        if key not in known:
            _refuse(where, f"a host has {', '.join(known)}{read.suggestion(key, known)}", at)
    for key in ("kind", "url"):
        if key not in said:
            _refuse(at, f"a host needs {key}", at)
    kind = _read(said, "kind", read.one_of(*KINDS))
    address = _read(said, "url", _openai if kind == "openai_compatible" else _ollama)
    key_env = _read(said, "key_env", _variable, "")
    return HostSetting(
        name, kind, address, _read(said, "parallel", read.count, 4), _read(said, "model", read.text, ""), key_env,
        environ.get(key_env, "").strip() if key_env else "",
        next(iter(said.values()))[1],
    )  # fmt: skip


def _read(said: Mapping[str, tuple[str, str, str]], key: str, parse: Callable[[str], Any], absent: Any = None) -> Any:
    if key not in said:
        return absent
    text, _, where = said[key]
    shown = where if "@" in text or key == "key_env" else f"{where} is {text!r}"
    try:
        return parse(text)
    except SettingInvalid as wrong:
        why = str(wrong.details.get("reason") or wrong.message)
        _refuse(shown, why, where)
    except ValueError as wrong:
        _refuse(shown, str(wrong), where)


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text.strip()):
        raise ValueError("it is the name of an environment variable, in capitals, and not what stands in it")
    return text.strip()


def _refuse(where: str, why: str, setting: str) -> NoReturn:
    raise SettingInvalid(f"{where}: {why}.", setting=setting)
