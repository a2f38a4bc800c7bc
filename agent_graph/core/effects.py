"""What a node's step may answer: it is done, or it needs something from outside.

A step is one pure function, asked again after every answer:
``step(node, values, answers) -> Done | CallModel | AskApproval``, or it raises `errors.NodeFailure`.
"""

from __future__ import annotations

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
    """[{role: system|user|assistant, content: str}]"""
    model: str = ""
    format: JsonObject | Literal["json"] | None = None
    options: JsonObject = field(default_factory=dict)
    """Ollama's option names: temperature, seed, num_predict, num_ctx, top_p, repeat_penalty ..."""
    think: bool | str | None = None
    keep_alive: JsonValue = None
    timeout_ms: int = 600_000
    idle_timeout_ms: int = 120_000


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


Effect: TypeAlias = CallModel | AskApproval


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
    """[{code, message}] noticed on the way, such as an option the host ignores."""


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """How a gate was decided; `decision` is approve, reject, request_changes or expired."""

    round: int
    decision: str
    note: str
    by: str
    via: str
    at_ms: int


Answer: TypeAlias = ModelAnswer | ApprovalAnswer


def answer_to_json(answer: ModelAnswer) -> JsonObject:
    """The JSON object of a model's answer; fields that hold their default are left out."""
    body: JsonObject = {}
    for f in fields(ModelAnswer):
        value = getattr(answer, f.name)
        if f.name == "text" or value != f.default:
            body[f.name] = list(value) if isinstance(value, tuple) else value
    return body


def answer_from_json(body: JsonObject) -> ModelAnswer:
    """The answer a `model_answered` event holds."""
    arguments: dict[str, Any] = dict(body)
    if "warnings" in arguments:
        arguments["warnings"] = tuple(arguments["warnings"])
    return ModelAnswer(**arguments)
