"""What is refused to somebody who wants to decide an approval."""

from __future__ import annotations

from agent_graph.errors.base import Conflict, Corrupt, InvalidRequest, NotFound, Refused


class ApprovalEditInvalid(InvalidRequest):
    """The patch does not fit the subject, or the edited subject does not fit its schema or the limits."""


class ApprovalIntegrityFailure(Corrupt):
    """What is stored of the approval is not what was written; nothing of it is told, and it cannot be decided."""


class ApprovalNotFound(NotFound):
    """No approval has that id."""


class ApproverNotFound(NotFound):
    """There is no approver of that name."""


class ApprovalAlreadyDecided(Conflict):
    """Somebody decided first; `details.decision` is theirs."""


class ApprovalAlreadyVoted(Conflict):
    """This person has approved already, and others have to; `details.vote` is theirs."""


class ApprovalExpired(Conflict):
    """The approval expired before it was decided."""


class ApprovalStale(Conflict):
    """What would happen has changed since it was shown; `details.subject_digest` is what it is now."""


class ApprovalWithdrawn(Conflict):
    """The run ended before the approval was decided."""


class ApprovalDecisionNotAllowed(Refused):
    """The gate does not allow that decision."""


class ApprovalChannelNotAllowed(Refused):
    """The gate does not take decisions that come this way; `details.how_to_decide` says which it takes."""


class ApprovalNotAnswered(Refused):
    """The person behind the client was asked, and gave no decision; the approval stays pending."""

    retryable = True


class ApprovalSelfDecision(Refused):
    """Whoever started the run may not decide this; `details.how_to_decide` says how another person can."""


class ApproverRequired(Refused):
    """An approver's secret has to come with this."""


class ApproverSecretWrong(Refused):
    """The approver's name or secret is wrong, or was wrong too often; `details.retry_at_ms` says until when."""
