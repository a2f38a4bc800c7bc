"""The soak itself is not run with the tests; a few seconds of it are, so that it stays runnable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.figures import growth
from tests.soak.soak import soak_for

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


async def test_a_program_that_is_closed_and_opened_again_leaves_nothing_behind(tmp_path: Path) -> None:
    found = await soak_for(3.0, folder=tmp_path / "data", seed=1, eras=3)
    assert found["wrong"] == []
    assert found["runs"] > 0
    assert set(found["left"]) <= {"completed", "failed", "cancelled"}


def test_growth_is_what_the_line_through_the_points_rises_by() -> None:
    assert growth([(0, 10), (1000, 12), (2000, 14)]) == pytest.approx(4.0)
    assert growth([(0, 5), (1000, 5)]) == 0.0
    assert growth([(7, 5)]) == growth([]) == 0.0
