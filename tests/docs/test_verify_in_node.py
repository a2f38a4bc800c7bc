"""The check of receipts in Node, written from docs/reference/receipt.md, agrees with `agent-graph verify`."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_graph.core.jsonvalue import canonical
from agent_graph.core.receipt_file import check_file
from agent_graph.core.sealing import Ed25519Pair, HmacKey, Verifier
from agent_graph.engine.keys import KeyRing, open_keys
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.core.test_receipt import forged
from tests.docs.pages import ROOT
from tests.fakes.opened import Tools, opened
from tests.fakes.receipts import approved, tampered
from tests.scenarios.test_fan_out_over_data import MAP_REDUCE
from tests.specs import gate, llm, spec

PROGRAM = ROOT / "examples" / "verify_in_node" / "verify.mjs"
VECTORS = ROOT / "tests" / "vectors" / "receipts"
GIVEN = {"hmac.key": "--key", "ed25519.public": "--public"}
CHANGES = 50
EXPORTED = """
import { readFileSync } from "node:fs";
const { canonical, digest, leafHash, parse, rootOf } = await import(process.argv[2]);
const rows = (name) => parse(readFileSync(process.argv[1] + name, "utf8"));
for (const row of rows("/canonical.json")) {
  const value = parse(row.text);
  if (canonical(value) !== row.canonical || digest(value) !== row.digest) console.log(row.text);
}
for (const { leaves, hashes, root } of rows("/merkle.json"))
  if (canonical(leaves.map(leafHash)) !== canonical(hashes) || "sha256:" + rootOf(hashes) !== root) console.log(root);
