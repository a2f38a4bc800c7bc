"""`join`: brings branches together and makes one value of what they left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Final, Literal

from agent_graph.core.bounds import Ge, Le, Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done, Missing
from agent_graph.core.graph import END, Node
from agent_graph.core.issues import Issue, Severity, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import (
    UNAVAILABLE_EVERYWHERE,
    NodeConfig,
    Read,
    Target,
    Values,
    contribution,
    path_issues,
    path_read,
    value_at,
)
from agent_graph.core.ops import joins, predicates, votes

Mode = Literal[
    "collect_array", "collect_object", "merge_objects", "first_non_null", "all_success", "quorum",
    "dedupe_by_identity", "contradiction_matrix", "minority_report", "proof_carrying_join", "vote",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `join` node."""

    inputs: list[Annotated[str, Len(1)]] = field(default_factory=list)
    """Node ids (their outputs) or state paths, in the order of the result; none = only bring together."""
    output: str = ""
    """State path of the joined value; "" = the current value."""
    mode: Mode = "collect_array"
    """What is made of the inputs; see the table of modes."""
    on_missing: Literal["null", "skip", "error"] = "null"
    """What an input that holds nothing or null counts as: null, not listed, or a failure of the node."""
    allow_stale: bool = False
    """Take a branch's value of an earlier round too."""
    required: Annotated[int, Ge(0)] = 1
    """`quorum`: how many must count."""
    of: dict[str, Any] | None = None
    """`quorum`: the predicate by which an input counts."""
    require: bool = False
    """`all_success`, `quorum` and `vote`: what was not reached is an error."""
    identity_path: str = ""
    """`dedupe_by_identity`: where in an item; "" = the whole item."""
    scope_path: Annotated[str, Len(1)] = "scope"
    """`contradiction_matrix`: where in an item stands what its claim is about."""
    claim_path: Annotated[str, Len(1)] = "claim"
    """`contradiction_matrix`: where in an item its claim stands."""
    time_path: Annotated[str, Len(1)] = "time"
    """`contradiction_matrix`: where in an item stands when its claim holds."""
    strict: bool = False
    """`contradiction_matrix`: contradictions put the join in quarantine."""
    dissent_path: Annotated[str, Len(1)] = "dissent"
    """`minority_report`: where in an item stands true when it dissents."""
    required_fields: list[Annotated[str, Len(1)]] = field(default_factory=lambda: ["evidence", "checks", "receipt"])
    """`proof_carrying_join`: what every item has to carry."""
    wait: Literal["all", "any"] | Annotated[dict[Literal["count"], Annotated[int, Ge(1)]], Len(1)] = "all"
    """For which branches it waits: all that can come, the first, or so many."""
    cancel_rest: bool = True
    """What still runs when it has what it waits for is cancelled; else it runs on, for nothing."""
    method: Literal["majority", "borda", "condorcet"] = "majority"
    """`vote`: how ballots are counted."""
    candidates: list[Annotated[str, Len(1)]] = field(default_factory=list)
    """`vote`: who can be named; none = whoever the ballots name."""
    candidates_path: str = ""
    """`vote`: the state path of a list of them, or of an object whose keys they are."""
    ballots: Literal["one", "list"] = "one"
    """`vote`: what an input holds."""
    ballot_path: str = ""
    """`vote`: where the ballot stands in an input; "" = the input itself."""
    reason_path: Annotated[str, Len(1)] = "reason"
    """`vote`: where the voter's words stand."""
    partial: bool = False
    """`vote`: a ranking may leave candidates out."""
    on_invalid: Literal["error", "spoil"] = "error"
    """`vote`: a ballot that cannot be counted fails the node, or counts for nobody."""
    min_agreement: Annotated[float, Ge(0), Le(1)] | None = None
    """`vote`: of how large a share of all voters the winner must be the first choice; of a `majority`: over half."""
    tie_break: Literal["none", "borda", "order"] = "none"
    """`vote`: what settles a tie or a cycle: nothing, Borda points, or the order of the candidates."""
    on_deadlock: list[str] | None = None
    """`vote`: the targets where there is no winner; none = along the out-edges."""


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "input_key": "a join reads its `inputs`",
}
_MODES_OF: Final = {
    "required": ("quorum",),
    "of": ("quorum",),
    "require": ("quorum", "all_success", "vote"),
    "identity_path": ("dedupe_by_identity",),
    "scope_path": ("contradiction_matrix",),
    "claim_path": ("contradiction_matrix",),
    "time_path": ("contradiction_matrix",),
    "strict": ("contradiction_matrix",),
    "dissent_path": ("minority_report",),
    "required_fields": ("proof_carrying_join",),
    "method": ("vote",),
    "candidates": ("vote",),
    "candidates_path": ("vote",),
    "ballots": ("vote",),
    "ballot_path": ("vote",),
    "reason_path": ("vote",),
    "partial": ("vote",),
    "on_invalid": ("vote",),
    "min_agreement": ("vote",),
    "tie_break": ("vote",),
    "on_deadlock": ("vote",),
}
"""The modes that read a field; beside another mode it would be given in vain."""
_DEFAULT: Final = Config()


def prepare(_config: Config) -> None:
    """A mode is looked up by its name."""


