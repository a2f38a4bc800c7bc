"""Secrets are taken out by the name of their key and by their shape, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.core.redact import REDACTED, is_secret_key, redact


@pytest.mark.parametrize("key", [
    "password", "Password", "db_password", "api_key", "apiKey", "X-API-Key", "apikey", "OPENAI_API_KEY", "token",
    "access_token", "accessToken", "client_secret", "Authorization", "cookie", "private_key", "signing-key",
    "credentials",
])  # fmt: skip
def test_a_key_that_names_a_secret_is_known(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", [
    "max_tokens", "prompt_tokens", "completion_tokens", "token_count", "key", "output_key", "input_key", "keyboard",
    "prompt", "secretary", "identity_path", "", "tokens",
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
