"""The operator's own policy profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_graph.errors import SettingInvalid
from agent_graph.settings import load


def folder(path: Path, **files: str) -> dict[str, str]:
    (path / "policies").mkdir()
    for name, text in files.items():
        (path / "policies" / f"{name}.toml").write_text(text, encoding="utf-8")
    return {"AGENT_GRAPH_DATA_DIR": str(path)}


def refused(environ: dict[str, str]) -> str:
    with pytest.raises(SettingInvalid) as caught:
        load(environ=environ)
    return caught.value.message


def test_without_a_word_every_run_is_held_to_the_baseline() -> None:
    book = load(environ={}).policies
    assert (book.default, book.own, book.loosen) == ("baseline", {}, False)
    assert book.names == ("baseline", "strict")


def test_a_file_of_the_data_folder_is_a_profile_under_its_name(tmp_path: Path) -> None:
    environ = folder(tmp_path, house='max_nodes = 30\nmodels = ["qwen3*"]\n')
    settings = load(environ={**environ, "AGENT_GRAPH_POLICY_PROFILE": "house", "AGENT_GRAPH_POLICY_OVERRIDES": "any"})
    assert settings.policies.own["house"].describe() == {"name": "house", "max_nodes": 30, "models": ["qwen3*"]}
    assert settings.policies.default == "house"
    assert settings.policies.loosen is True
    shown = settings.describe()
    assert shown["policy_profile"] == {"value": "house", "source": "environment AGENT_GRAPH_POLICY_PROFILE"}
    assert shown["policy_overrides"] == {"value": "any", "source": "environment AGENT_GRAPH_POLICY_OVERRIDES"}


def test_a_profile_that_is_not_there_stops_the_program(tmp_path: Path) -> None:
    environ = folder(tmp_path, house="")
    message = refused({**environ, "AGENT_GRAPH_POLICY_PROFILE": "hause"})
    assert "there are baseline, strict, house" in message
    assert "NAME.toml" in message
    assert "there are baseline, strict" in refused(
        {"AGENT_GRAPH_DATA_DIR": ":memory:", "AGENT_GRAPH_POLICY_PROFILE": "x"}
    )


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("house", "max_node = 3", 'did you mean "max_nodes"?'),
        ("house", "max_nodes = 0", "max_nodes is a whole number"),
        ("house", "max_nodes = ", "cannot be read"),
        ("house", "# " + "x" * 70_000, "is larger than"),
        ("strict", "max_nodes = 3", "strict is built in"),
        ("My House", "max_nodes = 3", "small letters"),
    ],
)
def test_a_file_that_is_no_profile_stops_the_program_even_when_nobody_asked_for_it(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    message = refused(folder(tmp_path, **{name: text}))
    assert told in message
    assert f"{name}.toml" in message


def test_more_files_than_anybody_reads_are_refused(tmp_path: Path) -> None:
    assert "at most 100" in refused(folder(tmp_path, **{f"p{n}": "" for n in range(101)}))
