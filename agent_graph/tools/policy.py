"""The policy: a check anybody may ask for, and the same check at every start."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agent_graph.core.budgets import ON_BUDGET, check, tightened
from agent_graph.core.forecast import Taken, recorded, worst_case
from agent_graph.core.graph import Graph
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.nodes import UNAVAILABLE_TYPES
from agent_graph.core.policy import Case, Verdict
from agent_graph.errors import PolicyDenied, SourceAmbiguous, SourceRequired
from agent_graph.store.base import RunRow
from agent_graph.tools.deps import Caller, Deps
from agent_graph.tools.graphs import OptionalGraphId, SpecParam
from agent_graph.tools.params import BudgetsParam, GraphVersion, InputParam, JsonObjectParam, Params, parsed_object
from agent_graph.tools.registry import Call, tool

SAID = 5
"""Violations that the message of a refusal tells; its details hold all."""
LOOKED_AT = 200
"""Runs of a graph, at most, that a forecast rests on."""


class CheckParams(Params):
    graph_id: OptionalGraphId = ""
    graph_version: GraphVersion = ""
    spec: SpecParam = Field(default_factory=dict)
    policy_profile: Annotated[
        str, Field(max_length=64, description="A profile; empty = the one every run is held to.")
    ] = ""
    policy: Annotated[
        JsonObjectParam, Field(description='Rules to change in it, tighter only: {"max_llm_calls": 20}.')
    ] = Field(default_factory=dict)
    input: InputParam = ""
    model: Annotated[str, Field(max_length=200, description="Model for nodes that name none.")] = ""
    budgets: BudgetsParam = Field(default_factory=lambda: None)  # null as a default is what some clients drop


@tool(
    "graph_policy_check", CheckParams, title="Check a graph against the policy", scope="runs:read", read_only=True,
    idempotent=True,
    description="""Would this server let a run of this graph start? Answers allow, deny or review (a person may start
    it), every rule it goes against, the policy in force and a forecast of calls, tokens and time. The same check is
    made at every start. Example: {"graph_id": "my_council"}""",
)  # fmt: skip
async def graph_policy_check(call: Call[CheckParams]) -> JsonObject:
    args, deps = call.args, call.deps
    graph, stored = await _source(call)
    budgets = None if args.budgets is None else check(parsed_object(args.budgets, deps.limits))
    value = parsed_object(args.input, deps.limits)
    case = _case(deps, graph, value, model=args.model, budgets=budgets)
    verdict = deps.policies.judge(case, name=args.policy_profile, override=args.policy)
    body: JsonObject = {**verdict.to_json(), "forecast": await forecast(deps, graph, _budgets(verdict, budgets))}
    if stored:
        body |= {"graph_id": graph.name, "graph_version": graph.version}
    return body


async def forecast(deps: Deps, graph: Graph, budgets: JsonObject | None) -> JsonObject:
    """{worst_case, recorded} of a run that starts with `budgets` beside the graph's own."""
    bounds = {**graph.budgets, **(budgets or {})}
    return {"worst_case": worst_case(Case(graph).calls, bounds), "recorded": await _recorded(deps, graph)}


async def _recorded(deps: Deps, graph: Graph) -> JsonObject | None:
    """What the last completed runs of this very version took; a fork has not taken all that it did."""
    rows, _ = await deps.store.runs.list(statuses=("completed",), graph_id=graph.name, limit=LOOKED_AT)
    whole = [row for row in rows if row.graph_version == graph.version and not row.forked_from]
    return recorded([_taken(row) for row in whole])


def _taken(row: RunRow) -> Taken:
    usage: Any = row.usage
    tokens = [usage["prompt_tokens"], usage["completion_tokens"]]
    ended = row.finished_at_ms is not None and row.started_at_ms is not None
    return Taken(
        usage["llm_calls"], usage["nodes"], None if "unknown" in tokens else sum(tokens),
        row.finished_at_ms - row.started_at_ms if ended else None,  # type: ignore[operator]  # just asked
    )  # fmt: skip


async def _source(call: Call[CheckParams]) -> tuple[Graph, bool]:
    """The graph, and whether it is a stored one."""
    args, catalog = call.args, call.deps.catalog
    if args.spec and args.graph_id:
        raise SourceAmbiguous("give graph_id or spec, not both")
    if args.spec:
        return (await catalog.check(args.spec)).graph, False
    if not args.graph_id:
        raise SourceRequired("say what to check: graph_id or spec")
    return await catalog.get(args.graph_id, args.graph_version or None), True


def hold(
    deps: Deps, caller: Caller, graph: Graph, value: JsonValue, *, model: str, budgets: JsonObject | None
) -> tuple[JsonObject | None, JsonObject]:
    """Hold a run that is about to start to the policy: (the budgets it starts with, None for none; what its log keeps
    of the policy, as in `core.events.RunAccepted`).

    Raises `PolicyDenied` with the verdict: for a person only where the decision is deny, for an assistant also where
    it is review.
    """
    verdict = deps.policies.judge(_case(deps, graph, value, model=model, budgets=budgets))
    if verdict.decision == "deny" or (verdict.decision == "review" and caller.via == "assistant"):
        raise PolicyDenied(_sentences(verdict, graph), **verdict.to_json())
    return _budgets(verdict, budgets), _trace(verdict, graph, budgets)


def _budgets(verdict: Verdict, budgets: JsonObject | None) -> JsonObject | None:
    """What a caller asks for, within what the policy gives a run at most."""
    return tightened(verdict.budgets, budgets or {}) if verdict.budgets else budgets


def _trace(verdict: Verdict, graph: Graph, budgets: JsonObject | None) -> JsonObject:
    """{profile, waived?, bounds?}; nothing when the profile changed nothing."""
    waived: list[JsonValue] = [
        {"rule": one.rule, "message": one.message, **({"node_path": one.where} if one.where else {})}
        for one in verdict.warnings if one.severity == "review"
    ]  # fmt: skip
    others: list[dict[str, Any]] = [graph.budgets, budgets or {}]
    bounds: list[JsonValue] = [
        name for name, most in verdict.budgets.items() if all(name not in own or most < own[name] for own in others)
    ]
    found: JsonObject = {**({"waived": waived} if waived else {}), **({"bounds": bounds} if bounds else {})}
    return {"profile": verdict.profile.name, **found} if found else {}


def _sentences(verdict: Verdict, graph: Graph) -> str:
    """What is in the way, a sentence for each of the first few rules: the rule, the node, what is allowed."""
    found = verdict.violations or tuple(one for one in verdict.warnings if one.severity == "review")
    said = [f"the policy {verdict.profile.name} does not let {graph.name} run."]
    said += [f"{one.rule}{f' (node {one.where})' if one.where else ''}: {one.message}." for one in found[:SAID]]
    more = len(found) - SAID
    if more > 0:
        said.append(f"There {'is' if more == 1 else 'are'} {more} more.")
    if not verdict.violations:
        said.append(f"A person may start it: agent-graph run {graph.name}")
    return " ".join(said)


def _case(deps: Deps, graph: Graph, value: JsonValue, *, model: str, budgets: JsonObject | None) -> Case:
    return Case(
        graph, model or deps.models.default_model, value,
        frozenset({**graph.budgets, **(budgets or {})}) - {ON_BUDGET}, UNAVAILABLE_TYPES,
    )  # fmt: skip
