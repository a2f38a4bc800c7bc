"""Every deliberate error, its stable code and its family.

::

    AgentGraphError
    ├── InvalidRequest   the caller can mend it            exit 1  http 400
    ├── NotFound         there is no such thing            exit 1  http 404
    ├── Conflict         it is not the moment for it       exit 1  http 409
    ├── Refused          understood, and not allowed       exit 1  http 403
    ├── Upstream         busy or out of reach, try again   exit 4  http 503
    └── Corrupt          what is stored cannot be trusted  exit 5  http 500

A wrong spec is data (`core.issues`), a failed node is an event (`NodeFailure` is how a pure step says so), a refusal
is one of these exceptions. A bug is none of them: it is caught once, in ``tools.registry``.
"""

from __future__ import annotations

from agent_graph.errors.approvals import ApprovalAlreadyDecided as ApprovalAlreadyDecided
from agent_graph.errors.approvals import ApprovalAlreadyVoted as ApprovalAlreadyVoted
from agent_graph.errors.approvals import ApprovalChannelNotAllowed as ApprovalChannelNotAllowed
from agent_graph.errors.approvals import ApprovalDecisionNotAllowed as ApprovalDecisionNotAllowed
from agent_graph.errors.approvals import ApprovalEditInvalid as ApprovalEditInvalid
from agent_graph.errors.approvals import ApprovalExpired as ApprovalExpired
from agent_graph.errors.approvals import ApprovalIntegrityFailure as ApprovalIntegrityFailure
from agent_graph.errors.approvals import ApprovalNotAnswered as ApprovalNotAnswered
from agent_graph.errors.approvals import ApprovalNotFound as ApprovalNotFound
from agent_graph.errors.approvals import ApprovalSelfDecision as ApprovalSelfDecision
from agent_graph.errors.approvals import ApprovalStale as ApprovalStale
from agent_graph.errors.approvals import ApprovalWithdrawn as ApprovalWithdrawn
from agent_graph.errors.approvals import ApproverNotFound as ApproverNotFound
from agent_graph.errors.approvals import ApproverRequired as ApproverRequired
from agent_graph.errors.approvals import ApproverSecretWrong as ApproverSecretWrong
from agent_graph.errors.base import AgentGraphError as AgentGraphError
from agent_graph.errors.base import Conflict as Conflict
from agent_graph.errors.base import Corrupt as Corrupt
from agent_graph.errors.base import InvalidRequest as InvalidRequest
from agent_graph.errors.base import NodeFailure as NodeFailure
from agent_graph.errors.base import NotFound as NotFound
from agent_graph.errors.base import Refused as Refused
from agent_graph.errors.base import Upstream as Upstream
from agent_graph.errors.daemon import ClientConfigInvalid as ClientConfigInvalid
from agent_graph.errors.daemon import DaemonLost as DaemonLost
from agent_graph.errors.daemon import DaemonSettingsDiffer as DaemonSettingsDiffer
from agent_graph.errors.daemon import DaemonUnreachable as DaemonUnreachable
from agent_graph.errors.daemon import DaemonVersionMismatch as DaemonVersionMismatch
from agent_graph.errors.daemon import OwnerSettingsDiffer as OwnerSettingsDiffer
from agent_graph.errors.door import AccessTokenInvalid as AccessTokenInvalid
from agent_graph.errors.door import AddressInUse as AddressInUse
from agent_graph.errors.door import AddressNotAllowed as AddressNotAllowed
from agent_graph.errors.door import BodyTooLarge as BodyTooLarge
from agent_graph.errors.door import FormNotValid as FormNotValid
from agent_graph.errors.door import HostNotAllowed as HostNotAllowed
from agent_graph.errors.door import InsufficientScope as InsufficientScope
from agent_graph.errors.door import IssuerUnreachable as IssuerUnreachable
from agent_graph.errors.door import LoginLinkInvalid as LoginLinkInvalid
from agent_graph.errors.door import OriginNotAllowed as OriginNotAllowed
from agent_graph.errors.door import TokenNotFound as TokenNotFound
from agent_graph.errors.door import TooManyRequests as TooManyRequests
from agent_graph.errors.forks import ForkDiverges as ForkDiverges
from agent_graph.errors.forks import ForkNotAllowed as ForkNotAllowed
from agent_graph.errors.forks import ForkPointInvalid as ForkPointInvalid
from agent_graph.errors.forks import ForkPointNotFound as ForkPointNotFound
from agent_graph.errors.integrity import IntegrityKeyInvalid as IntegrityKeyInvalid
from agent_graph.errors.integrity import IntegrityKeyRequired as IntegrityKeyRequired
from agent_graph.errors.integrity import KeyInUse as KeyInUse
from agent_graph.errors.integrity import KeyModeMismatch as KeyModeMismatch
from agent_graph.errors.integrity import KeyNotFound as KeyNotFound
from agent_graph.errors.integrity import ReceiptDigestMismatch as ReceiptDigestMismatch
from agent_graph.errors.integrity import ReceiptIntegrityFailure as ReceiptIntegrityFailure
from agent_graph.errors.integrity import ReceiptNotReady as ReceiptNotReady
from agent_graph.errors.integrity import WitnessIntegrityFailure as WitnessIntegrityFailure
from agent_graph.errors.integrity import WitnessNotFound as WitnessNotFound


class InvalidArgument(InvalidRequest):
    """An argument has the wrong type or value."""


