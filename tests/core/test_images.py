"""Pictures are data URLs of known types, checked by their bytes; no file and no address is ever read."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from agent_graph.core import images
from tests.fakes.pictures import GIF, JPEG, PNG, PNG_BYTES, WEBP, data_url


@pytest.mark.parametrize("url", [PNG, JPEG, GIF, WEBP])
def test_the_types_that_are_taken(url: str) -> None:
    image = images.parse(url)
    assert image.data_url == url
    assert image.size == len(base64.b64decode(image.base64))


def test_a_picture_is_shown_by_its_digest_and_never_by_its_bytes() -> None:
    big = data_url("image/gif", b"GIF89a" + b"x" * 1_000)
    digest = hashlib.sha256(b"GIF89a" + b"x" * 1_000).hexdigest()
    broken, other = "data:image/png;base64," + "?" * 300, "text " * 100
    shown = images.named({"a": [big, PNG, broken, other, 7], "b": None})
    assert shown == {"a": [f"data:image/gif;bytes=1006;sha256:{digest}", PNG, broken, other, 7], "b": None}


def test_an_older_name_of_a_type_and_capitals_are_read() -> None:
    assert images.parse(JPEG.replace("image/jpeg", "IMAGE/JPG")).data_url == JPEG


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/etc/passwd", "no file"),
        ("file:///etc/passwd", "no file"),
        ("https://example.org/a.png", "no web address"),
        ("", "data:image/png"),
        ("data:text/html;base64,PGI+", "data:image/png"),
        ("data:image/png,raw", "data:image/png"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "not image/svg+xml"),
        ("data:image/png;base64,****", "not base64"),
        ("data:image/png;base64,\u00e9", "not base64"),
        ("data:image/png;base64,", "no image/png"),
        (data_url("image/png", b"<script>"), "no image/png"),
        (data_url("image/webp", b"RIFF\x00\x00\x00\x00WAVE"), "no image/webp"),
        (data_url("image/gif", PNG_BYTES), "no image/gif"),
    ],
)
def test_what_is_no_picture_is_refused_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        images.parse(text)
    assert "passwd" not in str(refused.value)
