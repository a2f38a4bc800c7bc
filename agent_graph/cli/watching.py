"""Sees a run through to where it rests: shows it, asks for decisions, survives the owner of the folder, prints the
result."""

from __future__ import annotations

import asyncio
import getpass
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from agent_graph.cli import asking
from agent_graph.cli.desk import Desk, key
from agent_graph.cli.output import (
    DONE,
    REFUSED,
    UNREACHABLE,
    WAITING,
    OutputLost,
    exit_code,
    give,
    give_json,
    one_line,
    pretty,
    refuse,
    say,
)
from agent_graph.cli.progress import View
from agent_graph.cli.proving import proof_for
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.approvers import Proof
from agent_graph.errors import InvalidArgument

ENDED: Final = ("completed", "failed", "cancelled")
CLOSED: Final = ("approval_decided", "approval_expired", "approval_withdrawn")


class Watcher:
    """Follows one run until it has ended, is interrupted, or waits for a decision that nobody here takes."""

    def __init__(self, desk: Desk, run_id: str, *, view: View, interactive: bool) -> None:
        self._desk = desk
        self._run_id = run_id
        self._view = view
        self._interactive = interactive
        self._cursor = 0
        self._question: asyncio.Task[bool] | None = None
        self._asked = ""
        self._left_open = False

    async def watch(self) -> str:
        """The status the run rests in. When the folder's owner goes away, the run is driven on from here."""
        try:
            while True:
                try:
                    return await self._until_rest()
                except ConnectionError:
                    await self._desk.open()
                    await self._desk.resume(self._run_id)
        finally:
            await self._take_back()
            self._view.stop()

    async def _until_rest(self) -> str:
        async with aclosing(self._desk.watch(self._run_id, cursor=self._cursor)) as items:  # type: ignore[type-var]  # it is a generator
            coming = asyncio.ensure_future(anext(items))
            try:
                while True:
                    both = {task for task in (coming, self._question) if task is not None}
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                    status = await self._answered() or (await self._seen(coming.result()) if coming.done() else "")
                    if status:
                        return status
                    if coming.done():
                        coming = asyncio.ensure_future(anext(items))
            finally:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _seen(self, item: JsonObject) -> str:
        """Show an item; the status when the run rests in it."""
        seq = item.get("seq")
        if isinstance(seq, int):
            self._cursor = seq + 1
        if item.get("type") in CLOSED and item.get("approval_id") == self._asked:
            await self._take_back()
        if self._question is None:
            self._view.show(item)
        if item["type"] != "run_status":
            return ""
        status = str(item["status"])
        if status in (*ENDED, "interrupted"):
            return status
        if status == "waiting" and (kinds := await self._waits_for()) != {"timer"}:  # the clock needs nobody
            if not self._interactive or self._left_open or "approval" not in kinds:
                return status
            if self._question is None:
                self._view.stop()
                self._question = asyncio.create_task(self._ask())
        return ""

    async def _waits_for(self) -> set[str]:
        """The kinds of what the run waits for."""
        run: Any = await self._desk.call("graph_run_get", {"run_id": self._run_id})
        return {one["kind"] for one in run["data"]["waiting_for"]} if run["ok"] else set()

    # -- decisions -------------------------------------------------------------------------------------------------

    async def _answered(self) -> str:
        """What came of the question, if it was answered: "waiting" when it was left open."""
        if self._question is None or not self._question.done():
            return ""
        question, self._question = self._question, None
        if question.result():
            return ""
        self._left_open = True
        return "waiting"

    async def _take_back(self) -> None:
        """Somebody else decided, or we leave: the question is gone."""
        question, self._question, self._asked = self._question, None, ""
        if question is not None:
            question.cancel()
            await asyncio.gather(question, return_exceptions=True)
            say("")

    async def _ask(self) -> bool:
        """Put what is pending to the person, one after the other; False when one is left open."""
        while pending := await self._pending():
            approval = pending[0]
            self._asked = str(approval["approval_id"])
            decision = await asking.ask(approval)
            if decision is None:
                return False
            proof = await proof_for(self._desk.settings, approval)
            answer = await decide(
                self._desk, self._asked, decision[0], note=decision[1], by="" if proof is None else proof.name,
                proof=proof, more={"subject_digest": approval["subject_digest"]},
            )  # fmt: skip
            if not answer["ok"] and answer["error_code"] not in ("APPROVAL_ALREADY_DECIDED", "APPROVAL_EXPIRED"):
                refuse(answer, as_json=False)
                return False
            self._asked = ""
        return True

    async def _pending(self) -> list[JsonObject]:
        run: Any = await self._desk.call("graph_run_get", {"run_id": self._run_id})
        return list(run["data"]["pending_approvals"]) if run["ok"] else []


