"""Named model hosts: where they are read from, what is refused and by which name, what is never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_graph.errors import SettingInvalid
from agent_graph.settings import load

SECRET = "k-3f9a-never-shown"
TWO = """
default_host = "gpu"

[hosts.gpu]
kind = "ollama"
url = "10.0.0.5"
parallel = 2
model = "llama3.2:3b"

[hosts.cloud]
kind = "openai_compatible"
url = "https://models.example.com"
key_env = "CLOUD_KEY"
"""


def written(folder: Path, text: str, **environ: str) -> dict[str, str]:
    (folder / "settings.toml").write_text(text, encoding="utf-8")
    return {"AGENT_GRAPH_DATA_DIR": str(folder), **environ}


def refusal(environ: dict[str, str]) -> SettingInvalid:
    with pytest.raises(SettingInvalid) as caught:
        load(environ=environ)
    assert caught.value.code == "SETTING_INVALID"
    return caught.value


def test_hosts_are_read_from_the_file_with_keys_from_the_environment(tmp_path: Path) -> None:
    settings = load(environ=written(tmp_path, TWO, CLOUD_KEY=f" {SECRET} "))
    cloud, gpu = settings.hosts
    assert (gpu.name, gpu.kind, gpu.address.url) == ("gpu", "ollama", "http://10.0.0.5:11434")
    assert (gpu.parallel, gpu.model, gpu.key_env, gpu.key) == (2, "llama3.2:3b", "", "")
    assert (cloud.name, cloud.kind, cloud.address.url) == (
        "cloud", "openai_compatible", "https://models.example.com:443/v1",
    )  # fmt: skip
    assert (cloud.parallel, cloud.model, cloud.key) == (4, "", SECRET)
    assert settings.default_host == "gpu"


def test_the_environment_alone_can_name_a_host() -> None:
    environ = {
        "AGENT_GRAPH_DATA_DIR": ":memory:",
        "AGENT_GRAPH_HOSTS__GPU__KIND": "openai_compatible",
        "AGENT_GRAPH_HOSTS__GPU__URL": "http://10.0.0.5:8000/api/v1",
        "AGENT_GRAPH_HOSTS__GPU__PARALLEL": "16",
        "AGENT_GRAPH_HOSTS__GPU__MODEL": "",
    }
    (gpu,) = load(environ=environ).hosts
    assert (gpu.address.url, gpu.parallel, gpu.model) == ("http://10.0.0.5:8000/api/v1", 16, "")


def test_the_environment_beats_the_file_field_by_field(tmp_path: Path) -> None:
    environ = written(tmp_path, TWO, AGENT_GRAPH_HOSTS__GPU__URL="10.0.0.6")
    gpu = load(environ=environ).hosts[1]
    assert (gpu.address.url, gpu.parallel) == ("http://10.0.0.6:11434", 2)


def test_a_key_is_shown_nowhere_and_its_absence_is(tmp_path: Path) -> None:
    settings = load(environ=written(tmp_path, TWO, CLOUD_KEY=SECRET))
    shown = settings.describe()["hosts"]
    assert SECRET not in repr(settings) + json.dumps(settings.describe())
    assert shown == {
        "cloud": {
            "kind": "openai_compatible", "url": "https://models.example.com:443/v1", "parallel": 4, "model": "",
            "key": "CLOUD_KEY, set, not shown", "source": "settings.toml",
        },
        "gpu": {
            "kind": "ollama", "url": "http://10.0.0.5:11434", "parallel": 2, "model": "llama3.2:3b", "key": "none",
            "source": "settings.toml",
        },
    }  # fmt: skip
    lacking = load(environ=written(tmp_path, TWO)).hosts[0]
    assert lacking.lacks_key
    assert lacking.describe()["key"] == "CLOUD_KEY, not set"


@pytest.mark.parametrize(("flags", "environ"), [
    ({"provider": "embedded"}, {}), ({"ollama_host": "gpu9"}, {}), ({}, {"AGENT_GRAPH_PROVIDER": "ollama"}),
])  # fmt: skip
def test_who_says_who_answers_needs_no_default_host(
    tmp_path: Path, flags: dict[str, str], environ: dict[str, str]
) -> None:
    settings = load(flags, environ=written(tmp_path, TWO) | environ)
    assert settings.default_host == ""
    assert len(settings.hosts) == 2


HOST = '[hosts.gpu]\nkind = "ollama"\nurl = "10.0.0.5"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[hosts]\ngpu = 7", "hosts.gpu: it is a table"),
        ("hosts = 7", "hosts has the wrong type"),
        ('[hosts.gpu]\nkind = "ollama"', "hosts.gpu: a host needs url"),
        ('[hosts.gpu]\nurl = "10.0.0.5"', "hosts.gpu: a host needs kind"),
        ('[hosts.GPU]\nkind = "ollama"\nurl = "x"', "small letters"),
        ('[hosts."hf.co"]\nkind = "ollama"\nurl = "x"', "small letters"),
        (HOST.replace("ollama", "olama"), "did you mean ollama?"),
        (HOST.replace("ollama", "openai_compatible"), "hosts.gpu.url is '10.0.0.5': it starts with http://"),
        (HOST.replace("10.0.0.5", "ftp://x"), 'the scheme "ftp" is not http or https'),
        (HOST + "parallel = 0", "hosts.gpu.parallel is '0': it must be a whole number"),
        (HOST + "parallel = true", "hosts.gpu.parallel: it has the wrong type"),
        (HOST + "parralel = 2", "did you mean parallel?"),
        (HOST + 'address = "x"', "a host has kind, url, parallel, model, key_env"),
        (HOST + 'key_env = "sk-1234 5"', "hosts.gpu.key_env"),
        ('default_host = "gpo"\n' + HOST, "no host has that name; there are: gpu"),
        ('default_host = "gpu"', "there is no table [hosts.gpu]"),
        ("".join(HOST.replace("gpu", f"h{n}") for n in range(65)), "there may be 64"),
    ],
)
def test_a_wrong_host_is_refused_by_its_key(tmp_path: Path, text: str, told: str) -> None:
    assert told in refusal(written(tmp_path, text)).message


@pytest.mark.parametrize(
    ("name", "told"),
    [("AGENT_GRAPH_HOSTS__GPU", "it is AGENT_GRAPH_HOSTS__NAME__FIELD"),
     ("AGENT_GRAPH_HOSTS__G.U__URL", "small letters"),
     ("AGENT_GRAPH_HOSTS__GPU__URI", "AGENT_GRAPH_HOSTS__GPU__URI: a host has kind, url")],
)  # fmt: skip
def test_a_wrong_variable_is_refused_by_its_name(name: str, told: str) -> None:
    assert told in refusal({"AGENT_GRAPH_DATA_DIR": ":memory:", name: "x"}).message


@pytest.mark.parametrize("field", ["key", "api_key", "token"])
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, field: str) -> None:
    wrong = refusal(written(tmp_path, f'{HOST}{field} = "{SECRET}"'))
    assert "key_env" in wrong.message
    assert SECRET not in wrong.message + json.dumps(wrong.details)


def test_a_key_in_place_of_a_variables_name_is_refused_and_not_repeated(tmp_path: Path) -> None:
    wrong = refusal(written(tmp_path, f'{HOST}key_env = "{SECRET}"'))
    assert "the name of an environment variable" in wrong.message
    assert SECRET not in wrong.message + json.dumps(wrong.details)


@pytest.mark.parametrize("kind", ["ollama", "openai_compatible"])
def test_a_password_in_the_address_is_refused_and_not_repeated(tmp_path: Path, kind: str) -> None:
    text = f'[hosts.gpu]\nkind = "{kind}"\nurl = "http://me:{SECRET}@gpu"'
    wrong = refusal(written(tmp_path, text))
    assert "key_env" in wrong.message
    assert SECRET not in wrong.message + json.dumps(wrong.details)
