"""`graph_run_receipt`: what a run came to, under a seal that others can check."""

from __future__ import annotations

import asyncio
import hmac
from typing import Annotated, Literal

from pydantic import Field

from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine import receipts
from agent_graph.errors import InvalidArgument, ReceiptDigestMismatch, ReceiptNotReady, StoreCorrupt
from agent_graph.store.base import TERMINAL
from agent_graph.tools.deps import Deps
from agent_graph.tools.params import Params, RunId
from agent_graph.tools.registry import Call, tool


class ReceiptParams(Params):
    run_id: RunId
    include_bundle: Annotated[bool, Field(description="Also the events and the graph, to check the receipt by.")] = (
        False
    )
    expected_digest: Annotated[
        str,
        Field(max_length=80, description="Refuse unless this is the digest: the bundle's with it, else the receipt's."),
    ] = ""
    format: Annotated[
        Literal["json", "dsse"], Field(description="dsse: an in-toto statement in a DSSE envelope.")
    ] = "json"  # fmt: skip


@tool(
    "graph_run_receipt", ReceiptParams, title="Get a run's receipt", scope="runs:read", read_only=True,
    idempotent=True,
    description="""The receipt of a run that has ended: status, times, a leaf of digests for each firing, who performed
    it, approvals with votes, and what all that does not prove; checked against what was sealed at its end. Whole and as
    a file, to be checked offline: agent-graph receipt RUN --bundle -o FILE, then agent-graph verify FILE. Example:
    {"run_id": "run-..."}""",
)  # fmt: skip
async def graph_run_receipt(call: Call[ReceiptParams]) -> JsonObject:
    args, deps = call.args, call.deps
    if args.format == "dsse" and args.include_bundle:
        raise InvalidArgument("a DSSE envelope holds the receipt alone; leave include_bundle away", argument="format")
    issued = await issue(deps, args.run_id, bundled=args.include_bundle)
    found = str(issued.integrity["bundle_digest" if args.include_bundle else "digest"])
    if args.expected_digest and not hmac.compare_digest(found.encode(), args.expected_digest.encode()):
        what = "bundle" if args.include_bundle else "receipt"
        message = f"the {what} of run {args.run_id} has another digest than the expected one"
        raise ReceiptDigestMismatch(message, run_id=args.run_id, digest=found, expected=args.expected_digest)
    if args.format == "dsse":
        return {"envelope": receipts.as_envelope(issued, deps.keys), "integrity": issued.integrity}
    bundle: JsonObject = {} if issued.bundle is None else {"bundle": issued.bundle}
    return {"receipt": issued.receipt, **bundle, "integrity": issued.integrity}


async def issue(deps: Deps, run_id: str, *, bundled: bool = False) -> receipts.Issued:
    """The receipt of a run. Raises `RunNotFound`, `ReceiptNotReady`, `IntegrityKeyRequired`, `RunPruned` and
    `ReceiptIntegrityFailure`; then nothing of what is stored is shown."""
    try:
        row = await deps.store.runs.get(run_id)
    except StoreCorrupt as damage:  # the caller may see it, and its row cannot be believed
        raise receipts.changed(await deps.store.seals.of(run_id), deps.keys) from damage
    if row.status not in TERMINAL:
        message = f"run {run_id} is {row.status}: there is a receipt once it has ended (graph_run_wait)"
        raise ReceiptNotReady(message, run_id=run_id, status=row.status)
    deps.keys.sealer()  # fail before anything is read
    log = await deps.store.seals.of(run_id)
    if log.seal is None:
        receipts.check(log)
        await deps.store.seals.put_late(run_id, receipts.late_seal(log, deps.keys, now_ms=deps.clock.now_ms()))
        log = await deps.store.seals.of(run_id)
    graph = await deps.catalog.get(row.graph_id, row.graph_version)
    withhold = deps.supervisor.shell.redactor if bundled else None
    return await asyncio.to_thread(receipts.issue, graph, log, deps.keys, withhold=withhold)
