"""`witness` from the shell: captured from a file or stdin, shown byte for byte, refused when it is no text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.terminal import Done

Cli = Callable[..., Done]
TEXT = "Größe: 12 m.\r\nno newline at the end"


def test_a_file_is_captured_and_given_back_to_the_byte(cli: Cli, tmp_path: Path) -> None:
    source, copy = tmp_path / "page.md", tmp_path / "copy.md"
    source.write_bytes(TEXT.encode())
    made = cli("witness", "capture", str(source), "--locator", "https://example.org/page", "--json").json["data"]
    assert (made["media_type"], made["authority_class"]) == ("text/markdown", "local_primary_capture")
    shown = cli("witness", "show", made["witness_id"], "-o", str(copy))
    assert "of https://example.org/page, text/markdown, 37 bytes" in shown.err
    assert copy.read_bytes() == source.read_bytes()


def test_what_is_no_text_is_refused(cli: Cli, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n")
    refused = cli("witness", "capture", str(picture), "--json")
    assert (refused.code, refused.json["error_code"]) == (1, "INPUT_INVALID")
    assert cli("witness", "show", "wit-0", "--json").json["error_code"] == "WITNESS_NOT_FOUND"
