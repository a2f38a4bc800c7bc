"""The settings of `agent-graph serve`: where it listens, who may come in, how much of it anybody gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Final, Literal

from agent_graph.core.classes import dataclass
from agent_graph.errors import SettingInvalid
from agent_graph.settings import values as read
from agent_graph.settings.setting import Setting

SCOPES: Final = ("runs:read", "runs:write", "approvals:decide", "admin")
"""What a token can allow; `tools.deps` says what each means."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Made by `http_settings` only."""

    host: str
    port: int
    auth: Literal["required", "none"]
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    sharing: Literal["none", "approvals", "all"]
    body_bytes: int
    rate: int
    """Requests a minute of one principal, or of one address that is not let in; 0 for no bound."""
    sessions: int
    idle_ms: int
    stateless: bool
    state_keys: tuple[str, ...] = field(repr=False)
    oauth_issuer: str
    oauth_resource: str
    """The URL tokens have to be made for, which is that of this server's ``/mcp`` as its clients write it."""
    oauth_jwks: str
    oauth_scopes: tuple[str, ...]

    @property
    def loopback(self) -> bool:
        """Only this machine reaches the address."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _switch(value: str) -> bool:
    return read.one_of("yes", "no")(value) == "yes"


def _port(value: str) -> int:
    number = read.bound(value)
    if number > 65_535:
        raise ValueError("a port is at most 65535; 0 takes a free one")
    return number


def _keys(value: str) -> tuple[str, ...]:
    """The keys in a file, one a line; the file is the setting, and no key is in a message."""
    named = read.file(value)
    if named is None:
        return ()
    try:
        keys = tuple(line.strip() for line in named.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as wrong:
        raise ValueError(f"it cannot be read: {type(wrong).__name__}") from None
    if not keys or any(len(key.encode()) < 32 for key in keys):
        raise ValueError("it holds one key a line, each of 32 bytes or more")
    return keys


def _jwks(value: str) -> str:
    """A URL, over TLS unless it is this machine, or a file that is there."""
    text = value.strip()
    if "://" not in text:
        return str(read.file(text) or "")
    return _url(text)


def _url(value: str) -> str:
    from urllib.parse import urlsplit

    text = value.strip()
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        if not parts.hostname or "@" in parts.netloc or parts.fragment:
            raise ValueError("it is a URL without user, password and fragment")
        return text
    raise ValueError("it begins with https://, or with http:// on this machine")


def _scopes(value: str) -> tuple[str, ...]:
    one = read.one_of(*SCOPES)
    return tuple(dict.fromkeys(one(name) for name in value.replace(",", " ").split()))


def _http(name: str, meaning: str, parse: Any, default: str = "", *, flag: str = "", secret: bool = False) -> Setting:
    return Setting(
        f"http_{name}", meaning, parse, default=default, flag=flag, env=f"AGENT_GRAPH_HTTP_{name.upper()}",
        secret=secret,
    )  # fmt: skip


HTTP: Final[tuple[Setting, ...]] = (
    _http("host", "the address `serve` listens on", read.text, "127.0.0.1", flag="--host"),
    _http("port", "its port; 0 takes a free one", _port, "8765", flag="--port"),
    _http(
        "auth", "whether who comes in must show a token: required, or none, which only the loopback address may have",
        read.one_of("required", "none"), "required", flag="--auth",
    ),
    _http(
        "allowed_hosts", "by comma, what clients may call this server beside its own address: `name`, `name:port`",
        read.names,
    ),
    _http("allowed_origins", "by comma, pages of other servers that may call it: `https://name`", read.names),
    _http(
        "sharing", "what principals see of each other's runs: none; approvals, for who may decide; or all",
        read.one_of("none", "approvals", "all"), "none",
    ),
    _http("body_bytes", "bytes of one request", read.count, str(16 * 1024 * 1024)),
    _http("rate", "requests a minute of one principal; 0: no bound", read.bound, "1200"),
    _http("sessions", "sessions that are open at once", read.count, "1000"),
    _http("idle_ms", "milliseconds after which a session nobody uses is closed", read.count, "1800000"),
    _http("stateless", "yes keeps no session, so that any of several servers answers any request", _switch, "no"),
    _http(
        "state_keys", "a file of keys, one a line of 32 bytes or more: what a client carries between two requests is "
        "sealed with the first and opened with any; without it a key is made at each start", _keys, secret=True,
    ),
    _http("oauth_issuer", "whose access tokens are taken, as `iss` in them says", _url),
    _http("oauth_resource", "the URL they must be made for (`aud`): that of this server's `/mcp`", _url),
    _http("oauth_jwks", "the issuer's keys: a URL, or a file", _jwks),
    _http("oauth_scopes", "scopes such a token must hold to be let in at all", _scopes),
)  # fmt: skip


def http_settings(values: Mapping[str, Any]) -> HttpSettings:
    """Them as one. Raises `SettingInvalid` where OAuth is set up by half."""
    http = HttpSettings(**{f.name: values[f"http_{f.name}"] for f in fields(HttpSettings)})
    parts = {"oauth_issuer": http.oauth_issuer, "oauth_resource": http.oauth_resource, "oauth_jwks": http.oauth_jwks}
    missing = [name for name, value in parts.items() if not value]
    if missing and (len(missing) < len(parts) or http.oauth_scopes):
        raise SettingInvalid(
            f"OAuth needs an issuer, a resource and the issuer's keys; http.{missing[0]} is not set.",
            setting=f"http_{missing[0]}",
        )
    return http
