"""What is told to the outside, and what came of telling it."""

from __future__ import annotations

from typing import Final, Literal, Protocol, TypeAlias

from agent_graph.core.classes import dataclass

KINDS: Final = (
    "approval.opened", "approval.expiring", "approval.decided", "approval.expired", "approval.withdrawn", "run.ended",
)  # fmt: skip
"""What there is to tell of."""
State: TypeAlias = Literal["delivered", "refused", "away"]


@dataclass(frozen=True, slots=True)
class Letter:
    """One thing to tell. `letter_id` is the same however often it is sent, and by whatever way."""

    letter_id: str
    body: bytes
    """A JSON object, UTF-8."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of one try.

    ``delivered``: it was taken. ``refused``: whoever is there does not take this one. ``away``: nobody is there who
    could take any.
    """

    state: State
    said: str = ""
    """Why not, in a sentence without secrets: no address, and nothing of what was sent."""
    not_before_ms: int = 0
    """Milliseconds from now before which the receiver wants no other try; 0: it said nothing."""


class Target(Protocol):
    """A way to tell the outside."""

    @property
    def name(self) -> str:
        """As the store and `agent-graph doctor` call it."""
        ...

    async def tell(self, letter: Letter) -> Receipt:
        """One try. Raises nothing but what cancels it."""
        ...

    async def aclose(self) -> None: ...
