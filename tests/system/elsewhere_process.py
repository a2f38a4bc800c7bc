"""Interpreters that begin with what `elsewhere/sitecustomize.py` makes of this system, and so do all they start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PATH = f"{Path(__file__).parent / 'elsewhere'}{os.pathsep}{ROOT}"
LONGEST_S = 15.0


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, **(more or {}), "PYTHONPATH": PATH}


def python(
    *words: str, more: Mapping[str, str] | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """A process of Python there, to its end, whatever its exit code."""
    command = (sys.executable, *words)
    return subprocess.run(
        command,
        env=environment(more),
        input=given or "",
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
