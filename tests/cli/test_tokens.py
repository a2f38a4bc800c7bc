"""`tokens` from the shell: shown once, listed without its secret, taken back; also through the owner of the folder."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.terminal import Done

Cli = Callable[..., Done]


def test_a_token_is_shown_once_and_listed_without_its_secret(cli: Cli) -> None:
    made = cli("tokens", "create", "ann", "--expires", "3")
    assert made.code == 0
    token = made.out.decode().strip()
    assert token.startswith("agt_")
    assert "it is not shown again" in made.err
    listed = cli("tokens", "list").out.decode()
    assert "ann" in listed
    assert "runs:read runs:write approvals:decide" in listed
    assert token.rpartition("_")[2] not in listed
    [row] = cli("tokens", "list", "--json").json["data"]["tokens"]
    assert row["expires_at_ms"] - row["created_at_ms"] == 3 * 24 * 60 * 60 * 1000


def test_tokens_are_taken_back_by_name_or_id(cli: Cli) -> None:
    first = cli("tokens", "create", "ann", "--json").json["data"]
    cli("tokens", "create", "ann")
    assert cli("tokens", "revoke", first["token_id"]).out.decode().startswith(f"revoked {first['token_id']}")
    assert cli("tokens", "revoke", "ann").out.decode().count("revoked") == 1
    assert cli("tokens", "revoke", "ann").out.decode().strip() == "none was valid"
    statuses = [row["status"] for row in cli("tokens", "list", "--json").json["data"]["tokens"]]
    assert statuses == ["revoked", "revoked"]


def test_what_cannot_be_meant_is_refused_and_makes_nothing(cli: Cli) -> None:
    for wrong in (["create", "a b"], ["create", "ann", "--scopes", "fly"], ["revoke", "nobody"]):
        refused = cli("tokens", *wrong, "--json")
        assert refused.code == 1
        assert refused.json["error_code"] in ("INVALID_ARGUMENT", "TOKEN_NOT_FOUND")
    assert cli("tokens", "list").out.decode().strip() == "no token; make one: agent-graph tokens create NAME"