def check(node_id: str, config: Config, limits: Limits = DEFAULTS) -> Sequence[Issue]:
    paths = [(name, pointer("inputs", place)) for place, name in enumerate(config.inputs)]
    paths += [(getattr(config, name), f"/{name}") for name in ("output", "output_key", "identity_path")]
    paths += [(getattr(config, name), f"/{name}") for name in ("scope_path", "claim_path", "time_path", "dissent_path")]
    paths += [(getattr(config, name), f"/{name}") for name in ("candidates_path", "ballot_path", "reason_path")]
    paths += [(name, pointer("required_fields", place)) for place, name in enumerate(config.required_fields)]
    issues = path_issues(node_id, paths)
    if config.merge == "each":
        message = 'a join brings branches together, and "each" would fire it for every one of them'
        issues.append(Issue("FIELD_INVALID", message, pointer="/merge", node_id=node_id))
    if config.output and config.output_key and config.output != config.output_key:
        message = "`output_key` and `output` name the same thing and differ"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/output_key", node_id=node_id))
    if config.of is not None:
        issues += [replace(issue, node_id=node_id) for issue in predicates.check(config.of, "/of", limits=limits)]
    return issues + _mode_issues(node_id, config) + (_vote_issues(node_id, config) if config.mode == "vote" else [])


def _mode_issues(node_id: str, config: Config) -> list[Issue]:
    issues = []
    if config.mode == "collect_object":
        issues += [
            Issue(
                "DUPLICATE_INPUT",
                f'the input "{name}" is named twice',
                pointer=pointer("inputs", place),
                fix=({"op": "remove", "path": pointer("inputs", place)},),
            )
            for place, name in enumerate(config.inputs)
            if name in config.inputs[:place]
        ]
    if config.mode == "quorum" and config.inputs and config.required > len(config.inputs):
        message = f"{config.required} of {len(config.inputs)} inputs can never count"
        severity: Severity = "error" if config.require else "warning"
        fix: JsonObject = {"op": "add", "path": "/required", "value": len(config.inputs)}
        issues.append(Issue("JOIN_QUORUM_IMPOSSIBLE", message, severity=severity, pointer="/required", fix=(fix,)))
    for name, modes in _MODES_OF.items():
        if config.mode not in modes and getattr(config, name) != getattr(_DEFAULT, name):
            message = f"the mode `{config.mode}` does not read `{name}`; `{'` and `'.join(modes)}` does"
            fix = {"op": "remove", "path": f"/{name}"}
            issues.append(Issue("FIELD_UNUSED", message, severity="warning", pointer=f"/{name}", fix=(fix,)))
    return [replace(issue, node_id=node_id) for issue in issues]


def _vote_issues(node_id: str, config: Config) -> list[Issue]:
    issues = [
        Issue("FIELD_INVALID", f'the candidate "{name}" is named twice', pointer=pointer("candidates", place))
        for place, name in enumerate(config.candidates)
        if name.strip() in [one.strip() for one in config.candidates[:place]]
    ]
    if not config.inputs:
        issues.append(Issue("FIELD_REQUIRED", "a vote needs `inputs` that hold its ballots", pointer="/inputs"))
    if config.candidates and config.candidates_path:
        message = "`candidates` and `candidates_path` both say who can be named; give one of them"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/candidates_path"))
    if config.require and config.on_deadlock is not None:
        message = "with `require` a vote without a winner is an error, and `on_deadlock` is never taken"
        issues.append(Issue("FIELD_CONFLICT", message, pointer="/on_deadlock"))
    return [replace(issue, node_id=node_id) for issue in issues]


def targets(config: Config) -> Sequence[Target]:
    chosen = config.on_deadlock if config.mode == "vote" else None
    return [Target(target, pointer("on_deadlock", place)) for place, target in enumerate(chosen or ())]


def reads(config: Config) -> Sequence[Read]:
    """The names of `inputs`; one that is a node's id means ``outputs.<id>``."""
    optional = config.on_missing != "error"
    found = [Read(name, pointer("inputs", place), optional) for place, name in enumerate(config.inputs)]
    return found + (path_read(config.candidates_path, "/candidates_path") if config.mode == "vote" else [])


def writes(_node_id: str, config: Config) -> Sequence[str]:
    output = config.output or config.output_key
    return [output] if config.inputs and output else []


def writes_current(config: Config) -> bool:
    return bool(config.inputs) and not (config.output or config.output_key)


def step(node: Node, values: Values, _answers: Sequence[Answer]) -> Done:
    """Raises `NodeFailure` JOIN_NO_INPUTS, JOIN_INPUT_MISSING, JOIN_QUORUM_NOT_MET and, of a vote, the VOTE_ codes."""
    config: Config = node.config
    if not config.inputs:
        return Done()
    inputs = [(name, values.join_input(name)) for name in config.inputs]
    if config.mode == "vote":
        return _voted(config, values, joins.present(inputs, config))
    return _done(config, values, joins.join(config.mode, inputs, config))


def _done(config: Config, values: Values, value: JsonValue) -> Done:
    output = config.output or config.output_key
    if output:
        return Done(writes=(contribution(values, output, value),), output=value)
    return Done(output=value, current=value)


def _voted(config: Config, values: Values, items: Sequence[joins.Item]) -> Done:
    candidates = [name.strip() for name in config.candidates] or None
    if config.candidates_path:
        found = value_at(values, config.candidates_path)
        candidates = votes.candidates_in(None if isinstance(found, Missing) else found, config.candidates_path)
    outcome = votes.vote(items, config, candidates=candidates)
    done = _done(config, values, outcome)
    if config.on_deadlock is None:
        return done
    if outcome["decided"]:
        return replace(done, transition="decided")
    return replace(done, targets=tuple(dict.fromkeys(config.on_deadlock)) or (END,), transition="deadlock")
