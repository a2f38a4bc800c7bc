"""What the program may be told from outside: flag, else environment, else settings.toml, else default, checked once.

`SETTINGS` is the one table of them; the command line, the reference page and ``agent-graph status`` read it. The limits
of `core.limits` are settings too: ``AGENT_GRAPH_LIMITS__<NAME>``, or ``[limits]`` in settings.toml. Named model hosts
are read by `settings.hosts`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final, Literal

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import Limits, ceiling
from agent_graph.core.policy.book import PolicyBook
from agent_graph.core.redact import Redactor
from agent_graph.errors import SettingInvalid
from agent_graph.settings import values as read
from agent_graph.settings.hosts import HostSetting, read_hosts
from agent_graph.settings.http import HTTP, HttpSettings, http_settings
from agent_graph.settings.limits import DEFAULT, read_limits
from agent_graph.settings.notify import NOTIFY, NotifySettings, notify_settings
from agent_graph.settings.policies import read_book
from agent_graph.settings.redaction import read_redaction
from agent_graph.settings.setting import GROUPS, Setting
from agent_graph.settings.values import MEMORY as MEMORY  # told from here too

FILE_NAME: Final = "settings.toml"
TABLES: Final = ("limits", "hosts", "redaction")
"""Tables of settings.toml with keys of their own."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force. Made by `load` only; `sources` says where each comes from."""

    data_dir: Path | None
    """The data folder, absolute; None when everything stays in memory."""
    model: str
    ollama_host: str
    ollama_api_key: str = field(repr=False)
    ollama_num_parallel: int
    openai_base_url: str
    openai_api_key: str = field(repr=False)
    provider: str
    default_host: str
    """The named host that is asked where a model names none; "" for the provider."""
    script: Path | None
    toolsets: tuple[str, ...]
    policy_profile: str
    policy_overrides: str
    deletion: Literal["anyone", "operator"]
    """Who may delete graphs: assistants too, or the operator alone."""
    synchronous: Literal["full", "normal"]
    """What a commit survives: the loss of power, or only the end of the process."""
    log: str
    door: Literal["auto", "loopback"]
    """How others come in to the owner of the folder: by a socket where the system has them, or by loopback."""
    daemon_idle_ms: int
    """After so long without a client and without work the daemon ends; 0: never."""
    retention_days: int
    retention_runs: int
    retention_bytes: int
    integrity_key: Literal["on", "off"]
    """Whether the data folder has a key that seals what is to be proven; a folder stays as it was begun."""
    integrity_key_path: Path | None
    """Where that key lies; None in the data folder."""
    limits: Limits
    policies: PolicyBook
    """The profiles there are, and which holds."""
    hosts: tuple[HostSetting, ...]
    """The named model hosts, in the order of their names."""
    http: HttpSettings
    """What `serve` does; those of `SETTINGS` whose names begin so."""
    redactor: Redactor
    """What is taken out of all that comes in."""
    notify: NotifySettings
    """Who is told of approvals and ends; likewise."""
    sources: Mapping[str, str]
    """By setting, and by ``limits.<name>``: ``flag --model``, ``environment OLLAMA_HOST``, ``settings.toml`` or
    ``default``."""

    @property
    def volatile(self) -> bool:
        """Nothing is kept."""
        return self.data_dir is None

    @property
    def loopback(self) -> bool:
        """Others come in through loopback, also where a socket could be."""
        return self.door == "loopback"

    @property
    def models_dir(self) -> Path:
        """Where the embedded model's weights are kept: in the data folder, in the default one when there is none."""
        return (self.data_dir or default_data_dir()) / "models"

    def named(self, name: str) -> bool:
        """Somebody asked for this value: it is not the default."""
        return self.sources[name] != DEFAULT

    def describe(self) -> JsonObject:
        """Every setting as {value, source}, secrets masked; limits (with their ceiling) and named hosts in tables."""
        body: JsonObject = {}
        for setting in SETTINGS:
            body[setting.name] = {"value": self._shown(setting), "source": self.sources[setting.name]}
        body["limits"] = {
            f.name: {
                "value": getattr(self.limits, f.name),
                "source": self.sources[f"limits.{f.name}"],
                "ceiling": ceiling(f.name),
                "meaning": f.metadata["meaning"],
            }
            for f in fields(Limits)
        }
        body["hosts"] = {host.name: host.describe() for host in self.hosts}
        body["redaction"] = self.redactor.describe()
        return body

    def _shown(self, setting: Setting) -> Any:
        group, _, rest = setting.name.partition("_")
        value = getattr(getattr(self, group), rest) if group in ("http", "notify") else getattr(self, setting.name)
        if setting.secret:
            return "(set, not shown)" if value else ""
        if setting.name == "data_dir" and value is None:
            return MEMORY
        if isinstance(value, tuple):
            return list(value)
        return "" if value is None else str(value) if isinstance(value, Path) else value


