"""Every way a host can say no becomes one error of the contract, by its status."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_graph.errors import (
    ModelBadReply,
    ModelNotFound,
    ModelOverloaded,
    ModelRefused,
    ModelServerError,
    ModelUnreachable,
    Upstream,
)
from agent_graph.llm.hosts import HostAddress, parse_host
from agent_graph.llm.ollama import OllamaClient
from agent_graph.llm.refusals import error_text, retry_after_ms
from tests.fakes.ollama_server import OllamaServer, Response, busy, error, page, stream
from tests.llm.conftest import Ask


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, "the input exceeds the context length of 2048", ModelRefused),
        (401, "unauthorized", ModelRefused),
        (403, "cloud is disabled", ModelRefused),
        (413, "too much", ModelRefused),
        (429, "you have reached your session usage limit", ModelOverloaded),
        (499, "request canceled", ModelRefused),
        (500, 'invalid format: "x"', ModelServerError),
        (502, "bad gateway", ModelServerError),
        (503, "server busy, please try again.  maximum pending requests exceeded", ModelOverloaded),
        (504, "late", ModelServerError),
        (204, "", ModelServerError),
    ],
)
async def test_a_status_decides_the_error_and_the_text_is_kept(
    server: OllamaServer, client: OllamaClient, ask: Ask, status: int, text: str, kind: type[Upstream]
) -> None:
    server.on("hello", error(status, text))
    with pytest.raises(kind) as caught:
        await client.chat(ask(), lambda *_: None)
    assert type(caught.value) is kind
    assert caught.value.details["status"] == status
    assert caught.value.details["body"] == text
    assert text in caught.value.message
    assert len(server.chats) == 1


async def test_OL14_a_usage_limit_says_when_to_come_back(server: OllamaServer, client: OllamaClient, ask: Ask) -> None:
    server.on("hello", busy("7"))
    with pytest.raises(ModelOverloaded) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.code == "MODEL_OVERLOADED"
    assert caught.value.details["retry_after_ms"] == 7000


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        ("0", 0),
        ("120", 120_000),
        ("Mon, 30 Nov 2026 12:00:05 GMT", 5000),
        ("Mon, 30 Nov 2026 12:00:05 -0000", 5000),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("", None),
        ("soon", None),
        ("-5", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, wait_ms: int | None) -> None:
    assert retry_after_ms(header, now=lambda: datetime(2026, 11, 30, 12, tzinfo=UTC)) == wait_ms


def test_a_date_is_compared_with_the_clock() -> None:
    assert retry_after_ms("Mon, 30 Nov 2020 12:00:00 GMT") == 0


async def test_a_missing_model_names_the_installed_ones(ask: Ask) -> None:
    async with OllamaServer("b:1b", "a:latest") as server:
        client = OllamaClient(parse_host(server.url))
        with pytest.raises(ModelNotFound) as caught:
            await client.chat(ask(model="gone"), lambda *_: None)
        await client.aclose()
    assert caught.value.code == "MODEL_NOT_FOUND"
    assert not caught.value.retryable
    assert caught.value.details["installed"] == ["b:1b", "a:latest"]
    assert caught.value.details["body"] == "model 'gone' not found"
    assert '"gone"' in caught.value.message
    assert "b:1b, a:latest" in caught.value.message


async def test_a_missing_model_is_told_also_where_nothing_can_be_listed(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.routes["/api/tags"] = error(500, "broken")
    with pytest.raises(ModelNotFound) as caught:
        await client.chat(ask(model="gone"), lambda *_: None)
    assert "model 'gone' not found" in caught.value.message


async def test_a_missing_route_is_not_taken_for_a_missing_model(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.routes["/api/chat"] = Response((b"404 page not found",), 404)
    with pytest.raises(ModelNotFound) as caught:
        await client.chat(ask(), lambda *_: None)
    assert "404 page not found" in caught.value.message
    assert "installed" not in caught.value.details


@pytest.mark.parametrize("where", ["/elsewhere", "http://127.0.0.2:1/api/chat"])
async def test_a_redirect_is_never_followed(server: OllamaServer, client: OllamaClient, ask: Ask, where: str) -> None:
    server.on("hello", page("", status=307, Location=where))
    with pytest.raises(ModelRefused) as caught:
        await client.chat(ask(), lambda *_: None)
    assert where in caught.value.message
    assert [request.path for request in server.requests][-1] == "/api/chat"


async def test_a_page_with_an_error_status_is_shown_as_it_is(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.on("hello", page("<html>gateway" + "x" * 100_000, status=502))
    with pytest.raises(ModelServerError) as caught:
        await client.chat(ask(), lambda *_: None)
    assert len(caught.value.details["body"]) == 200
    assert caught.value.details["body"].startswith("<html>gateway")


async def test_an_error_whose_body_breaks_off_keeps_its_status(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.on("hello", Response((b'{"error":', "eof"), 503))
    with pytest.raises(ModelOverloaded) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["status"] == 503


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error":"why"}', "why"),
        (b'{"error":{"message":"why","code":400}}', "why"),
        (b'{"error":{"code":400}}', '{"error":{"code":400}}'),
        (b'["error"]', '["error"]'),
        (b"\xff", "\ufffd"),
        (b"", ""),
    ],
)
def test_an_error_text_is_found_in_its_several_shapes(body: bytes, text: str) -> None:
    assert error_text(body) == text


async def test_OL14_a_key_goes_as_a_bearer_to_the_named_host_and_stays_out_of_errors(ask: Ask) -> None:
    async with OllamaServer("glm:cloud", key="k-secret") as server:
        without = OllamaClient(parse_host(server.url), model="glm:cloud")
        with pytest.raises(ModelRefused) as caught:
            await without.chat(ask(), lambda *_: None)
        assert caught.value.details["body"] == "unauthorized"
        given = OllamaClient(parse_host(server.url), model="glm:cloud", api_key="k-secret\n")
        assert (await given.chat(ask(), lambda *_: None)).text == "A fine answer."
        server.on("leak", error(400, "bad header Bearer k-secret"))
        with pytest.raises(ModelRefused) as leaked:
            await given.chat(ask("leak"), lambda *_: None)
        server.routes["/api/tags"] = page("<b>k-secret</b>")
        with pytest.raises(ModelBadReply) as listed:
            await given.models()
        await without.aclose()
        await given.aclose()
    for refused in (leaked, listed):
        assert "k-secret" not in f"{refused.value.message}{refused.value.details}"
        assert "***" in refused.value.message


async def test_a_key_is_not_sent_to_a_default_nobody_named(server: OllamaServer, ask: Ask) -> None:
    unnamed = HostAddress("http", "127.0.0.1", server.port, named=False)
    client = OllamaClient(unnamed, model="fake", api_key="k-secret")
    await client.chat(ask(), lambda *_: None)
    await client.aclose()
    assert all("authorization" not in request.headers for request in server.requests)


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5h://127.0.0.1:9", "odd://127.0.0.1:9"])
async def test_OL11_loopback_is_never_called_through_a_proxy(
    server: OllamaServer, client: OllamaClient, ask: Ask, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, proxy)
    assert (await client.chat(ask(), lambda *_: None)).text == "A fine answer."


async def test_OL11_another_host_is_called_through_the_proxy(
    server: OllamaServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    client = OllamaClient(parse_host("models.example:80"), model="fake")
    with pytest.raises(Upstream):  # the scripted server is no proxy; that it was asked is what counts
        await client.chat(ask(), lambda *_: None)
    await client.aclose()
    assert {request.headers["host"] for request in server.requests} == {"models.example"}


@pytest.mark.parametrize("proxy", ["socks5h://127.0.0.1:9", "odd://127.0.0.1:9"])
async def test_OL11_an_odd_proxy_is_an_error_of_the_call_and_nothing_worse(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    client = OllamaClient(parse_host("models.invalid:80"), model="fake")
    with pytest.raises(ModelUnreachable) as caught:
        await client.chat(ask(), lambda *_: None)
    await client.aclose()
    assert caught.value.details["reason"] == "proxy"
    assert "ALL_PROXY" in caught.value.message


async def test_a_body_that_cannot_be_unpacked_is_a_bad_reply(
    server: OllamaServer, client: OllamaClient, ask: Ask
) -> None:
    server.on("hello", Response((b"not gzip",), headers=(("Content-Encoding", "gzip"),)))
    with pytest.raises(ModelBadReply) as caught:
        await client.chat(ask(), lambda *_: None)
    assert caught.value.details["reason"] == "not_json"


async def test_a_host_that_hangs_up_without_a_word_is_unreachable(ask: Ask) -> None:
    async with OllamaServer() as server:
        server.routes["/api/show"] = stream("rst")
        client = OllamaClient(parse_host(server.url), model="fake")
        with pytest.raises(ModelUnreachable):
            await client.chat(ask(), lambda *_: None)
        await client.aclose()
