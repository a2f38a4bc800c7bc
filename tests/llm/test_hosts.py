"""`OLLAMA_HOST` means to us what it means to Ollama's own programs (field case OL10)."""

from __future__ import annotations

import pytest

from agent_graph.errors import SettingInvalid
from agent_graph.llm.hosts import parse_host

WRITTEN_AND_MEANT = [
    ("0.0.0.0:7000", "http://127.0.0.1:7000"),
    ("127.0.0.1:7000", "http://127.0.0.1:7000"),
    ("http://127.0.0.1:7000/", "http://127.0.0.1:7000"),
    ("localhost:7000", "http://localhost:7000"),
    (":7000", "http://127.0.0.1:7000"),
    ("[::1]:7000", "http://[::1]:7000"),
    ("::1", "http://[::1]:11434"),
    ("[::1]", "http://[::1]:11434"),
    ("[::]:7000", "http://[::1]:7000"),
    ("0001:002:003:0004::1", "http://[1:2:3:4::1]:11434"),
    ("http://127.0.0.1:7000/ollama0", "http://127.0.0.1:7000/ollama0"),
    ("http://127.0.0.1:7000/a/b//", "http://127.0.0.1:7000/a/b"),
    ("example.com/path", "http://example.com:11434/path"),
    ("127.0.0.1", "http://127.0.0.1:11434"),
    ("http://host", "http://host:80"),
    ("https://host", "https://host:443"),
    ("HTTPS://Host:8443", "https://host:8443"),
    ("ollama.com", "https://ollama.com:443"),
    ("http://", "http://127.0.0.1:80"),
    ("", "http://127.0.0.1:11434"),
    ("   ", "http://127.0.0.1:11434"),
    (None, "http://127.0.0.1:11434"),
    (' "host:7000" ', "http://host:7000"),
    ("host.", "http://host.:11434"),
]


@pytest.mark.parametrize(("written", "meant"), WRITTEN_AND_MEANT)
def test_OL10_a_host_is_read_as_ollama_reads_it(written: str | None, meant: str) -> None:
    host = parse_host(written)
    assert host.url == meant
    assert host.warnings == ()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("host:99999", "http://host:11434"),
        ("host:abc", "http://host:11434"),
        ("host:0", "http://host:11434"),
        ("host:-1", "http://host:11434"),
        ("host:", "http://host:11434"),
        ("https://host:99999999999999999999", "https://host:443"),
        ("http://[::1]:x/p", "http://[::1]:80/p"),
    ],
)
def test_OL10_a_bad_port_is_the_default_with_a_warning(written: str, meant: str) -> None:
    host = parse_host(written)
    assert host.url == meant
    assert len(host.warnings) == 1
    assert "is no port" in host.warnings[0]


@pytest.mark.parametrize(
    "written",
    ["ftp://x", "unix:///run/o.sock", "a b", "host:1:2", "[::1]7000", "[::x]", "http://h/p?q=1", "http://h#f",
     "a..b", "x" * 64 + ".com", "h%20", "http://a\\b"],
)  # fmt: skip
def test_OL10_what_is_no_address_is_refused_with_the_value_in_the_message(written: str) -> None:
    with pytest.raises(SettingInvalid) as caught:
        parse_host(written)
    assert written in caught.value.message
    assert caught.value.code == "SETTING_INVALID"
    assert caught.value.details["setting"] == "OLLAMA_HOST"


@pytest.mark.parametrize("written", ["http://me:hunter2@host", "me:hunter2@host:7000", "ftp://me:hunter2@host"])
def test_credentials_in_the_address_are_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(SettingInvalid) as caught:
        parse_host(written)
    assert "hunter2" not in f"{caught.value.message}{caught.value.details}"


@pytest.mark.parametrize("written", ["", "localhost", "x.localhost", "127.0.0.9:1", "::1", "0.0.0.0", "[::]"])
def test_the_machines_own_addresses_are_known(written: str) -> None:
    assert parse_host(written).loopback


@pytest.mark.parametrize("written", ["host", "10.0.0.1", "https://ollama.com", "localhost.example.com"])
def test_other_addresses_are_not_the_machines_own(written: str) -> None:
    assert not parse_host(written).loopback


@pytest.mark.parametrize(("written", "takes"), [("", False), ("host", True), ("https://host", True)])
def test_a_key_goes_to_a_host_that_was_named(written: str, takes: bool) -> None:
    assert parse_host(written).takes_key is takes


def test_a_default_is_not_taken_for_something_the_user_said() -> None:
    assert not parse_host("http://127.0.0.1:11434", named=False).takes_key