def default_data_dir() -> Path:
    """Where this system keeps a program's data for the user."""
    from platformdirs import user_data_path

    return user_data_path("agent-graph", appauthor=False)


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "data_dir", "the data folder; `:memory:` keeps nothing", read.folder, flag="--data-dir",
        env="AGENT_GRAPH_DATA_DIR", in_file=False,
    ),
    Setting("model", "the model of every node that names none", read.text, flag="--model", env="AGENT_GRAPH_MODEL"),
    Setting(
        "ollama_host", "where Ollama listens, in any form that Ollama takes", read.host,
        default="http://127.0.0.1:11434", flag="--ollama-host", env="OLLAMA_HOST",
    ),
    Setting("ollama_api_key", "sent to that host as a bearer token", read.text, env="OLLAMA_API_KEY", secret=True),
    Setting(
        "ollama_num_parallel", "calls that may be in flight at one Ollama", read.count, default="4",
        env="OLLAMA_NUM_PARALLEL",
    ),
    Setting(
        "openai_base_url", "the OpenAI-style server of provider `openai`, with its `/v1`", read.openai_host,
        default="https://api.openai.com/v1", env="OPENAI_BASE_URL",
    ),
    Setting("openai_api_key", "sent to that server as a bearer token", read.text, env="OPENAI_API_KEY", secret=True),
    Setting(
        "provider", "who answers: auto (Ollama, else the embedded model), ollama, openai, embedded or scripted",
        read.one_of("auto", "ollama", "openai", "embedded", "scripted"),
        default="auto", flag="--provider", env="AGENT_GRAPH_PROVIDER",
    ),
    Setting(
        "default_host", "the named host that is asked for a model without a prefix, where the provider is auto",
        read.text, env="AGENT_GRAPH_DEFAULT_HOST",
    ),
    Setting(
        "script", "a file of answers in place of a model; makes the provider scripted", read.file,
        env="AGENT_GRAPH_SCRIPT",
    ),
    Setting(
        "toolsets", "the tools an assistant is shown, by comma: `core`, `author`, `test`", read.toolsets,
        default="core", flag="--toolsets", env="AGENT_GRAPH_TOOLSETS",
    ),
    Setting(
        "policy_profile", "the profile of rules a graph is held to: baseline, strict or one of your own", read.text,
        default="baseline", env="AGENT_GRAPH_POLICY_PROFILE",
    ),
    Setting(
        "policy_overrides", "how a caller may change it for a check: tighten, or any", read.one_of("tighten", "any"),
        default="tighten", env="AGENT_GRAPH_POLICY_OVERRIDES",
    ),
    Setting(
        "deletion", "who may delete a graph: anyone, or operator (no assistant)", read.one_of("anyone", "operator"),
        default="anyone", env="AGENT_GRAPH_DELETION",
    ),
    Setting(
        "synchronous", "what a stored step survives: full, a power cut; normal, only the end of the process",
        read.one_of("full", "normal"), default="full", env="AGENT_GRAPH_SYNCHRONOUS",
    ),
    Setting(
        "log", "what is logged: debug, info, warning or error", read.one_of("debug", "info", "warning", "error"),
        default="warning", env="AGENT_GRAPH_LOG",
    ),
    Setting("door", "how others reach the folder's owner: auto (by a socket in it, where one can be) or loopback",
            read.one_of("auto", "loopback"), "auto", env="AGENT_GRAPH_DOOR"),
    Setting("daemon_idle_ms", "milliseconds without a client and without work after which the daemon ends; 0: never",
            read.bound, "600000", flag="--idle-ms", env="AGENT_GRAPH_DAEMON_IDLE_MS"),
    Setting("retention_days", "runs that ended so many days ago are pruned; 0: none", read.bound, "0",
            env="AGENT_GRAPH_RETENTION_DAYS"),
    Setting("retention_runs", "all but the so many runs that ended last are pruned; 0: none", read.bound, "0",
            env="AGENT_GRAPH_RETENTION_RUNS"),
    Setting("retention_bytes", "old runs are pruned until the database is no larger; 0: none", read.bound, "0",
            env="AGENT_GRAPH_RETENTION_BYTES"),
    Setting("integrity_key", "on: what is to be proven is sealed; off: nothing is, for as long as the folder lasts",
            read.one_of("on", "off"), "on", env="AGENT_GRAPH_INTEGRITY_KEY"),
    Setting("integrity_key_path", "the file of that key, when it is not to lie in the data folder", read.path_or_none,
            env="AGENT_GRAPH_INTEGRITY_KEY_PATH"),
    *HTTP,
    *NOTIFY,
)  # fmt: skip


# ---------------------------------------------------------------------------------------------- finding all of them


