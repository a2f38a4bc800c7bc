"""What a node's step may answer: it is done, or it needs something from outside.

A step is one pure function, asked again after every answer:
``step(node, values, answers) -> Done | Effect``, or it raises `errors.NodeFailure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any, Final, Literal, TypeAlias

from agent_graph.core.frozen import dataclass
from agent_graph.core.jsonvalue import JsonObject, JsonValue


class Missing:
    """The type of `MISSING`: there is nothing at a path (null is something)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()
MaybeJson: TypeAlias = "JsonValue | Missing"
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """One contribution to the state at `path` (resolved segments, never empty).

    ``set`` puts `value` there, ``delete`` removes what is there, ``operand`` hands `value` to the reducer of
    ``path[0]``, ``replace`` overwrites a key that has a reducer.
    """

    op: Literal["set", "delete", "operand", "replace"]
    path: Path
    value: JsonValue = None

    def to_json(self) -> list[JsonValue]:
        """[op, [segments], value?]; a delete has no value."""
        body: list[JsonValue] = [self.op, list(self.path)]
        return body if self.op == "delete" else [*body, self.value]

    @staticmethod
    def from_json(body: Any) -> Write:
        return Write(body[0], tuple(body[1]), body[2] if len(body) > 2 else None)


@dataclass(frozen=True, slots=True)
class Warning_:  # noqa: N801  (the builtin has the plain name)
    """Something a person should see and no reason to stop; becomes a ``warning`` event."""

    code: str
    message: str
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """The firing is finished."""

    writes: tuple[Write, ...] = ()
    output: MaybeJson = MISSING
    """Readable as ``outputs.<node id>`` afterwards."""
    current: MaybeJson = MISSING
    """The new current value (``__input__``)."""
    targets: tuple[str, ...] | None = None
    """The chosen targets (node ids, ``END``) of a choosing node; None = all declared out-edges."""
    transition: str = ""
    """Names the way taken; a ``route_taken`` event is written when it is not empty."""
    inputs: JsonObject = field(default_factory=dict)
    """The current value a static branch starts with, by target."""
    warnings: tuple[Warning_, ...] = ()
    exhausted: int | None = None
    """The count at which a loop gave up."""


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask a model once. Times in milliseconds; `model` "" = the run's or the server's default."""

    messages: tuple[JsonObject, ...]
    """[{role: system|user|assistant|tool, content: str}], with `images` (data URLs) where pictures are shown, in an
    assistant's `tool_calls` [{id, name, arguments}], in a tool's `call_id` and `name`."""
    model: str = ""
    format: JsonObject | Literal["json"] | None = None
    options: JsonObject = field(default_factory=dict)
    """Ollama's option names: temperature, seed, num_predict, num_ctx, top_p, repeat_penalty ..."""
    think: bool | str | None = None
    keep_alive: JsonValue = None
    timeout_ms: int = 600_000
    idle_timeout_ms: int = 120_000
    tools: tuple[JsonObject, ...] = ()
    """What the model may call: [{name, connection, tool}]; whoever performs the call adds `description` and
    `parameters` (a JSON Schema)."""
    cache: bool = False
    """An answer recorded for the same call will do."""
    fresh: bool = False
    """Although it would: an attempt has failed, so the model is asked anew."""
    cites: bool = False
    """What is answered has to be checked against captured sources: where nothing can check it, nothing is asked."""


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool of a named connection, as a model asked; `connection` "" = the node offers none of that name."""

    call_id: str
    """Unique within the firing."""
    name: str
    """As the model called it."""
    arguments: JsonValue
    connection: str = ""
    tool: str = ""
    offered: tuple[str, ...] = ()
    """The names the model may call."""
    timeout_ms: int = 120_000
    unsure: bool = False
    """It was called before, and the log does not say what came of it."""


@dataclass(frozen=True, slots=True)
class Citation:
    """The claim at a place of an answer rests on the bytes `start` to `end` of a witness, which have to be `quote`."""

    claim: int
    witness_id: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class CheckEvidence:
    """Compare what an answer cites with the sources as they were captured."""

    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Ask a person; the answer comes late. A new `round` is a new approval."""

    round: int
    prompt: str
    subject: JsonValue
    audience: tuple[str, ...]
    allowed_decisions: tuple[str, ...]
    expiry_ms: int
    quorum: int = 1
    channels: tuple[str, ...] = ()
    """By which ways a decision may come; none = all."""
    self_approval: bool = True
    remind_ms: int = 0
    """How long before the end of its time it is told of again; 0 = not at all."""
    subject_schema: JsonObject | None = None
    """What an edited subject has to fit."""


