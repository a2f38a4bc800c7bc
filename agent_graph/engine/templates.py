"""Templates by id: those that come with the program, read once, and the operator's own in the data folder."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from agent_graph.core.jsonvalue import JsonObject, parse_json
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.template import Template, from_json
from agent_graph.errors import InternalError, InvalidArgument, InvalidRequest, StoreUnusable, TemplateNotFound
from agent_graph.system.files import replace

log = logging.getLogger(__name__)

_PACKAGE = Path(__file__).resolve().parent.parent
FOLDER: Final = "templates"
"""The operator's own lie here, in the data folder."""
MOST_FILES: Final = 500


def folder() -> Path:
    """Where those of the program are: inside the installed package, in a checkout beside it."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _PACKAGE.parent / "templates"


@cache
def templates() -> Mapping[str, Template]:
    """Those of the program by id, in the order of their ids."""
    return load(folder())


def get(template_id: str) -> Template:
    """The template `template_id` of the program; TemplateNotFound names those that exist."""
    return _found(templates(), template_id)


def _found(known: Mapping[str, Template], template_id: str) -> Template:
    if template_id not in known:
        raise TemplateNotFound(f"no template {template_id!r}; there are {', '.join(known)}", templates=list(known))
    return known[template_id]


def load(path: Path) -> Mapping[str, Template]:
    """The templates ``<id>.json`` of a folder. A file that is no template is a bug of ours: InternalError.

    They are part of the program, like its code: what they must fit is fixed and no setting changes it. What is made
    of one is checked as any spec is.
    """
    found: dict[str, Template] = {}
    for file in sorted(path.glob("*.json")):
        try:
            found[file.stem] = read(file)
        except ValueError as error:
            raise InternalError(f"{file.name}: {error}") from error
    return MappingProxyType(found)


def read(file: Path) -> Template:
    """The template in a file named after it; ValueError with a sentence when it is none."""
    try:
        template = from_json(
            parse_json(file.read_bytes(), max_bytes=DEFAULTS.spec_bytes, max_depth=DEFAULTS.json_depth)
        )
    except (InvalidRequest, OSError) as error:
        raise ValueError(str(error)) from error
    if template.id != file.stem:
        raise ValueError(f"it holds the template {template.id!r}")
    return template


class Library:
    """The templates there are for a data folder: those of the program, and the operator's own under other ids."""

    def __init__(self, data_dir: Path | None = None) -> None:
        self._folder = None if data_dir is None else data_dir / FOLDER
        self._seen: dict[Path, tuple[tuple[int, int], Template | None]] = {}
        """The operator's own by file: its time and size when it was read, and the template if it was one."""

    @property
    def own(self) -> Mapping[str, Template]:
        """The operator's own, as the folder holds them now. A file that is no template is passed over, and the log
        says so once."""
        files = sorted(self._folder.glob("*.json"))[:MOST_FILES] if self._folder and self._folder.is_dir() else []
        for gone in self._seen.keys() - set(files):
            del self._seen[gone]
        return {file.stem: template for file in files if (template := self._read(file)) is not None}

    def _read(self, file: Path) -> Template | None:
        try:
            said = file.stat()
            stamp = (said.st_mtime_ns, said.st_size)
            known = self._seen.get(file)
            if known is None or known[0] != stamp:
                self._seen[file] = known = (stamp, None)
                self._seen[file] = known = (stamp, read(file))
        except (OSError, ValueError) as error:
            log.warning("%s is no template: %s", file, error)
            return None
        return known[1]

    def all(self) -> Mapping[str, Template]:
        """All by id, in the order of their ids."""
        return dict(sorted({**self.own, **templates()}.items()))

    def get(self, template_id: str) -> Template:
        """The template of that id; TemplateNotFound names those that exist."""
        return _found(self.all(), template_id)

    def keep(self, body: JsonObject) -> Path:
        """Write one of the operator's own, whole or not at all. Raises `InvalidArgument` when nothing is kept here or
        it is no template, `StoreUnusable`."""
        if self._folder is None:
            raise InvalidArgument("a template is kept in a data folder, and there is none: everything is in memory")
        try:
            template = from_json(body)
        except ValueError as wrong:
            raise InvalidArgument(f"no template can be made of it: {wrong}") from None
        if template.id in templates():
            raise InvalidArgument(
                f"{template.id} comes with the program; give yours another id", argument="template_id"
            )
        file = self._folder / f"{template.id}.json"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            _replace(file, json.dumps(body, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise StoreUnusable(f"{file} cannot be written: {error}", path=str(file)) from error
        return file


def _replace(file: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        replace(Path(name), file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
