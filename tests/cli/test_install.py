"""`agent-graph install`: one entry in a client's file, and nothing else."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from agent_graph.cli import asking
from agent_graph.cli.client_files import changed
from agent_graph.cli.clients import CLIENTS, client_named
from agent_graph.errors import ClientConfigInvalid, InvalidArgument
from tests.cli.conftest import Cli

ENTRY: dict[str, Any] = {"command": "/bin/agent-graph", "args": ["mcp", "--model=m"]}
READ = {"json": json.loads, "toml": tomllib.loads, "yaml": lambda text: YAML(typ="safe", pure=True).load(text)}
OTHERS = {
    "json": """{
    "theme": "dark",
    "KEY": {
        "other": {
            "command": "größer"
        }
    },
    "x": 1.5
}
""",
    "toml": """# mine
model = "o"

[KEY.other]
command = "größer"  # a note

[KEY.other.env]
A = "1"

[profiles.x]
y = 2
""",
    "yaml": """# mine
model: o  # a note
KEY:
  other:
    command: größer
    args:
      - a
      - 'b'
last: [1, 2]
""",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "HERMES_HOME", "CLAUDE_CONFIG_DIR", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("with_others", [True, False], ids=["among others", "into an empty file"])
def test_an_entry_comes_and_goes_and_all_else_stays(form: str, with_others: bool) -> None:
    key = "mcp_servers"
    before = OTHERS[form].replace("KEY", key) if with_others else ""
    made = changed(before, form, key, entry=ENTRY)
    body = READ[form](made)
    assert body[key].pop("agent-graph") == ENTRY
    if with_others:
        assert body == READ[form](before)
    assert changed(made, form, key, entry=ENTRY) == made, "a second time changes nothing"
    again = changed(made, form, key, entry={**ENTRY, "args": ["mcp"]})
    assert READ[form](again)[key]["agent-graph"]["args"] == ["mcp"]
    gone = changed(again, form, key, entry=None)
    assert gone == (before or ("{}\n" if form == "json" else ""))
    assert changed(gone, form, key, entry=None) == gone


@pytest.mark.parametrize("form", READ)
def test_what_somebody_added_to_the_entry_stays(form: str) -> None:
    made = changed("", form, "servers", entry={**ENTRY, "env": {"A B": 'x"y'}, "enabled": True, "timeout": 5})
    again = READ[form](changed(made, form, "servers", entry={"command": "new"}))["servers"]["agent-graph"]
    assert again == {**ENTRY, "command": "new", "env": {"A B": 'x"y'}, "enabled": True, "timeout": 5}


@pytest.mark.parametrize(
    ("form", "text", "says"),
    [
        ("json", '{"servers": {}, // mine\n}', "comments"), ("json", "[]", "no table"), ("json", "{", "is not JSON"),
        ("json", '{"a": 1, "a": 2}', "twice"), ("json", '{"servers": []}', "not a table"),
        ("toml", "servers = { other = { command = 'x' } }\n", "changing more"), ("toml", "= 3", "is not TOML"),
        ("toml", "[servers]\nagent-graph = { command = 'x' }\n", "changing more"),
        ("toml", 'a = """\n[servers.agent-graph]\n"""\n', "changing more"),
        ("yaml", "a: [", "is not YAML"), ("yaml", "- a", "no table"),
    ],
)  # fmt: skip
def test_a_file_that_would_lose_something_is_left_alone(form: str, text: str, says: str) -> None:
    with pytest.raises(ClientConfigInvalid, match=says):
        changed(text, form, "servers", entry=ENTRY)


def test_it_shows_the_change_and_writes_nothing_without_a_yes(cli: Cli, home: Path) -> None:
    for flags in (("--print",), (), ("--json",), ("--json", "--print")):
        done = cli("install", "cursor", *flags)
        assert done.code == (0 if "--print" in flags else 1)
        if "--json" not in flags:
            assert b'+    "agent-graph": {' in done.out
    assert cli("install", "cursor", "--json").json["error_code"] == "INVALID_ARGUMENT"
    assert cli("install", "cursor", "--json", "--print").json["data"]["written"] is False
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("name", CLIENTS)
def test_each_clients_file_is_written_and_cleared_again(cli: Cli, home: Path, name: str, data_dir: Path) -> None:
    client = CLIENTS[name]
    path = client.file(project=False)
    assert path.is_relative_to(home)
    done = cli("install", name, "--yes", "--model", "m", "--data-dir", str(data_dir), "--json").json["data"]
    assert (done["path"], done["written"], done["backup"]) == (str(path), True, "")
    entry = READ[client.form](path.read_text(encoding="utf-8"))[client.key]["agent-graph"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-3:] == ["mcp", "--model=m", f"--data-dir={data_dir}"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"nothing to change" in cli("install", name, "--yes", "--model", "m", "--data-dir", str(data_dir)).out
    gone = cli("install", name, "--remove", "--yes", "--json").json["data"]
    assert gone["backup"] == f"{path}.before-agent-graph"
    assert "agent-graph" not in path.read_text(encoding="utf-8")


def test_a_link_stays_one_and_a_mode_too(cli: Cli, home: Path) -> None:
    kept = home / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text('{"mcpServers": {"other": {"command": "x"}}}', encoding="utf-8")
    kept.chmod(0o640)
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(kept)
    done = cli("install", "cursor", "--yes")
    assert (done.code, "Restart Cursor" in done.err) == (0, True)
    assert link.is_symlink()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert set(json.loads(kept.read_text(encoding="utf-8"))["mcpServers"]) == {"other", "agent-graph"}
    backup = kept.with_name("mcp.json.before-agent-graph").read_text(encoding="utf-8")
    assert backup == '{"mcpServers": {"other": {"command": "x"}}}'


def test_a_project_has_a_file_of_its_own(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert cli("install", "claude-code", "--project", "--yes").code == 0
    assert json.loads((home / ".mcp.json").read_text())["mcpServers"]["agent-graph"]["type"] == "stdio"
    refused = cli("install", "codex", "--project", "--yes", "--json").json
    assert (refused["ok"], refused["error_code"]) == (False, "INVALID_ARGUMENT")


def test_what_cannot_be_read_or_written_is_left_as_it_is(cli: Cli, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{ // mine\n}", encoding="utf-8")
    done = cli("install", "cursor", "--yes")
    assert (done.code, done.err.split(":")[0]) == (1, "CLIENT_CONFIG_INVALID")
    assert str(path) in done.err
    assert "To add by hand under mcpServers" in done.err
    path.write_bytes(b"\xff")
    assert cli("install", "cursor", "--yes", "--json").json["error_code"] == "CLIENT_CONFIG_INVALID"
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("a file", encoding="utf-8")
    assert cli("install", "cursor", "--yes", "--json").json["error_code"] == "CLIENT_CONFIG_INVALID"
    assert path.parent.read_text(encoding="utf-8") == "a file"


def test_a_person_is_asked(in_process: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(prompt: str) -> str | None:
        return answers.pop(0)

    answers = ["no", None, "yes"]
    monkeypatch.setattr(asking, "can_ask", lambda: True)
    monkeypatch.setattr(asking, "line", answer)
    path = home / ".cursor" / "mcp.json"
    for code, there in ((1, False), (1, False), (0, True)):
        assert in_process("install", "cursor").code == code
        assert path.exists() is there


def test_what_only_this_shell_knows_is_remarked_on(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "gpu")
    monkeypatch.setenv("AGENT_GRAPH_MODEL", "m")
    said = cli("install", "cursor", "--print", "--model", "m").err
    assert "OLLAMA_HOST" in said
    assert "AGENT_GRAPH_MODEL" not in said


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_have_other_places_and_say_that_they_were_not_tried(
    in_process: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    place = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}[platform]
    assert CLIENTS["claude-desktop"].path() == home / place / "Claude" / "claude_desktop_config.json"
    assert "was not tried" in in_process("install", "vscode", "--print").err


def test_a_client_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidArgument, match="claude-code, claude-desktop, cursor, vscode, codex, hermes"):
        client_named("emacs")
