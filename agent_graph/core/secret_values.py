"""Says of a value, whose name is known, whether it looks like a secret; looks at no name but a reference's."""

from __future__ import annotations

import re
from typing import Final

from agent_graph.core.secret_names import Names, Strength

SHORTEST: Final = 8
"""A text of fewer characters holds no secret that could be told by its shape."""

_IS_ID: Final = re.compile(
    r"(?:hmac-)?sha(?:1|256|384|512):[0-9a-f]+\Z|(?:run|apr|inc|wit)-[0-9a-z]+\Z"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?\Z"
)
_REFERENCE: Final = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_.]*\}|\$(?:env:)?[A-Z_][A-Z0-9_]*|\$[a-z_]*(?:pass|secret|token|key|pw)[a-z0-9_]*"
    r"|\$\((?:cat|pass|op|vault|aws|gcloud|security|kubectl|<) [^()]{0,200}\)"
    r"|\$?\{\{[A-Za-z0-9_.\s|$()\"'-]{1,120}\}\}|\{[A-Za-z_][A-Za-z0-9_.]*\}|<[A-Za-z][A-Za-z0-9 _./|-]{0,60}>"
    r"|%[A-Z_][A-Z0-9_]*%|%\(?[a-z_]*\)?[sdvr]|(?:process\.env\.|env[.:])[A-Za-z0-9_]+"
    r"|os\.environ\[.{1,80}\]|(?:os\.)?(?:getenv|env)\(.{1,80}\)|op://[!-~ ]{1,200}"
    r"|\[(?i:redacted|hidden|masked|filtered|removed|protected)\]|[*\u2022x.X#_-]{3,}"
    r"|(?i:your|insert|replace|enter)[-_ ][A-Za-z_ -]{1,40}[0-9]?|(?i:change[-_]?me)"
)
"""What stands in the place of a secret that is elsewhere, or of one that a reader is to think of."""
_CODE: Final = re.compile(
    r"(?:u?int|float|bytes|n?varchar|char|uint|string|utf-?|base|md|sha-?|bool|num|v|py|es|h)[0-9]{1,4}\Z"
    r"|https?://|(?:~|\.{1,2})?/[a-z0-9_.-]+(?:/[a-z0-9_.-]+)+\Z|[A-Za-z]:\\"
    r"|(?:self|this|config|cfg|settings|os|process|env|request|req|ctx|args|options|opts|params|secrets|vars?|data"
    r"|local|module|user[0-9]?|context|state)(?:\.[A-Za-z_][A-Za-z0-9_]*)+\Z"
)
"""Types, addresses, paths and members of objects: what code has behind a name."""
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$]+[0-9]?(?:\.[A-Za-z_]+[0-9]?)*\Z")
_SYMBOL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#%^~$]*[!#%^~$][A-Za-z0-9]")
_HEX_NAME: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_OF_GIT: Final = re.compile(r"(?i:commit|revision|\bsha|digest|checksum|merge|checkout|\bhead\b|git)")
_STRIP: Final = ",;:.!?\"()\u2026\u201c\u201d\u201e\u00bf\u00a1\u2019'"
_FUNCTION_WORDS: Final = frozenset((
    "a", "an", "the", "of", "to", "in", "is", "it", "by", "be", "at", "on", "or", "as", "and", "are", "was", "were",
    "for", "not", "did", "do", "does", "has", "had", "his", "her", "our", "my", "we", "he", "she", "i", "how",
    "who", "should", "your", "its", "if", "no", "so", "us", "me", "der", "die", "das", "den", "dem", "des", "ist",
    "und", "ein", "eine", "einer", "von", "zu", "im", "nicht", "mit", "auf", "wie", "es", "le", "la", "les", "de",
    "du", "et", "est", "un", "une", "dans", "pour", "pas", "que", "el", "los", "y", "en", "una", "por", "para",
    "con", "di", "che", "e", "per", "il", "lo", "o", "os", "um", "uma", "em", "het", "een", "van", "met", "op",
    "te", "w", "na", "z", "nie", "jest", "\u0438", "\u0432", "\u043d\u0430", "\u043d\u0435", "\u0441",
    "\u044d\u0442\u043e", "\u043a\u0430\u043a",
))  # fmt: skip
"""Words that a sentence is made with in one of some languages; none of them is in a list that pass phrases are drawn
from (those begin at three letters)."""


def is_secret(text: str, strength: Strength, names: Names) -> bool:
    """Whether `text`, all of what stands under a name of that strength, is one."""
    if strength == "certain":
        return True
    if strength == "none" or _REFERENCE.fullmatch(text):
        return False
    if strength == "strong":
        return not (text.endswith(("?", "\uff1f")) and is_prose(text, names, least=4))
    if strength == "worded":
        return not is_prose(text, names, least=3)
    return is_like_secret(text) if strength == "weak" else looks_random(text, least=6) and " " not in text


def is_prose(text: str, names: Names, *, least: int) -> bool:
    """Whether a text is words that somebody thought up to be read, `least` or more, and no list of drawn ones."""
    words = text.split()
    if not least <= len(words) <= 400:
        return False
    asked = text.endswith(("?", "\uff1f"))
    functional = 0
    for said in words:
        word = said.strip(_STRIP).replace("-", "").replace("'", "").replace("\u2019", "")
        if not word:
            continue
        if not word.isalpha() or len(word) > 24 or not (word.islower() or word.istitle() or len(word) <= 5):
            return False
        if not asked and names.strength(word) != "none":
            return False  # "the password is ..."
        functional += word.lower() in _FUNCTION_WORDS
    return functional >= (2 if least > 3 else 1)


def is_like_secret(content: str) -> bool:
    """Whether what stands under a weak name can be a secret: no short word, no sentence and no id."""
    if len(content) < SHORTEST or _IS_ID.match(content):
        return False
    return "=" in content or not any(map(str.isspace, content))


def looks_random(text: str, *, least: int) -> bool:
    """Whether nobody can have thought a text up to be read: letters and digits, or signs between them."""
    if len(text) < least or _IS_ID.match(text):
        return False
    letters = any(map(str.isalpha, text))
    if any(map(str.isdigit, text)):
        return letters
    return letters and len(text) >= SHORTEST and _SYMBOL.match(text) is not None


def is_assigned(text: str, *, least: int, names: Names, quoted: bool) -> bool:
    """Whether `text`, behind ``name =`` or ``name:`` in some text, is a secret and no code, type, path or reference."""
    if not looks_random(text, least=least) or _REFERENCE.fullmatch(text) or _CODE.match(text):
        return False
    return quoted or not _is_name(text, names)


def is_of_git(text: str, before: str) -> bool:
    """Whether it is the name of a commit, or a digest, as the words `before` it say."""
    return _HEX_NAME.match(text) is not None and _OF_GIT.search(before) is not None


def is_reference(text: str) -> bool:
    """Whether all of it stands for a secret that is elsewhere: ``${DB_PASSWORD}``, ``<your key>``."""
    return _REFERENCE.fullmatch(text) is not None


def _is_name(text: str, names: Names) -> bool:
    """``db_password2``: what code calls a secret, not one."""
    if not _IDENTIFIER.match(text) or not ("_" in text or "." in text or text[0].islower()):
        return False
    return names.strength(text) != "none"
