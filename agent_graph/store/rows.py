"""What the store keeps and gives, as frozen rows; no SQL and no policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from agent_graph.core.events import Event
from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue
from agent_graph.core.sealing import Seal

RunStatus: TypeAlias = Literal["accepted", "running", "waiting", "interrupted", "completed", "failed", "cancelled"]
TERMINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled"})
ApprovalStatus: TypeAlias = Literal["pending", "approved", "rejected", "changes_requested", "expired", "withdrawn"]


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One immutable version of a graph. `spec` is the minimal form, `compiled` what `core.compile` wants kept."""

    graph_id: str
    graph_version: str
    description: str
    node_count: int
    edge_count: int
    updated_at_ms: int
    spec: JsonObject = field(default_factory=dict)
    compiled: JsonObject = field(default_factory=dict)
    origin: tuple[str, str] | None = None
    """Id and version of the template it is made of; read back by nothing but `OutcomeStore`."""
    damaged: bool = False
    """It is not what was written, and only its id and version are told."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """What lists and `graph_run_get` read without folding the log. `seq` = number of events stored."""

    run_id: str
    graph_id: str
    graph_version: str
    thread_id: str
    status: RunStatus
    seq: int
    created_at_ms: int
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    error: JsonObject | None = None
    final_state: tuple[JsonValue, ...] = ()
    """One element once the run has a result, else empty (null is a result)."""
    usage: JsonObject = field(default_factory=dict)
    budget: JsonObject = field(default_factory=dict)
    """What the run may use and has used, empty when nothing bounds it."""
    wake_at_ms: int | None = None
    """When it is to be driven again although nobody asks, should it only wait by then."""
    pinned: bool = False
    """Retention leaves it alone. Changed by `RunStore.pin` only; a commit does not look at it."""
    first_seq: int = 0
    """The first event that is kept; above 0 once the run's record was pruned. No commit looks at it either."""
    principal: str = ""
    """The authenticated one who started it, "" for the local user. Only the commit that makes the run looks at it."""
    forked_from: JsonObject = field(default_factory=dict)
    """{run_id, seq} of what a fork begins with. Only the commit that makes the run looks at it, too."""
    damaged: bool = False
    """The row is not what was written, and only its id is told; `error` says so."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Runs of one version of a graph that ended alike: with `status`, failed ones with `code`. What follows are sums
    over them; tokens over the `token_runs` whose hosts said how many."""

    graph_id: str
    graph_version: str
    status: RunStatus
    code: str
    runs: int
    llm_calls: int
    tokens: int
    token_runs: int
    wall_clock_ms: int
    first_at_ms: int
    last_at_ms: int
    template_version: str = ""
    """Of the template that was asked about."""
    damaged: bool = False
    """The row is not what was written: its counts are 0."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run whose record may go: it has ended and is not pinned. With `pruned` only its row is left."""

    run_id: str
    graph_id: str
    status: RunStatus
    finished_at_ms: int
    pruned: bool


@dataclass(frozen=True, slots=True)
class Space:
    """The database file: its size, and how much of it is in use."""

    file_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What looking at one thing a run needs gave. `level` "unsound" is said of the store alone."""

    name: str
    level: Literal["ok", "warning", "unsound"]
    said: str
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One approval as the contract shows it; `votes` as in `events.ApprovalVoted.vote` plus at_ms."""

    approval_id: str
    run_id: str
    graph_id: str
    graph_version: str
    node_id: str
    node_path: str
    round: int
    audience: tuple[str, ...]
    prompt: str
    subject: JsonValue
    subject_digest: str
    allowed_decisions: tuple[str, ...]
    quorum: int
    channels: tuple[str, ...]
    status: ApprovalStatus
    created_at_ms: int
    expires_at_ms: int
    votes: tuple[JsonObject, ...] = ()
    decision: JsonObject | None = None
    self_approval: bool = True
    subject_schema: JsonObject = field(default_factory=dict)
    edited: bool = False
    original: JsonValue = None
    """The subject before it was edited."""
    closed_at_ms: int | None = None
    damaged: bool = False
    """The row is not what was written, and only its id and its run's are told."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token as it is kept: `digest` is the SHA-256 of its secret part, in hexadecimal."""

    token_id: str
    principal: str
    digest: str
    scopes: tuple[str, ...]
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    damaged: bool = False
    """The row is not what was written; it lets nobody in."""


