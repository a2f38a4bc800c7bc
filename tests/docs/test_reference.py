"""The reference pages say what the code says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agent_graph import errors
from tests.docs.reference import FAMILIES, PAGES, classes

WRITE = os.environ.get("AGENT_GRAPH_GOLDEN") == "write"


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_follows_from_the_code(name: str, repository: Path) -> None:
    page = repository / "docs" / "reference" / f"{name}.md"
    if WRITE:
        page.write_text(PAGES[name](), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == PAGES[name](), "run `make golden` and read the diff"


def test_every_error_has_a_code_of_its_own_a_family_and_a_sentence() -> None:
    codes = [error.code for error in classes()]
    assert len(codes) == len(set(codes))
    for error in classes():
        assert re.fullmatch(r"[A-Z]+(?:_[A-Z]+)*", error.code)
        assert sum(issubclass(error, family) for family in FAMILIES) == 1
        assert (error.__doc__ or "").strip().endswith(".")


def test_the_exit_codes_are_those_of_the_contract() -> None:
    assert {error.exit_code for error in classes()} == {1, 2, 4, 5}
    assert errors.ModelUnreachable.exit_code == 4
    assert errors.StoreBusy.exit_code == 5


def test_a_failed_node_is_no_refusal() -> None:
    assert not issubclass(errors.NodeFailure, errors.AgentGraphError)
    failure = errors.NodeFailure("TRANSFORM_INVALID", "no number", pointer="/x")
    assert (failure.code, failure.failure_class, failure.details) == ("TRANSFORM_INVALID", "invalid", {"pointer": "/x"})
