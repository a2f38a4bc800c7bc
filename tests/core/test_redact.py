"""Secrets are taken out by the name of their key and by their shape, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.redact import PLAIN, REDACTED, is_secret_key, redact, redactor
from agent_graph.core.redact_stream import Stream
from agent_graph.core.spec_secrets import without_secrets


@pytest.mark.parametrize("key", [
    "password", "Password", "db_password", "api_key", "apiKey", "X-API-Key", "apikey", "OPENAI_API_KEY", "token",
    "access_token", "accessToken", "client_secret", "Authorization", "cookie", "private_key", "signing-key",
    "credentials", "aws_secret_access_key", "password_confirmation", "SECRET_KEY_BASE", "api_key_prod", "password2",
    "auth_tokens", "github_token", "secret_token", "pass_word", "PGPASSWORD",
    "dbPass", "pw", "Passwort", "contrase\u00f1a",
])  # fmt: skip
def test_a_key_that_names_a_secret_is_known(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", [
    "max_tokens", "prompt_tokens", "completion_tokens", "token_count", "key", "output_key", "input_key", "keyboard",
    "prompt", "secretary", "identity_path", "", "tokens",
    "password_length", "secret_name", "key_env", "page_token", "secret_plan", "access_key_id", "authorization_url",
    "@octokit/auth-token", "p" * 300 + "_password", "cookie_policy", "monkey",
])  # fmt: skip
def test_a_key_that_names_none_is_left_alone(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize("text", [
    "sk-abcdefghijklmnop1234", "ghp_abcdefghijklmnopqrst1234", "github_pat_11AAAAAAA0abcdefghij_k",
    "xoxb-1234567890-abc",
    "AKIAABCDEFGHIJKLMNOP", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMIIB",
])  # fmt: skip
def test_a_text_of_a_secrets_shape_is_taken_out(text: str) -> None:
    assert redact({"note": f"see {text} here"}) in ({"note": f"see {REDACTED} here"}, {"note": f"see {REDACTED}"})


def test_passwords_in_addresses_and_bearer_headers_are_taken_out() -> None:
    assert redact("postgres://user:hunter2@host/db") == f"postgres://{REDACTED}@host/db"
    assert redact("Authorization: Bearer abcdefgh123") == f"Authorization: Bearer {REDACTED}"


def test_everything_below_a_secret_key_is_taken_out_and_shape_stays() -> None:
    value: Any = {"secrets": {"a": "x", "b": ["y", 7, True, None, ""]}, "plain": ["x", 7]}
    assert redact(value) == {
        "secrets": {"a": REDACTED, "b": [REDACTED, REDACTED, True, None, ""]}, "plain": ["x", 7],
    }  # fmt: skip
    assert value["secrets"]["a"] == "x", "the argument stays as it was"


@pytest.mark.parametrize(("text", "left"), [
    ("DB_PASSWORD=hunter2 next", "DB_PASSWORD=[redacted] next"),
    ("the api key is abc123def, really", "the api key is [redacted], really"),
    ("?token=abc123def456ghi789&x=1", "?token=[redacted]&x=1"),
    ("password = 'hunter2'", "password = '[redacted]'"),
    ('{"password": "two words", "n": 5}', '{"password": "[redacted]", "n": 5}'),
    ('{"password": 12345, "max_tokens": 9}', '{"password": "[redacted]", "max_tokens": 9}'),
    ('{"secrets": {"a": "x", "b": [17, "y"]}, "c": "d"}',
     '{"secrets": {"a": "[redacted]", "b": ["[redacted]", "[redacted]"]}, "c": "d"}'),
    ('{"secrets": ["", "x', '{"secrets": [[redacted]'),
    (r'{\"password\": \"a\\\"b\"}', r'{\"password\": \"[redacted]\"}'),
    (r'"password": "a\"b" c', '"password": "[redacted]" c'),
    ('"password": "open', '"password": "[redacted]'),
    ('"password": "open\n next', '"password": "[redacted]\n next'),
    ('"secrets": {a: "x"}', '"secrets": {a: "[redacted]"}'),
    ("mot de passe : abc123", "mot de passe : [redacted]"),
    ('"token": "abcdefgh"', '"token": "[redacted]"'),
    ('"token": "abcd1234"', '"token": "[redacted]"'),
])  # fmt: skip
def test_a_secret_behind_its_name_in_a_text_is_taken_out(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize("text", [
    "token = get_token()", 'password = os.environ["DB_PASSWORD"]', "The password is required.", "password:",
    "secret = ",
    '{"secret": {"type": ["string", "null"]}}',
    '{"password": {"enum": ["a"]}, "secret": {"title": "x", "not": {}}}',
    "password: ", "api_key=''", "secret = {", "the token is", "PASSWORD=get(x)",
    "apiKey = hash2(x)", '"bearer": "hello"',
    "bearer certificates of deposit", "sk-learn-compatible-estimators-v2", "see https://example.org/a:b@c",
    '{"token": "the"}', '{"token": "a sentence of words"}', '{"secrets": 3, "password": true, "token": [1]}',
    "prompt_tokens: 1234567",
    "token: run-0197f3ab12c3d4e5f6a7", '{"token": "sha256:' + "0f" * 32 + '"}', '{"password": ""}', "my password",
    "-----BEGIN CERTIFICATE-----\nMIIB\n", "a rapid://x:y", "Stra\u0130e: token",
])  # fmt: skip
def test_a_text_that_only_speaks_of_secrets_stays(text: str) -> None:
    assert redact(text) == text
    assert redact({"text": text}) == {"text": text}


def test_numbers_schemas_pictures_and_named_values_are_told_apart() -> None:
    picture = "data:image/png;base64,AKIAIOSFODNN7EXAMPLE"
    value: Any = {
        "password": {"type": "string", "minLength": 8}, "picture": picture, "secrets": 3, "pin": {"password": 1234},
        "headers": [{"name": "Cookie", "value": "id=abcdefgh"}, {"name": "Accept", "value": "text/html"}],
        "ops": [{"op": "add", "path": "/a/password", "value": "x"}], "token": {"a": "abcdefghij"}, "value": 1,
        "sk-abcdefghijklmnop1234": 1, "sk-abcdefghijklmnop5678": 2,
    }  # fmt: skip
    assert redact(value) == {
        "password": {"type": "string", "minLength": 8}, "picture": picture, "secrets": 3, "pin": {"password": REDACTED},
        "headers": [{"name": "Cookie", "value": REDACTED}, {"name": "Accept", "value": "text/html"}],
        "ops": [{"op": "add", "path": "/a/password", "value": REDACTED}], "token": {"a": "abcdefghij"}, "value": 1,
        "[redacted]": 1, "[redacted] 9": 2,
    }  # fmt: skip


def test_an_operator_adds_and_takes_away() -> None:
    rules = redactor(
        names=("customer number",), patterns=(r"ACME-\d{4}",), except_names=("token",), except_patterns=("sk-test.*",),
        known=("our-own-key-9", "short"),
    )  # fmt: skip
    value: Any = {
        "customerNumber": "77", "note": "ACME-1234\nour-own-key-9 our-own-key-9", "token": "abcdefghij",
        "key": "sk-test4567890123456789", "password": "sk-test", "x": "short",
    }  # fmt: skip
    assert rules.value(value) == {
        "customerNumber": REDACTED, "note": f"{REDACTED}\n{REDACTED} {REDACTED}", "token": "abcdefghij",
        "key": "sk-test4567890123456789", "password": "sk-test", "x": "short",
    }  # fmt: skip
    assert "our-own-key-9" not in repr(rules)
    assert rules.describe() == {
        "names": ["customer_number"], "patterns": [r"ACME-\d{4}"], "except_names": ["token"],
        "except_patterns": ["sk-test.*"],
    }  # fmt: skip


@pytest.mark.parametrize("wrong", [{"patterns": ("(",)}, {"patterns": ("a*",)}, {"names": ("--",)}])
def test_a_rule_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"RE2|everywhere|letters"):
        redactor(**wrong)


def test_a_spec_is_told_by_shape_alone_and_says_where_it_was() -> None:
    spec: Any = {"input_schema": {"password": "x"}, "nodes": [{"prompt": "use sk-abcdefghijklmnop1234", "n": 1}]}
    clean, issues = without_secrets(PLAIN, spec)
    assert clean == {"input_schema": {"password": "x"}, "nodes": [{"prompt": f"use {REDACTED}", "n": 1}]}
    assert [(issue.code, issue.severity, issue.pointer) for issue in issues] == [
        ("SECRET_IN_SPEC", "warning", "/nodes/0/prompt")
    ]
    assert without_secrets(PLAIN, {"nodes": []}) == ({"nodes": []}, ())


def test_what_the_limits_allow_is_never_too_deep() -> None:
    value: Any = {"password": "x"}
    for level in range(600):
        value = [value] if level % 2 else {"a": value}
    found = redact(value)
    for level in range(600):
        found = found[0] if level % 2 == 0 else found["a"]  # type: ignore[index,call-overload]
    assert found == {"password": REDACTED}


def test_a_word_is_shown_once_it_is_over() -> None:
    stream = Stream(PLAIN)
    assert [stream.piece(piece) for piece in ("Hel", "lo ", "sk-abcdefgh", "ijklmnop1234", " you")] == [
        "", "Hello ", "", "", f"{REDACTED} ",
    ]  # fmt: skip
    assert stream.rest() == "you"


def test_a_long_text_is_looked_at_as_a_short_one_is() -> None:
    long = "word " * 200
    assert PLAIN.members({"a": 1, "b": None, "c": long}) == {"a": 1, "b": None, "c": long}
    assert redact(f"{long}password: hunter2") == f"{long}password: {REDACTED}"
    stream = Stream(PLAIN)
    assert stream.piece('"secret": "' + long) == '"secret": "'
    assert stream.piece("x ") == ""
    assert stream.rest() == REDACTED


@pytest.mark.parametrize(
    "begun", ["data:image/ ", "data:image/png;base64,AAAA and then ", "data:image/png;base64,AAAA\n"]
)
def test_only_what_is_all_picture_is_passed_over(begun: str) -> None:
    assert redact({"a": f"{begun}sk-abcdefghijklmnop1234"}) == {"a": f"{begun}[redacted]"}


def test_a_picture_is_left_as_it_is() -> None:
    assert redact({"a": "data:image/png;base64,AKIAIOSFODNN7EXAMPLE"}) == {
        "a": "data:image/png;base64,AKIAIOSFODNN7EXAMPLE"
    }
