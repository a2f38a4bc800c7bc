"""`approvers add|list|remove`: who can prove to be a person at a gate that is closed to models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_graph.cli.options import AsJson, DataDir, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, say
from agent_graph.errors import InvalidArgument

if TYPE_CHECKING:
    from agent_graph.engine.approvers import Approvers, Proof

group = typer.Typer(
    help="Whose secret a gate asks for that is closed to models.", no_args_is_help=True, rich_markup_mode=None
)
NAME = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
VOUCHER = Annotated[
    str, typer.Option("--approver", metavar="NAME", help="Who vouches for it, where there are approvers; else NAME.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="approvers")


@group.command("add")
def add(name: NAME, *, approver: VOUCHER = "", as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Add an approver, or give one another secret: it is asked for, or read from stdin, one line each (the secret of
    whoever vouches, then the new one)."""
    from agent_graph.cli.proving import new_secret
    from agent_graph.engine.approvers import Approvers, Proof
    from agent_graph.engine.clock import SystemClock

    async def work() -> int:
        folder = _folder(data_dir)
        approvers = Approvers(folder)
        voucher = await _voucher(approvers, approver or name)
        new = Proof(name, await new_secret(name))
        await approvers.add(new, voucher=voucher, now_ms=SystemClock().now_ms())
        return _done(f"{name} is an approver", name, as_json=as_json)

    finish(work(), as_json=as_json)


@group.command("list")
def list_(*, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """List the approvers."""
    from agent_graph.engine.approvers import Approvers

    async def work() -> int:
        names = await Approvers(settings_of(data_dir).data_dir).names()
        if as_json:
            give_json({"ok": True, "data": {"approvers": list(names)}})
        else:
            give("\n".join(names) or "there are no approvers: gates that are closed to models trust the shell")
        return DONE

    finish(work(), as_json=as_json)


@group.command("remove")
def remove(name: NAME, *, approver: VOUCHER = "", as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Remove an approver."""
    from agent_graph.engine.approvers import Approvers
    from agent_graph.engine.clock import SystemClock

    async def work() -> int:
        approvers = Approvers(_folder(data_dir))
        voucher = await _voucher(approvers, approver or name)
        await approvers.remove(name, voucher=voucher, now_ms=SystemClock().now_ms())
        return _done(f"{name} is no approver any more", name, as_json=as_json)

    finish(work(), as_json=as_json)


def _folder(data_dir: str) -> Path:
    folder = settings_of(data_dir).data_dir
    if folder is None:
        raise InvalidArgument("a data folder that keeps nothing has no approvers", argument="data-dir")
    return folder


async def _voucher(approvers: Approvers, name: str) -> Proof | None:
    """The proof of somebody who is an approver already; None where there is nobody."""
    from agent_graph.cli.proving import secret
    from agent_graph.engine.approvers import Proof

    names = await approvers.names()
    if not names:
        return None
    if name.casefold() not in {one.casefold() for one in names}:
        message = f"one of the approvers has to vouch for this: --approver NAME (there are {', '.join(names)})"
        raise InvalidArgument(message, argument="approver")
    return Proof(name, await secret(f"Secret of {name}, who vouches for it: "))


def _done(said: str, name: str, *, as_json: bool) -> int:
    if as_json:
        give_json({"ok": True, "data": {"name": name}})
    else:
        say(said)
    return DONE
