"""Who comes in over HTTP: each way of not being let in, by its status, and nothing disclosed by any."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent_graph.mcp_server.http import oauth
from agent_graph.tools import registry
from agent_graph.tools.deps import ADMIN, SCOPES, Caller, Deps
from agent_graph.tools.registry import TOOLS
from agent_graph.tools.tokens import DAY_MS
from tests.fakes.hands import Hands
from tests.fakes.opened import Tools, opened
from tests.mcp_server.served import asked, call, envelope, made, method, token_for
from tests.tools.specs import gated
from tests.tools.test_sight import BY_ID, NOT_THERE, _filled

ISSUER, RESOURCE = "https://login.example", "https://graphs.example/mcp"
METADATA = "https://graphs.example/.well-known/oauth-protected-resource/mcp"
OTHERS = sorted(SCOPES - {ADMIN})


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def deps(hands: Hands) -> AsyncIterator[Deps]:
    async with opened(clock=hands) as found:
        yield found


KEY, OTHER_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def jwks(folder: Path, **keys: Any) -> str:
    """The issuer's keys as a file."""
    algorithm = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
    body = [{**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"} for kid, key in keys.items()]
    path = folder / "jwks.json"
    path.write_text(json.dumps({"keys": body}))
    return str(path)


def issued(key: Any = KEY, *, kid: str = "k1", algorithm: str = "ES256", **changes: Any) -> str:
    """A token of the issuer; a claim that is None is left out."""
    now = int(time.time())
    claims = {
        "iss": ISSUER, "aud": RESOURCE, "sub": "ann", "exp": now + 600, "iat": now, "scope": " ".join(OTHERS),
        **changes,
    }  # fmt: skip
    return jwt.encode(
        {k: v for k, v in claims.items() if v is not None}, key, algorithm=algorithm, headers={"kid": kid}
    )


@pytest.fixture
async def client(deps: Deps, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    settings = {"oauth_issuer": ISSUER, "oauth_resource": RESOURCE, "oauth_jwks": jwks(tmp_path, k1=KEY)}
    async with asked(made(deps, **settings)) as found:
        yield found


def told_nothing(response: httpx2.Response, *secrets: str) -> None:
    """The refusal says no more than that."""
    body = response.json()
    assert set(body) <= {"ok", "error_code", "error", "retryable", "details"}
    for secret in secrets:
        assert secret not in response.text + str(response.headers)


async def test_without_a_token_nobody_comes_in_and_is_told_where_one_is_to_be_had(client: httpx2.AsyncClient) -> None:
    for refused in (await call(client, "graph_list"), await client.get("/metrics"), await client.get("/mcp")):
        assert refused.status_code == 401
        assert refused.json()["error_code"] == "ACCESS_TOKEN_INVALID"
        challenge = refused.headers["www-authenticate"]
        assert challenge == f'Bearer realm="agent-graph", resource_metadata="{METADATA}"'


async def test_the_metadata_of_the_resource_names_its_issuer(client: httpx2.AsyncClient) -> None:
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        said = (await client.get(path)).json()
        assert (said["resource"], said["authorization_servers"]) == (RESOURCE, [ISSUER])
        assert set(said["scopes_supported"]) == SCOPES


async def test_without_an_issuer_there_is_no_metadata(deps: Deps) -> None:
    async with asked(made(deps)) as client:
        assert (await client.get("/.well-known/oauth-protected-resource")).status_code == 404
        assert "resource_metadata" not in (await call(client, "graph_list")).headers["www-authenticate"]


async def test_a_token_of_this_server_lets_its_principal_in(client: httpx2.AsyncClient, deps: Deps) -> None:
    token = await token_for(deps, "ann", *OTHERS)
    assert envelope(await call(client, "graph_create", {"spec": gated()}, token=token))["ok"]
    started = envelope(await call(client, "graph_run_start", {"graph_id": "gated", "input": "x"}, token=token))
    assert (await deps.store.runs.get(started["run_id"])).principal == "ann"


async def test_tokens_are_kept_as_digests_alone(deps: Deps) -> None:
    token = await token_for(deps, "ann", "runs:read")
    rows = await deps.store.tokens.list()
    assert token.rpartition("_")[2] not in str(rows)
    assert "digest" not in str(await registry.call(deps, "graph_token_list", {}, caller=Caller("cli")))


async def _refused(client: httpx2.AsyncClient, token: str) -> httpx2.Response:
    refused = await call(client, "graph_create", {"spec": gated("made")}, token=token)
    assert refused.status_code == 401, refused.text
    assert refused.json()["error"] == "this token does not let anybody in here"
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    return refused


@pytest.mark.parametrize("wrong", ["agt_", "agt_zz_y", "agt_0123456789ab_secret", "x", "x" * 20_000, "agt__", "a.b.c"])
async def test_a_token_nobody_made_lets_nobody_in(client: httpx2.AsyncClient, deps: Deps, wrong: str) -> None:
    await _refused(client, wrong)
    assert (await deps.store.graphs.list())[0] == ()


async def test_the_secret_of_a_token_is_what_counts(client: httpx2.AsyncClient, deps: Deps) -> None:
    token = await token_for(deps, "ann", ADMIN)
    told_nothing(await _refused(client, token[:-1] + ("A" if token[-1] != "A" else "B")), "ann")


async def test_a_revoked_token_lets_nobody_in_from_then_on(client: httpx2.AsyncClient, deps: Deps) -> None:
    token, other = await token_for(deps, "ann", ADMIN), await token_for(deps, "bob", "runs:read")
    assert envelope(await call(client, "graph_list", token=token))["ok"]
    await Tools(deps, Caller("cli")).ok("graph_token_revoke", name="ann")
    told_nothing(await _refused(client, token), "ann", "revoked")
    assert envelope(await call(client, "graph_list", token=other))["ok"]


async def test_a_token_whose_time_is_over_lets_nobody_in(
    client: httpx2.AsyncClient, deps: Deps, hands: Hands
) -> None:  # fmt: skip
    token = await token_for(deps, "ann", ADMIN, days=1)
    assert envelope(await call(client, "graph_list", token=token))["ok"]
    hands.at_ms += DAY_MS
    told_nothing(await _refused(client, token), "ann", "expired")


# -- OAuth ---------------------------------------------------------------------------------------------------------


async def test_a_token_of_the_issuer_lets_its_subject_in(client: httpx2.AsyncClient, deps: Deps) -> None:
    token = issued()
    assert envelope(await call(client, "graph_create", {"spec": gated()}, token=token))["ok"]
    started = envelope(await call(client, "graph_run_start", {"graph_id": "gated", "input": "x"}, token=token))
    assert (await deps.store.runs.get(started["run_id"])).principal == f"{ISSUER}#ann"


@pytest.mark.parametrize("said", [{"scope": None, "scp": ["runs:read"]}, {"scope": "runs:read other"}])
async def test_scopes_are_read_as_issuers_write_them(client: httpx2.AsyncClient, said: Any) -> None:
    assert envelope(await call(client, "graph_list", token=issued(**said)))["ok"]
    assert (await call(client, "graph_create", {"spec": gated()}, token=issued(**said))).status_code == 403


HMAC_KEY = "0" * 64


@pytest.mark.parametrize(
    "make",
    [
        lambda: issued(aud="https://another.example/mcp"),
        lambda: issued(aud=None),
        lambda: issued(iss="https://another.example"),
        lambda: issued(iss=None),
        lambda: issued(exp=int(time.time()) - 60),
        lambda: issued(exp=None),
        lambda: issued(nbf=int(time.time()) + 600),
        lambda: issued(sub=None),
        lambda: issued(sub=""),
        lambda: issued(sub="ann\nkey"),
        lambda: issued(OTHER_KEY),
        lambda: issued(OTHER_KEY, kid="k2"),
        lambda: issued(HMAC_KEY, algorithm="HS256"),
        lambda: issued(None, algorithm="none"),
        lambda: issued()[:-8] + "AAAAAAAA",
    ],
    ids=[
        "another audience", "no audience", "another issuer", "no issuer", "expired", "no expiry", "not yet",
        "no subject", "empty subject", "unprintable subject", "another key", "unknown key", "symmetric", "unsigned",
        "changed",
    ],
)  # fmt: skip
async def test_a_token_that_is_not_the_issuers_for_this_server_lets_nobody_in(
    client: httpx2.AsyncClient, deps: Deps, make: Any
) -> None:
    told_nothing(await _refused(client, make()), "ann", "audience", "expired", "issuer")
    assert (await deps.store.graphs.list())[0] == ()


async def test_a_scope_every_token_must_hold_is_asked_for_at_the_door(deps: Deps, tmp_path: Path) -> None:
    settings = {
        "oauth_issuer": ISSUER, "oauth_resource": RESOURCE, "oauth_jwks": jwks(tmp_path, k1=KEY),
        "oauth_scopes": "runs:write",
    }  # fmt: skip
    async with asked(made(deps, **settings)) as client:
        refused = await call(client, "graph_list", token=issued(scope="runs:read"))
        assert (refused.status_code, refused.json()["details"]) == (403, {"scope": "runs:write"})
        assert envelope(await call(client, "graph_list", token=issued()))["ok"]


async def test_a_new_key_is_found_and_strangers_cannot_have_the_keys_read_again_and_again(
    client: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = oauth._read
    monkeypatch.setattr(oauth, "_read", lambda place: reads.append(place) or read(place))
    assert envelope(await call(client, "graph_list", token=issued()))["ok"]
    jwks(tmp_path, k1=KEY, k2=OTHER_KEY)
    for _ in range(3):
        await _refused(client, issued(OTHER_KEY, kid="k2"))
    assert len(reads) == 1
    monkeypatch.setattr(oauth, "AGAIN_S", 0.0)
    assert envelope(await call(client, "graph_list", token=issued(OTHER_KEY, kid="k2")))["ok"]
    assert len(reads) == 2


async def test_while_the_issuers_keys_cannot_be_read_its_tokens_are_to_be_shown_again(
    client: httpx2.AsyncClient, deps: Deps, tmp_path: Path
) -> None:
    (tmp_path / "jwks.json").unlink()
    refused = await call(client, "graph_list", token=issued())
    assert (refused.status_code, refused.json()["error_code"]) == (503, "ISSUER_UNREACHABLE")
    assert refused.headers["retry-after"] == "30"
    assert envelope(await call(client, "graph_list", token=await token_for(deps, "ann", "runs:read")))["ok"]


async def test_the_keys_can_be_read_from_an_address(deps: Deps, tmp_path: Path) -> None:
    place = jwks(tmp_path, k1=KEY)
    body = await asyncio.to_thread(Path(place).read_bytes)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = {
        "oauth_issuer": ISSUER, "oauth_resource": RESOURCE, "oauth_jwks": f"http://127.0.0.1:{port}/jwks.json",
    }  # fmt: skip
    async with server, asked(made(deps, **settings)) as client:
        assert envelope(await call(client, "graph_list", token=issued()))["ok"]


# -- what one may do, and see --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(name for name, tool in TOOLS.items() if tool.scope != ADMIN))
async def test_a_missing_scope_is_403_and_names_it(client: httpx2.AsyncClient, deps: Deps, name: str) -> None:
    wanted = TOOLS[name].scope
    token = await token_for(deps, "ann", *(SCOPES - {wanted, ADMIN}))
    refused = await call(client, name, _filled(TOOLS[name], NOT_THERE), token=token)
    assert (refused.status_code, refused.json()["details"]) == (403, {"scope": wanted})
    assert f'error="insufficient_scope", scope="{wanted}"' in refused.headers["www-authenticate"]
    assert await Tools(deps).everything() == (((), None), (), ((), None))


@pytest.mark.parametrize(
    ("name", "params", "scope"),
    [
        ("resources/read", {"uri": "graph://graphs"}, "runs:read"),
        ("resources/list", {}, "runs:read"),
        ("completion/complete", {}, "runs:read"),
        ("tasks/cancel", {"taskId": "x"}, "runs:write"),
        ("tasks/update", {"taskId": "x"}, "approvals:decide"),
        ("tasks/get", {"taskId": "x"}, "runs:read"),
    ],
)
async def test_methods_want_the_scope_of_what_they_do(
    client: httpx2.AsyncClient, deps: Deps, name: str, params: Any, scope: str
) -> None:
    token = await token_for(deps, "ann", *(SCOPES - {scope, ADMIN}))
    refused = await method(client, name, params, token=token)
    assert (refused.status_code, refused.json()["details"]) == (403, {"scope": scope})


async def test_the_tools_of_the_operator_are_no_tools_here(client: httpx2.AsyncClient, deps: Deps) -> None:
    token = await token_for(deps, "root", ADMIN)
    for name in ("graph_token_create", "graph_token_list", "graph_run_export", "graph_store_prune"):
        assert envelope(await call(client, name, token=token))["error_code"] == "TOOL_NOT_FOUND"


@pytest.fixture
async def hers(client: httpx2.AsyncClient, deps: Deps) -> dict[str, str]:
    """A run of Ann's that waits, and its approval."""
    ann = await token_for(deps, "ann", *OTHERS)
    assert envelope(await call(client, "graph_create", {"spec": gated()}, token=ann))["ok"]
    given = {"graph_id": "gated", "input": {"draft": "Dear Dana"}}
    run_id = envelope(await call(client, "graph_run_start", given, token=ann))["run_id"]
    await call(client, "graph_run_wait", {"run_id": run_id, "until": "waiting"}, token=ann)
    listed = envelope(await call(client, "graph_approval_list", token=ann))["data"]["approvals"]
    return {"run": run_id, "approval": listed[0]["approval_id"]}


@pytest.mark.parametrize("name", [name for name in BY_ID if TOOLS[name].scope != ADMIN])
async def test_another_principals_run_reads_over_http_like_one_that_does_not_exist(
    client: httpx2.AsyncClient, deps: Deps, hers: dict[str, str], name: str
) -> None:
    bob = await token_for(deps, "bob", *OTHERS)
    before = await Tools(deps).everything()
    seen = await call(client, name, _filled(TOOLS[name], hers), token=bob)
    nothing = await call(client, name, _filled(TOOLS[name], NOT_THERE), token=bob)
    text = seen.text
    for kind, value in hers.items():
        text = text.replace(value, NOT_THERE[kind])
    assert (seen.status_code, text) == (nothing.status_code, nothing.text)
    assert await Tools(deps).everything() == before


@pytest.mark.parametrize("form", ["graph://runs/{run}", "graph://runs/{run}/receipt"])
async def test_another_principals_run_is_no_resource(
    client: httpx2.AsyncClient, deps: Deps, hers: dict[str, str], form: str
) -> None:
    bob = await token_for(deps, "bob", *OTHERS)
    seen = await method(client, "resources/read", {"uri": form.format(**hers)}, token=bob)
    nothing = await method(client, "resources/read", {"uri": form.format(**NOT_THERE)}, token=bob)
    assert seen.text.replace(hers["run"], NOT_THERE["run"]) == nothing.text
    listed = await method(client, "resources/list", {}, token=bob)
    assert hers["run"] not in listed.text
