"""`agent-graph receipt` and `verify`: a file that holds anywhere, whatever the machine is set to."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.jsonvalue import canonical
from agent_graph.core.sealing import HmacKey
from tests.cli.terminal import Done, environment
from tests.core.test_receipt import forged
from tests.specs import gate, llm, spec

Cli = Callable[..., Done]
File = Callable[[Any], str]
VECTORS = Path(__file__).parents[1] / "vectors" / "receipts"


@pytest.fixture
def run_id(cli: Cli, graph_file: File) -> str:
    """A run that has ended."""
    graph = spec(llm("a", prompt="{input} stra\u00dfe \u0131", output_key="a"), edges="a>END", output_key="a")
    assert cli("run", graph_file(graph), "JSON").code == 0
    return str(cli("runs", "--json").json["data"]["runs"][0]["run_id"])


def test_a_receipt_is_a_file_that_holds_and_tells_with_which_keys(
    cli: Cli, run_id: str, tmp_path: Path, data_dir: Path
) -> None:
    file = tmp_path / "run.json"
    done = cli("receipt", run_id, "--bundle", "-o", str(file))
    assert done.code == 0
    assert "sha256:" in done.err
    without = cli("verify", str(file))
    assert without.code == 0
    assert b"authenticity was NOT checked" in without.out
    for keys in (("--key", str(data_dir / "integrity.key")), ("--data-dir", str(data_dir))):
        checked = cli("verify", str(file), *keys, "--json").json
        assert checked["data"] == {
            "run_id": run_id, "digest": checked["data"]["digest"], "authentic": True, "leaves": 1,
            "events": checked["data"]["events"], "notes": [],
        }  # fmt: skip
    assert b"sealed by the shared key given" in cli("verify", str(file), "--data-dir", str(data_dir)).out


def test_what_was_changed_is_named_with_exit_code_1(cli: Cli, run_id: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(cli("receipt", run_id, "--bundle").out.replace(b'"finished"', b'"vanished"', 1))
    told = cli("verify", str(file))
    assert told.code == 1
    assert b"receipt.leaves[0] (a#1): was changed" in told.out
    refusal = cli("verify", str(file), "--json").json
    assert (refusal["ok"], refusal["error_code"]) == (False, "RECEIPT_INTEGRITY_FAILURE")
    assert refusal["details"]["faults"][0]["place"] == "receipt.leaves[0] (a#1)"


def test_a_file_that_was_laid_out_anew_is_told_from_one_that_was_changed(cli: Cli, run_id: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(json.loads(cli("receipt", run_id).out), indent=2))
    assert b"--reformatted" in cli("verify", str(file)).out
    assert cli("verify", str(file), "--reformatted").code == 0


def test_an_envelope_is_checked_too(cli: Cli, run_id: str, tmp_path: Path, data_dir: Path) -> None:
    file = tmp_path / "run.dsse"
    assert cli("receipt", run_id, "--format", "dsse", "-o", str(file)).code == 0
    assert cli("verify", str(file), "--data-dir", str(data_dir)).code == 0
    assert cli("receipt", run_id, "--format", "pdf", "--json").json["error_code"] == "INVALID_ARGUMENT"


def test_the_vectors_hold_with_their_keys_and_with_no_data_folder(cli: Cli, data_dir: Path) -> None:
    for name, how, key in (
        ("bundle-hmac.json", "--key", "hmac.key"), ("bundle-ed25519.json", "--public", "ed25519.public"),
    ):  # fmt: skip
        assert cli("verify", str(VECTORS / name), how, str(VECTORS / key), "--json").json["data"]["authentic"]
    for how in ("--key", "--public"):
        other = cli("verify", str(VECTORS / "bundle-hmac.json"), how, str(VECTORS / "ed25519.public"))
        assert other.code == 1
        assert b"integrity.key_id" in other.out
    assert not data_dir.exists()


def test_a_public_half_lets_nobody_seal(cli: Cli, tmp_path: Path) -> None:
    """Sealed with the text of the public half as a shared key, which everybody could do."""
    known = VECTORS / "ed25519.public"
    made = json.loads((VECTORS / "receipt-hmac.json").read_bytes())
    made["receipt"]["output"] = "sha256:" + "6" * 64
    file = tmp_path / "forged.json"
    file.write_bytes(canonical(forged(made, HmacKey(known.read_bytes()))) + b"\n")
    refused = cli("verify", str(file), "--public", str(known))
    assert refused.code == 1
    assert b"integrity.key_id" in refused.out
    assert b"shared key given" in cli("verify", str(file), "--key", str(known)).out  # and that is what it says


def test_a_key_that_is_none_and_a_file_that_is_not_there_are_wrong_usage(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "short.key").write_bytes(b"0123456789")
    vector = str(VECTORS / "bundle-hmac.json")
    refusal = cli("verify", vector, "--key", str(tmp_path / "short.key"), "--json").json
    assert (refusal["error_code"], "has at least 32 bytes" in refusal["error"]) == ("INVALID_ARGUMENT", True)
    assert cli("verify", str(tmp_path / "none.json"), "--json").json["error_code"] == "INVALID_ARGUMENT"
    assert cli("verify", vector, "--data-dir", str(tmp_path / "none"), "--json").json["error_code"] == (
        "INTEGRITY_KEY_REQUIRED"
    )
    assert not (tmp_path / "none").exists()


def test_a_run_that_waits_has_no_receipt_yet(cli: Cli, graph_file: File) -> None:
    assert cli("run", graph_file(spec(gate("g"), edges="g>END", output_key="g")), "x").code == 3
    waiting = cli("runs", "--json").json["data"]["runs"][0]["run_id"]
    refused = cli("receipt", waiting, "--json")
    assert (refused.code, refused.json["error_code"]) == (1, "RECEIPT_NOT_READY")


async def test_RC01_the_digest_is_the_same_whatever_the_machine_is_set_to(
    cli: Cli, run_id: str, tmp_path: Path, data_dir: Path
) -> None:
    here = await asyncio.to_thread(cli, "receipt", run_id, "--bundle")
    settings = (
        {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kolkata", "PYTHONHASHSEED": "0"},
        {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1"},
    )
    for setting in settings:  # a process each: after a restart
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agent_graph", "receipt", run_id, "--bundle", env=environment(data_dir, **setting),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        assert out == here.out


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda key: key.unlink(), "INTEGRITY_KEY_REQUIRED"),
        (lambda key: key.write_bytes(b"0123456789"), "INTEGRITY_KEY_INVALID"),
        (lambda key: key.write_bytes(key.read_bytes() + b"\n"), "INTEGRITY_KEY_INVALID"),
    ],
)
def test_RC01_without_its_own_key_a_folder_gives_no_receipt_and_makes_no_key(
    cli: Cli, run_id: str, data_dir: Path, change: Callable[[Path], object], code: str
) -> None:
    key = data_dir / "integrity.key"
    change(key)
    left = key.read_bytes() if key.exists() else None
    refused = cli("receipt", run_id, "--json")
    assert (refused.code, refused.json["error_code"]) == (5, code)
    assert (key.read_bytes() if key.exists() else None) == left
