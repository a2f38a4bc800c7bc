"""Settings: which source wins, what is refused and by which name, what is never shown."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from agent_graph.core.limits import DEFAULTS, Limits, ceiling
from agent_graph.errors import SettingInvalid
from agent_graph.settings import SETTINGS, Settings, default_data_dir, load
from agent_graph.settings.http import HttpSettings
from agent_graph.settings.notify import NotifySettings

SECRET = "k-3f9a-never-shown"


def refusal(**environ: str) -> SettingInvalid:
    with pytest.raises(SettingInvalid) as caught:
        load(environ=environ)
    assert caught.value.code == "SETTING_INVALID"
    assert caught.value.exit_code == 2
    return caught.value


def written(folder: Path, text: str) -> dict[str, str]:
    (folder / "settings.toml").write_text(text, encoding="utf-8")
    return {"AGENT_GRAPH_DATA_DIR": str(folder)}


def test_with_nothing_said_the_defaults_hold_and_say_so() -> None:
    settings = load(environ={})
    assert settings.data_dir == default_data_dir()
    assert settings.data_dir.is_absolute()
    assert (settings.model, settings.provider, settings.toolsets, settings.log) == ("", "auto", ("core",), "warning")
    assert settings.ollama_host == "http://127.0.0.1:11434"
    assert settings.ollama_num_parallel == 4
    assert settings.limits == DEFAULTS
    assert set(settings.sources.values()) == {"default"}


def test_a_flag_beats_the_environment_and_the_environment_the_file(tmp_path: Path) -> None:
    environ = written(tmp_path, 'model = "from-file"')
    assert load(environ=environ).model == "from-file"
    environ["AGENT_GRAPH_MODEL"] = "from-environment"
    assert load(environ=environ).model == "from-environment"
    settings = load({"model": "from-flag"}, environ=environ)
    assert settings.model == "from-flag"
    assert settings.sources["model"] == "flag --model"


def test_each_value_names_its_source(tmp_path: Path) -> None:
    environ = written(tmp_path, 'log = "debug"\n[limits]\nnodes = 50') | {"OLLAMA_HOST": "gpu:1234"}
    sources = load(environ=environ).sources
    assert sources["data_dir"] == "environment AGENT_GRAPH_DATA_DIR"
    assert sources["ollama_host"] == "environment OLLAMA_HOST"
    assert sources["log"] == "settings.toml"
    assert sources["limits.nodes"] == "settings.toml"
    assert sources["limits.edges"] == "default"


def test_empty_is_not_given() -> None:
    settings = load(
        {"model": ""}, environ={"AGENT_GRAPH_MODEL": "", "OLLAMA_HOST": "", "AGENT_GRAPH_LIMITS__NODES": ""}
    )
    assert set(settings.sources.values()) == {"default"}


def test_a_named_value_is_told_apart_from_the_same_default() -> None:
    host = "http://127.0.0.1:11434"
    assert not load(environ={}).named("ollama_host")
    assert load(environ={"OLLAMA_HOST": host}).named("ollama_host")


def test_memory_keeps_nothing_and_reads_no_file() -> None:
    settings = load({"data_dir": ":memory:"}, environ={})
    assert settings.volatile
    assert settings.data_dir is None
    assert settings.models_dir == default_data_dir() / "models"
    assert settings.describe()["data_dir"] == {"value": ":memory:", "source": "flag --data-dir"}


def test_the_data_folder_is_absolute_and_knows_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load(environ={"AGENT_GRAPH_DATA_DIR": "~/councils"}).data_dir == tmp_path / "councils"
    monkeypatch.chdir(tmp_path)
    settings = load(environ={"AGENT_GRAPH_DATA_DIR": "here"})
    assert settings.data_dir == tmp_path / "here"
    assert settings.models_dir == tmp_path / "here" / "models"
    assert not settings.data_dir.exists(), "reading settings makes nothing"


def test_limits_come_from_the_environment_over_the_file(tmp_path: Path) -> None:
    environ = written(tmp_path, "[limits]\nnodes = 50\nedges = 60") | {"AGENT_GRAPH_LIMITS__NODES": "1_000"}
    limits = load(environ=environ).limits
    assert (limits.nodes, limits.edges) == (1000, 60)
    assert limits.page == DEFAULTS.page


@pytest.mark.parametrize("name", [f.name for f in fields(Limits)])
def test_every_limit_can_be_set_up_to_its_ceiling_and_not_above(name: str) -> None:
    variable = f"AGENT_GRAPH_LIMITS__{name.upper()}"
    top = ceiling(name)
    assert getattr(load(environ={variable: str(top)}).limits, name) == top
    wrong = refusal(**{variable: str(top + 1)})
    assert variable in wrong.message
    assert wrong.details["ceiling"] == top


def test_a_limit_nothing_acts_on_yet_is_refused(tmp_path: Path) -> None:
    wrong = refusal(AGENT_GRAPH_LIMITS__FRAME_DEPTH="4")
    assert "AGENT_GRAPH_LIMITS__FRAME_DEPTH is set, but eight frames stand inside one another" in wrong.message
    assert "limits.frame_depth" in refusal(**written(tmp_path, "[limits]\nframe_depth = 4")).message


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "1e3", "²"])
def test_a_limit_is_a_whole_number_above_zero(value: str) -> None:
    wrong = refusal(AGENT_GRAPH_LIMITS__NODES=value)
    assert "AGENT_GRAPH_LIMITS__NODES" in wrong.message
    assert "whole number" in wrong.message


def test_an_unknown_limit_is_refused_with_the_one_that_was_meant() -> None:
    wrong = refusal(AGENT_GRAPH_LIMITS__NODE="5")
    assert "Did you mean AGENT_GRAPH_LIMITS__NODES?" in wrong.message
    assert "nodes" in wrong.details["known"]
    assert "Did you mean" not in refusal(AGENT_GRAPH_LIMITS__QQQQ="5").message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('modle = "x"', "did you mean model?"),
        ('data_dir = "/elsewhere"', "there is no setting 'data_dir'"),
        ("[limits]\nnode = 5", "Did you mean AGENT_GRAPH_LIMITS__NODES?"),
        ("[limits]\nnodes = 0", "settings.toml: limits.nodes"),
        ("limits = 5", "limits has the wrong type"),
        ("model = true", "model has the wrong type"),
        ('[model]\nname = "x"', "model has the wrong type"),
        ("model =", "cannot be read"),
        ('log = "loud"', "settings.toml: log is 'loud'"),
    ],
)
def test_a_wrong_file_is_refused_by_key(tmp_path: Path, text: str, told: str) -> None:
    assert told in refusal(**written(tmp_path, text)).message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_bytes(b"model = '\xff'")
    assert "cannot be read" in refusal(AGENT_GRAPH_DATA_DIR=str(tmp_path)).message


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "is not a folder" in refusal(AGENT_GRAPH_DATA_DIR=str(tmp_path / "file")).message


def test_toolsets_are_a_list_in_the_file_and_commas_elsewhere(tmp_path: Path) -> None:
    assert load(environ=written(tmp_path, 'toolsets = ["core"]')).toolsets == ("core",)
    assert load({"toolsets": "core, author"}, environ={}).toolsets == ("core", "author")
    assert load({"toolsets": "core, core"}, environ={}).toolsets == ("core",)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("AGENT_GRAPH_PROVIDER", "olama", "did you mean ollama?"),
        ("OPENAI_BASE_URL", "gpu:8000", "starts with http:// or https://"),
        ("AGENT_GRAPH_TOOLSETS", "core,connect", "'connect' is not there yet"),
        ("AGENT_GRAPH_TOOLSETS", "cor", "did you mean core?"),
        ("AGENT_GRAPH_POLICY_OVERRIDES", "loose", "tighten, any"),
        ("AGENT_GRAPH_LOG", "verbose", "debug, info, warning, error"),
        ("AGENT_GRAPH_SCRIPT", "no-such-file.json", "there is no file"),
        ("AGENT_GRAPH_INTEGRITY_KEY", "none", "it can be on, off"),
        ("OLLAMA_NUM_PARALLEL", "0", "whole number above 0"),
    ],
)
def test_a_value_nothing_can_use_is_refused_by_the_name_it_came_under(variable: str, value: str, told: str) -> None:
    message = refusal(**{variable: value}).message
    assert variable in message
    assert told in message


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(SettingInvalid, match="no setting 'colour'"):
        load({"colour": "red"}, environ={})


def test_a_script_makes_the_provider_scripted_unless_one_is_named(tmp_path: Path) -> None:
    script = tmp_path / "answers.json"
    script.write_text("[]", encoding="utf-8")
    settings = load(environ={"AGENT_GRAPH_SCRIPT": str(script)})
    assert (settings.provider, settings.script) == ("scripted", script)
    assert settings.sources["provider"] == "environment AGENT_GRAPH_SCRIPT"
    assert load({"provider": "embedded"}, environ={"AGENT_GRAPH_SCRIPT": str(script)}).provider == "embedded"
    assert "AGENT_GRAPH_SCRIPT" in refusal(AGENT_GRAPH_PROVIDER="scripted").message


def test_a_secret_is_shown_nowhere(tmp_path: Path) -> None:
    settings = load(environ=written(tmp_path, f'ollama_api_key = "{SECRET}"'))
    assert settings.ollama_api_key == SECRET
    assert SECRET not in repr(settings)
    shown = settings.describe()
    assert SECRET not in json.dumps(shown)
    assert shown["ollama_api_key"] == {"value": "(set, not shown)", "source": "settings.toml"}
    assert load(environ={}).describe()["ollama_api_key"] == {"value": "", "source": "default"}


@pytest.mark.parametrize("host", [f"http://me:{SECRET}@gpu:11434", f"me:{SECRET}@gpu"])
def test_a_password_in_the_host_is_refused_and_not_repeated(host: str) -> None:
    wrong = refusal(OLLAMA_HOST=host)
    assert "OLLAMA_API_KEY" in wrong.message
    assert SECRET not in wrong.message + json.dumps(wrong.details)


def test_what_is_described_is_json_and_names_every_setting_once(tmp_path: Path) -> None:
    shown = load({"data_dir": str(tmp_path)}, environ={}).describe()
    assert json.loads(json.dumps(shown)) == shown
    assert set(shown) == {setting.name for setting in SETTINGS} | {"limits", "hosts", "redaction"}
    limits = shown["limits"]
    assert isinstance(limits, dict)
    assert set(limits) == {f.name for f in fields(Limits)}


def test_the_table_of_settings_and_the_record_have_the_same_fields() -> None:
    http = {f"http_{f.name}" for f in fields(HttpSettings)}
    notify = {f"notify_{f.name}" for f in fields(NotifySettings)}
    held = {f.name for f in fields(Settings)} - {"http", "notify"} | http | notify
    assert held == {setting.name for setting in SETTINGS} | {"limits", "hosts", "policies", "redactor", "sources"}
