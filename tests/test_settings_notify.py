"""Who is told of approvals and ends: what the operator may set, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_graph.connect.base import KINDS
from agent_graph.errors import SettingInvalid
from agent_graph.settings import load

SECRET = "s" * 32


def env(**more: str) -> dict[str, str]:
    return {f"AGENT_GRAPH_NOTIFY_{name.upper()}": value for name, value in more.items()}


def test_nobody_is_told_unless_the_operator_says_so() -> None:
    notify = load({"data_dir": ":memory:"}, environ={}).notify
    assert (notify.url, notify.command, notify.text, notify.events) == ("", (), False, KINDS)


@pytest.mark.parametrize(
    "url", ["https://example.org/x", "http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]/"]
)
def test_https_and_this_machine_are_taken(url: str) -> None:
    assert load({"data_dir": ":memory:"}, environ=env(url=url, secret=SECRET)).notify.url == url


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"url": "http://example.org/"}, "notify.plain_http"),
        ({"url": "http://127.0.0.1.example.org/"}, "notify.plain_http"),
        ({"url": "ftp://example.org/"}, "https://"),
        ({"url": "file:///etc/passwd"}, "https://"),
        ({"url": "example.org/x"}, "https://"),
        ({"url": "https://user:pass@example.org/"}, "without user"),
        ({"url": "https://example.org/", "secret": "short"}, "24 bytes"),
        ({"url": "https://example.org/", "secret": ""}, "notify.secret is not"),
        ({"events": "run.started"}, "run.ended"),
        ({"command": "rm -rf /"}, "list of texts"),
        ({"command": '{"a": 1}'}, "list of texts"),
        ({"command": '[""]'}, "names the program"),
        ({"timeout_ms": "60001"}, "at most 60000"),
        ({"tries": "101"}, "at most 100"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason_and_without_the_secret(more: dict[str, str], says: str) -> None:
    with pytest.raises(SettingInvalid) as caught:
        load({"data_dir": ":memory:"}, environ=env(**{"secret": SECRET, **more}))
    assert says in caught.value.message
    assert SECRET not in caught.value.message
    assert "pass@" not in caught.value.message


def test_http_elsewhere_is_taken_where_it_is_wanted() -> None:
    environ = env(url="http://example.org/", secret=SECRET, plain_http="yes")
    assert load({"data_dir": ":memory:"}, environ=environ).notify.url == "http://example.org/"


def test_a_command_in_the_file_is_a_list_whose_commas_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[notify]\ncommand = ["tell", "a,b", "c d"]\nevents = ["run.ended"]\n')
    notify = load({"data_dir": str(tmp_path)}, environ={}).notify
    assert (notify.command, notify.events) == (("tell", "a,b", "c d"), ("run.ended",))


def test_neither_address_nor_secret_is_shown() -> None:
    settings = load({"data_dir": ":memory:"}, environ=env(url="https://example.org/a-secret-path", secret=SECRET))
    shown: Any = settings.describe()
    assert "secret-path" not in f"{shown}{settings}{settings.notify.describe()}"
    assert SECRET not in f"{shown}{settings}"
    assert shown["notify_url"]["value"] == "(set, not shown)"
    assert settings.notify.where == "https://example.org/..."
