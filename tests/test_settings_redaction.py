"""What an operator can say of secrets, and how what is said wrongly is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_graph.errors import SettingInvalid
from agent_graph.settings import load


def test_the_environment_says_it_by_the_line() -> None:
    environ = {
        "AGENT_GRAPH_DATA_DIR": ":memory:", "OLLAMA_API_KEY": "k-3f9a-never-shown",
        "AGENT_GRAPH_REDACTION__NAMES": "badge\n customer_number \n", "AGENT_GRAPH_REDACTION__PATTERNS": "A{2,3}-[0-9]",
    }  # fmt: skip
    settings = load(environ=environ)
    value = {"badge": "7", "customerNumber": "8", "note": "AA-9 k-3f9a-never-shown"}
    redacted = {"badge": "[redacted]", "customerNumber": "[redacted]", "note": "[redacted] [redacted]"}
    assert settings.redactor.value({**value}) == redacted
    assert "never-shown" not in repr(settings)
    assert settings.describe()["redaction"] == {
        "names": ["badge", "customer_number"], "patterns": ["A{2,3}-[0-9]"], "except_names": [], "except_patterns": [],
    }  # fmt: skip


@pytest.mark.parametrize(("text", "said"), [
    ('nams = ["a"]', "did you mean"), ('names = "a"', "list of texts"), ('patterns = ["("]', "RE2"),
    ('patterns = ["x*"]', "everywhere"), ('names = ["--"]', "letters"), ("names = [1]", "list of texts"),
    (f"names = {['a'] * 201}", "at most 200"),
])  # fmt: skip
def test_what_is_said_wrongly_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"[redaction]\n{text}\n", encoding="utf-8")
    with pytest.raises(SettingInvalid, match=said):
        load(environ={"AGENT_GRAPH_DATA_DIR": str(tmp_path)})


def test_an_unknown_variable_is_refused() -> None:
    with pytest.raises(SettingInvalid, match="except_names"):
        load(environ={"AGENT_GRAPH_DATA_DIR": ":memory:", "AGENT_GRAPH_REDACTION__NAME": "a"})
