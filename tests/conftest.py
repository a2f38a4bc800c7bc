"""What holds for every test: no setting or folder of the user's reaches it, and no suite is skipped unseen."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

REQUIRE = os.environ.get("AGENT_GRAPH_REQUIRE", "")
"""``all`` turns every skip into a failure: where everything is installed, nothing may be left out."""

MOST_WORKERS = 4
"""Some suites start crowds of processes and hold them to bounds of time: more at once would measure the machine."""

OURS = ("AGENT_GRAPH_", "OLLAMA_", "OPENAI_")
KEPT = ("AGENT_GRAPH_TEST_SIZE", "AGENT_GRAPH_REQUIRE", "AGENT_GRAPH_GOLDEN", "AGENT_GRAPH_WEIGHTS", "AGENT_GRAPH_NODE")


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_users_reaches_a_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith(OURS) and name not in KEPT]:
            environment.delenv(name)
        environment.setenv("AGENT_GRAPH_DATA_DIR", str(tmp_path_factory.getbasetemp() / "data-folder-of-nobody"))
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parent.parent


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core; none where every argument names one file, which is done before a worker has started."""
    if all(Path(argument.partition("::")[0]).is_file() for argument in config.args):
        return 0
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_WORKERS)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if REQUIRE == "all" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        # With its name: workers find the same fault in a file, and of equal ones the first is told.
        report.longrepr = f"{report.nodeid}: AGENT_GRAPH_REQUIRE=all, and this was left out: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    # What a test had logged may be no valid text, and could not be sent to the process that tells of it.
    report.sections = [(title, said.encode(errors="backslashreplace").decode()) for title, said in report.sections]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
