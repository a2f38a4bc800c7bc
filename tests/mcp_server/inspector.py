"""The MCP Inspector's command line, in a cache folder: installed there once by npm, used from there ever after."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs

VERSION = "0.15.0"
"""The newest that runs on Node 20; it checks refusals against the published schema too."""
INSTALL_S = 300


class Missing(Exception):
    """It cannot be had here; the message says why."""


def installed() -> Path:
    """The command `mcp-inspector`. Raises `Missing`."""
    home = platformdirs.user_cache_path("agent-graph-tests", appauthor=False) / f"inspector-{VERSION}"
    command = home / "node_modules" / ".bin" / "mcp-inspector"
    if shutil.which("node") is None:
        raise Missing("there is no node")
    if not command.exists():
        _install(home)
    return command


def _install(home: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("there is no npm")
    home.mkdir(parents=True, exist_ok=True)
    package = f"@modelcontextprotocol/inspector@{VERSION}"
    try:
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home), package],
            capture_output=True, text=True, timeout=INSTALL_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Missing(f"npm did not install {package} within {INSTALL_S} s") from late
    if done.returncode:
        raise Missing(f"npm did not install {package}: {done.stderr.strip()[-300:]}")


if __name__ == "__main__":
    sys.stdout.write(f"{installed()}\n")