"""


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout if found else ""
    if found is None or int(said.lstrip("v").split(".")[0] or 0) < 20:
        pytest.skip("there is no Node of version 20 or later")
    return found


def told(node: str, files: list[Path], *options: str | Path) -> tuple[int, list[str]]:
    """Its exit code, and what it says of each file; one process for all."""
    command = [node, str(PROGRAM), *map(str, options), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    assert not done.stderr, done.stderr
    lines = [line.removeprefix(f"{file}: ") for file, line in zip(files, done.stdout.splitlines(), strict=True)]
    return done.returncode, lines


def both_keys() -> list[str | Path]:
    return [part for name, option in GIVEN.items() for part in (option, VECTORS / name)]


def first_place(line: str) -> str:
    return line.removeprefix("does not hold: ").split(",")[0].split(" ")[0]


def test_canonical_forms_and_roots_are_those_of_the_vectors(node: str) -> None:
    command = [node, "--input-type=module", "-e", EXPORTED, str(VECTORS), PROGRAM.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_vectors_that_hold_hold_and_without_a_key_it_says_what_was_not_checked(node: str) -> None:
    files = sorted(VECTORS.glob("[ber]*-*.json"))
    assert len(files) == 7
    assert told(node, files, *both_keys()) == (0, ["holds"] * 7)
    code, lines = told(node, files)
    assert (code, set(lines)) == (0, {"holds; authenticity was not checked: no key was given"})


def test_the_broken_vectors_are_named_by_their_places(node: str) -> None:
    rows = json.loads((VECTORS / "broken.json").read_text(encoding="utf-8"))
    code, lines = told(node, [VECTORS / row["file"] for row in rows], *both_keys())
    assert code == 1
    assert [first_place(line) for line in lines] == [row["place"] for row in rows]


def test_a_public_half_is_no_secret_of_a_mac(node: str, tmp_path: Path) -> None:
    public = (VECTORS / "ed25519.public").read_bytes()
    file = tmp_path / "forged.json"
    made = json.loads((VECTORS / "bundle-ed25519.json").read_bytes())
    forged(made, HmacKey(public))
    file.write_bytes(canonical(made))
    assert told(node, [file], "--public", VECTORS / "ed25519.public")[0] == 1


async def documents(ring: KeyRing) -> list[Any]:
    """Receipts with bundles of runs that ended in every way."""
    model = ScriptedModel([Reply(text="\U0001f600 1.5", when="draft a")], default=Reply(text="said"))
    refusing = ScriptedModel([], default=Reply(error={"code": "MODEL_NOT_FOUND", "message": "no such model"}))
    made: list[Any] = []
    async with opened(model, keys=ring) as deps:
        tools = Tools(deps)
        value = {"topic": "\U0001f600 \ufb33", "big": 2**70, "small": 1e-7, "\U0001f600": -0.0, "10": 1, "9": 2}
        ended = [await approved(tools, value)]
        for parts in (["a", "b", "c"], 3):
            created = await tools.ok("graph_create", spec={**MAP_REDUCE, "name": f"map{len(ended)}"})
            ended.append(await tools.run(created["graph_id"], {"parts": parts}))
        created = await tools.ok("graph_create", spec=spec(gate("g"), edges="g>END", name="held"))
        ended.append(await tools.run(created["graph_id"], "x"))
        await tools.ok("graph_run_wait", run_id=ended[-1], until="waiting", timeout_ms=10_000)
        await tools.ok("graph_run_cancel", run_id=ended[-1], reason="enough")
        made += [await receipt_of(tools, run_id) for run_id in ended]
    async with opened(refusing, keys=ring) as deps:
        tools = Tools(deps)
        created = await tools.ok("graph_create", spec=spec(llm("a", "{input}"), edges="a>END"))
        made.append(await receipt_of(tools, await tools.run(created["graph_id"], "tea")))
    assert [one["receipt"]["status"] for one in made] == ["completed", "completed", "failed", "cancelled", "failed"]
    return made


async def receipt_of(tools: Tools, run_id: str) -> Any:
    await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
    return await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=True)


def changed(whole: bytes, document: Any, dice: random.Random) -> bytes:
    """One byte is another, or an event or a leaf is dropped, doubled, swapped or altered."""
    if len(document["receipt"]["leaves"]) > 1 and dice.random() < 0.5:
        return canonical(tampered(copy.deepcopy(document), dice)[1])
    at, bytes_ = dice.randrange(len(whole)), bytearray(whole)
    bytes_[at] ^= dice.randrange(1, 256)
    return bytes(bytes_)


@pytest.mark.parametrize("kind", ["--key", "--public"])
async def test_it_agrees_on_receipts_of_real_runs_and_on_what_was_made_of_them(
    node: str, kind: str, tmp_path: Path
) -> None:
    ring, dice, keys = open_keys(None, now_ms=0), random.Random(4), tmp_path / "key"
    made = await documents(ring)
    secret, seed = b"the key of this test, and of nothing else", bytes(range(32))
    known: dict[str, Verifier]
    if kind == "--key":
        signer: Any = HmacKey(secret)
        keys.write_bytes(secret)
        known = {signer.key_id: signer}
    else:
        signer = Ed25519Pair(seed)
        keys.write_text(signer.public.raw.hex(), encoding="ascii")
        known = {signer.key_id: signer.public}
    whole = [canonical(resealed(one, signer)) for one in made]
    rest = [changed(one, json.loads(one), dice) for one in dice.choices(whole, k=CHANGES)]
    files = [tmp_path / f"{at}.json" for at in range(len(whole) + len(rest))]
    for file, data in zip(files, whole + rest, strict=True):
        file.write_bytes(data)
    for options, verifiers in (((kind, keys), known), ((), {})):
        _, lines = told(node, files, *options)
        checked = [check_file(data, verifiers).faults for data in whole + rest]
        assert [line.startswith("holds") for line in lines] == [not faults for faults in checked]
        assert not any(checked[: len(whole)])


def resealed(made: Any, signer: Any) -> Any:
    """As a folder with this key would have sealed it."""
    receipt = made["receipt"]
    sealed = {"events": receipt["chain"]["events"], "head": receipt["chain"]["head"], "kind": "agent-graph-seal-v1",
              "run_id": receipt["run_id"], "sealed_at_ms": receipt["sealed"]["sealed_at_ms"],
              "status": receipt["status"]}  # fmt: skip
    seal = signer.seal(canonical(sealed))
    receipt["sealed"].update(key_id=seal.key_id, seal=seal.value)
    forged(made, signer)
    return made
