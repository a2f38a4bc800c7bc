"""Reads the address of a model host as Ollama's own programs do, and says no where they would guess."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace

from agent_graph.core.classes import dataclass
from agent_graph.errors import SettingInvalid

DEFAULT_PORT = 11434
SCHEME_PORTS = {"http": 80, "https": 443}
ANY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (replaced, never bound)
HOST_NAME = re.compile(r"[^\s\[\]:/?#@%\\]+")


@dataclass(frozen=True, slots=True)
class HostAddress:
    """Where a model host answers; `warnings` are sentences about what was read differently than written."""

    scheme: str
    host: str
    """A name or an address, an IPv6 address without brackets."""
    port: int
    path: str = ""
    """"" or "/prefix", without a slash at its end."""
    named: bool = True
    """False where nothing was set and the default is used."""
    warnings: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The base to which a route such as "/api/chat" is appended."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def loopback(self) -> bool:
        """Whether the address is this machine's own, which no proxy can reach for us."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def takes_key(self) -> bool:
        """Whether an API key may be sent: over TLS, or where the user said to."""
        return self.scheme == "https" or self.named


def parse_host(
    value: str | None, *, named: bool = True, setting: str = "OLLAMA_HOST", key: str = "OLLAMA_API_KEY"
) -> HostAddress:
    """The server that `value` (``[scheme://]host[:port][/path]``) names.

    Blanks and quotes around it are dropped, "" is the default, no scheme means http on 11434, ``http://`` 80,
    ``https://`` 443, a port out of range is the default with a warning, an address that means "any" is this machine.
    `named` is False where `value` is a default and not something the user said; `setting` is where it was said and
    `key` where a key belongs, for the words of a refusal.

    Raises `SettingInvalid` for another scheme, for credentials in the address and for what is no address at all.
    """
    text = (value or "").strip().strip("\"'").strip()
    if not text:
        return HostAddress("http", "127.0.0.1", DEFAULT_PORT, named=False)
    if "@" in text.partition("://")[2].partition("/")[0] or "@" in text.partition("/")[0]:
        # The value is not repeated: it holds a password.
        message = f"{setting} has credentials in the address; leave them out and set {key}"
        raise SettingInvalid(message, setting=setting)
    try:
        return _parse(text, named=named, setting=setting)
    except ValueError as wrong:
        message = f'{setting} cannot be "{text}": {wrong}'
        raise SettingInvalid(message, setting=setting, value=text, reason=str(wrong)) from None


def parse_openai(
    value: str, *, named: bool = True, setting: str = "OPENAI_BASE_URL", key: str = "OPENAI_API_KEY"
) -> HostAddress:
    """The base of an OpenAI-style server, as `parse_host` reads it; its scheme is written out, no path means ``/v1``.

    Raises `SettingInvalid`.
    """
    text = value.strip().strip("\"'").strip()
    if "://" not in text and "@" not in text:
        reason = "it starts with http:// or https://"
        raise SettingInvalid(f'{setting} cannot be "{text}": {reason}', setting=setting, value=text, reason=reason)
    address = parse_host(text, named=named, setting=setting, key=key)
    return address if address.path else replace(address, path="/v1")


def _parse(text: str, *, named: bool, setting: str) -> HostAddress:
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "http", text
        default = DEFAULT_PORT
        if text.rstrip("/") == "ollama.com":
            return HostAddress("https", "ollama.com", 443, named=named)
    else:
        scheme = scheme.lower()
        if scheme not in SCHEME_PORTS:
            raise ValueError(f'the scheme "{scheme}" is not http or https')
        default = SCHEME_PORTS[scheme]
    if any(sign in "?#\\" or sign.isspace() for sign in rest):
        raise ValueError("an address has no blanks, no query and no fragment")
    address, _, path = rest.partition("/")
    host, port = _split(address)
    number = _port(port, default)
    said = () if number is not None else (f'{setting}: "{port}" is no port, {default} is used',)
    path = path.strip("/")
    named_host = ANY_ADDRESS.get(host, host)
    return HostAddress(scheme, named_host, number or default, f"/{path}" if path else "", named, said)


def _split(address: str) -> tuple[str, str | None]:
    """The host and, where there is a colon for it, the port as written."""
    bare = address.strip("[]")
    if ":" in bare:
        try:  # "::1" without brackets is all address and no port
            return str(ipaddress.IPv6Address(bare)), None
        except ValueError:
            pass
    if address.startswith("["):
        inside, closed, after = address[1:].partition("]")
        try:
            host = str(ipaddress.IPv6Address(inside)) if ":" in inside else inside
        except ValueError:
            raise ValueError(f'"{inside}" is no IPv6 address') from None
        if not closed or (after and not after.startswith(":")):
            raise ValueError("the brackets of the address do not close before the port")
        return host, after[1:] if after else None
    host, colon, port = address.partition(":")
    if ":" in port or not (host == "" or _is_name(host)):
        raise ValueError("it is no host and port")
    return host.lower(), port if colon else None


def _is_name(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    return bool(HOST_NAME.fullmatch(host)) and all(0 < len(label) <= 63 for label in labels)


def _port(written: str | None, default: int) -> int | None:
    """The port, None where what is written is none."""
    if written is None:
        return default
    if written.isascii() and written.isdigit() and len(written) <= 9 and 0 < int(written) <= 65535:
        return int(written)
    return None
