"""The smallest pictures of each type that is taken, as data URLs."""

from __future__ import annotations

import base64


def data_url(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


PNG_BYTES = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
"""One pixel."""
PNG = data_url("image/png", PNG_BYTES)
JPEG = data_url("image/jpeg", b"\xff\xd8\xff\xe0rest")
GIF = data_url("image/gif", b"GIF89a rest")
WEBP = data_url("image/webp", b"RIFF\x00\x00\x00\x00WEBPrest")
