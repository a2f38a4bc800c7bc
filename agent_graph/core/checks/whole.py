"""Every check of a graph whose parts are right, one after the other, and what is stored with its version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agent_graph.core import conflicts, cycles, iterations, results
from agent_graph.core.checks import acting, cheapest, endings, outcomes, quorums, reading, rounds, routing, unsure
from agent_graph.core.checks.shape import Shape
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.topology import Topology

if TYPE_CHECKING:
    from agent_graph.core.spec import ParsedSpec
    from agent_graph.core.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of the checks."""

    stored: JsonObject
    """What is kept with the version."""
    topology: Topology
    issues: list[Issue]


def judge(parsed: ParsedSpec, wiring: Wiring, built: Topology, *, strict: bool = False) -> Judged:
    """Every issue of the graph as a whole, and what is stored with its version; `strict`: also what only may go
    wrong."""
    top: Any = parsed.top
    ways = wiring.ways(built)
    least = iterations.default_bound(iterations.loop_bounds(wiring), built)
    declared = top.get("max_iterations")
    racing = conflicts.write_conflicts(wiring, built, ways, reducers=top.get("reducers", {}))
    elsewhere = built.reach(wiring.elsewhere)
    built.reachable |= elsewhere  # from here on: on the way to it nothing runs beside it
    output, ambiguous = results.infer(wiring, built, ways, declared=top.get("output_key", ""))
    bound = least if declared is None else declared
    shape = Shape(wiring.nodes, wiring.index, built, ways, top, output, bound, elsewhere)
    issues = [*_unreachable(wiring, built), *routing.router_issues(shape)]
    endless = cycles.endless_cycles(wiring, built, ways)
    issues += [*endless, *(endings.no_path_to_end(shape) if endless else ())]
    if declared is not None:
        issues += iterations.too_few(wiring, built, ways, declared=declared)
    issues += cheapest.below_shortest(wiring, ways, budgets=top.get("budgets", {}))
    issues += [*racing, *ambiguous]
    issues += _of(shape)
    issues += unsure.unsure_reads(shape) if strict else ()
    compiled: JsonObject = {
        "topology": built.to_json(),
        "max_iterations": bound,
        "output": {"path": output.path, "declared": output.declared, "by_end": dict(output.by_end)},
    }
    return Judged(compiled, built, issues)


def _of(shape: Shape) -> Iterator[Issue]:
    yield from reading.unanswered_reads(shape)
    yield from outcomes.unwritten_output(shape)
    yield from outcomes.unread_outputs(shape)
    yield from quorums.impossible_quorums(shape)
    yield from rounds.round_issues(shape)
    yield from acting.late_approvals(shape)
    yield from acting.unsafe_retries(shape)
    yield from acting.changes_without_rework(shape)


def _unreachable(wiring: Wiring, built: Topology) -> list[Issue]:
    return [
        Issue("NODE_UNREACHABLE", f'nothing leads to "{node.id}"', severity="warning", pointer=node.pointer(),
              node_id=node.id)
        for place, node in enumerate(wiring.nodes)
        if not built.reachable >> place & 1
    ]  # fmt: skip
