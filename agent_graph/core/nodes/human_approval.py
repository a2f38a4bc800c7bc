"""`human_approval`: shows a person what would happen and goes on as they decide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from annotated_types import Len

from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, Milliseconds, NodeConfig

Decision = Literal["approve", "reject", "request_changes", "edit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `human_approval` node."""

    prompt: str = ""
    prompt_key: str = ""
    """State path of the prompt, instead of `prompt`."""
    subject_key: str = ""
    """State path of what is decided on; "" = the current value."""
    audience: list[str] | str = field(default_factory=list)
    allowed_decisions: Annotated[list[Decision], Len(1)] = field(
        default_factory=lambda: ["approve", "reject", "request_changes"]
    )
    expiry_ms: Milliseconds = 7 * 86_400_000
    on_reject: list[str] | Literal["continue"] | None = None
    on_request_changes: list[str] | Literal["continue"] | None = None
    on_expire: str | dict[str, Any] = "fail"
    quorum: int = 1
    channels: list[str] = field(default_factory=list)
    self_approval: bool = True


CHOOSES: Final = False
UNAVAILABLE: Final = {
    **UNAVAILABLE_EVERYWHERE,
    "timeout_ms": "a person's answer is bounded by `expiry_ms`",
    "on_expire": 'an expired approval fails the run; only "fail" is available yet',
    "quorum": "one decision decides; other quorums are not available yet",
    "channels": "every channel is open; closing some is not available yet",
    "self_approval": "nothing tells yet who started the run from who decides",
}
