"""A fan-out over many items: events, memory and snapshots grow with the items, and no faster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import size

MANY = size(1_000, 10_000)
FEW = 100
MIB = 1024 * 1024
ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.process, pytest.mark.timeout(size(60, 300))]


def measured(folder: Path, count: int) -> dict[str, Any]:
    program = [sys.executable, "-m", "tests.process.items_program", str(folder), str(count)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT, timeout=280)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_an_item_costs_four_events_and_hardly_any_memory_and_snapshots_do_not_pile_up(tmp_path: Path) -> None:
    few, many = (measured(tmp_path / str(count), count) for count in (FEW, MANY))
    assert few["status"] == many["status"] == "completed"
    assert many["events"] - few["events"] <= 4 * (MANY - FEW)
    assert many["peak_bytes"] - few["peak_bytes"] <= 60 * MIB
    assert many["snapshot_bytes"] <= 400 * many["events"], "quadratic would be thousands of times that"
