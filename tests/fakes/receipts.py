"""Receipts to be checked: of runs with every kind of firing a receipt tells of, and the ways to tamper with them."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_graph.core.sealing import Verifier
from agent_graph.engine.keys import KeyRing, open_keys
from tests.fakes.opened import Tools, opened
from tests.specs import gate, join, llm, passthrough, spec, transform


def council_spec() -> Any:
    """Three models side by side, a join, a gate and what is copied at the end: seven firings, some thirty events."""
    return spec(
        llm("a", prompt="{topic}"), llm("b", prompt="{topic}"), llm("c", prompt="{topic}"),
        passthrough("fork"), join("j", ["a", "b", "c"], "said"), gate("g"),
        transform("end", {"op": "copy", "from": "said", "path": "out"}),
        edges="fork>a fork>b fork>c a>j b>j c>j j>g g>end", output_key="out", entry="fork",
    )  # fmt: skip


async def issued(
    folder: Path | None = None, *, bundle: bool = True, keys: KeyRing | None = None
) -> tuple[Any, KeyRing]:
    """{receipt, integrity, bundle} of a council that a person approved, and the keys it is sealed with."""
    ring = keys or open_keys(folder, now_ms=0)
    async with opened(folder=folder, keys=ring) as deps:
        tools = Tools(deps)
        run_id = await approved(tools)
        return await tools.ok("graph_run_receipt", run_id=run_id, include_bundle=bundle), ring


async def approved(tools: Tools, value: Any = None) -> str:
    """The id of such a run, ended."""
    created = await tools.ok("graph_create", spec=council_spec())
    run_id = await tools.run(created["graph_id"], value or {"topic": "tea é", "weight": 1.5, "big": 2**70})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    [waiting] = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]
    await tools.ok(
        "graph_approval_decide", approval_id=waiting["approval_id"], decision="approve", decided_by="ada",
        decision_note="fine",
    )  # fmt: skip
    ended = await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=10_000)
    assert ended["status"] == "completed", ended
    return run_id


def checking(ring: KeyRing) -> Mapping[str, Verifier]:
    return ring.verifiers()


def tampered(document: Any, dice: random.Random) -> tuple[str, Any]:
    """A copy with one event or leaf dropped, doubled, swapped or altered, and where that was."""
    whole = copy.deepcopy(document)
    where = dice.choice(["events", "leaves"])
    rows: list[Any] = whole["bundle"]["events"] if where == "events" else whole["receipt"]["leaves"]
    place = dice.randrange(len(rows))
    how = dice.choice(["drop", "swap", "add", "alter"])
    if how == "drop":
        del rows[place]
    elif how == "add":
        rows.insert(place, copy.deepcopy(rows[dice.randrange(len(rows))]))
    elif how == "swap":
        other = dice.choice([at for at in range(len(rows)) if at != place])
        rows[place], rows[other] = rows[other], rows[place]
    elif where == "leaves":
        name = dice.choice(["depth", "attempt"])
        rows[place][name] += dice.choice([-1, 1, 7])
    else:
        rows[place] = rows[place].replace('"type":', '"typo":', 1)
    return f"{how} {where}[{place}]", whole
