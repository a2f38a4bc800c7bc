"""The protocol's own conformance suite on the product's server, with the suite's fixtures beside what is its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_graph.mcp_server.server import build
from tests.acceptance.fixtures.beside import with_fixtures
from tests.acceptance.node import CONFORMANCE_0_1, CONFORMANCE_0_2, Program
from tests.acceptance.served import served
from tests.fakes.opened import opened

EXCEPTIONS: dict[str, str] = json.loads((Path(__file__).parent / "exceptions.json").read_text(encoding="utf-8"))
"""Scenarios that fail, each with the reason."""
SUITE_S = 90

pytestmark = [pytest.mark.process, pytest.mark.timeout(SUITE_S + 30)]


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """The endpoint of the product's server with the fixtures."""
    async with opened() as deps, served(with_fixtures(build(deps))) as address:
        yield address


@dataclass(frozen=True, slots=True)
class Report:
    """What a suite said: the number of checks passed, and those that failed, as ``{scenario: [what failed]}``."""

    passed: int
    failed: dict[str, list[str]]


async def judged(program: Program, url: str, folder: Path, *arguments: str) -> Report:
    process = await asyncio.create_subprocess_exec(
        *program.command(), "server", "--url", url, "-o", str(folder), *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await asyncio.wait_for(process.communicate(), SUITE_S)
    assert b"=== SUMMARY ===" in said, said.decode(errors="replace")[-2_000:]
    return _report(folder)


def _report(folder: Path) -> Report:
    passed, failed = 0, dict[str, list[str]]()
    for file in sorted(folder.glob("server-*/checks.json")):
        scenario = file.parent.name.removeprefix("server-").rpartition("-20")[0]
        checks: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        passed += sum(check["status"] == "SUCCESS" for check in checks)
        wrong = [f"{each['id']}: {each.get('errorMessage')}" for each in checks if each["status"] == "FAILURE"]
        if wrong:
            failed[scenario] = wrong
    return Report(passed, failed)


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


async def test_of_all_scenarios_of_the_newest_suite_only_the_listed_ones_fail(url: str, tmp_path: Path) -> None:
    report = await judged(CONFORMANCE_0_2, url, tmp_path, "--suite", "all")
    assert report.failed.keys() == EXCEPTIONS.keys(), report.failed
    assert report.passed >= 180
