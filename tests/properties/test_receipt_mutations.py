"""A receipt with its bundle, changed anywhere: the check fails each time, and names the place.

2,000 changes at full size: half flip one byte of the file, half drop, double, swap or alter an event or a leaf.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from agent_graph.core.jsonvalue import canonical
from agent_graph.core.receipt_file import check_file
from tests.fakes.receipts import checking, issued, tampered
from tests.sizes import size

FLIPS = size(100, 1_000)
CHANGES = size(100, 1_000)
NAMED = re.compile(r"^(file|(receipt|integrity|bundle)\b.*)$")


async def test_a_flipped_byte_is_found_wherever_it_is() -> None:
    document, ring = await issued()
    whole = canonical(document) + b"\n"
    keys = checking(ring)
    assert check_file(whole, keys).faults == ()
    assert check_file(whole, keys).authentic is True
    dice = random.Random(8)
    for _ in range(FLIPS):
        at = dice.randrange(len(whole))
        changed = bytearray(whole)
        changed[at] ^= dice.choice([1 << bit for bit in range(8)]) if dice.random() < 0.5 else dice.randrange(1, 256)
        checked = check_file(bytes(changed), keys)
        assert checked.faults, (at, whole[at - 30 : at + 10])
        assert checked.authentic is not True
        assert NAMED.match(checked.faults[0].place), checked.faults


async def test_a_flipped_byte_of_a_value_is_named_by_where_it_stands() -> None:
    """The same, with the file read back and written anew, so that the form says nothing: only the values do."""
    document, ring = await issued()
    keys = checking(ring)
    dice = random.Random(9)
    for _ in range(size(60, 500)):
        changed = json.loads(json.dumps(document))
        place = _alter(changed, dice)
        faults = check_file(json.dumps(changed, indent=1).encode(), keys, any_form=True).faults
        assert faults, place
        assert any(fault.place.startswith(place) or place.startswith(fault.place.split(" ")[0]) for fault in faults), (
            place, faults,
        )  # fmt: skip


async def test_what_was_dropped_doubled_swapped_or_altered_is_named() -> None:
    document, ring = await issued()
    for keys in (checking(ring), {}):  # the chain and the leaves are checked without a key too
        dice = random.Random(10)
        for _ in range(CHANGES // 2):
            what, changed = tampered(document, dice)
            if changed == document:
                continue  # two that were the same
            faults = check_file(canonical(changed), keys).faults
            assert faults, what
            how, place = what.split(" ")
            where, at = place.removesuffix("]").split("[")
            found = [fault for fault in faults if f"{where}[" in fault.place]
            assert found, (what, faults)
            said = {"drop": "removed", "add": "added", "swap": "reordered", "alter": ""}[how]
            assert any(said in fault.said for fault in found), (what, faults)
            if how in ("drop", "alter"):
                assert any(f"{where}[{at}]" in fault.place for fault in found), (what, faults)


def _alter(document: Any, dice: random.Random) -> str:
    """Change one value somewhere in the document; gives its place as far down as it is named."""
    path, here = "", document
    while isinstance(here, dict | list) and here:
        key: Any = dice.choice(sorted(here)) if isinstance(here, dict) else dice.randrange(len(here))
        above, here = here, here[key]
        path += f"[{key}]" if isinstance(key, int) else f".{key}"
    above[key] = _other(here, dice)
    named = re.match(r"^\.(receipt\.leaves\[\d+\]|bundle\.(events|graphs)\[\d+\]|[a-z]+\.[a-z_]+)", path)
    assert named is not None, path
    return named.group(1)


def _other(value: Any, dice: random.Random) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + dice.choice([-1, 1])
        case str() if value:
            at = dice.randrange(len(value))
            return value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
        case _:
            return "x"
