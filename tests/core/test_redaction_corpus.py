"""A labelled corpus of our own making: what has to be caught, what has to stay, and every exception with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.redact import PLAIN, redactor
from agent_graph.core.redact_stream import Stream

FOLDER = Path(__file__).parents[1] / "vectors" / "redaction"


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def said(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def forms(value: Any) -> list[Any]:
    """The value as it is, under a harmless name, after much else, and as the text of JSON where it is none."""
    filling = "Nothing of note happened on that day. " * 14
    longer = [value, filling] if not isinstance(value, str) else f"{filling}\n{value}"
    return [value, {"note": value}, [1, value], longer]


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    assert len(rows("caught")) >= 120
    assert len(rows("kept")) >= 120
    assert len({said(row["value"]) for name in ("caught", "kept") for row in rows(name)}) == len(
        [*rows("caught"), *rows("kept")]
    )
    assert len({row["kind"] for row in rows("caught")}) >= 12


def test_every_secret_of_the_corpus_is_caught() -> None:
    left = [
        (row["value"], secret)
        for row in rows("caught") for form in forms(row["value"]) for secret in row["secrets"]
        if secret in said(PLAIN.value(form)) or secret not in said(form)
    ]  # fmt: skip
    assert left == []


def test_every_harmless_text_of_the_corpus_stays() -> None:
    changed = [row["value"] for row in rows("kept") for form in forms(row["value"]) if PLAIN.value(form) != form]
    assert changed == []


def test_what_is_missed_and_overdone_is_named_with_its_reason() -> None:
    for row in rows("missed"):
        assert row["reason"]
        assert all(secret in said(PLAIN.value(row["value"])) for secret in row["secrets"]), row["value"]
    for row in rows("overdone"):
        assert row["reason"]
        assert PLAIN.value(row["value"]) != row["value"], row["value"]


@pytest.mark.parametrize("name", ["caught", "kept", "missed", "overdone"])
def test_twice_is_once_and_pieces_are_the_whole(name: str) -> None:
    for row in rows(name):
        once = PLAIN.value(row["value"])
        assert PLAIN.value(once) == once
        text = row["value"] if isinstance(row["value"], str) else said(row["value"])
        for cut in (1, 3, 7):
            stream = Stream(PLAIN)
            shown = [stream.piece(text[at : at + cut]) for at in range(0, len(text), cut)]
            assert "".join((*shown, stream.rest())) == PLAIN.text(text)


@pytest.mark.parametrize("secret", ["sk-live-known-secret-of-settings-123", 'p@ss w\u00f6rd/"7" & more', "k-9f3a-echo"])
@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
def test_a_known_secret_is_caught_in_each_form_it_is_written_in(secret: str, before: str) -> None:
    import base64
    import urllib.parse as url

    rules = redactor(known=(secret,))
    whole = (before + secret).encode()
    forms = [
        before + secret, base64.b64encode(whole).decode(), base64.urlsafe_b64encode(whole).decode().rstrip("="),
        whole.hex(), whole.hex().upper(), url.quote(secret), url.quote(secret, safe=""), url.quote_plus(secret),
        json.dumps(secret), json.dumps(secret, ensure_ascii=False), base64.b64encode(whole + b"!?").decode(),
    ]  # fmt: skip
    for form in forms:
        for filling in ("", "word " * 100):
            text = f"{filling}see {form} here"
            redacted = rules.text(text)
            assert "[redacted]" in redacted
            assert rules.text(redacted) == redacted
            assert len(redacted) - len(f"{filling}see [redacted] here") <= 2 * len(before) + 6
            stream = Stream(rules)
            shown = [stream.piece(text[at : at + 3]) for at in range(0, len(text), 3)]
            assert "".join((*shown, stream.rest())) == redacted
