"""How long a client waits for its first answers, and what the front adds to a call; prints medians and the goals.

Run it with the interpreter that has the package: ``python tests/benchmarks/front.py [ROUNDS]``. Byte-compile first, as
an installation is.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
ROUNDS = 20
CALLS = 300
GOALS_MS = {"initialize, daemon up": 150.0, "initialize, daemon to be started": 1_200.0}
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    """A process that speaks MCP on its pipes, from the moment of its start."""

    def __init__(self, folder: Path, *flags: str) -> None:
        script = folder.parent / "script.json"
        script.write_text('{"default": {"text": "x"}}', encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(ROOT), "AGENT_GRAPH_SCRIPT": str(script)}
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent_graph", "mcp", "--data-dir", str(folder), *flags], env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, number: int, method: str, params: dict[str, Any] | None = None) -> float:
        """Milliseconds since the start at which the answer came."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(body).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == number, answer
        assert "result" in answer, answer
        return (time.perf_counter() - self.begun) * 1000

    def greet(self) -> tuple[float, float]:
        """When ``initialize`` and ``tools/list`` were answered."""
        first = self.ask(0, "initialize", CLIENT)
        assert self.process.stdin is not None
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return first, self.ask(1, "tools/list")

    def leave(self) -> None:
        self.process.communicate(timeout=10)
        assert self.process.returncode == 0


def end_daemon(folder: Path) -> None:
    """Ends the folder's owner and waits for it."""
    pid = json.loads((folder / "owner.lock").read_bytes())["pid"]
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGTERM)
    import select

    select.select([handle], [], [], 20)
    os.close(handle)


def calls(server: Server) -> list[float]:
    """Milliseconds of each of `CALLS` calls of ``graph_list``."""
    took = []
    for number in range(CALLS):
        before = time.perf_counter()
        server.ask(number + 10, "tools/call", {"name": "graph_list", "arguments": {}})
        took.append((time.perf_counter() - before) * 1000)
    return took


def main(rounds: int) -> None:
    found: dict[str, list[float]] = {}

    def note(name: str, *values: float) -> None:
        found.setdefault(name, []).extend(values)

    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "data"
            cold = Server(folder)
            first, listed = cold.greet()
            note("initialize, daemon to be started", first)
            note("tools/list, daemon to be started", listed)
            warm = Server(folder)
            first, listed = warm.greet()
            note("initialize, daemon up", first)
            note("tools/list, daemon up", listed)
            warm.leave()
            cold.leave()
            end_daemon(folder)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "data"
        front, alone = Server(folder), Server(Path(home) / "alone", "--in-process")
        note("initialize, in process", alone.greet()[0])
        front.greet()
        for server, name in ((front, "graph_list through the front"), (alone, "graph_list in process")):
            calls(server)
            note(name, *calls(server))
            server.leave()
        end_daemon(folder)
    for name, values in found.items():
        goal = f"  goal {GOALS_MS[name]:.0f}" if name in GOALS_MS else ""
        worst = sorted(values)[int(len(values) * 0.99)]
        print(f"{name:<36} median {statistics.median(values):8.1f} ms  p99 {worst:8.1f}  n {len(values):>4}{goal}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
