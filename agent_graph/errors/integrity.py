"""Why something cannot be sealed, or is not what was sealed."""

from __future__ import annotations

from agent_graph.errors.base import Conflict, Corrupt, NotFound, Refused


class IntegrityKeyRequired(Refused):
    """Nothing can be sealed or checked: the data folder has no integrity key, or its file is gone."""

    exit_code = 5


class IntegrityKeyInvalid(Refused):
    """The integrity key cannot be used: it is short, others can read it, or it is another folder's."""

    exit_code = 5


class KeyModeMismatch(Conflict):
    """The data folder was begun with an integrity key and is opened without one, or the other way round."""

    exit_code = 5


class KeyNotFound(NotFound):
    """The data folder has no key of that id."""


class KeyInUse(Conflict):
    """The key seals what is sealed now; rotate first."""


class ReceiptNotReady(Conflict):
    """The run has not ended."""


class ReceiptDigestMismatch(Corrupt):
    """The receipt, or its bundle, is not the expected one."""

    exit_code = 1


class ReceiptIntegrityFailure(Corrupt):
    """What is stored of a run is not what was sealed when it ended."""


class WitnessNotFound(NotFound):
    """No source was captured under this id, or another has captured it."""


class WitnessIntegrityFailure(Corrupt):
    """A captured source is not what was sealed when it was captured."""
