"""A JSON text changed where a patch says so, everything around that as its author wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent_graph.core.classes import dataclass
from agent_graph.core.issues import pointer
from agent_graph.core.jsonvalue import compact

_SIGN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


@dataclass(slots=True)
class Part:
    """A value in the text, from `start` to before `end`; `begin` is where its key begins, in an array itself."""

    begin: int
    start: int
    end: int = 0
    children: int = 0


def parts(text: str) -> dict[str, Part]:
    """Every value of a JSON text that was read already, by its pointer; of keys given twice the first."""
    found: dict[str, Part] = {}
    path: list[str | int] = []
    open_: list[Part] = []
    key, began, awaits_key = "", 0, False
    for match in _SIGN.finditer(text):
        sign = match.group()
        if sign in ("}", "]"):
            path.pop()
            open_.pop().end = match.end()
            awaits_key = False
        elif sign == ",":
            last = path[-1]
            awaits_key = isinstance(last, str)
            path[-1] = last if isinstance(last, str) else last + 1
        elif sign == ":":
            awaits_key, path[-1] = False, key
        elif awaits_key:
            key, began = json.loads(sign), match.start()
        else:
            part = Part(began if path and isinstance(path[-1], str) else match.start(), match.start(), match.end())
            found.setdefault(pointer(*path), part)
            if open_:
                open_[-1].children += 1
            awaits_key = sign == "{"
            if sign in ("{", "["):
                open_.append(part)
                path.append("" if awaits_key else 0)
    return found


def fault(text: str, said: str) -> int | None:
    """Where the key that stands twice, or the number that JSON has not, begins that `said` names."""
    seen: list[set[str] | None] = []
    awaits_key = False
    for match in _SIGN.finditer(text):
        sign = match.group()
        if sign in ("{", "["):
            seen.append(set() if sign == "{" else None)
            awaits_key = sign == "{"
        elif sign in ("}", "]"):
            seen = seen[:-1]
            awaits_key = False
        elif sign in (",", ":"):
            awaits_key = sign == "," and bool(seen) and seen[-1] is not None
        elif awaits_key and seen and (keys := seen[-1]) is not None:
            key = compact(json.loads(sign))[:80]
            if key in keys and f"the key {key} is given twice" in said:
                return match.start()
            keys.add(key)
        elif sign[0] not in '"tfn' and (f"{sign[:40]} is" in said or (len(sign) > 1_000 and "an integer" in said)):
            return match.start()
    return None


def patched(text: str, patch: Sequence[Mapping[str, Any]]) -> str:
    """`text` with the steps of a patch that fits it; "" where a step can only be made by writing everything anew."""
    for step in patch:
        op, path = step["op"], str(step["path"])
        if op == "move":
            text = _moved(text, str(step["from"]), path)
        elif op == "remove":
            text = _without(text, path)
        elif op == "replace" or (op == "add" and _is_member(text, path)):
            text = _replaced(text, path, _written(step["value"]))
        else:
            text = _with(text, path, _written(step["value"])) if op == "add" else ""
        if not text:
            return ""
    return text


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _split(at: str) -> tuple[str, str]:
    parent, _, last = at.rpartition("/")
    return parent, last.replace("~1", "/").replace("~0", "~")


def _is_member(text: str, at: str) -> bool:
    """A member of an object that is there: adding it puts a value in its place."""
    known, (parent, _) = parts(text), _split(at)
    return at in known and (not at or text[known[parent].start] == "{")


def _replaced(text: str, at: str, value: str) -> str:
    part = parts(text).get(at)
    return "" if part is None else text[: part.start] + value + text[part.end :]


def _moved(text: str, source: str, target: str) -> str:
    known = parts(text)
    part = known.get(source)
    if part is None or target in known:
        return ""
    (old, _), (new, name) = _split(source), _split(target)
    if old == new and text[known[old].start] == "{":  # another name in the same place
        key = _SIGN.match(text, part.begin)
        return "" if key is None else text[: part.begin] + _written(name) + text[key.end() :]
    value, left = text[part.start : part.end], _without(text, source)
    return _with(left, target, value) if left else ""


def _without(text: str, at: str) -> str:
    """Without a member or an item, the comma before it, or after the first one, and the line it stood on."""
    known = parts(text)
    part = known.get(at)
    if part is None or not at:
        return ""
    whole = known[_split(at)[0]]
    before, after = text[: part.begin].rstrip(), text[part.end :]
    if before.endswith(","):
        return before[:-1] + after
    rest = after.lstrip()
    if rest.startswith(","):
        return text[: part.begin] + rest[1:].lstrip()
    return before + after.lstrip() if whole.children == 1 else ""


def _with(text: str, at: str, value: str) -> str:
    """With a member at the end of an object, or an item at the end of an array."""
    known, (parent, name) = parts(text), _split(at)
    whole = known.get(parent)
    if whole is None or text[whole.start] not in "{[":
        return ""
    if text[whole.start] == "{":
        value = f"{_written(name)}: {value}"
    elif name not in ("-", str(whole.children)):
        return ""
    if not whole.children:
        return text[: whole.start + 1] + value + text[whole.end - 1 :]
    *_, last = _children(known, parent)
    gap = re.search(r"\s*\Z", text[whole.start + 1 : last.begin]) if whole.children == 1 else None
    gap = gap or re.search(r"\s*\Z", text[: last.begin])
    between = gap.group() if gap else ""
    between = between if "\n" in between else " "
    return text[: last.end] + "," + between + value + text[last.end :]


def _children(known: Mapping[str, Part], parent: str) -> Iterator[Part]:
    """Those directly below, as they stand."""
    depth = parent.count("/") + 1
    inside = (part for at, part in known.items() if at.startswith(parent + "/") and at.count("/") == depth)
    yield from sorted(inside, key=lambda part: part.start)
