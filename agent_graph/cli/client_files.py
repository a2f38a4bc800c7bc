"""Puts one entry into a client's configuration file, or takes it out, and leaves all else as it is.

Whatever was made is read again before anybody writes it: it has to say what the file said, but for that entry.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import ClientConfigInvalid

NAME: Final = "agent-graph"
"""Our entry; clients put it before the names of tools, and some bound the length of both."""


_SET_IN: Final = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*\n\1  - ", re.MULTILINE)
"""Somebody sets the items of a list in by two."""


def changed(text: str, form: str, key: str, *, entry: JsonObject | None) -> str:
    """The file `text` with our entry in the table `key`; without it where `entry` is None.

    Raises `ClientConfigInvalid` for a file that cannot be read, or not be changed without touching more.
    """
    before = _read(text, form)
    table = before.get(key, {})
    if not isinstance(table, dict):
        raise ClientConfigInvalid(f"{key} in it is not a table")
    old = table.get(NAME)
    if entry is not None and isinstance(old, dict):
        entry = {**old, **entry}  # what somebody has added to it stays
    if old == entry:
        return text
    write = {"json": _json, "toml": _toml, "yaml": _yaml}[form]
    made = write(text, key, entry)
    try:
        after = _read(made, form)
    except ClientConfigInvalid:
        after = {}
    found = after.get(key, {}).get(NAME) if isinstance(after.get(key, {}), dict) else None
    rest = [{**body, key: {n: v for n, v in (body.get(key) or {}).items() if n != NAME}} for body in (before, after)]
    if found != entry or rest[0] != rest[1]:
        raise ClientConfigInvalid("our entry cannot be changed without changing more; change it by hand")
    return made


def _read(text: str, form: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        body = {"json": _read_json, "toml": _read_toml, "yaml": _read_yaml}[form](text)
    except ValueError as wrong:
        hint = "; comments and trailing commas would be lost, so it is left alone" if form == "json" else ""
        raise ClientConfigInvalid(f"it is not {form.upper()}: {' '.join(str(wrong).split())}{hint}") from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise ClientConfigInvalid("it holds no table of settings")
    return body


# -- JSON ----------------------------------------------------------------------------------------------------------


def _read_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key is there twice")
        return dict(pairs)

    return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=unique)


def _json(text: str, key: str, entry: JsonObject | None) -> str:
    body = _read(text, "json")
    _place(body, key, entry)
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    indent = found[1] if found else "  "
    return json.dumps(body, indent=indent, ensure_ascii=False) + ("" if text and not text.endswith("\n") else "\n")


def _place(body: Any, key: str, entry: JsonObject | None) -> None:
    """Put the entry in its table, which is made if need be and taken away when it was ours alone."""
    if entry is None:
        del body[key][NAME]
        if not body[key]:
            del body[key]
    else:
        if not body.get(key):
            body[key] = {}
        body[key][NAME] = entry


# -- TOML: a table of its own, as text -----------------------------------------------------------------------------


def _read_toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _toml(text: str, key: str, entry: JsonObject | None) -> str:
    ours = re.compile(rf'^\s*\[\s*{key}\s*\.\s*"?{NAME}"?\s*[.\]]')
    kept, within = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            within = ours.match(line) is not None
        if not within:
            kept.append(line)
    rest = "".join(kept)
    if entry is None:
        return rest.rstrip("\n") + "\n" if rest.strip() else ""
    lines = [f"[{key}.{NAME}]", *(f"{_toml_key(name)} = {_toml_value(value)}" for name, value in entry.items())]
    return (rest.rstrip("\n") + "\n\n" if rest.strip() else "") + "\n".join(lines) + "\n"


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _toml_value(value: Any) -> str:
    """A value on one line; strings and numbers of JSON are TOML too."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_key(name)} = {_toml_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


# -- YAML ----------------------------------------------------------------------------------------------------------


def _read_yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as wrong:
        raise ValueError(str(wrong)) from None


def _yaml(text: str, key: str, entry: JsonObject | None) -> str:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    if _SET_IN.search(text):
        yaml.indent(mapping=2, sequence=4, offset=2)
    body = yaml.load(text) if text.strip() else None
    body = {} if body is None else body
    _place(body, key, entry)
    if not body:
        return ""
    made = io.StringIO()
    yaml.dump(body, made)
    return made.getvalue()
