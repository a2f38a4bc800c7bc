"""`events`: what happened in a run, an event a line."""

from __future__ import annotations

from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Any

import typer

from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, one_line, refuse, say
from agent_graph.core.jsonvalue import compact

RUN = Annotated[str, typer.Argument(metavar="RUN", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("events")(events)


def events(
    run_id: RUN, *, follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on while the run does.")] = False,
    cursor: Annotated[int, typer.Option(min=0, help="The seq of the first.")] = 0,
    as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Print the events of a run, one a line; --json gives one envelope, with --follow one event of JSON a line."""

    async def work() -> int:
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            if follow:
                return await _follow(desk, run_id, cursor, as_json=as_json)
            return await _events(desk, run_id, cursor, as_json=as_json)

    finish(work(), as_json=as_json)


async def _events(desk: Desk, run_id: str, cursor: int, *, as_json: bool) -> int:
    """All from `cursor` on, however many pages that takes; as JSON they are one envelope."""
    found: list[Any] = []
    while True:
        answer = await desk.call("graph_run_events", {"run_id": run_id, "cursor": cursor, "limit": 200})
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        data: Any = answer["data"]
        if data["gap"]:
            say(f"{data['dropped']} event(s) from seq {cursor} on were pruned")
        if as_json:
            found += data["events"]
        elif data["events"]:
            give("\n".join(map(event_line, data["events"])))
        cursor = data["next_cursor"]
        if not data["truncated"]:
            break
    if as_json:
        data["events"] = found
        give_json(answer)
    return DONE


async def _follow(desk: Desk, run_id: str, cursor: int, *, as_json: bool) -> int:
    answer = await desk.call("graph_run_get", {"run_id": run_id})
    if not answer["ok"]:
        return refuse(answer, as_json=as_json)
    while True:
        try:
            async with aclosing(desk.watch(run_id, cursor=cursor)) as items:  # type: ignore[type-var]  # it is a generator
                async for item in items:
                    seq = item.get("seq")
                    if isinstance(seq, int):
                        cursor = seq + 1
                        give(compact(item) if as_json else event_line(item))
                    elif item["type"] == "run_status" and desk.owns and not item["driven"]:
                        if item["status"] not in ("completed", "failed", "cancelled"):
                            say(f"nobody drives {run_id} ({item['status']}): agent-graph resume {run_id}")
                        return DONE
            return DONE
        except ConnectionError:
            await desk.open()


def event_line(event: Any, *, whole: bool = False) -> str:
    """An event in one line: seq, time, type, where, how long what it ends took, and the rest as JSON."""
    rest = {
        name: value
        for name, value in event.items()
        if name not in ("seq", "at_ms", "type", "prev", "firing", "node_path", "node_id", "duration_ms")
        and (name, value) != ("attempt", 1)
    }
    took = f"{event['duration_ms']} ms  " if "duration_ms" in event else ""
    words = took + (compact(rest) if rest else "")
    at = datetime.fromtimestamp(event["at_ms"] / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]
    return (
        f"{event['seq']:>5}  {at}  {event['type']:<20} {one_line(str(event.get('firing', ''))):<24} "
        f"{one_line(words, 0 if whole else 160)}".rstrip()
    )
