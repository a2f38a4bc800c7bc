"""`prune`, `export` and `doctor`: what is kept of the runs, and whether the data folder is sound."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, Host, Model, OutFile, Provider, settings_of
from agent_graph.cli.output import DONE, UNREACHABLE, finish, give, give_json, one_line, refuse, say, table
from agent_graph.core.jsonvalue import JsonObject, compact
from agent_graph.errors import InvalidArgument
from agent_graph.system.files import replace

if TYPE_CHECKING:
    from agent_graph.store.base import Finding

UNSOUND: Final = 5


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("prune")(prune)
    app.command("export")(export)
    app.command("doctor")(doctor)


# -- prune ---------------------------------------------------------------------------------------------------------


def prune(
    run_ids: Annotated[list[str] | None, typer.Argument(metavar="RUN", show_default=False)] = None,
    *, days: Annotated[int, typer.Option(min=0, help="Runs that ended so many days ago.", show_default=False)] = 0,
    keep: Annotated[int, typer.Option(min=0, help="All but the so many that ended last.", show_default=False)] = 0,
    bytes_: Annotated[
        int, typer.Option("--bytes", min=0, help="As many as it takes to come down to this.", show_default=False)
    ] = 0,
    forget: Annotated[bool, typer.Option("--forget", help="Also results, and answers under idempotency keys.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    export_to: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Export each run to this folder first.")
    ] = None,
    as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Delete the records of runs that have ended and are not pinned: those named, or as the options or settings say."""

    async def work() -> int:
        settings = settings_of(data_dir)
        asked: JsonObject = {"days": days, "runs": keep, "bytes": bytes_, "run_ids": list(run_ids or ())}
        if not any(asked.values()):
            asked.update(days=settings.retention_days, runs=settings.retention_runs, bytes=settings.retention_bytes)
        asked["forget"] = forget
        async with Desk(settings, drives=False, remark=say) as desk:
            if export_to is None or dry_run:
                answer = await desk.call("graph_store_prune", {**asked, "dry_run": dry_run})
            else:
                answer = await _exported_first(desk, asked, export_to)
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        if as_json:
            give_json(answer)
        else:
            give(_pruned(answer["data"]))
        return DONE

    finish(work(), as_json=as_json)


async def _exported_first(desk: Desk, asked: JsonObject, folder: Path) -> JsonObject:
    """Prune what would go, each run only once its document is on the disk; the first that fails ends it all."""
    planned = await desk.call("graph_store_prune", {**asked, "dry_run": True})
    if not planned["ok"]:
        return planned
    data: Any = planned["data"]
    _make(folder)
    run_ids = [run["run_id"] for run in data["runs"]]
    for run in data["runs"]:
        answer = await desk.call("graph_run_export", {"run_id": run["run_id"]})
        if answer["ok"]:
            _write(folder / f"{run['run_id']}.json", answer["data"])
        elif answer["error_code"] != "RUN_PRUNED":  # of that nothing but the row is left
            return answer
    if not run_ids:
        return planned
    return await desk.call("graph_store_prune", {"run_ids": [*run_ids], "forget": asked["forget"]})


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(f"{folder} cannot be made: {error.strerror}", argument="export") from error


def _write(path: Path, document: Any) -> None:
    """The whole document or none of it, and on the disk when this returns."""
    draft = path.with_name(f".{path.name}.part")
    try:
        with draft.open("wb") as file:
            file.write(compact(document).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}; nothing was pruned") from error


def _pruned(data: Any) -> str:
    runs = data["runs"]
    rows = [(run["run_id"], run["status"], run["graph_id"], f"{run['bytes']:,}") for run in runs]
    verb = "would go" if data["dry_run"] else "went"
    lines = [table(rows, head=("RUN", "STATUS", "GRAPH", "BYTES"))] if rows else []
    lines.append(f"{len(runs)} record(s), {sum(run['bytes'] for run in runs):,} bytes {verb}")
    if data["witnesses"]:
        size = sum(one["bytes"] for one in data["witnesses"])
        lines.append(f"{len(data['witnesses'])} captured source(s), {size:,} bytes {verb}")
    if data["witnesses_cited"]:
        lines.append(f"{data['witnesses_cited']} captured source(s) as old are kept, for runs that stay cite them")
    lines += [f"kept: {run_id} (it lives, is pinned, or was pruned before)" for run_id in data["kept"]]
    if not data["dry_run"]:
        lines.append(f"the database has {data['file_bytes']:,} bytes, before it had {data['file_bytes_before']:,}")
    return "\n".join(lines)


# -- export --------------------------------------------------------------------------------------------------------


def export(
    run_id: Annotated[str, typer.Argument(metavar="RUN", show_default=False)],
    *, output: OutFile = None, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Print a run as one JSON document: its row, its graph, its approvals and every event."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call("graph_run_export", {"run_id": run_id})
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        if as_json:
            give_json(answer, to=output)
        else:
            document: Any = answer["data"]
            give_json(document, to=output)
        return DONE

    finish(work(), as_json=as_json)


# -- doctor --------------------------------------------------------------------------------------------------------


def doctor(
    *, full: Annotated[bool, typer.Option("--full", help="Compare every index with its table too; slow.")] = False,
    as_json: AsJson = False, model: Model = "", ollama_host: Host = "", provider: Provider = "",
    data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Look at versions, data folder, lock, room, database, event chains, clock and model host; change nothing."""

    async def work() -> int:
        from agent_graph.app import diagnose

        settings = settings_of(data_dir, model=model, ollama_host=ollama_host, provider=provider)
        found = await diagnose(settings, full=full)
        sound = not any(each.level == "unsound" for each in found)
        if as_json:
            findings: list[Any] = [
                {"name": each.name, "level": each.level, "said": each.said, "details": each.details} for each in found
            ]
            give_json({"ok": True, "data": {"sound": sound, "findings": findings}})
        else:
            give("\n".join(f"{each.level:<8} {each.name:<9} {one_line(each.said)}" for each in found))
        return _code(found) if sound else UNSOUND

    finish(work(), as_json=as_json)


def _code(found: tuple[Finding, ...]) -> int:
    return UNREACHABLE if any(each.name == "model" and each.level != "ok" for each in found) else DONE
