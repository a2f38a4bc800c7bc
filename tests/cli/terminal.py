"""The command line as a person uses it: in this process where that proves the same, else as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
PATIENCE_S = 15.0
ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Json:
        """Stdout, which is one JSON document and nothing else."""
        body: Json = json.loads(self.out)
        return body


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    """What a command is started with."""
    return {
        **os.environ, "PYTHONPATH": str(ROOT), "AGENT_GRAPH_DATA_DIR": str(data_dir), "TERM": "xterm",
        "PYTHONUNBUFFERED": "1", "COLUMNS": "100", **more,
    }  # fmt: skip


def _foreground() -> None:
    """Hear Ctrl-C even when these tests themselves run in the background of a shell, where it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """Starts commands as processes; what they say can be waited for."""

    def __init__(self, data_dir: Path, **more: str) -> None:
        self._environment = environment(data_dir, **more)
        self._started: list[Started] = []

    async def start(self, *arguments: str, stdin: int | None = None, stderr: int | None = None) -> Started:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agent_graph", *arguments, env=self._environment,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if stderr is None else stderr, preexec_fn=_foreground,
        )  # fmt: skip
        started = Started(process)
        self._started.append(started)
        return started

    async def run(self, *arguments: str) -> Done:
        return await (await self.start(*arguments)).done()

    async def aclose(self) -> None:
        for started in self._started:
            if started.process.returncode is None:
                started.process.kill()
                await started.process.wait()


class Started:
    """A command under way."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._said = ""

    async def says(self, text: str) -> str:
        """Wait until stderr has said `text`; all of it so far."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            while text not in self._said:
                more = await self.process.stderr.read(65_536)
                assert more, f"it ended without saying {text!r}: {self._said}"
                self._said += more.decode()
        return self._said

    async def done(self) -> Done:
        async with asyncio.timeout(PATIENCE_S):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return Done(self.process.returncode, out, self._said + (err or b"").decode())


def spec(name: str, *nodes: Json, edges: list[tuple[str, str]], **more: Any) -> Json:
    """A graph whose entry is its first node."""
    return {
        "spec_version": "2", "name": name, "entry": nodes[0]["id"], "nodes": list(nodes),
        "edges": [{"from": source, "to": target} for source, target in edges], **more,
    }  # fmt: skip


def asks(node_id: str, prompt: str, **config: Any) -> Json:
    """A node that asks a model."""
    return {"id": node_id, "type": "llm", "config": {"prompt": prompt, "output_key": node_id, **config}}


def gate(node_id: str = "gate", **config: Any) -> Json:
    """A node that asks a person."""
    return {"id": node_id, "type": "human_approval", "config": {"prompt": "May it be done?", **config}}


TWO_STEPS = spec(
    "two_steps", asks("draft", "DRAFT {input}"), asks("review", "REVIEW {draft}"),
    edges=[("draft", "review"), ("review", "END")],
)  # fmt: skip
GATED = spec(
    "gated", asks("draft", "DRAFT {input}"), gate(subject_key="draft"), asks("act", "ACT {draft}"),
    edges=[("draft", "gate"), ("gate", "act"), ("act", "END")],
)  # fmt: skip
