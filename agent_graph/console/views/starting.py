"""Starts runs: of a stored graph, or of one that is made of a template with what was typed for its parameters."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_graph.console.desk import Desk, Turned
from agent_graph.console.drawing import drawn
from agent_graph.console.fields import fields, typed_object
from agent_graph.console.forms import Form, nonce
from agent_graph.console.rendering import page, pretty
from agent_graph.console.views.graphs import graph_page
from agent_graph.core.jsonvalue import JsonValue, parse_json
from agent_graph.core.limits import Limits
from agent_graph.errors import AgentGraphError, TemplateNotFound
from agent_graph.tools.graphs import from_template


async def template(desk: Desk, request: Request) -> Response:
    """A template: its drawing, and the form that starts one."""
    return await template_page(desk, request.path_params["template_id"])


async def template_page(
    desk: Desk, template_id: str, *, status: int = 200, code: str = "", wrong: str = ""
) -> Response:
    """The page; `wrong` is what was refused just before, what was typed is kept."""
    found = await _template(desk, template_id)
    typed: Form | None = desk.form or None
    sample = found["sample"].get("input", "") if found["sample"] else ""
    return page(
        "template.html", http_status=status, desk=desk, template=found, drawing=await _drawing(desk, template_id),
        fields=fields(found["params"], typed), typed=typed, sample=pretty(sample),
        sample_is_json=not isinstance(sample, str), code=code, wrong=wrong, may=desk.caller.may("runs:write"),
        nonce=nonce(),
    )  # fmt: skip


async def _template(desk: Desk, template_id: str) -> Any:
    """Raises `Turned`, `TemplateNotFound`."""
    listed = await desk.ask("graph_template_list", {}, whole=True)
    for one in listed["templates"]:
        if one["template_id"] == template_id:
            return one
    raise TemplateNotFound("there is no such template", templates=[one["template_id"] for one in listed["templates"]])


async def _drawing(desk: Desk, template_id: str) -> Any:
    """The graph it makes with its defaults; None where it needs parameters or is too large."""
    try:
        spec = from_template(template_id, None, {}, library=desk.deps.catalog.templates, limits=desk.deps.limits)
        graph = await desk.ask("graph_render", {"spec": spec, "format": "json"}, whole=True)
        return await asyncio.to_thread(drawn, graph)
    except (AgentGraphError, Turned):
        return None


async def template_started(desk: Desk, request: Request) -> Response:
    """Store the graph it makes, start a run of it, and lead there."""
    template_id, form = request.path_params["template_id"], desk.form
    stored = ""
    try:
        found = await _template(desk, template_id)
        value = typed_input(form, desk.deps.limits)
        made = await desk.ask(
            "graph_template_instantiate",
            {"template_id": template_id, "name": form.get("name", "").strip(), "register": True,
             "params": typed_object(found["params"], form, limits=desk.deps.limits), **_key(form, "made")},
        )  # fmt: skip
        stored = f"The graph {made['graph_id']} was stored, but no run was started: "
        return await _started(desk, made["graph_id"], made["graph_version"], value)
    except Turned as turned:
        status, code, wrong = turned.status, turned.code, turned.message
    except AgentGraphError as refusal:
        status, code, wrong = refusal.http_status, refusal.code, refusal.message
    return await template_page(desk, template_id, status=status, code=code, wrong=stored + wrong)


async def graph_started(desk: Desk, request: Request) -> Response:
    """Start a run of a stored graph, and lead there."""
    graph_id, form = request.path_params["graph_id"], desk.form
    version = form.get("graph_version", "")
    try:
        schema = (await desk.deps.catalog.get(graph_id, version or None)).input_schema
        limits = desk.deps.limits
        value = typed_object(schema, form, limits=limits) if fields(schema, form) else typed_input(form, limits)
        return await _started(desk, graph_id, version, value)
    except Turned as turned:
        status, code, wrong = turned.status, turned.code, turned.message
    except AgentGraphError as refusal:
        status, code, wrong = refusal.http_status, refusal.code, refusal.message
    return await graph_page(desk, graph_id, version, status=status, code=code, wrong=wrong)


async def _started(desk: Desk, graph_id: str, version: str, value: JsonValue) -> Response:
    form = desk.form
    run = await desk.ask(
        "graph_run_start",
        {"graph_id": graph_id, "graph_version": version, "input": value,
         "thread_id": form.get("thread_id", "").strip(), **_key(form, "started")},
    )  # fmt: skip
    desk.session.notice = "The run was started."
    return RedirectResponse(f"/runs/{run['run_id']}", 303)


def typed_input(form: Form, limits: Limits) -> JsonValue:
    """The run's input: JSON where that was said, else the text as it is. Raises what `parse_json` raises."""
    text = form.get("input", "")
    if form.get("input_is") != "json":
        return text
    return parse_json(text, max_bytes=limits.input_bytes, max_depth=limits.json_depth)


def _key(form: Form, what: str) -> dict[str, str]:
    return {"idempotency_key": f"{form['nonce'][:80]}-{what}"} if form.get("nonce") else {}