class UnknownArgument(InvalidRequest):
    """The tool has no argument of that name."""


class InvalidAction(InvalidRequest):
    """The action is not one of those the tool knows."""


class InvalidResource(InvalidRequest):
    """There is no status resource of that name."""


class SpecInvalid(InvalidRequest):
    """The graph has errors; `details.issues` lists them all."""


class SpecVersionUnsupported(InvalidRequest):
    """The spec version is not one this program reads."""


class InputInvalid(InvalidRequest):
    """The input does not fit the graph's input schema, or is not JSON."""


class InputTooLarge(InvalidRequest):
    """The input is larger than the limit."""


class InputTooDeep(InvalidRequest):
    """The input is nested deeper than the limit."""


class ReservedKey(InvalidRequest):
    """The input uses a key that belongs to the engine."""


class SourceRequired(InvalidRequest):
    """No graph was named."""


class SourceAmbiguous(InvalidRequest):
    """More than one graph was named."""


class RenderSourceRequired(InvalidRequest):
    """No graph was named to draw."""


class RenderSourceAmbiguous(InvalidRequest):
    """More than one graph was named to draw."""


class StatePathInvalid(InvalidRequest):
    """The path is not a JSON Pointer (RFC 6901)."""


class SettingInvalid(InvalidRequest):
    """A setting has a value the program cannot use."""

    exit_code = 2


class TemplateParamsInvalid(InvalidRequest):
    """The template's parameters do not fit its schema."""


class InvalidBudgets(InvalidRequest):
    """The budgets are not positive integers under known names."""


class GraphNotFound(NotFound):
    """No graph has that id."""


class GraphVersionNotFound(NotFound):
    """The graph has no such version."""


class RunNotFound(NotFound):
    """No run has that id."""


class RunPruned(NotFound):
    """The run's record was pruned; its status and its result are kept."""


class CheckpointNotFound(NotFound):
    """No snapshot of the run is kept, or none after that event."""


class SignalNotFound(NotFound):
    """No node of the run's graph waits for messages of that name."""


class ResourceNotFound(NotFound):
    """Nothing can be read at that address."""


class PromptNotFound(NotFound):
    """There is no prompt of that name."""


class TemplateNotFound(NotFound):
    """No template has that id."""


class ConnectionNotFound(NotFound):
    """No connection of that name is configured."""


class ConnectionToolNotFound(NotFound):
    """The connection has no tool of that name."""


class StatePathNotFound(NotFound):
    """The state holds nothing at that path."""


class ToolNotFound(NotFound):
    """There is no tool of that name."""


class SubscriptionLimit(Conflict):
    """The client follows as much as one client can."""


class IdempotencyConflict(Conflict):
    """The idempotency key was used with other arguments."""


class GraphVersionConflict(Conflict):
    """The name holds another version; say `overwrite` to replace it."""


class TemplateExists(Conflict):
    """There is a template of that id; say `overwrite` to replace it."""


class GraphInUse(Conflict):
    """Runs of the graph are still live."""


class RunTerminal(Conflict):
    """The run has ended; what is consumed is consumed."""


class SignalNotAwaited(Conflict):
    """Nobody waits for the message now, and its name keeps none that come early."""


class SignalBufferFull(Conflict):
    """The run keeps as many messages as it may that nobody has taken."""


class DataDirLocked(Conflict):
    """Another process owns the data folder, or may by now: the lock was taken away."""

    exit_code = 5


class SequenceConflict(Conflict):
    """Another writer has moved the run on."""


class AuthenticatedOperatorRequired(Refused):
    """Only the operator may do this."""


class PolicyDenied(Refused):
    """The policy of this server does not let the graph run, or leaves that to a person."""


class ToolOutcomeUnknown(Refused):
    """A tool call was under way when the program ended, and may not simply be made again."""


class NodeTypeUnavailable(Refused):
    """The node type or field is known but nothing acts on it yet."""


class RunCapacity(Upstream):
    """Too many runs are live and queued."""

    exit_code = 1


class StoreBusy(Upstream):
    """The store is busy."""

    exit_code = 5


class StoreFull(Upstream):
    """The disk is full."""

    exit_code = 5


class ModelUnreachable(Upstream):
    """The model host does not answer."""


class ModelTimeout(Upstream):
    """The model took longer than allowed."""


class ModelOverloaded(Upstream):
    """The model host turns calls away."""


class ModelServerError(Upstream):
    """The model host failed."""


class ModelBadReply(Upstream):
    """The model's reply cannot be used."""

    exit_code = 1


class ModelNotFound(Upstream):
    """The model host does not have that model."""

    retryable = False


class ModelRefused(Upstream):
    """The model host refused the request."""

    retryable = False
    exit_code = 1


class ModelNotConfigured(Upstream):
    """No model is named and none can be found."""

    retryable = False


class CapabilityMissing(Upstream):
    """An optional part of the program is not installed."""

    retryable = False
    exit_code = 2


class StoreCorrupt(Corrupt):
    """The database, or one run in it, is damaged; or the file is gone."""


class CheckpointIntegrityFailure(Corrupt):
    """The snapshot is not what was written, or not what the events say."""


class StoreNewer(Corrupt):
    """The database was written by a newer program."""


class StoreForeign(Corrupt):
    """The folder belongs to another program."""


class StoreUnusable(Corrupt):
    """The data folder cannot be used."""


class InternalError(Corrupt):
    """A bug of ours; the log has the rest under the incident id."""

    code = "INTERNAL"
