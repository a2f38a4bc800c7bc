"""What a message from outside does to a run: a fact to record, or a refusal; nothing is changed here.

A message goes to the firing that has waited for its name for longest, wherever in the run that is. When none waits
and a node of that name keeps what comes early (`buffer`), it is kept, and taken in the order in which it came. It
reaches `signal` nodes only: no message opens a gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from agent_graph.core import events as e
from agent_graph.core.graph import Graph, Node
from agent_graph.core.issues import Issue, suggest
from agent_graph.core.jsonvalue import JsonValue, check_value, json_equal, size
from agent_graph.core.nesting import whole
from agent_graph.core.nodes.signal import name_of
from agent_graph.core.run import Run
from agent_graph.errors import InputInvalid, RunTerminal, SignalBufferFull, SignalNotAwaited, SignalNotFound

if TYPE_CHECKING:
    from agent_graph.core.spec import ParsedNode, ParsedSpec

KEPT: Final = 1_000
"""Messages of a run that may wait for somebody to wait for them; their bytes are bounded as its state is."""


def deliver(graph: Graph, run: Run, name: str, payload: JsonValue, *, by: str, via: str) -> e.SignalReceived:
    """The fact of a message.

    Raises `RunTerminal`; `InputTooLarge`, `InputTooDeep` or `InputInvalid` for the payload; `SignalNotFound` when no
    node of the graph ever waits for that name, `SignalNotAwaited` when none does now and none keeps what comes early,
    `SignalBufferFull` when too much is kept already. Then nothing is to be recorded.
    """
    if run.terminal or run.ending:
        ending = run.lifecycle if run.terminal else "about to end"
        raise RunTerminal(f"run {run.run_id} is {ending}; nobody waits for messages there", status=run.lifecycle)
    check_value(payload, max_depth=run.limits.json_depth, max_bytes=run.limits.value_bytes)
    waiting = next((path for path, wait in run.waits.items() if wait.name == name), "")
    named = _named(graph, name)
    if not named:
        known = sorted({name_of(node.id, node.config) for node in _signals(graph)})
        message = f"no node of this graph waits for messages {name!r}{suggest(name, known)}"
        raise SignalNotFound(message, name=name, known=known)
    firing = run.firing(waiting) if waiting else None
    _check_fits(named[0] if firing is None else firing.declared, name, payload)
    if not waiting:
        if not any(node.config.buffer for node in named):
            message = f"nobody waits for {name!r} now, and messages of that name are not kept; send it when one does"
            raise SignalNotAwaited(message, name=name, run_id=run.run_id)
        _check_room(run, payload)
    return e.SignalReceived(name, payload, waiting, by, via)


def schema_conflicts(nodes: Sequence[ParsedNode]) -> list[Issue]:
    """FIELD_CONFLICT where nodes of one name do not agree on what fits: a message is checked before it is known who
    takes it."""
    first: dict[str, ParsedNode] = {}
    issues = []
    for node in nodes:
        if node.type != "signal":
            continue
        name = name_of(node.id, node.config)
        other = first.setdefault(name, node)
        if not json_equal(other.config.schema, node.config.schema):
            message = f'"{other.id}" waits for messages "{name}" too, and with another schema'
            related = (other.pointer("/schema" if other.config.schema is not None else ""),)
            at = node.pointer("/schema" if node.config.schema is not None else "")
            issues.append(Issue("FIELD_CONFLICT", message, pointer=at, node_id=node.id, related=related))
    return issues


def inner_conflicts(parsed: ParsedSpec, inside: Mapping[int, Graph]) -> list[Issue]:
    """FIELD_CONFLICT where a graph inside, by the place of the node that runs it, waits for a name with another schema:
    a name belongs to the run."""
    first: dict[str, tuple[str, JsonValue]] = {}
    for node in parsed.nodes:
        if node.type == "signal":
            first.setdefault(name_of(node.id, node.config), (f'"{node.id}"', node.config.schema))
    issues: dict[tuple[str, str], Issue] = {}
    for node, graph in [(node, inside[node.place]) for node in parsed.nodes if node.place in inside]:
        for signal in _signals(graph):
            name, schema = name_of(signal.id, signal.config), signal.config.schema
            who, agreed = first.setdefault(name, (f'"{signal.id}" of graph "{graph.name}"', schema))
            if not json_equal(agreed, schema):
                message = f'{who} waits for messages "{name}" too, and with another schema than graph "{graph.name}"'
                at = node.pointer("/graph_name")
                issues[node.id, name] = Issue("FIELD_CONFLICT", message, pointer=at, node_id=node.id)
    return [*issues.values()]


def _signals(graph: Graph) -> Sequence[Node]:
    """Those of the graph and of all inside it: a message goes to whoever waits, wherever in the run that is."""
    return [node for one in whole(graph) for node in one.nodes if node.type == "signal"]


def _named(graph: Graph, name: str) -> Sequence[Node]:
    return [node for node in _signals(graph) if name_of(node.id, node.config) == name]


def _check_fits(node: Node, name: str, payload: JsonValue) -> None:
    if node.config.schema is None:
        return
    from agent_graph.core.schema import violations  # jsonschema is slow to import: only where a schema is

    found = violations(payload, node.config.schema)
    if found:
        message = f"the payload does not fit the schema of {name!r}: {found[0]}"
        raise InputInvalid(message, name=name, violations=list(found))


def _check_room(run: Run, payload: JsonValue) -> None:
    kept = [message for messages in run.mail.values() for message in messages]
    limit = run.limits.state_bytes
    if len(kept) >= KEPT or sum(map(size, kept)) + size(payload) > limit:
        message = f"the run keeps {len(kept)} messages nobody has taken; {KEPT} or {limit} bytes are the most"
        raise SignalBufferFull(message, kept=len(kept), run_id=run.run_id)
