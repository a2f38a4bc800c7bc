"""`templates`: which there are, what they take, and making a graph one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_graph.cli.desk import Desk
from agent_graph.cli.graphs import nowhere
from agent_graph.cli.options import AsJson, DataDir, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json, one_line, pretty, refuse, say, table
from agent_graph.core.jsonvalue import JsonObject

if TYPE_CHECKING:
    from agent_graph.engine.templates import Library


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("templates")(templates)


def templates(
    action: Annotated[str, typer.Argument(metavar="show|promote", show_default=False)] = "",
    name: Annotated[str, typer.Argument(metavar="ID|GRAPH", show_default=False)] = "",
    *, template_id: Annotated[str, typer.Option("--as", metavar="ID", help="promote: the template's id.")] = "",
    title: Annotated[str, typer.Option(help="promote: one line about it.")] = "",
    sample: Annotated[str, typer.Option(help="promote: a text to try it with.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="promote: replace one of your own.")] = False,
    as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """List the templates, show one with its parameters, or make a stored graph one of your own."""

    async def work() -> int:
        from agent_graph.engine.templates import Library

        settings = settings_of(data_dir)
        known = Library(settings.data_dir)
        _check_action(action, name, known)
        if action == "promote":
            asked: JsonObject = {
                "graph_id": name, "template_id": template_id, "title": title, "sample": sample, "overwrite": overwrite
            }  # fmt: skip
            async with Desk(settings, drives=False, remark=say) as desk:
                answer = await desk.call("graph_template_promote", asked)
            return _promoted(answer, as_json=as_json)
        if action == "show":
            known.get(name)
        async with Desk(settings, drives=False, remark=say) if known.own else nowhere() as desk:
            answer = await desk.call("graph_template_list", {})
        _tell(answer, name, as_json=as_json)
        return DONE

    finish(work(), as_json=as_json)


def _check_action(action: str, name: str, known: Library) -> None:
    if action in ("", "show", "promote") and bool(action) == bool(name):
        return
    hint = f"; to see one: agent-graph templates show {action}" if action in known.all() else ""
    raise typer.BadParameter(f"say `templates`, `templates show ID` or `templates promote GRAPH`{hint}")


def _promoted(answer: Any, *, as_json: bool) -> int:
    if not answer["ok"]:
        return refuse(answer, as_json=as_json)
    data: Any = answer["data"]
    if as_json:
        give_json(answer)
    else:
        give(f"{data['template_id']}, version {data['version']}: {data['file']}")
    return DONE


def _tell(answer: JsonObject, template_id: str, *, as_json: bool) -> None:
    data: Any = answer["data"]
    if template_id:
        data["templates"] = [each for each in data["templates"] if each["template_id"] == template_id]
    if as_json:
        give_json(answer)
    elif template_id:
        give(_shown(data["templates"][0]))
    else:
        rows = [(each["template_id"], each["title"]) for each in data["templates"]]
        give(table(rows, head=("TEMPLATE", "WHAT IT IS")))


def _shown(template: Any) -> str:
    params: dict[str, Any] = template["params"].get("properties", {})
    rows = [
        (name, rule.get("type", ""), pretty(rule["default"]) if "default" in rule else "required",
         rule.get("description", ""))
        for name, rule in params.items()
    ]  # fmt: skip
    sample = template["sample"]
    typed = one_line(pretty(sample["input"]), 300).replace("'", "'\\''")
    about = f"{template['template_id']}, version {template['version']}: {template['title']}\n{template['description']}"
    takes = table(rows, head=("PARAMETER", "TYPE", "DEFAULT", "WHAT IT IS")) or "It takes no parameters."
    return f"{about}\n\n{takes}\nFor example: agent-graph run {template['template_id']} '{typed}'\n"
