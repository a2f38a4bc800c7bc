"""Where everything is installed a skipped test is a failed one, so that no suite goes missing unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LEFT_OUT = {
    "by_a_test": "def test_it(): pytest.skip('no weights')\n",
    "by_a_mark": "@pytest.mark.skipif(True, reason='no weights')\ndef test_it(): pass\n",
    "by_a_module": "pytest.skip('no weights', allow_module_level=True)\n",
    "by_an_import": "pytest.importorskip('there_is_no_such_module', reason='no weights')\n",
}


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(("require", "told"), [("all", "1 failed, 1 passed, 3 errors"), ("", "1 passed, 4 skipped")])
def test_a_skip_fails_where_everything_is_required(
    require: str, told: str, workers: str, tmp_path: Path, repository: Path
) -> None:
    for name, program in LEFT_OUT.items():
        (tmp_path / f"test_left_out_{name}.py").write_text(f"import pytest\n{program}", encoding="utf-8")
    (tmp_path / "test_that_runs.py").write_text("def test_it(): pass\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.conftest", "-n", workers]
    environ = {**os.environ, "AGENT_GRAPH_REQUIRE": require, "PYTHONPATH": str(repository), "PYTEST_ADDOPTS": ""}
    command += ["--continue-on-collection-errors", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert told in done.stdout
