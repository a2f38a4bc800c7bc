"""`install CLIENT`: shows what it would change in a client's configuration, and changes it after a yes."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer

from agent_graph.cli import asking
from agent_graph.cli.client_files import NAME, changed
from agent_graph.cli.clients import CLIENTS, TRIED, Client, client_named
from agent_graph.cli.options import AsJson, DataDir, Host, Model, Provider
from agent_graph.cli.output import DONE, REFUSED, finish, give, give_json, say
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.errors import ClientConfigInvalid, InvalidArgument
from agent_graph.mcp_server.hello import COMPARED
from agent_graph.mcp_server.proxy_arguments import DATA_DIR_VARIABLE
from agent_graph.system.files import PRIVATE_FILE, replace

BACKUP: Final = ".before-agent-graph"
CONTEXT: Final = 2
"""Lines around a change that are shown; a client's file may hold secrets."""


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("install")(install)


def install(
    client: Annotated[str, typer.Argument(metavar="|".join(CLIENTS), show_default=False)],
    *, remove: Annotated[bool, typer.Option("--remove", help="Take the entry out again.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Show the change and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    project: Annotated[bool, typer.Option("--project", help="For the project in this folder, not for me.")] = False,
    toolsets: Annotated[str, typer.Option(help="The tools the assistant is shown, by comma.")] = "",
    model: Model = "", ollama_host: Host = "", provider: Provider = "", data_dir: DataDir = "",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Have an assistant start `agent-graph mcp`: shows the change to its configuration, and writes it after a yes."""
    flags = {"model": model, "ollama-host": ollama_host, "provider": provider, "toolsets": toolsets}

    async def work() -> int:
        known = client_named(client)
        words = [f"--{name}={value}" for name, value in flags.items() if value]
        if data_dir:
            words.append(f"--data-dir={await asyncio.to_thread(_absolute, data_dir)}")
        plan = await asyncio.to_thread(_Plan, known, known.file(project=project), [*command(), *words], remove=remove)
        if not as_json:
            give(plan.said)
        written = False
        if not only_print and plan.differs:
            if not yes and not await _agreed(as_json=as_json):
                say("nothing was written")
                return REFUSED
            await asyncio.to_thread(plan.write)
            written = True
        if as_json:
            give_json({"ok": True, "data": plan.body(written)})
        elif written:
            say(f"{plan.path} is written{f'; as it was: {plan.backup}' if plan.backup else ''}. Restart {known.title}.")
        for remark in plan.remarks():
            say(remark)
        return DONE

    finish(work(), as_json=as_json)


async def _agreed(*, as_json: bool) -> bool:
    if as_json or not asking.can_ask():
        raise InvalidArgument("nobody is here to be asked: --yes writes it, --print only shows it", argument="yes")
    return (await asking.line("Write this? yes, or nothing to leave it: ") or "").lower() in ("y", "yes")


def command() -> list[str]:
    """The words with which this installation is started, from whatever folder."""
    beside = Path(sys.executable).with_name(NAME)
    return [str(beside), "mcp"] if beside.exists() else [sys.executable, "-m", "agent_graph", "mcp"]


def _absolute(folder: str) -> str:
    return folder if folder.startswith(":") else str(Path(folder).expanduser().absolute())


class _Plan:
    """A change to one file, made and checked; `write` does it."""

    def __init__(self, client: Client, path: Path, words: list[str], *, remove: bool) -> None:
        """Raises `ClientConfigInvalid` with the file's name for one that cannot be read or changed."""
        self.client = client
        self.path = path
        self.backup: Path | None = None
        entry = None if remove else client.entry(words)
        try:
            self.before = path.read_text(encoding="utf-8") if path.exists() else ""
            self.after = changed(self.before, client.form, client.key, entry=entry)
        except ClientConfigInvalid as wrong:
            by_hand = (
                "" if remove else f" To add by hand under {client.key}: {changed('', 'json', client.key, entry=entry)}"
            )
            message = f"{path} is left as it is: {wrong.message}.{' '.join(by_hand.split(chr(10)))}"
            raise ClientConfigInvalid(message, path=str(path)) from None
        except (OSError, UnicodeError) as wrong:
            raise ClientConfigInvalid(f"{path} cannot be read: {wrong}", path=str(path)) from None

    @property
    def differs(self) -> bool:
        return self.before != self.after

    @property
    def said(self) -> str:
        """The change as a diff, or that there is none."""
        if not self.differs:
            return f"{self.path} says so already; nothing to change"
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), str(self.path), str(self.path), n=CONTEXT, lineterm=""
        )
        return "\n".join(lines)

    def body(self, written: bool) -> JsonObject:
        """What was done, for programs."""
        return {
            "client": self.client.name, "path": str(self.path), "changed": self.differs, "written": written,
            "backup": str(self.backup or ""), "diff": self.said if self.differs else "",
        }  # fmt: skip

    def remarks(self) -> list[str]:
        """What a person should know beyond the change."""
        said = []
        if sys.platform not in TRIED:
            said.append(
                f"on this system ({sys.platform}) this was not tried; look whether {self.path} is the right file"
            )
        lost = [
            env
            for flag, env in (("--data-dir", DATA_DIR_VARIABLE), *COMPARED.values())
            if os.environ.get(env) and not (flag and f"{flag}=" in self.after)
        ]
        if lost and self.differs:
            said.append(f"{self.client.title} may not see what is set in this shell: {', '.join(lost)}")
        return said

    def write(self) -> None:
        """The file in one go, and what it was beside it. Raises `ClientConfigInvalid`, then nothing is changed."""
        target = self.path.resolve()  # a link to where somebody keeps such files stays one
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            mode = PRIVATE_FILE
            if target.exists():
                if target.read_text(encoding="utf-8") != self.before:
                    raise ClientConfigInvalid(f"{self.path} was changed meanwhile; look again", path=str(self.path))
                mode = stat.S_IMODE(target.stat().st_mode)
                self.backup = target.with_name(target.name + BACKUP)
                shutil.copy2(target, self.backup)
            _replace(target, self.after, mode)
        except OSError as wrong:
            message = f"{self.path} cannot be written: {wrong.strerror or wrong}"
            raise ClientConfigInvalid(message, path=str(self.path)) from wrong


def _replace(target: Path, text: str, mode: int) -> None:
    descriptor, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(mode)
        replace(Path(beside), target)
    except OSError:
        with contextlib.suppress(OSError):
            Path(beside).unlink()
        raise