@dataclass(frozen=True, slots=True)
class OpenFrames:
    """Run what stands inside this node: one frame for each of `inputs`, and go on with what they come to."""

    inputs: Sequence[JsonValue]
    width: int | None = None
    """How many of them may be open at a time; None = as many as calls of the run may be under way."""
    enough: int | None = None
    """With so many results the rest is cancelled; None = all of them."""
    graph_version: str = ""
    """The graph they run, "" = what stands between the node and its join, or for `recursion` the node's own graph."""
    recursion: bool = False
    names: tuple[str, str] = ("", "")
    """Under which keys an item and its place are in the state of its frame; "" = none."""
    policy: Literal["fail_fast", "collect_partial", "ignore"] = "fail_fast"
    """What becomes of a frame that fails: the node fails, or {error} is in its place, or null."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for a moment: `delay_ms` after this was said, or `until_ms` UTC. One that is past has come."""

    delay_ms: int = 0
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AwaitSignal:
    """Wait for the next message of that name, for `expiry_ms` at most (None = as long as it takes).

    With `buffer` a message that came early is taken too.
    """

    name: str
    buffer: bool = True
    expiry_ms: int | None = None


Effect: TypeAlias = CallModel | CallTool | CheckEvidence | AskApproval | Sleep | AwaitSignal | OpenFrames


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model said, as it was received; token counts are None where the host said nothing."""

    text: str
    thinking: str = ""
    done_reason: str = "stop"
    model: str = ""
    performer: str = ""
    """``server:<provider>/<model>``"""
    host: str = ""
    """The name the settings give the host; "" for the provider."""
    model_digest: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_ms: int | None = None
    load_ms: int | None = None
    warnings: tuple[JsonObject, ...] = ()
    """[{code, message, details?}] noticed on the way, such as an option the host ignores."""
    tool_calls: tuple[JsonObject, ...] = ()
    """[{id, name, arguments}] it wants made before it goes on; `id` is "" where the host gives none."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came of a tool call: the text the model is told, and whether the call failed."""

    call_id: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """How the citations of an answer compare with their sources."""

    witnesses: tuple[JsonObject, ...]
    """[{witness_id, digest, locator_digest}] of those that were found, in the order in which they are cited."""
    problems: tuple[JsonObject, ...] = ()
    """[{code, message, claim}]; none: every word stands where the answer says."""


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """How a gate was decided; `decision` is approve, edit, reject, request_changes or expired."""

    round: int
    decision: str
    note: str
    by: str
    via: str
    at_ms: int
    subject: JsonValue = None
    """With edit: what goes on in place of what was asked about."""


@dataclass(frozen=True, slots=True)
class FramesAnswer:
    """What the frames of a firing came to, in the order of their inputs."""

    results: list[JsonValue]


@dataclass(frozen=True, slots=True)
class TimeAnswer:
    """The moment has come, or the time for a message is over."""


@dataclass(frozen=True, slots=True)
class SignalAnswer:
    """The message that was waited for."""

    payload: JsonValue


Answer: TypeAlias = (
    ModelAnswer | ToolAnswer | EvidenceAnswer | ApprovalAnswer | TimeAnswer | SignalAnswer | FramesAnswer
)


_OF_ANSWER: Final = tuple((f.name, f.default) for f in fields(ModelAnswer))


def answer_to_json(answer: ModelAnswer) -> JsonObject:
    """The JSON object of a model's answer; fields that hold their default are left out."""
    body: JsonObject = {}
    for name, default in _OF_ANSWER:
        value = getattr(answer, name)
        if name == "text" or value != default:
            body[name] = list(value) if isinstance(value, tuple) else value
    return body


def answer_from_json(body: JsonObject) -> ModelAnswer:
    """The answer a `model_answered` event holds."""
    arguments: dict[str, Any] = dict(body)
    for name in ("warnings", "tool_calls"):
        if name in arguments:
            arguments[name] = tuple(arguments[name])
    return ModelAnswer(**arguments)
