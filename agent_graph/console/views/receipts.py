"""The receipt of a run that has ended: what its page says of it, and the file that can be checked anywhere."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from agent_graph.console.desk import Desk, Turned
from agent_graph.core.jsonvalue import canonical

TOOL: Final = "graph_run_receipt"
WITHOUT: Final = ("RECEIPT_NOT_READY", "RUN_PRUNED", "INTEGRITY_KEY_REQUIRED")
"""What it is refused with where there is none: the page then says nothing of it."""
NAME: Final = re.compile(r"[^\w.-]", re.ASCII)


async def of_run(desk: Desk, run_id: str) -> Any:
    """What the page shows: the receipt, or as `refused` why it is not given; None where there is none."""
    try:
        return await desk.ask(TOOL, {"run_id": run_id}, whole=True)
    except Turned as turned:
        return None if turned.code in WITHOUT else {"refused": turned.message, "code": turned.code}


async def taken(desk: Desk, request: Request) -> Response:
    """The receipt with its bundle, byte for byte as `agent-graph receipt RUN --bundle -o FILE` writes it."""
    run_id = request.path_params["run_id"]
    data = await desk.ask(TOOL, {"run_id": run_id, "include_bundle": True}, whole=True)
    return Response(
        canonical(data) + b"\n", media_type="application/json",
        headers={"content-disposition": f'attachment; filename="{NAME.sub("_", run_id)}.receipt.json"'},
    )  # fmt: skip
