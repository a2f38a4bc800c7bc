"""The templates that ship: each is read once, fits its own parameters, and is found by its id."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_graph.engine import templates
from agent_graph.errors import InternalError, TemplateNotFound

SHIPPED = [
    "analysis_pipeline", "approval_gated_action", "classifier_router", "council_deliberation", "debate",
    "extract_then_verify", "map_reduce",
    "parallel_council", "plan_critique_refine", "ranked_council", "review_with_changes",
]  # fmt: skip


def test_all_of_them_are_there_in_order() -> None:
    assert list(templates.templates()) == SHIPPED
    assert templates.templates() is templates.templates()


def test_one_is_found_by_its_id() -> None:
    assert templates.get("council_deliberation").title.startswith("Council")


def test_an_unknown_one_names_those_there_are() -> None:
    with pytest.raises(TemplateNotFound) as refusal:
        templates.get("council")
    assert refusal.value.code == "TEMPLATE_NOT_FOUND"
    assert refusal.value.details["templates"] == SHIPPED


def test_they_are_found_in_a_checkout_and_in_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    assert templates.folder() == repository / "templates"
    (tmp_path / "templates").mkdir()
    monkeypatch.setattr(templates, "_PACKAGE", tmp_path)
    assert templates.folder() == tmp_path / "templates"


@pytest.mark.parametrize("text", ["{", "{}", '{"id": 1}', "\xff"])
def test_a_file_that_is_no_template_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InternalError) as fault:
        templates.load(tmp_path)
    assert fault.value.code == "INTERNAL"
    assert "broken.json" in fault.value.message


def test_a_file_under_another_templates_name_is_refused(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "copy.json").write_bytes((repository / "templates" / "parallel_council.json").read_bytes())
    with pytest.raises(InternalError, match="parallel_council"):
        templates.load(tmp_path)
