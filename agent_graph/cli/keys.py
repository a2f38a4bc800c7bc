"""`keys create|show|rotate|retire`: what a data folder's receipts are sealed with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_graph.cli.options import AsJson, DataDir, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, say
from agent_graph.errors import InvalidArgument

if TYPE_CHECKING:
    from agent_graph.engine.keys import KeyInfo, KeyRing

group = typer.Typer(help="What receipts are sealed with.", no_args_is_help=True, rich_markup_mode=None)
KEY = Annotated[str, typer.Argument(metavar="KEY", help="Its id, as `keys show` gives it.", show_default=False)]
KIND = Annotated[str, typer.Option("--kind", help="hmac-sha256 or ed25519; else the one that seals receipts.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="keys")


@group.command("create")
def create(*, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Make an Ed25519 pair: it seals receipts from now on, and whoever has its public half can check them, but forge
    none. (The key a folder begins with is made at its first start.)"""
    from agent_graph.engine.key_changes import create_pair

    async def work() -> int:
        made = create_pair(_ring(data_dir), now_ms=_now_ms())
        return _done(made, f"{made.key_id} seals receipts from now on", as_json=as_json)

    finish(work(), as_json=as_json)


@group.command("show")
def show(*, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """List the keys: their ids, what each does, and the public half of a pair. No secret is ever shown."""

    async def work() -> int:
        ring = _ring(data_dir)
        if as_json:
            keys: list[Any] = [info.to_json() for info in ring.infos()]
            give_json({"ok": True, "data": {"mode": ring.mode, "keys": keys}})
        else:
            give("\n".join(map(_line, ring.infos())) or "this data folder has no integrity key: nothing is sealed")
        return DONE

    finish(work(), as_json=as_json)


@group.command("rotate")
def rotate(*, kind: KIND = "", as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Make a new key in place of the one that seals receipts; what the old one sealed can still be checked."""
    from agent_graph.core.sealing import ED25519, HMAC
    from agent_graph.engine import key_changes

    async def work() -> int:
        if kind not in ("", HMAC, ED25519):
            raise InvalidArgument(f"a key is of kind {HMAC} or {ED25519}, not {kind!r}", argument="kind")
        wanted: Any = kind or None
        made = key_changes.rotate(_ring(data_dir), now_ms=_now_ms(), kind=wanted)
        return _done(made, f"{made.key_id} took its place", as_json=as_json)

    finish(work(), as_json=as_json)


@group.command("retire")
def retire(key: KEY, *, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Trust nothing that a key seals from now on; what it sealed before can still be checked. The secret half of a
    pair is removed."""
    from agent_graph.engine import key_changes

    async def work() -> int:
        gone = key_changes.retire(_ring(data_dir), key, now_ms=_now_ms())
        return _done(gone, f"{gone.key_id} is retired", as_json=as_json)

    finish(work(), as_json=as_json)


def _ring(data_dir: str) -> KeyRing:
    """The folder's own, made where the folder has none; a server that runs on it sees changes at once."""
    from agent_graph.app import open_ring

    return open_ring(settings_of(data_dir), now_ms=_now_ms())


def _now_ms() -> int:
    from agent_graph.engine.clock import SystemClock

    return SystemClock().now_ms()


def _line(info: KeyInfo) -> str:
    public = f"  public {info.public}" if info.public else ""
    return f"{info.key_id}  {info.kind}  {info.state}{public}"


def _done(info: KeyInfo, said: str, *, as_json: bool) -> int:
    if as_json:
        give_json({"ok": True, "data": {"key": info.to_json()}})
    else:
        say(said)
    return DONE
