"""Pictures in a prompt: data URLs (RFC 2397) of a few types, checked and bounded; names no file and no address.

What a picture is named by in errors and logs is its digest, never its bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonValue

MOST_IMAGES: Final = 16
"""Pictures of one call."""
_SHOWN: Final = 200
"""Characters of a data URL that is short enough to be shown."""
_HEAD: Final = re.compile(r"data:(image/[a-z0-9.+-]{1,40});base64,", re.IGNORECASE)
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_STARTS: Final[dict[str, Callable[[bytes], bool]]] = {
    "image/png": lambda head: head.startswith(_PNG),
    "image/jpeg": lambda head: head.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda head: head.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda head: head.startswith(b"RIFF") and head[8:12] == b"WEBP",
}
"""The types that are taken, with how their bytes begin."""


@dataclass(frozen=True, slots=True)
class Image:
    """One picture: its type, its bytes in base64, how many there are, and their digest."""

    media_type: str
    base64: str
    size: int
    digest: str

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{self.base64}"


def parse(text: str) -> Image:
    """The picture a data URL holds; ValueError with a sentence that says what is wrong, and quotes none of it."""
    head = _HEAD.match(text[:80])
    if head is None:
        raise ValueError("a picture is given as `data:image/png;base64,...`: no file and no web address is ever read")
    media_type = head.group(1).lower().replace("image/jpg", "image/jpeg")
    if media_type not in _STARTS:
        raise ValueError(f"pictures are of type {', '.join(_STARTS)}, not {media_type}")
    coded = text[head.end() :]
    try:
        whole = base64.b64decode(coded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("what follows `base64,` is not base64") from None
    if not _STARTS[media_type](whole[:16]):
        raise ValueError(f"the bytes are no {media_type}")
    return Image(media_type, coded, len(whole), "sha256:" + hashlib.sha256(whole).hexdigest())


def named(value: JsonValue) -> JsonValue:
    """A copy of `value` as people are shown it: every picture is ``data:image/png;bytes=95;sha256:...``."""
    if isinstance(value, str):
        return _named(value)
    if isinstance(value, dict):
        return {key: named(item) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item) for item in value]
    return value


def _named(text: str) -> str:
    if len(text) < _SHOWN or not text.startswith("data:image/"):
        return text
    try:
        image = parse(text)
    except ValueError:
        return text
    return f"data:{image.media_type};bytes={image.size};{image.digest}"