@dataclass(frozen=True, slots=True)
class WitnessRow:
    """A captured source. `seal` is of all the other fields, of `content` by its `digest`; nothing here was checked."""

    witness_id: str
    principal: str
    """Who captured it, "" for the local user."""
    locator: str
    """Where the caller says it is from; never fetched."""
    media_type: str
    authority_class: str
    retrieved_at_ms: int
    captured_at_ms: int
    via: str
    digest: str
    content: bytes
    """UTF-8."""
    key_id: str
    seal: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell outside. `notice_id` names what happened, and is the same however often it is told."""

    notice_id: str
    targets: tuple[str, ...]
    at_ms: int
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Pending:
    """A notice one target has not taken yet, after `tries` tries."""

    number: int
    notice_id: str
    at_ms: int
    body: JsonObject
    tries: int


@dataclass(frozen=True, slots=True)
class Telling:
    """How one target stands: notices that wait, that it took, that were given up; `failure` is the last."""

    target: str
    waiting: int
    delivered: int
    given_up: int
    delivered_at_ms: int | None
    failed_at_ms: int | None
    failure: str


@dataclass(frozen=True, slots=True)
class Answered:
    """An idempotency record: the first answer under `key`, kept as long as the run or graph it made."""

    key: str
    request_digest: str
    answer: JsonObject
    run_id: str = ""


class AlreadyAnswered(Exception):
    """A write found its idempotency key with the same request: nothing was written, `answered` is what it made then.

    A signal to the caller of the store, never an error a user sees: of two racing starts with one key, the one that
    loses answers what the winner answered.
    """

    def __init__(self, answered: Answered) -> None:
        super().__init__(answered.key)
        self.answered = answered


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one step of a run changes; one transaction, all or nothing.

    `expected_seq` is the number of events the writer believes are stored; another number raises `SequenceConflict`
    and changes nothing. `create` makes the run (expected_seq 0). `snapshot` is opaque bytes of the fold after the
    last of `events`. The stored `seq` is `expected_seq` plus the events, whatever `run.seq` says; of an existing run,
    graph, thread and creation time stay as they are.
    """

    run: RunRow
    expected_seq: int
    events: Sequence[Event]
    create: bool = False
    snapshot: bytes | None = None
    approvals: Sequence[ApprovalRow] = ()
    answered: Answered | None = None
    notices: Sequence[Notice] = ()
    seal: Callable[[JsonObject], Seal] | None = None
    """Seals what a run that ends comes to (`receipt.seal_body`); kept in the same transaction."""


@dataclass(frozen=True, slots=True)
class SealedLog:
    """The whole log of a run as it lies in the database, with what was sealed of it; nothing is checked."""

    run_id: str
    status: RunStatus
    finished_at_ms: int | None
    events: tuple[bytes, ...]
    """In the order of their numbers."""
    count: int
    """How many the run's row says there are."""
    head: str
    """``sha256:<hex>``, the hash of the last one by the run's row."""
    seal: JsonObject | None
    """{key_id, seal, sealed_at_ms, late}; None where nothing was sealed."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as it is kept: the fold up to and with the event `seq` of a run of `events` events."""

    run_id: str
    seq: int
    digest: str
    """Of the kept bytes, ``sha256:<hex>``."""
    kept_bytes: int
    events: int
    data: bytes
    """What `core.checkpoint.dump` made."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as read back: `body` is its JSON object with seq, at_ms, type and prev."""

    seq: int
    at_ms: int
    body: JsonObject
