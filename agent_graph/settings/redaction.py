"""What the operator takes for secrets beside what the program knows: ``[redaction]`` in settings.toml, or
``AGENT_GRAPH_REDACTION__FIELD`` with one entry a line.

No graph and no caller has a word in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent_graph.core.redact import Redactor, redactor
from agent_graph.errors import SettingInvalid
from agent_graph.settings.values import suggestion

PREFIX: Final = "AGENT_GRAPH_REDACTION__"
FIELDS: Final[Mapping[str, str]] = {
    "names": "names of keys whose values are secrets, such as `customer_number`",
    "patterns": "RE2 patterns of secrets, each matched within a line; live text then comes by the line",
    "except_names": "names of keys whose values are none, such as `token`",
    "except_patterns": "RE2 patterns: what one of them matches in full is no secret",
}
"""What can be said, each a list of texts."""
MOST: Final = 200


def read_redaction(
    in_file: Mapping[str, Any], environ: Mapping[str, str], *, known: tuple[str, ...], file_name: str
) -> Redactor:
    """The rules in force; `known` are the secrets that settings hold. Raises `SettingInvalid`."""
    said: dict[str, tuple[str, ...]] = {}
    for key, value in in_file.items():
        where = f"{file_name}: redaction.{key}"
        _check_known(key, where)
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise SettingInvalid(f"{where}: it is a list of texts.", setting=f"redaction.{key}")
        said[key] = tuple(value)
    for variable, text in environ.items():
        if variable.startswith(PREFIX) and text:
            key = variable.removeprefix(PREFIX).lower()
            _check_known(key, variable)
            said[key] = tuple(line.strip() for line in text.splitlines() if line.strip())
    for key, entries in said.items():
        if len(entries) > MOST:
            raise SettingInvalid(f"redaction.{key} has {len(entries)} entries, at most {MOST}.", setting=key)
        try:
            redactor(**{key: entries})
        except ValueError as wrong:
            raise SettingInvalid(f"redaction.{key}: {wrong}.", setting=f"redaction.{key}") from None
    return redactor(**said, known=known)


def _check_known(key: str, where: str) -> None:
    if key not in FIELDS:
        hint = suggestion(key, tuple(FIELDS))
        raise SettingInvalid(f"{where}: it has {', '.join(FIELDS)}{hint}.", setting=f"redaction.{key}")