async def decide(
    desk: Desk, approval_id: str, decision: str, *, note: str, by: str, proof: Proof | None = None,
    more: JsonObject | None = None,
) -> JsonObject:  # fmt: skip
    """Decide an approval as the user of this terminal, or as the approver who proves to be there; the tool's
    envelope."""
    asked: JsonObject = {
        "approval_id": approval_id, "decision": decision, "decision_note": note, "decided_by": by or user(),
        "idempotency_key": key(), **(more or {}),
    }  # fmt: skip
    return await desk.call("graph_approval_decide", asked, proof=proof)


def user() -> str:
    """The name of whoever is logged in."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "unknown"


# -- how it ended --------------------------------------------------------------------------------------------------


async def see_through(
    desk: Desk, run_id: str, *, view: View, as_json: bool, output: Path | None = None, ask: bool = True
) -> int:
    """Watch a run to its rest and print its result, or why there is none; the exit code."""
    watcher = Watcher(desk, run_id, view=view, interactive=ask and not as_json and asking.can_ask())
    try:
        await watcher.watch()
    except asyncio.CancelledError:
        say(stopped(desk, run_id))
        raise
    answer = await desk.call("graph_run_get", {"run_id": run_id})
    if not answer["ok"]:
        return refuse(answer, as_json=as_json)
    run: Any = answer["data"]
    try:
        if as_json:
            give_json(answer, to=output)
        elif run["status"] == "completed" and "final_state" in run:
            give(pretty(run["final_state"]), to=output)
    except (InvalidArgument, OutputLost):
        if not desk.settings.volatile:
            say(f"The run is kept; read it with: agent-graph runs show {run_id}")
        raise
    return ending(run, quiet=as_json)


def stopped(desk: Desk, run_id: str) -> str:
    """What Ctrl-C did."""
    if not desk.owns:
        return (
            f"Stopped watching; the process that owns the data folder goes on with {run_id}.\n"
            f"Watch it again: agent-graph resume {run_id}\nEnd it: agent-graph cancel {run_id} --reason WHY"
        )
    if desk.settings.volatile:
        return f"Stopped; nothing of {run_id} is kept, because the data folder is :memory:."
    return f"Stopped; what {run_id} has finished is kept. Go on with it: agent-graph resume {run_id}"


def _what_it_waits_for(run: Any) -> list[str]:
    gates = run.get("pending_approvals", [])
    names = dict.fromkeys(one["name"] for one in run.get("waiting_for", []) if one["kind"] == "signal")
    lines = []
    if gates or not names:
        lines = [f"{run['run_id']} waits for a decision (agent-graph approvals show ID tells what it is about):"]
    for gate in gates:
        lines.append(f"  agent-graph approvals decide {gate['approval_id']} {'|'.join(gate['allowed_decisions'])}")
    if names:
        lines.append(f"{run['run_id']} waits for a message:")
    return lines + [f"  agent-graph signal {run['run_id']} {name} TEXT" for name in names]


def ending(run: Any, *, quiet: bool) -> int:
    """Say on stderr what a result does not say; the exit code."""
    error: Any = run.get("error") or {}
    match run["status"]:
        case "completed":
            return DONE
        case "waiting" | "running" | "accepted":
            lines = _what_it_waits_for(run)
            code = WAITING
        case "interrupted":
            lines = [
                f"{error.get('code', 'INTERRUPTED')}: {one_line(str(error.get('message', 'the run was stopped')))}"
            ]
            lines.append(f"What was answered is kept. Go on: agent-graph resume {run['run_id']}")
            code = UNREACHABLE
        case "failed":
            said, node = str(error.get("message", "")), str(error.get("node_id", ""))
            where = f" (node {node})" if node and f'node "{node}"' not in said else ""
            lines = [f"{error.get('code', 'FAILED')}: {one_line(said)}{where}"]
            code = exit_code(str(error.get("code")))
        case _:
            lines = [f"{run['run_id']} was cancelled"]
            code = REFUSED
    if not quiet:
        say("\n".join(lines))
    return code
