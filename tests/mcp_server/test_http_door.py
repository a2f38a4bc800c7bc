"""The door: which hosts and pages may call, how much of the server one caller gets, what is told of it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent_graph.errors import AddressInUse, AddressNotAllowed
from agent_graph.mcp_server.http import rates
from agent_graph.mcp_server.http.serving import check_address, listening, url_of
from agent_graph.settings import load
from agent_graph.tools.deps import Deps
from tests.fakes.opened import Tools, opened
from tests.mcp_server.served import HEADERS, MODERN, asked, call, envelope, made, on_a_port, token_for
from tests.tools.specs import echo, keep


@pytest.fixture
async def deps() -> AsyncIterator[Deps]:
    async with opened() as found:
        yield found


# -- where it listens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "graphs.example"])
def test_without_authentication_no_other_address_than_the_loopback_one_is_served(host: str) -> None:
    with pytest.raises(AddressNotAllowed) as refused:
        check_address(load({"http_host": host, "http_auth": "none"}, environ={}).http)
    assert (refused.value.code, refused.value.exit_code) == ("ADDRESS_NOT_ALLOWED", 2)
    check_address(load({"http_host": host}, environ={}).http)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_on_the_loopback_address_nobody_has_to_be_asked(host: str) -> None:
    check_address(load({"http_host": host, "http_auth": "none"}, environ={}).http)


def test_an_address_that_is_taken_is_said_to_be() -> None:
    first = load({"http_port": "0"}, environ={}).http
    with listening(first) as listener:
        port = str(listener.getsockname()[1])
        assert url_of(first, listener) == f"http://127.0.0.1:{port}/mcp"
        with pytest.raises(AddressInUse) as refused:
            listening(load({"http_port": port}, environ={}).http)
    assert (refused.value.code, refused.value.exit_code) == ("ADDRESS_IN_USE", 5)
    assert port in refused.value.message


# -- hosts and origins ---------------------------------------------------------------------------------------------

OURS = ["127.0.0.1", "127.0.0.1:8765", "localhost:1", "[::1]:8765", "[::1]", "graphs.example", "graphs.example:443"]
NOT_OURS = ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::2]:1",
            "127.0.0.1:80:80", "127.0.0.1:x", "graphs.example.evil:443"]  # fmt: skip


async def test_only_a_host_this_server_is_set_up_for_may_be_named(deps: Deps) -> None:
    async with asked(made(deps, auth="none", allowed_hosts="graphs.example")) as client:
        for host in OURS:
            assert (await call(client, "graph_list", host=host)).status_code == 200, host
        for host in NOT_OURS:
            refused = await call(client, "graph_create", {"spec": keep()}, host=host)
            assert (refused.status_code, refused.json()["error_code"]) == (421, "HOST_NOT_ALLOWED"), host
    assert (await deps.store.graphs.list())[0] == ()


async def test_the_host_is_looked_at_before_the_token_and_on_every_path(deps: Deps) -> None:
    async with asked(made(deps)) as client:
        for path in ("/mcp", "/metrics", "/anything", "/.well-known/oauth-protected-resource"):
            assert (await client.get(path, headers={"host": "evil.example"})).status_code == 421
        assert (await client.get("/healthz", headers={"host": "10.0.0.7"})).status_code == 200


async def test_on_another_address_the_names_have_to_be_set(deps: Deps) -> None:
    async with asked(made(deps, host="192.0.2.1", allowed_hosts="graphs.example:443")) as client:
        for host, status in (("192.0.2.1:8765", 401), ("graphs.example:443", 401), ("graphs.example:80", 421),
                             ("localhost:8765", 421)):  # fmt: skip
            assert (await client.post("/mcp", headers={"host": host})).status_code == status, host


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8765"])
async def test_a_page_of_another_server_may_not_call(deps: Deps, origin: str) -> None:
    async with asked(made(deps, auth="none")) as client:
        refused = await call(client, "graph_create", {"spec": keep()}, origin=origin)
        assert (refused.status_code, refused.json()["error_code"]) == (403, "ORIGIN_NOT_ALLOWED")
        assert "access-control-allow-origin" not in refused.headers
    assert (await deps.store.graphs.list())[0] == ()


async def test_its_own_pages_and_those_that_are_named_may(deps: Deps) -> None:
    async with asked(made(deps, auth="none", allowed_origins="https://app.example")) as client:
        assert (await call(client, "graph_list", origin="http://127.0.0.1:8765")).status_code == 200
        allowed = await call(client, "graph_list", origin="https://app.example")
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        before = await client.options(
            "/mcp", headers={"origin": "https://app.example", "access-control-request-method": "POST",
                             "access-control-request-headers": "authorization,mcp-protocol-version"}
        )  # fmt: skip
        assert before.status_code == 200


# -- how much ------------------------------------------------------------------------------------------------------


async def test_a_body_too_large_is_413_and_changes_nothing(deps: Deps) -> None:
    async with asked(made(deps, auth="none", body_bytes="2000")) as client:
        spec = {**keep(), "description": "x" * 3_000}
        refused = await call(client, "graph_create", {"spec": spec})
        assert (refused.status_code, refused.json()["error_code"]) == (413, "BODY_TOO_LARGE")

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b" " * 1_000

        about = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"}
        assert (await client.post("/mcp", content=pieces(), headers=about)).status_code == 413
        assert envelope(await call(client, "graph_create", {"spec": keep()}))["ok"]


async def test_a_body_that_is_no_message_is_told_what_is_wrong(deps: Deps) -> None:
    async with asked(made(deps, auth="none")) as client:
        about = {"mcp-protocol-version": MODERN}
        for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"a":1,"a":2}', -32700), (b"[" * 5_000, -32700)):
            answer = await client.post("/mcp", content=body, headers=about)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), body


async def test_who_asks_too_often_is_told_when_to_go_on_and_others_are_not_held_up(
    deps: Deps, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(rates.time, "monotonic", lambda: now[0])
    ann, bob = await token_for(deps, "ann", "runs:read"), await token_for(deps, "bob", "runs:read")
    again = await token_for(deps, "ann", "runs:read")
    async with asked(made(deps, rate="30")) as client:
        assert [(await call(client, "graph_list", token=ann)).status_code for _ in range(2)] == [200, 200]
        refused = await call(client, "graph_list", token=again)  # another token, the same principal
        assert (refused.status_code, refused.json()["error_code"]) == (429, "TOO_MANY_REQUESTS")
        assert (refused.headers["retry-after"], refused.json()["retryable"]) == ("2", True)
        assert (await call(client, "graph_list", token=bob)).status_code == 200
        strangers = [(await call(client, "graph_list", token="x")).status_code for _ in range(3)]
        assert strangers == [401, 401, 429]
        now[0] += 2
        assert (await call(client, "graph_list", token=ann)).status_code == 200


def test_the_callers_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "CALLERS", 3)
    held = rates.Rates(60)
    for number in range(10):
        held.take(str(number))
    assert len(held._buckets) == 3


INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}},
}  # fmt: skip
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


async def test_sessions_are_bounded_and_each_is_its_principals(deps: Deps) -> None:
    ann = {"authorization": f"Bearer {await token_for(deps, 'ann', 'runs:read')}"}
    bob = {"authorization": f"Bearer {await token_for(deps, 'bob', 'admin')}"}
    async with asked(made(deps, sessions="1")) as client:
        opened_ = await client.post("/mcp", json=INITIALIZE, headers=ann)
        session = {"mcp-session-id": opened_.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        assert (await client.post("/mcp", json=INITIALIZE, headers=bob)).status_code == 503
        assert (await client.post("/mcp", json=LIST, headers=ann | session)).status_code == 200
        stolen = await client.post("/mcp", json=LIST, headers=bob | session)
        unknown = await client.post("/mcp", json=LIST, headers=bob | {**session, "mcp-session-id": "0" * 32})
        assert (stolen.status_code, stolen.text) == (unknown.status_code, unknown.text) == (404, unknown.text)
        assert (await client.delete("/mcp", headers=ann | session)).status_code == 200
        assert (await client.post("/mcp", json=INITIALIZE, headers=bob)).status_code == 200


async def test_a_session_nobody_uses_is_closed(deps: Deps) -> None:
    app, client = made(deps, auth="none", idle_ms="30", rate="0"), httpx2.AsyncClient(headers=HEADERS)
    async with on_a_port(app) as url, client:
        opened_ = await client.post(url, json=INITIALIZE)
        session = {"mcp-session-id": opened_.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        while "agent_graph_sessions 0" not in (await client.get(url.replace("/mcp", "/metrics"))).text:
            pass
        assert (await client.post(url, json=LIST, headers=session)).status_code == 404


async def test_a_server_without_sessions_gives_none(deps: Deps) -> None:
    async with asked(made(deps, auth="none", stateless="yes")) as client:
        answer = await client.post("/mcp", json=INITIALIZE)
        assert answer.status_code == 200
        assert "mcp-session-id" not in answer.headers
        listed = await client.post("/mcp", json=LIST, headers={"mcp-protocol-version": "2025-11-25"})
        assert "graph_run_start" in listed.text


# -- what is told --------------------------------------------------------------------------------------------------


async def test_health_is_told_to_everybody_and_says_nothing_else(deps: Deps) -> None:
    async with asked(made(deps)) as client:
        assert (await client.get("/healthz")).json() == {"ok": True}


async def test_metrics_count_and_name_nothing(deps: Deps) -> None:
    tools = Tools(deps)
    await tools.ok("graph_create", spec=echo("my_secret_graph"))
    await tools.ended("my_secret_graph", "hello")
    token = await token_for(deps, "ann", "runs:read")
    async with asked(made(deps)) as client:
        await call(client, "graph_list", token=token)
        await call(client, "graph_list")
        await client.get("/secret-path")
        page = await client.get("/metrics", headers={"authorization": f"Bearer {token}"})
    assert page.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    values = dict(line.rsplit(" ", 1) for line in page.text.splitlines() if not line.startswith("#"))
    assert values['agent_graph_runs{status="completed"}'] == "1"
    assert values["agent_graph_model_calls_total"] == "1"
    assert values['agent_graph_http_requests_total{method="POST",route="/mcp",status="200"}'] == "1"
    assert values['agent_graph_http_requests_total{method="POST",route="/mcp",status="401"}'] == "1"
    assert values['agent_graph_http_requests_total{method="GET",route="other",status="404"}'] == "1"
    assert int(values["agent_graph_resident_memory_bytes"]) > 10_000_000
    assert page.text.endswith("# EOF\n")
    assert not re.search("secret|ann|run-", page.text)


async def test_metrics_are_for_who_may_read(deps: Deps) -> None:
    token = await token_for(deps, "ann", "runs:write")
    async with asked(made(deps)) as client:
        assert (await client.get("/metrics", headers={"authorization": f"Bearer {token}"})).status_code == 403


# -- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"PORT": "70000"}, "65535"),
        ({"AUTH": "maybe"}, "required, none"),
        ({"OAUTH_ISSUER": "http://login.example"}, "https://"),
        ({"OAUTH_ISSUER": "https://login.example"}, "http.oauth_resource is not set"),
        ({"OAUTH_SCOPES": "runs:read"}, "OAuth needs an issuer"),
        ({"OAUTH_SCOPES": "runs:fly"}, "runs:read"),
        ({"STATELESS": "maybe"}, "yes, no"),
        ({"SHARING": "some"}, "none, approvals, all"),
        ({"RATE": "-1"}, "whole number"),
        ({"STATE_KEYS": "/nowhere/keys"}, "there is no file"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(environ: dict[str, str], said: str) -> None:
    from agent_graph.errors import SettingInvalid

    with pytest.raises(SettingInvalid) as refused:
        load(environ={f"AGENT_GRAPH_HTTP_{name}": value for name, value in environ.items()})
    assert said in refused.value.message


def test_keys_are_read_from_a_file_and_shown_by_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("a" * 32 + "\n" + "b" * 40 + "\n")
    settings = load(environ={"AGENT_GRAPH_HTTP_STATE_KEYS": str(path)})
    assert settings.http.state_keys == ("a" * 32, "b" * 40)
    assert "a" * 32 not in str(settings) + json.dumps(settings.describe())


def test_they_stand_in_a_table_of_settings_toml(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[http]\nport = 9000\nallowed_hosts = ["a.example", "b.example"]\n')
    settings = load({"data_dir": str(tmp_path)}, environ={})
    assert (settings.http.port, settings.http.allowed_hosts) == (9_000, ("a.example", "b.example"))
    assert settings.sources["http_port"] == "settings.toml"


async def test_a_request_past_the_door_may_do_nothing(deps: Deps) -> None:
    from agent_graph.mcp_server.calling import NOBODY

    caller: Any = NOBODY.caller("assistant")
    refused = await Tools(deps, caller).refused("graph_list")
    assert refused["error_code"] == "INSUFFICIENT_SCOPE"
