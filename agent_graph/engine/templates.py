"""The templates that come with the program: read from their folder once, checked, looked up by id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from agent_graph.core.jsonvalue import parse_json
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.template import Template, from_json
from agent_graph.errors import InternalError, InvalidRequest, TemplateNotFound

_PACKAGE = Path(__file__).resolve().parent.parent


def folder() -> Path:
    """Where they are: inside the installed package, in a checkout beside it."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _PACKAGE.parent / "templates"


@cache
def templates() -> Mapping[str, Template]:
    """All of them by id, in the order of their ids."""
    return load(folder())


def get(template_id: str) -> Template:
    """The template `template_id`; TemplateNotFound names those that exist."""
    found = templates().get(template_id)
    if found is None:
        known = list(templates())
        raise TemplateNotFound(f"no template {template_id!r}; there are {', '.join(known)}", templates=known)
    return found


def load(path: Path) -> Mapping[str, Template]:
    """The templates ``<id>.json`` of a folder. A file that is no template is a bug of ours: InternalError.

    They are part of the program, like its code: what they must fit is fixed and no setting changes it. What is made
    of one is checked as any spec is.
    """
    found: dict[str, Template] = {}
    for file in sorted(path.glob("*.json")):
        try:
            body = parse_json(file.read_bytes(), max_bytes=DEFAULTS.spec_bytes, max_depth=DEFAULTS.json_depth)
            template = from_json(body)
        except (ValueError, InvalidRequest) as error:
            raise InternalError(f"{file.name}: {error}") from error
        if template.id != file.stem:
            raise InternalError(f"{file.name} holds the template {template.id!r}")
        found[template.id] = template
    return MappingProxyType(found)
