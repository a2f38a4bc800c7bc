"""`join`: brings branches together and makes one value of what they left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig

Mode = Literal[
    "collect_array", "collect_object", "merge_objects", "first_non_null", "all_success", "quorum",
    "dedupe_by_identity", "contradiction_matrix", "minority_report", "proof_carrying_join", "vote",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `join` node."""

    inputs: list[str] = field(default_factory=list)
    """Node ids (their outputs) or state paths, in the order of the result; none = only bring together."""
    output: str = ""
    """State path of the joined value; "" = the current value."""
    mode: Mode = "collect_array"
    on_missing: Literal["null", "skip", "error"] = "null"
    allow_stale: bool = False
    """Take a branch's value of an earlier round too."""
    required: Annotated[int, Ge(0)] = 1
    """`quorum`: how many must count."""
    of: dict[str, Any] | None = None
    """`quorum`: the predicate by which an input counts."""
    require: bool = False
    """`all_success` and `quorum`: an unmet one is an error."""
    identity_path: str = ""
    scope_path: str = "scope"
    claim_path: str = "claim"
    time_path: str = "time"
    strict: bool = False
    dissent_path: str = "dissent"
    required_fields: list[str] = field(default_factory=lambda: ["evidence", "checks", "receipt"])
    wait: str | dict[str, Any] = "all"
    cancel_rest: bool = True
    method: Literal["majority", "borda", "condorcet"] = "majority"
    min_agreement: float | None = None
    on_deadlock: list[str] | None = None


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "input_key": "a join reads its `inputs`",
    "wait": 'a join waits for all that can come; only "all" is available yet',
    "cancel_rest": "a join waits for all that can come; there is no rest to cancel yet",
    "method": "councils cannot vote yet",
    "min_agreement": "councils cannot vote yet",
    "on_deadlock": "councils cannot vote yet",
}
