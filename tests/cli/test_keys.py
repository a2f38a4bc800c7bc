"""`agent-graph keys`, and folders that are begun without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.terminal import Done

Cli = Callable[..., Done]


def keys(cli: Cli) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cli("keys", "show", "--json").json["data"]["keys"]
    return found


def test_keys_are_made_rotated_and_retired_and_no_secret_is_shown(cli: Cli) -> None:
    [first] = keys(cli)
    assert (first["kind"], first["state"]) == ("hmac-sha256", "seals")
    assert cli("keys", "rotate").code == 0
    pair = cli("keys", "create", "--json").json["data"]["key"]
    assert {"key_id", "kind", "state", "created_at_ms", "public"} == set(pair)
    assert [one["state"] for one in keys(cli)] == ["checks", "seals", "seals"]
    assert cli("keys", "retire", first["key_id"]).code == 0
    assert keys(cli)[0]["state"] == "retired"
    shown = cli("keys", "show").out.decode()
    assert pair["public"] in shown


def test_a_key_in_use_or_of_an_unknown_kind_is_refused(cli: Cli) -> None:
    [first] = keys(cli)
    refused = cli("keys", "retire", first["key_id"], "--json")
    assert (refused.code, refused.json["error_code"]) == (1, "KEY_IN_USE")
    assert cli("keys", "rotate", "--kind", "rsa", "--json").json["error_code"] == "INVALID_ARGUMENT"
    assert keys(cli) == [first]


def test_a_folder_begun_without_a_key_stays_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "AGENT_GRAPH_INTEGRITY_KEY"  # the flag says it to this process and to those it starts
    monkeypatch.setenv(variable, "")
    assert b"nothing is sealed" in cli("--no-integrity-key", "keys", "show").out
    monkeypatch.setenv(variable, "")
    refused = cli("keys", "show", "--json")
    assert (refused.code, refused.json["error_code"]) == (5, "KEY_MODE_MISMATCH")
    assert cli("--no-integrity-key", "runs", "--json").code == 0
