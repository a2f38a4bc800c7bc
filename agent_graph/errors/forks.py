"""Why a run is not forked."""

from __future__ import annotations

from agent_graph.errors.base import Conflict, InvalidRequest, NotFound, Refused


class ForkPointNotFound(NotFound):
    """The run has no such firing, or no event of that number."""


class ForkPointInvalid(InvalidRequest):
    """The run cannot go on from there; the message says from where it can."""


class ForkDiverges(Conflict):
    """The other version does not go the recorded way up to there; details say where it leaves it."""


class ForkNotAllowed(Refused):
    """What was to be changed is a person's decision, or stands in for one."""
