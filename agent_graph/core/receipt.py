"""The receipt of a run that has ended: what its log says in digests, for others to check; seals nothing itself.

A receipt is a pure function of the compiled graph, the events, and the seal that was made of the head of their chain in
the transaction that ended the run. It holds no value a node read or wrote, no float and no integer beyond 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_graph.core import events as e
from agent_graph.core import merkle
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.core.outcome import final_state, state
from agent_graph.core.receipt_leaves import Leaves, exact
from agent_graph.core.record import CHANGES, canonical_record
from agent_graph.core.run import Gate, Run
from agent_graph.core.scheduler import evolve, new_run

RECEIPT: Final = "agent-graph-receipt-v1"
BUNDLE: Final = "agent-graph-bundle-v1"
NOT_PROVEN: Final = (
    "that a model was called: answers are recorded as this program received them from the host it was set to ask",
    "that what models and people said is true",
    "that whoever decided is who they say: what is known of that stands beside each vote",
    "that the clock of the machine was right",
    "that there was no other run with the same input: only that this one went so",
    "that nobody changed the record before it was sealed, which was when the run ended",
    "more than the key does: with an HMAC, whoever can check the seal could also have made it",
)


def receipt_of(graph: Graph, log: Sequence[e.Event], *, head: str, sealed: JsonObject) -> JsonObject:
    """The receipt of the run with that whole log, whose last event ends it; `head` is ``sha256:`` and the chain's.

    `sealed` is {sealed_at_ms, key_id, seal, late}.
    """
    run, leaves = new_run(), Leaves()
    for event in log[:-1]:
        leaves.note(run, event)
        evolve(graph, run, event)
    gathered = leaves.of(run)
    evolve(graph, run, log[-1])
    at, begun = next(
        (event.seq, event.fact) for event in reversed(log) if isinstance(event.fact, e.RunAccepted | e.RunForked)
    )  # fmt: skip
    hashes = [merkle.leaf_hash(leaf) for leaf in gathered]
    result = final_state(run)
    body: JsonObject = {
        "kind": RECEIPT, "run_id": run.run_id, "thread_id": run.thread_id, "graph": _graph(graph),
        "status": run.lifecycle, "error": _error(run),
        "times": {
            "accepted_at_ms": run.accepted_at_ms, "started_at_ms": run.started_at_ms,
            "finished_at_ms": run.finished_at_ms,
        },
        "started_by": {"client": run.started_by, "principal": run.principal, "local_user": run.started_as},
        "input": digest(run.input), "output": digest(result[0]) if result else None, "state": digest(state(run)),
        "record": digest(canonical_record(graph, log)),
        "leaves": [*gathered], "merkle": {"leaves": len(hashes), "root": merkle.root(hashes)},
        "approvals": [_approval(gate) for gate in run.gates.values()],
        "budgets": {} if run.ledger is None else exact(run.ledger.view()), "usage": _usage(run),
        "policy": exact(begun.policy), "chain": {"events": len(log), "head": head}, "sealed": sealed,
        "not_proven": [*NOT_PROVEN],
    }  # fmt: skip
    if isinstance(begun, e.RunForked):
        body["forked_from"] = _origin(at, begun)
    return body


def _origin(seq: int, fact: e.RunForked) -> JsonObject:
    """What a fork begins with, and a digest of what was changed there."""
    changed = {name: value for name, value in e.to_json(fact).items() if name in (*CHANGES, "version")}
    return {
        "run_id": fact.run_id, "seq": fact.last, "events": seq, "changes": digest(changed) if changed else None,
        "by": fact.by, "via": fact.via,
    }  # fmt: skip


def integrity_of(receipt: JsonObject) -> JsonObject:
    """What tells where a receipt was changed: its digest, one of each member, the hash of each leaf."""
    leaves: Any = receipt["leaves"]
    return {
        "digest": digest(receipt),
        "members": {name: digest(value) for name, value in receipt.items() if name != "leaves"},
        "leaves": [merkle.leaf_hash(leaf) for leaf in leaves],
    }


def graphs_of(graph: Graph) -> list[Graph]:
    """The graph and those it may run inside, by version: in this order a receipt names them and a bundle has them."""
    inner: dict[str, Graph] = {}
    todo = [graph]
    while todo:
        for version, one in todo.pop().subgraphs.items():
            if version not in inner:
                inner[version] = one
                todo.append(one)
    return [graph, *(inner[version] for version in sorted(inner))]


def _graph(graph: Graph) -> JsonObject:
    inside: list[JsonValue] = [
        {"graph_id": one.name, "graph_version": one.version} for one in graphs_of(graph)[1:]
    ]  # fmt: skip
    return {"graph_id": graph.name, "graph_version": graph.version, "subgraphs": inside}


def _error(run: Run) -> JsonObject | None:
    if run.error is None:
        return None
    path = run.error.get("node_path")
    return {"code": str(run.error.get("code", "")), "node_path": path, "digest": digest(run.error)}


def _usage(run: Run) -> JsonObject:
    used = run.usage
    return {
        "llm_calls": used.llm_calls, "prompt_tokens": exact(used.prompt_tokens),
        "completion_tokens": exact(used.completion_tokens), "calls_without_count": used.unreported,
        "nodes": used.nodes, "cache_hits": used.cache_hits,
    }  # fmt: skip


def _approval(gate: Gate) -> JsonObject:
    votes: list[JsonValue] = [_vote(vote) for vote in gate.votes]
    return {
        "approval_id": gate.approval_id, "node_path": gate.firing, "round": gate.round, "status": gate.status,
        "prompt": digest(gate.prompt), "subject": gate.subject_digest, "edited": gate.edited,
        "audience": [*gate.audience], "allowed_decisions": [*gate.allowed_decisions], "quorum": gate.quorum,
        "channels": [*gate.channels], "self_approval": gate.self_approval, "opened_at_ms": gate.opened_at_ms,
        "expires_at_ms": exact(gate.expires_at_ms), "closed_at_ms": gate.closed_at_ms, "votes": votes,
    }  # fmt: skip


def _vote(vote: JsonObject) -> JsonObject:
    """Who voted how; what they wrote is a digest."""
    kept = ("decision", "decided_by", "via", "principal", "on_behalf_of", "subject_digest", "at_ms")
    body: JsonObject = {name: vote[name] for name in kept if name in vote}
    for name in ("decision_note", "patch"):
        if vote.get(name):
            body[name] = digest(vote[name])
    return body
