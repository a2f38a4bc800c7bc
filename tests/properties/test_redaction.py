"""Whatever a document looks like, its planted secrets are taken out; a document without secrets stays as it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_graph.core.jsonvalue import canonical
from agent_graph.core.redact import PLAIN, Redactor, redactor
from agent_graph.core.redact_stream import Stream
from agent_graph.core.secret_names import Names
from agent_graph.core.secret_shapes import spans
from tests.sizes import size

SHAPED = (
    "sk-proj-Zq8Ww3Rr5Tt7Yy9Uu1Ii", "ghp_abcdefghijklmnopqrst1234", "xoxb-1234567890-abcdef", "AKIAABCDEFGHIJKLMNOP",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "AIzaSyA1234567890abcdefghijklmnopqrstuvw",
    "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE1234\nabcd==\n-----END EC PRIVATE KEY-----",
)  # fmt: skip
"""Secrets by their own shape."""
NAMED = ("password", "api_key", "clientSecret", "X-Api-Key", "credentials", "access_token", "DB_PASSWORD")
WORDS = ["hunter2x", "correct-horse-9", "t0psecret-value", "Qw3rty!x"]
"""Secrets by what stands before them."""
plain_text = st.lists(
    st.sampled_from(("the", "plan", "Köln", "日本", "step 2:", "max_tokens 5", "\n", "a-b", "sha256:0f3c", "{x}", "=")),
    max_size=8,
).map(" ".join)
keys = st.sampled_from(
    ("draft", "max_tokens", "prompt_tokens", "items", "node_path", "output_key", "n", "key", "token_count")
)
scalars = st.one_of(plain_text, st.integers(0, 9999), st.booleans(), st.none())
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def planted(draw: st.DrawFn) -> tuple[Any, list[str]]:
    """A document and the secrets that stand somewhere in it."""
    document = draw(documents)
    secrets = []
    for _ in range(draw(st.integers(1, 3))):
        way = draw(st.integers(0, 5))
        if way == 0:
            secret = draw(st.sampled_from(SHAPED))
            member: Any = f"{draw(plain_text)} {secret} {draw(plain_text)}"
        elif way == 1:
            secret = draw(st.sampled_from(WORDS))
            member = {draw(st.sampled_from(NAMED)): secret}
        elif way == 2:
            secret = draw(st.sampled_from(WORDS))
            member = json.dumps({"n": 1, draw(st.sampled_from(NAMED)): {"a": [secret]}})
        elif way == 3:
            secret = draw(st.sampled_from(WORDS[:3]))
            member = f"{draw(plain_text)}\n{draw(st.sampled_from(NAMED))}={secret}"
        elif way == 4:
            secret = draw(st.sampled_from(WORDS))
            member = f"see postgres://joe:{secret.replace('!', 'x')}@db/x"
            secret = secret.replace("!", "x")
        else:
            secret = draw(st.sampled_from(WORDS))
            member = {"headers": [{"name": "Authorization", "value": secret}]}
        secrets.append(secret)
        document = {"was": document, "now": member} if draw(st.booleans()) else [member, document]
    return document, secrets


@given(planted())
@settings(max_examples=size(300, 20_000), deadline=None)
def test_no_planted_secret_is_left_and_a_second_time_changes_nothing(case: tuple[Any, list[str]]) -> None:
    document, secrets = case
    before = canonical(document)
    redacted = PLAIN.value(document)
    said = canonical(redacted).decode()
    for secret in secrets:
        assert secret not in said
        assert json.dumps(secret)[1:-1] not in said
    assert canonical(document) == before, "the argument stays as it was"
    assert canonical(PLAIN.value(redacted)) == canonical(redacted)


@given(documents)
@settings(max_examples=size(300, 20_000), deadline=None)
def test_a_document_without_secrets_is_the_very_same(document: Any) -> None:
    redacted = PLAIN.value(document)
    assert canonical(redacted) == canonical(document)


PIECES = (
    "password: ", "hunter2", " ", '"password": "', 'hunter2"', ' "secrets": {"a": "x y", "b": 3}', "hello ", "token",
    "sk-abcdefghijklmnop1234", "\n", "-----BEGIN PRIVATE KEY-----", "\nMIIB\n", "-----END PRIVATE KEY-----", "=",
    "abc123def456ghi789jkl", "://u:", "p@h", "Bearer ", "é", "日本", "{", "}", '"', ": ", "\\", "api key", " is ",
    '"token": "', " a b=c", "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", ", ", "ACME-1234", "known-to-us-77", "[redacted]",
    "curl ", "-u ", "joe:", "--password ", "x ", "PW=", "pass", "://", "@", "hooks.slack.com/services/",
    "T0/B0/c1d2e3f4",
    "Passwort", "\u5bc6\u7801", "\uff1a",
    "\u306f", " for the db", "<password>", "</", ">", "the butler did it",
    "?", "'", "=>",
    "3f786850e387550fdab836ed7e6dc881de23001b",
    "commit ", "${DB_PASS}", '{"type": "string"}', " known-9 to us", "(", "sig=",
    'name="api_key"', ' value="', "a\u0308", "\u0130", "k", "kn", "own-", "-pass pass:",
)  # fmt: skip
OPERATORS = redactor(
    patterns=(r"ACME-[0-9]{4}",), names=("customer_number",), known=("known-to-us-77", "a known-9 to us")
)
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(texts, st.lists(st.integers(1, 9), min_size=1, max_size=40), st.sampled_from((PLAIN, OPERATORS)))
@settings(max_examples=size(1_000, 50_000), deadline=None)
def test_a_text_in_pieces_is_shown_as_the_whole_is_kept(text: str, cuts: list[int], rules: Redactor) -> None:
    stream, shown, at, turn = Stream(rules), [], 0, 0
    while at < len(text):
        length = cuts[turn % len(cuts)]
        shown.append(stream.piece(text[at : at + length]))
        at, turn = at + length, turn + 1
    shown.append(stream.rest())
    assert "".join(shown) == rules.text(text)


@given(texts, st.sampled_from((PLAIN, OPERATORS)))
@settings(max_examples=size(1_000, 50_000), deadline=None)
def test_looking_again_comes_to_an_end(text: str, rules: Redactor) -> None:
    """A mark lets nobody past: what stands right at one is looked at as if it stood alone, and may be a secret then."""
    document = {"a": [text], "password": text, "secret": text, "pass": text, text: True}
    assert settles(text, rules.text)
    assert settles(document, rules.value)


def settles(found: Any, look: Callable[[Any], Any], most: int = 5) -> bool:
    """Within so many looks nothing more is taken out."""
    return any(found == (found := look(found)) for _ in range(most + 1))


@given(texts, st.integers(0, 600))
@settings(max_examples=size(500, 20_000), deadline=None)
def test_the_first_look_misses_nothing_that_the_search_finds(text: str, filling: int) -> None:
    whole = "." * filling + " " + text  # long ones are looked at another way
    if any(span.sure for span in spans(whole, Names())):
        assert PLAIN._is_suspect(whole)


def test_a_long_word_in_a_thousand_pieces_takes_no_longer_than_it_should() -> None:
    stream = Stream(PLAIN)
    text = '"secret": "' + "x y " * 20_000
    shown = [stream.piece(text[at : at + 4]) for at in range(0, len(text), 4)]
    assert "".join((*shown, stream.rest())) == '"secret": "[redacted]'


HOSTILE = (
    "x", "sk-", "secret=", '"secret":[', '"secret":{', "-----BEGIN PRIVATE KEY-----", '"secret": "\\',
    "bearer ",
    "eyJaaaaaaaa.", "://", "://a:", "://a:b", "://::", "curl ", "curl -u ", "curl -u a:", "mysql -", "--password ",
    "password for ", "password for a b ", "key ", "pass", "passwordpassword", "hook", "hooks/", "AKIA", "\n", "\n\n",
    " ",
    "password \n", "<password>", '{"password":{"type":"object","properties":', "\u5bc6\u7801", "\u5bc6\u7801\u662f",
    "the is a ",
    "secret: the ", "known-to-us-7", "known-to-us-77", "a known-9 to u", "commit 0", "auth=(", ":AA",
    "1234567:AA", "sig=",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_text_ten_times_as_long_takes_about_ten_times_as_long(piece: str) -> None:
    def took(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        best = 9.0
        for _ in range(2):
            began = time.process_time()
            OPERATORS.value({"a": text, "secret": text})
            best = min(best, time.process_time() - began)
        return best

    few, many = took(size(8_000, 80_000)), took(size(80_000, 800_000))
    assert many < max(0.15, 25 * few)


def test_texts_made_to_be_slow_are_not() -> None:
    hostile = (
        "x" * 50_000 + "\n", "sk-" * 20_000, "secret=" * 8_000,
        '"secret":[' * 6_000, '"secret":{' * 3_000 + "}" * 3_000,
        "-----BEGIN PRIVATE KEY-----" * 2_000, '"secret": "\\' * 6_000, "bearer " * 8_000, "eyJaaaaaaaa." * 5_000,
    )  # fmt: skip
    for text in hostile:
        began = time.process_time()
        stream = Stream(PLAIN)
        assert stream.piece(text) + stream.rest() == PLAIN.text(text)
        assert time.process_time() - began < 5
