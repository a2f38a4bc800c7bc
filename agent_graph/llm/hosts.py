"""Reads `OLLAMA_HOST` as Ollama's own programs do, and says no where they would guess."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from agent_graph.errors import SettingInvalid

DEFAULT_PORT = 11434
SCHEME_PORTS = {"http": 80, "https": 443}
ANY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (replaced, never bound)
HOST_NAME = re.compile(r"[^\s\[\]:/?#@%\\]+")


@dataclass(frozen=True, slots=True)
class OllamaHost:
    """Where an Ollama server answers; `warnings` are sentences about what was read differently than written."""

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
        """The base to which "/api/..." is appended."""
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


def parse_host(value: str | None, *, named: bool = True) -> OllamaHost:
    """The server that `value` (``[scheme://]host[:port][/path]``) names.

    Blanks and quotes around it are dropped, "" is the default, no scheme means http on 11434, ``http://`` 80,
    ``https://`` 443, a port out of range is the default with a warning, an address that means "any" is this machine.
    `named` is False where `value` is a default and not something the user said.

    Raises `SettingInvalid` for another scheme, for credentials in the address and for what is no address at all.
    """
    text = (value or "").strip().strip("\"'").strip()
    if not text:
        return OllamaHost("http", "127.0.0.1", DEFAULT_PORT, named=False)
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "http", text
        default = DEFAULT_PORT
        if text.rstrip("/") == "ollama.com":
            return OllamaHost("https", "ollama.com", 443, named=named)
    else:
        scheme = scheme.lower()
        if scheme not in SCHEME_PORTS:
            shown = f"{scheme}://..." if "@" in text else text  # there may be a password before the @
            raise _invalid(shown, f'the scheme "{scheme}" is not http or https')
        default = SCHEME_PORTS[scheme]
    address, _, path = rest.partition("/")
    if "@" in address:
        # The value is not repeated: it holds a password.
        raise SettingInvalid(
            "OLLAMA_HOST has credentials in the address; leave them out and set OLLAMA_API_KEY", setting="OLLAMA_HOST"
        )
    if re.search(r"[?#\s\\]", rest):
        raise _invalid(text, "an address has no blanks, no query and no fragment")
    host, port = _split(text, address)
    number, warnings = _port(port, default)
    path = path.strip("/")
    return OllamaHost(scheme, ANY_ADDRESS.get(host, host), number, f"/{path}" if path else "", named, warnings)


def _split(text: str, address: str) -> tuple[str, str | None]:
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
            raise _invalid(text, f'"{inside}" is no IPv6 address') from None
        if not closed or (after and not after.startswith(":")):
            raise _invalid(text, "the brackets of the address do not close before the port")
        return host, after[1:] if after else None
    host, colon, port = address.partition(":")
    if ":" in port or not (host == "" or _is_name(host)):
        raise _invalid(text, "it is no host and port")
    return host.lower(), port if colon else None


def _is_name(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    return bool(HOST_NAME.fullmatch(host)) and all(0 < len(label) <= 63 for label in labels)


def _port(written: str | None, default: int) -> tuple[int, tuple[str, ...]]:
    if written is None:
        return default, ()
    if written.isascii() and written.isdigit() and 0 < int(written[:9]) <= 65535 and len(written) <= 9:
        return int(written), ()
    return default, (f'OLLAMA_HOST: "{written}" is no port, {default} is used',)


def _invalid(text: str, why: str) -> SettingInvalid:
    return SettingInvalid(f'OLLAMA_HOST cannot be "{text}": {why}', setting="OLLAMA_HOST", value=text, reason=why)
