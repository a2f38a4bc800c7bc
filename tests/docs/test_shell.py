"""The shell blocks of every page are run, in order, and print what the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agent_graph.cli.main import commands as commands_of
from tests.docs.pages import NAMES, PAGES, ROOT, Block, blocks
from tests.docs.shell import FROM, Session, as_shown, commands, left_out, steps

WITH_SHELL = [page for page in PAGES if any(block.language == "sh" for block in blocks(page))]
SHELL = [block for page in WITH_SHELL for block in blocks(page) if block.language == "sh"]


@pytest.mark.parametrize("block", SHELL, ids=[block.name for block in SHELL])
def test_a_shell_block_is_run_or_says_why_not(block: Block) -> None:
    assert not block.mark or left_out(block) or FROM.fullmatch(block.mark), block.mark
    assert left_out(block) or commands(block)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", WITH_SHELL, ids=[NAMES[PAGES.index(page)] for page in WITH_SHELL])
def test_the_commands_of_a_page_run_and_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    for block, shown in steps(page):
        printed = "".join(each.stdout for each in session.block(block))
        if shown:
            assert as_shown(shown, printed), (block.name, printed)


def test_no_shown_output_is_left_unchecked() -> None:
    checked = [shown for page in WITH_SHELL for _, shown in steps(page) if shown]
    outputs = [
        block.text for page in WITH_SHELL for block in blocks(page) if block.language == "text" and not block.mark
    ]
    assert checked == outputs


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"(?:`|^|/bin/|&& )agent-graph ([a-z]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert not set(named) - set(get_command(commands_of()).commands)  # type: ignore[attr-defined]  # it is a group


def options(command: Any, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Every command that does something, and the options it takes."""
    for called, inner in getattr(command, "commands", {}).items():
        yield from options(inner, f"{name} {called}".strip())
    if not hasattr(command, "commands"):
        yield name, {option for parameter in command.params for option in parameter.opts}


def test_every_command_but_the_servers_speaks_json_as_the_readme_says() -> None:
    silent = [name for name, taken in options(get_command(commands_of())) if "--json" not in taken]
    assert set(silent) == {"mcp", "daemon", "serve"}


def test_the_readme_names_the_exit_codes_of_the_help() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    said = re.search(r"Exit codes: ([^.]*)\.", readme)
    helped = re.search(r"Exit codes: ([^.]*)\.", str(commands_of().info.epilog))
    assert said is not None
    assert helped is not None
    assert " ".join(said[1].split()) == " ".join(helped[1].split())
