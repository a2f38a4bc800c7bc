"""The shell blocks of every page are run, in order, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import NAMES, PAGES, Block, blocks
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
    from agent_graph.cli.main import commands as commands_of
    from typer.main import get_command

    there = set(get_command(commands_of()).commands)  # type: ignore[attr-defined]  # the app is a group
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"(?:`|^|/bin/|&& )agent-graph ([a-z]+)", text, flags=re.MULTILINE)
    assert not set(named) - there
