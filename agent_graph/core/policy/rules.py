"""One function a rule: what of a case goes against a profile. A rule reads; it never decides what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from agent_graph.core.policy.case import GATE, Case, Finding, behind_gate
from agent_graph.core.policy.profile import CHANNELS, Profile, covers

Rule: TypeAlias = Callable[[Profile, Case], Iterator[Finding]]


def node_types(profile: Profile, case: Case) -> Iterator[Finding]:
    """Only the node types that are allowed."""
    allowed = profile.node_types
    for place in case.places if allowed is not None else ():
        for node in place.graph.nodes:
            if node.type not in (allowed or ()):
                message = f"a node of type {node.type} is not allowed; allowed are {_listed(allowed or ())}"
                yield Finding("NODE_TYPE_NOT_ALLOWED", message, place.where + node.id)


def max_nodes(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on the size of a graph with all graphs in it."""
    yield from _over("nodes", sum(len(graph.nodes) for graph in case.graphs), profile.max_nodes)


def max_edges(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on its declared edges."""
    count = sum(edge.declared for graph in case.graphs for edge in graph.topology.edges)
    yield from _over("edges", count, profile.max_edges)


def max_iterations(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on the longest chain of steps."""
    for place in case.places:
        yield from _over(
            "max_iterations", place.graph.max_iterations, profile.max_iterations, where=place.where.rstrip("/")
        )


def max_loop_rounds(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on the rounds of a loop."""
    for place in case.places:
        for node in place.graph.nodes:
            if node.type == "loop":
                rounds = node.config.max_iterations
                yield from _over("rounds of this loop", rounds, profile.max_loop_rounds, where=place.where + node.id)


def max_parallelism(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on the calls in flight: the outermost graph's own bounds them all."""
    yield from _over("max_parallelism", case.graph.max_parallelism, profile.max_parallelism)


def max_prompt_bytes(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on the text a node's prompt holds before anything is put in."""
    for place in case.places:
        for node in place.graph.nodes:
            size = sum(len(text.encode()) for text in _texts(node.config))
            yield from _over("bytes of this prompt", size, profile.max_prompt_bytes, where=place.where + node.id)


def max_input_bytes(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on the input."""
    if profile.max_input_bytes is not None:
        yield from _over("bytes of input", case.input_bytes, profile.max_input_bytes)


def max_llm_calls(profile: Profile, case: Case) -> Iterator[Finding]:
    """A bound on model calls, which is the run's budget too: it is told whether that can, or must, run out."""
    most = profile.max_llm_calls
    if most is None:
        return
    least, worst = case.calls["least"], case.calls["worst"]
    if least > most:
        message = f"no run of this graph ends with fewer than {least} model calls, and at most {most} are allowed"
        yield Finding("POLICY_LIMIT_EXCEEDED", message)
    elif worst is None or worst > most:
        bound = "any number of" if worst is None else str(worst)
        message = f"a run can make {bound} model calls, failed attempts included; after {most} its budget ends it"
        yield Finding("BUDGET_MAY_RUN_OUT", message, severity="note")


def models(profile: Profile, case: Case) -> Iterator[Finding]:
    """Only models that are allowed; which model a node without one would get must be known."""
    allowed = profile.models
    for place in case.places if allowed is not None else ():
        for node in place.graph.nodes:
            if node.type != "llm":
                continue
            for name in (node.config.model, *node.config.fallback_models):
                asked = name or case.model
                if not asked:
                    message = "this node asks whichever model is the default, and the default is not set"
                    yield Finding("MODEL_NOT_ALLOWED", f"{message}; name a model", place.where + node.id)
                elif not any(covers(one, asked) for one in allowed or ()):
                    message = f"the model {asked} is not allowed; allowed are {_listed(allowed or ())}"
                    yield Finding("MODEL_NOT_ALLOWED", message, place.where + node.id)


def connections(profile: Profile, case: Case) -> Iterator[Finding]:
    """Only the named connections that are allowed."""
    allowed = profile.connections
    for place in case.places if allowed is not None else ():
        for node in place.graph.nodes:
            for name in _connections(node.config):
                if not any(covers(one, name) for one in allowed or ()):
                    message = f"the connection {name} is not allowed; allowed are {_listed(allowed or ())}"
                    yield Finding("CONNECTION_NOT_ALLOWED", message, place.where + node.id)


def channels(profile: Profile, case: Case) -> Iterator[Finding]:
    """Gates are closed to channels that are not allowed; a gate that lists none is open to all."""
    allowed = profile.channels
    for place in case.places if allowed is not None else ():
        for node in place.graph.nodes:
            if node.type == GATE:
                open_to = [one for one in node.config.channels or CHANNELS if one not in (allowed or ())]
                if open_to:
                    message = f"this gate is open to {_listed(open_to)}; set channels to {_listed(allowed or ())}"
                    yield Finding("GATE_CHANNEL_NOT_ALLOWED", message, place.where + node.id)


def approval_before(profile: Profile, case: Case) -> Iterator[Finding]:
    """Nodes of these types run only behind a gate: every way to them passes one whose yes leads there."""
    kinds = profile.approval_before
    for place in case.places if kinds else ():
        if place.gated or not any(node.type in kinds for node in place.graph.nodes):
            continue
        gated = behind_gate(place.graph)
        for node in place.graph.nodes:
            if node.type in kinds and not gated[node.index]:
                message = f"a {node.type} node needs a human_approval whose yes is the only way to it"
                yield Finding("APPROVAL_REQUIRED", message, place.where + node.id)


def requirements(profile: Profile, case: Case) -> Iterator[Finding]:
    """Every tag that must be covered is carried by a node."""
    if not profile.requirements:
        return
    carried = {tag for graph in case.graphs for node in graph.nodes for tag in node.config.requirements}
    for tag in profile.requirements:
        if tag not in carried:
            yield Finding("REQUIREMENT_NOT_COVERED", f"no node carries the requirement {tag}")


def budgets(profile: Profile, case: Case) -> Iterator[Finding]:
    """The budgets that must be set are, in the graph, by the caller or by the profile."""
    for name in profile.budgets:
        if name not in case.budgets and name not in profile.run_budgets():
            yield Finding("BUDGET_REQUIRED", f"the budget {name} must be set: in the graph's budgets or at the start")


def pinned_subgraphs(profile: Profile, case: Case) -> Iterator[Finding]:
    """A graph used in another is named with its version. The compiler sees to it; this holds other programs to it."""
    for place in case.places if profile.pinned_subgraphs else ():
        for node in place.graph.nodes:
            config = node.config
            name = getattr(config, "graph_name", "")
            if name and not config.graph_version and not getattr(config, "allow_recursion", False):
                message = f"the graph {name} is used without naming its version"
                yield Finding("SUBGRAPH_NOT_PINNED", message, place.where + node.id)


def capabilities(profile: Profile, case: Case) -> Iterator[Finding]:
    """Nothing is started that this server cannot finish."""
    for place in case.places:
        for node in place.graph.nodes:
            if node.type in case.lacking:
                yield Finding("NODE_TYPE_UNAVAILABLE", case.lacking[node.type], place.where + node.id)


RULES: Final[dict[str, Rule]] = {
    rule.__name__: rule
    for rule in (
        capabilities, node_types, max_nodes, max_edges, max_iterations, max_loop_rounds, max_parallelism,
        max_prompt_bytes, max_input_bytes, max_llm_calls, models, connections, channels, approval_before, requirements,
        budgets, pinned_subgraphs,
    )
}  # fmt: skip
"""Every rule under the name of the field it reads; `capabilities` reads none and holds always."""


def _over(what: str, actual: int, most: int | None, *, where: str = "") -> Iterator[Finding]:
    if most is not None and actual > most:
        yield Finding("POLICY_LIMIT_EXCEEDED", f"{what}: {actual}, at most {most} allowed", where)


def _texts(config: Any) -> Iterator[str]:
    for name in ("prompt", "system"):
        yield getattr(config, name, None) or ""
    for message in getattr(config, "messages", None) or ():
        yield message.content


def _connections(config: Any) -> Iterator[str]:
    name = getattr(config, "connection", "")
    if name:
        yield name
    for tool in getattr(config, "tools", None) or ():
        yield tool.partition("/")[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
