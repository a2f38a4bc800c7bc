"""Runs the shell blocks of a page as a reader would type them: command by command, in one session.

* A block under ``<!-- not run here: reason -->`` is left out; ``<!-- run here from `COMMAND`: reason -->`` leaves out
  what stands before.
* ``# exits with N`` at the end of a command says its exit code; without it, 0.
* RUN_ID and APPROVAL_ID stand for the run and the approval that a command has told of last, on standard error.
* A text block right under a shell block is what that block prints on standard output; ``...`` stands for anything, and
  an id may be written as RUN_ID or APPROVAL_ID.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, Block, blocks

NOT_RUN = re.compile(r"not run here: \S.+")
FROM = re.compile(r"run here from `([^`]+)`: \S.+")
EXITS = re.compile(r"\s+# exits with (\d+)$")
IDS = {"RUN_ID": r"run-[\w-]+", "APPROVAL_ID": r"apr-[\w-]+"}
SCRIPT = ROOT / "tests" / "docs" / "script.json"
SECONDS = 20


@dataclass(frozen=True, slots=True)
class Printed:
    """What one command gave."""

    command: str
    code: int
    stdout: str
    stderr: str


def left_out(block: Block) -> bool:
    """Whether a shell block is not run; its mark has to say why."""
    return NOT_RUN.fullmatch(block.mark) is not None


def commands(block: Block) -> list[str]:
    """The commands of a block that are run, lines that go on joined."""
    text = block.text
    start = FROM.fullmatch(block.mark)
    if start is not None:
        assert text.count(start[1]) == 1, block.name
        text = text[text.index(start[1]) :]
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


class Session:
    """A shell in a folder of its own, with the examples in it, and `agent-graph` on its path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = folder / ".environment"
        self._newest: dict[str, str] = {}
        (folder / "examples").symlink_to(ROOT / "examples")
        command = folder / ".bin" / "agent-graph"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent_graph "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AGENT_GRAPH_", "OLLAMA_"))},
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "AGENT_GRAPH_DATA_DIR": str(folder / ".data"),
            "AGENT_GRAPH_SCRIPT": str(SCRIPT),
            "AGENT_GRAPH_DAEMON_IDLE_MS": "2000",  # one that a page starts goes soon after the page
        }

    def run(self, command: str) -> Printed:
        """One command; what it exports holds for the next. Its exit code has to be the one it says."""
        expected = EXITS.search(command)
        typed = EXITS.sub("", command)
        for name, found in self._newest.items():
            typed = typed.replace(name, found)
        assert not any(name in typed for name in IDS), f"nothing there yet that an id in {command!r} could stand for"
        kept = f'if [ -f "{self._kept}" ]; then . "{self._kept}"; fi\n'
        done = subprocess.run(
            ["bash", "-c", f'{kept}{typed}\ncode=$?\nexport -p > "{self._kept}"\nexit $code'],
            cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        printed = Printed(typed, done.returncode, done.stdout, done.stderr)
        assert done.returncode == (int(expected[1]) if expected else 0), printed
        for name, form in IDS.items():
            told = re.findall(form, done.stderr)
            if told:
                self._newest[name] = told[-1]
        return printed

    def block(self, block: Block) -> list[Printed]:
        """All commands of a block."""
        return [self.run(command) for command in commands(block)]


def as_shown(shown: str, printed: str) -> bool:
    """Whether `printed` is what a page shows; how wide a column is does not count."""
    pattern = re.escape(_spaced(shown)).replace(re.escape("..."), ".*?")
    for name, form in IDS.items():
        pattern = pattern.replace(name, form)
    return re.fullmatch(pattern, _spaced(printed), re.DOTALL) is not None


def _spaced(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def steps(page: Path) -> list[tuple[Block, str]]:
    """The shell blocks of a page that are run, each with the output shown under it, "" without one."""
    found = blocks(page)
    text = page.read_text(encoding="utf-8")
    out = []
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language == "sh" and not left_out(block):
            shows = after is not None and f"{block.text}```\n\n```text\n{after.text}```\n" in text
            out.append((block, after.text if shows and after is not None else ""))
    return out
