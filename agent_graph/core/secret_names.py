"""Says of a name how surely what stands under it is a secret; looks at no value."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from agent_graph.core.frozen import dataclass

Strength: TypeAlias = Literal["none", "faint", "weak", "worded", "strong", "certain"]
"""What is a secret there: nothing; ``faint``: what looks drawn by lot (``pass``); ``weak``: what is no word and no
sentence (a token can be a word); ``worded``: all but prose (a story has a secret, too); ``strong``: all but a question
(``password``); ``certain``: all, as an operator says."""
SURE: Final[tuple[Strength, ...]] = ("worded", "strong", "certain")
"""Those under which numbers are secrets too, and all that stands further below."""
RANK: Final[dict[Strength, int]] = {"none": 0, "faint": 1, "weak": 2, "worded": 3, "strong": 4, "certain": 5}
Words: TypeAlias = tuple[str, ...]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_VOICED: Final = "\u3099\u309a"
"""Marks that make another letter in Japanese, not an accent."""
_PLAIN_LETTERS: Final = str.maketrans(
    {"\u0142": "l", "\u0141": "L", "\u00f8": "o", "\u00d8": "O", "\u00df": "ss", "\u0131": "i"}
)
_PASSWORDS: Final = frozenset((
    "adgangskode", "contrasena", "contrasenya", "kennwort", "losenord", "motdepasse", "passcode", "passord",
    "passphrase", "passwd", "password", "passwords", "passwort", "pwd", "salasana", "senha", "wachtwoord",
    "\u043f\u0430\u0440\u043e\u043b\u044c",
))  # fmt: skip
_IDEOGRAPHS: Final = (
    "\u5bc6\u7801", "\u5bc6\u78bc", "\u30d1\u30b9\u30ef\u30fc\u30c9", "\ube44\ubc00\ubc88\ud638",
)  # fmt: skip
"""Password in Chinese, Japanese and Korean, where no space parts words."""
_SECRETS: Final = frozenset(("apikey", "authorization", "credential", "credentials", "secret", "secrets"))
_WEAK: Final = frozenset(("bearer", "cookie", "cookies"))
_FAINT: Final = frozenset(("clave", "haslo", "heslo", "mdp", "parola", "pass", "passe", "pw", "sifre"))
"""Words that mean something else as well."""
_JOINED: Final = (
    "accesskey", "accesstoken", "apikey", "authtoken", "clientsecret", "dbpass", "keypass", "passphrase", "passwd",
    "password", "passwort", "privatekey", "refreshtoken", "secretkey", "sshpass", "storepass", "userpass",
    "webhooksecret",
)  # fmt: skip
"""Ends of names in one word: ``PGPASSWORD``, ``clientsecret``."""
_PASS_OF: Final = frozenset((
    "account", "admin", "amqp", "bind", "broker", "database", "db", "email", "ftp", "http", "imap", "key", "ldap",
    "login", "mail", "mongo", "my", "mysql", "pg", "postgres", "proxy", "rabbit", "redis", "root", "smtp", "sql",
    "ssh", "store", "sudo", "usr", "user", "vnc", "wifi", "wlan",
))  # fmt: skip
"""Words before ``pass`` or ``pw`` that make it a password."""
_KEY_OF: Final = frozenset(("access", "account", "api", "encryption", "integrity", "private", "secret", "signing"))
_TOKEN_OF: Final = frozenset(("access", "api", "auth", "bearer", "csrf", "id", "refresh", "secret", "session"))
_NO_TOKEN: Final = frozenset((
    "bos", "cls", "continuation", "current", "end", "eos", "first", "last", "mask", "next", "pad", "page", "sep",
    "special", "start", "stop", "unk", "unknown",
))  # fmt: skip
_ABOUT: Final = frozenset((
    "age", "at", "attempts", "chars", "count", "counts", "days", "description", "digest", "enabled", "env", "expires",
    "expiry", "field", "fields", "file", "format", "hint", "id", "ids", "kind", "label", "length", "limit", "max",
    "min", "mode", "ms", "name", "names", "number", "path", "policy", "prompt", "required", "rotation", "size",
    "strength", "total", "type", "types", "url", "used", "version",
))  # fmt: skip
"""Last words of names of what is only about a secret: ``password_length``, ``secret_name``, ``token_count``."""
_STILL: Final = frozenset((
    "a", "again", "b", "b64", "backup", "base", "base64", "change", "confirm", "confirmation", "current", "data",
    "default", "dev", "hash", "header", "hex", "json", "new", "old", "pem", "plain", "plaintext", "previous",
    "primary", "prod", "raw", "repeat", "root", "salt", "secondary", "staging", "str", "string", "test", "text", "val",
    "value", "values",
))  # fmt: skip
"""Words behind which it is still the secret itself: ``password_confirmation``, ``SECRET_KEY_BASE``."""
_HINTS: Final = (
    "key", "token", "secret", "pass", "pw", "credential", "authorization", "cookie", "bearer", "kennwort", "contrase",
    "senha", "wachtwoord", "clave", "parola", "haslo", "heslo", "mdp", "salasana", "adgangskode",
)  # fmt: skip
FAR_HINTS: Final = (
    "l\u00f6senord", "has\u0142o", "\u043f\u0430\u0440\u043e\u043b\u044c",
    "\u5bc6\u7801", "\u5bc6\u78bc", "\u30d1\u30b9\u30ef\u30fc\u30c9", "\ube44\ubc00\ubc88\ud638", "\u015fifre",
)  # fmt: skip
"""Those that no text of ASCII alone can hold."""
_PLURAL: Final = frozenset(("credentials", "cookies", "passwords", "secrets"))


@dataclass(frozen=True, slots=True)
class Names:
    """Which names are secrets: those of the program, an operator's `more`, less the operator's `less`, as words."""

    more: tuple[Words, ...] = ()
    less: frozenset[Words] = frozenset()
    hints: tuple[str, ...] = _HINTS
    """Lower case texts one of which, or of `FAR_HINTS`, is in every name of a secret."""

    def strength(self, name: str) -> Strength:
        """How surely a member of that name holds a secret; ``max_tokens`` and other counts never do."""
        return _strength(name, self.more, self.less)


def names_with(more: tuple[Words, ...], less: frozenset[Words]) -> Names:
    """The program's names with an operator's."""
    return Names(more, less, (*_HINTS, *sorted({words[0] for words in more}.difference(_HINTS))))


def words_of(name: str) -> Words:
    """``("api", "key")`` of ``apiKey``, ``API_KEY`` and ``x.api-key`` alike; letters without their accents."""
    if not name.isascii():
        name = unicodedata.normalize("NFKD", name.translate(_PLAIN_LETTERS))
        bare = "".join(c for c in name if not unicodedata.combining(c) or c in _VOICED)
        name = unicodedata.normalize("NFC", bare)
    return tuple(word.lower() for word in _WORDS.findall(name))


def is_plural(name: str) -> bool:
    """Whether a number under that name counts secrets and is none: ``secrets: 3``."""
    return words_of(name)[-1] in _PLURAL


@lru_cache(maxsize=4096)
def _strength(name: str, more: tuple[Words, ...], less: frozenset[Words]) -> Strength:
    if len(name) > 256 or "/" in name:
        return "none"
    words = words_of(name)
    if words in less or not words:
        return "none"
    if any(_holds(words, wanted) for wanted in more):
        return "certain"
    return "none" if words[-1] in _ABOUT else _ours(words)


def _ours(words: Words) -> Strength:
    while len(words) > 1 and not _is_password(words) and _is_still(words[-1]):
        words = words[:-1]
    before, last = words[-2] if len(words) > 1 else "", words[-1]
    if _is_password(words):
        return "strong"
    if last in _SECRETS or (last in ("key", "token") and before in (*_SECRETS, *_PASSWORDS)):
        return "worded"
    if (last == "key" and before in _KEY_OF) or (last == "token" and before in _TOKEN_OF) or last.endswith(_JOINED):
        return "worded"
    if last == "tokens" and before in _TOKEN_OF:
        return "weak"  # of numbers none is taken for one
    if last == "token":
        return "none" if before in _NO_TOKEN else "weak"
    return "weak" if last in _WEAK else "faint" if last in _FAINT else "none"


def _is_password(words: Words) -> bool:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _PASSWORDS or last.endswith(_IDEOGRAPHS):
        return True
    if last in ("pass", "pw", "passe"):
        return before in _PASS_OF or (last == "passe" and before == "de")
    if before == "pass" and last in ("code", "phrase", "word"):
        return True
    return last.endswith(_JOINED) and "pass" in last


def _is_still(word: str) -> bool:
    return word.isdigit() or (word in _STILL and word not in _SECRETS)


def _holds(words: Words, wanted: Words) -> bool:
    return any(words[start : start + len(wanted)] == wanted for start in range(len(words) - len(wanted) + 1))