def load(flags: Mapping[str, str | None] | None = None, *, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in force, checked.

    `flags` holds what the command line was given, by setting name; None and "" mean not given, as an empty variable
    does. `environ` is the process's environment unless another is handed in. Raises `SettingInvalid` with the name of
    the flag, variable or key at fault; a secret's value is in no message.
    """
    environ = os.environ if environ is None else environ
    flags = flags or {}
    unknown = set(flags) - {setting.name for setting in SETTINGS}
    if unknown:
        raise SettingInvalid(f"There is no setting {sorted(unknown)[0]!r}.", setting=sorted(unknown)[0])

    sources: dict[str, str] = {}
    values: dict[str, Any] = {"data_dir": _find(SETTINGS[0], flags, environ, {}, sources)}
    in_file = _read_file(values["data_dir"])
    values |= {s.name: _find(s, flags, environ, in_file, sources) for s in SETTINGS[1:]}
    _settle_provider(values, sources)
    limits = read_limits(environ, in_file.get("limits", {}), sources, file_name=FILE_NAME)
    hosts = read_hosts(in_file.get("hosts", {}), environ, file_name=FILE_NAME)
    _settle_default_host(values, sources, hosts)
    book = read_book(values["data_dir"], values["policy_profile"], overrides=values["policy_overrides"])
    http = http_settings({setting.name: values.pop(setting.name) for setting in HTTP})
    notify = notify_settings({setting.name: values.pop(setting.name) for setting in NOTIFY})
    known = (values["ollama_api_key"], values["openai_api_key"], notify.url, *(host.key for host in hosts))
    rules = read_redaction(in_file.get("redaction", {}), environ, known=known, file_name=FILE_NAME)
    return Settings(
        **values, policies=book, limits=limits, hosts=hosts, http=http, notify=notify, redactor=rules, sources=sources
    )  # fmt: skip


def _find(
    setting: Setting, flags: Mapping[str, Any], environ: Mapping[str, str], in_file: JsonObject, sources: dict[str, str]
) -> Any:
    found = (
        (flags.get(setting.name), f"flag {setting.flag}"),
        (environ.get(setting.env) if setting.env else None, f"environment {setting.env}"),
        (in_file.get(setting.name), FILE_NAME),
    )
    for text, source in found:
        if text not in (None, ""):
            sources[setting.name] = source
            return _parse(setting, str(text), source)
    sources[setting.name] = DEFAULT
    if setting.name == "data_dir":
        return default_data_dir()
    return setting.parse(setting.default)


def _parse(setting: Setting, text: str, source: str) -> Any:
    where = f"{FILE_NAME}: {setting.key}" if source == FILE_NAME else source.partition(" ")[2]
    try:
        return setting.parse(text)
    except ValueError as wrong:
        shown = "" if setting.secret or "@" in text else f" is {text!r}"
        raise SettingInvalid(f"{where}{shown}: {wrong}.", setting=setting.name, source=source) from None


def _settle_provider(values: dict[str, Any], sources: dict[str, str]) -> None:
    if values["script"] and values["provider"] == "auto":
        values["provider"], sources["provider"] = "scripted", sources["script"]
    if values["provider"] == "scripted" and not values["script"]:
        raise SettingInvalid(
            "The provider is scripted, and there is no script: name the file in AGENT_GRAPH_SCRIPT.", setting="script"
        )


def _settle_default_host(values: dict[str, Any], sources: Mapping[str, str], hosts: tuple[HostSetting, ...]) -> None:
    """A default host is one of those there are; who says on the command line who answers needs none."""
    name, known = values["default_host"], tuple(host.name for host in hosts)
    if name and name not in known:
        there = f"there are: {', '.join(known)}" if known else f"there is no table [hosts.{name}] in {FILE_NAME}"
        where = sources["default_host"]
        raise SettingInvalid(
            f"default_host ({where}) is {name!r}: no host has that name; {there}.", setting="default_host"
        )
    if values["provider"] != "auto" or sources["ollama_host"].startswith("flag "):
        values["default_host"] = ""


def _read_file(data_dir: Path | None) -> dict[str, Any]:
    """settings.toml as a table; {} when there is none. Every key is known and every value a text, number or list."""
    path = data_dir / FILE_NAME if data_dir else None
    try:
        text = path.read_text(encoding="utf-8") if path else ""
        if not text:
            return {}
        import tomllib  # here: most folders have no such file

        body = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        raise SettingInvalid(f"The data folder {data_dir} is not a folder.", setting="data_dir") from None
    except (OSError, ValueError) as wrong:  # no UTF-8 and no TOML are ValueErrors
        raise SettingInvalid(f"{path} cannot be read: {wrong}", setting=FILE_NAME) from None
    for group in GROUPS:
        if isinstance(body.get(group), dict):
            body |= {f"{group}_{name}": value for name, value in body.pop(group).items()}
    known, as_json = (*(s.name for s in SETTINGS if s.in_file), *TABLES), [s.name for s in SETTINGS if s.as_json]
    for key, value in body.items():
        if key not in known:
            raise SettingInvalid(f"{path}: there is no setting {key!r}{read.suggestion(key, known)}.", setting=key)
        if isinstance(value, dict) != (key in TABLES) or isinstance(value, bool | float):
            raise SettingInvalid(f"{path}: {key} has the wrong type.", setting=key)
        if isinstance(value, list):
            body[key] = json.dumps(value) if key in as_json else ",".join(map(str, value))
    return body
