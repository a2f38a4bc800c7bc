"""The protocol's own conformance suite on the product's server, with the suite's fixtures beside what is its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_graph.mcp_server.server import build
from tests.acceptance.fixtures.beside import with_fixtures
from tests.acceptance.node import CONFORMANCE_0_1, CONFORMANCE_0_2, Program
from tests.fakes.opened import opened
from tests.mcp_server.served import made, on_a_port

EXCEPTIONS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "exceptions.json").read_text(encoding="utf-8")
)
"""Checks that fail, and checks that warn, each with the reason."""
SUITE_S = 240

pytestmark = [pytest.mark.process, pytest.mark.timeout(SUITE_S + 30)]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """The endpoint of the product's server with the fixtures."""
    async with (
        opened() as deps,
        on_a_port(made(deps, with_fixtures(build(deps), deps), auth="none", rate="0")) as address,
    ):
        yield address


@dataclass(frozen=True, slots=True)
class Report:
    """What a suite said of each check: how many passed, and of those that did not, by status and id, what it said."""

    passed: int
    others: dict[str, dict[str, str]]

    @property
    def failed(self) -> dict[str, str]:
        return self.others["FAILURE"]


async def judged(program: Program, url: str, folder: Path, *arguments: str) -> Report:
    process = await asyncio.create_subprocess_exec(
        *program.command(), "server", "--url", url, "-o", str(folder), *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await asyncio.wait_for(process.communicate(), SUITE_S)
    assert b"=== SUMMARY ===" in said, said.decode(errors="replace")[-2_000:]
    return _report(folder)


def _report(folder: Path) -> Report:
    passed = 0
    others: dict[str, dict[str, str]] = {"FAILURE": {}, "WARNING": {}}
    for file in sorted(folder.glob("server-*/checks.json")):
        for check in json.loads(file.read_text(encoding="utf-8")):
            passed += check["status"] == "SUCCESS"
            if check["status"] in others:
                others[check["status"]][check["id"]] = str(check.get("errorMessage"))
    return Report(passed, others)


async def test_everything_of_the_suite_that_runs_on_node_20_passes(url: str, tmp_path: Path) -> None:
    report = await judged(CONFORMANCE_0_1, url, tmp_path, "--suite", "all")
    assert report.failed == {}
    assert report.passed >= 40


@pytest.mark.parametrize(("revision", "checks"), [("2025-06-18", 56), ("2025-11-25", 73), ("2026-07-28", 41)])
async def test_the_newest_suite_finds_no_fault_in_a_revision(
    revision: str, checks: int, url: str, tmp_path: Path
) -> None:
    report = await judged(CONFORMANCE_0_2, url, tmp_path, "--spec-version", revision)
    assert report.failed == {}
    assert report.passed >= checks


async def test_of_all_checks_of_the_newest_suite_only_the_listed_ones_do_not_pass(url: str, tmp_path: Path) -> None:
    report = await judged(CONFORMANCE_0_2, url, tmp_path, "--suite", "all")
    listed = {status: set(checks) for status, checks in EXCEPTIONS.items()}
    assert {status: set(checks) for status, checks in report.others.items()} == listed, report.others
    assert report.passed >= 227
