"""The operator's own policy profiles: ``policies/NAME.toml`` in the data folder, read once at start.

A file that cannot be read as one stops the program: a rule that was meant to hold and does not is worse than no start.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agent_graph.core.policy.book import PolicyBook
from agent_graph.core.policy.profile import BUILT_IN, Profile, read_profile
from agent_graph.errors import SettingInvalid

FOLDER: Final = "policies"
MOST_BYTES: Final = 64 * 1024
MOST_FILES: Final = 100
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def read_book(data_dir: Path | None, default: str, *, overrides: str) -> PolicyBook:
    """The profiles and the one that holds. Raises `SettingInvalid`, also when there is no profile `default`."""
    book = PolicyBook(default, read_profiles(data_dir), loosen=overrides == "any")
    if default not in book.names:
        known = ", ".join(book.names)
        hint = "" if data_dir is None else f"; your own stand in {data_dir / FOLDER}/NAME.toml"
        message = f"policy_profile is {default!r}: there is no such profile; there are {known}{hint}"
        raise SettingInvalid(message, setting="policy_profile", known=list(book.names))
    return book


def read_profiles(data_dir: Path | None) -> dict[str, Profile]:
    """By name. Raises `SettingInvalid` with the file and all that is wrong with it."""
    folder = data_dir / FOLDER if data_dir else None
    if folder is None or not folder.is_dir():
        return {}
    files = sorted(folder.glob("*.toml"))
    if len(files) > MOST_FILES:
        raise SettingInvalid(f"{folder} holds {len(files)} profiles; at most {MOST_FILES} are read", setting=FOLDER)
    return {file.stem: _read(file) for file in files}


def _read(file: Path) -> Profile:
    import tomllib  # here: most folders have no such file

    name = file.stem
    if not _NAME.fullmatch(name):
        raise SettingInvalid(f"{file}: a profile's name is small letters, digits, - and _", setting=FOLDER)
    if name in BUILT_IN:
        raise SettingInvalid(f"{file}: {name} is built in; give your profile another name", setting=FOLDER)
    try:
        with file.open("rb") as opened:
            text = opened.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES} bytes")
        body = tomllib.loads(text.decode())
    except (OSError, ValueError) as wrong:  # no UTF-8 and no TOML are ValueErrors
        raise SettingInvalid(f"{file} cannot be read: {wrong}", setting=FOLDER) from None
    profile, problems = read_profile(name, body)
    if problems:
        said = "; ".join(problem.message for problem in problems)
        raise SettingInvalid(f"{file}: {said}", setting=FOLDER, profile=name)
    return profile
