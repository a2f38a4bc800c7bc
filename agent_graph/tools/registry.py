"""One registry for every door: looks a tool up, checks its arguments, calls it and always answers an envelope.

`call` never raises. A refusal keeps its code; a bug is caught here, once, and becomes ``INTERNAL`` with an incident id
that the log explains.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject, check_value, digest
from agent_graph.core.limits import Limits
from agent_graph.errors import (
    AgentGraphError,
    IdempotencyConflict,
    InsufficientScope,
    InternalError,
    InvalidArgument,
    ToolNotFound,
    UnknownArgument,
)
from agent_graph.store.base import AlreadyAnswered, Answered
from agent_graph.tools.deps import ADMIN, Caller, Deps
from agent_graph.tools.fitting import fitted
from agent_graph.tools.sight import seen_by

log = logging.getLogger(__name__)

Envelope: TypeAlias = JsonObject
P = TypeVar("P", bound=BaseModel)
PNG = "image/png"
"""The media type of an answer that is a picture."""
AROUND_BYTES = 1024
"""Bytes of an envelope around its ``data``."""
OWN = "\n"
"""Stands between a principal and its idempotency key; a principal holds none, so no two pairs are alike."""
ENVELOPE_SLACK = 64 * 1024
"""Bytes a call's arguments may hold beyond the largest input or spec they carry."""


@dataclass(frozen=True, slots=True)
class Call(Generic[P]):
    """One call of a tool: its checked arguments and what it may use."""

    deps: Deps
    args: P
    caller: Caller
    key: str
    """The idempotency key as it is stored, which is its principal's own; "" when none was given."""
    request_digest: str

    def answered(self, answer: JsonObject, *, run_id: str = "") -> Answered | None:
        """The idempotency record to store in the transaction that makes `answer` true; None without a key."""
        return Answered(self.key, self.request_digest, answer, run_id) if self.key else None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as every door shows it. `run` gives the ``data`` of the envelope."""

    name: str
    title: str
    description: str
    params: type[BaseModel]
    run: Callable[[Call[Any]], Awaitable[JsonObject]]
    scope: str = ADMIN
    """What a caller must hold, of `deps.SCOPES`; a tool that names none is the operator's."""
    toolset: str = "core"
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    again: Callable[[Call[Any], JsonObject], Awaitable[JsonObject]] | None = None
    """What a repeated call under an idempotency key is told, made of what was stored with the first; None: just
    that."""
    manner: tuple[str, ...] = ()
    """Arguments that say how to answer and not what to do: under one idempotency key they may differ."""
    cancellable: bool = False
    """Whoever calls may end the call at any time: it is mostly waiting, and what it changes it sees through itself."""


TOOLS: dict[str, Tool] = {}


def tool(
    name: str, params: type[P], *, title: str, description: str, **hints: Any
) -> Callable[[Callable[[Call[P]], Awaitable[JsonObject]]], Callable[[Call[P]], Awaitable[JsonObject]]]:
    """Register a tool; its description is what the model reads."""

    def register(run: Callable[[Call[P]], Awaitable[JsonObject]]) -> Callable[[Call[P]], Awaitable[JsonObject]]:
        TOOLS[name] = Tool(name, title, " ".join(description.split()), params, run, **hints)
        return run

    return register


async def call(deps: Deps, name: str, arguments: Mapping[str, Any], *, caller: Caller, whole: bool = False) -> Envelope:
    """Call a tool. The answer is ``{ok: true, data, graph_id?, graph_version?, run_id?}`` or
    ``{ok: false, error_code, error, details?, retryable}``; with `whole` it is not cut to what a model can take."""
    work = _envelope(deps, name, arguments, caller, whole)
    if name not in TOOLS or TOOLS[name].read_only or TOOLS[name].cancellable:
        return await work
    task = asyncio.ensure_future(work)
    _UNDER_WAY.add(task)
    task.add_done_callback(_UNDER_WAY.discard)
    return await asyncio.shield(task)


_UNDER_WAY: set[asyncio.Future[Envelope]] = set()
"""Calls that change something: each is finished, also when whoever made it cancels it or leaves."""


async def _envelope(deps: Deps, name: str, arguments: Mapping[str, Any], caller: Caller, whole: bool) -> Envelope:
    most = 0 if whole or caller.via == "cli" else deps.limits.result_bytes
    try:
        return success(await _call(deps, name, arguments, caller), max_bytes=most)
    except AgentGraphError as refusal:
        return deps.supervisor.shell.redactor.members(failure(refusal, max_bytes=most))
    except Exception:
        incident = f"inc-{secrets.token_hex(6)}"
        log.exception("incident %s in tool %s", incident, name)
        return failure(InternalError(f"a bug of ours; the log has the rest under {incident}", incident=incident))


async def _call(deps: Deps, name: str, arguments: Mapping[str, Any], caller: Caller) -> JsonObject:
    found = TOOLS.get(name)
    if found is None:
        raise unknown_tool(name, TOOLS)
    if not caller.may(found.scope):
        raise InsufficientScope(f"{name} needs the scope {found.scope}", scope=found.scope)
    largest = max(deps.limits.spec_bytes, deps.limits.input_bytes) + ENVELOPE_SLACK
    check_value(dict(arguments), max_depth=deps.limits.json_depth + 4, max_bytes=largest)
    args = checked(found, arguments, limits=deps.limits)
    key = str(getattr(args, "idempotency_key", "") or "")
    rest = {k: v for k, v in arguments.items() if k not in ("idempotency_key", *found.manner)}
    request = digest({"tool": name, "arguments": rest}) if key else ""
    own = f"{caller.principal}{OWN}{key}" if key and caller.principal else key
    made: Call[Any] = Call(seen_by(deps, caller), args, caller, own, request)
    if key and (earlier := await answer_given(deps, own, request, said=key)) is not None:
        return await _again(found, made, earlier)
    try:
        return await found.run(made)
    except AlreadyAnswered as earlier_call:
        return await _again(found, made, earlier_call.answered.answer)
    except AgentGraphError:
        # Of two racing calls with one key, the one that lost answers what the winner answered.
        if key and (earlier := await answer_given(deps, own, request, said=key)) is not None:
            return await _again(found, made, earlier)
        raise


async def _again(found: Tool, made: Call[Any], earlier: JsonObject) -> JsonObject:
    return earlier if found.again is None else await found.again(made, earlier)


def unknown_tool(name: str, known: Collection[str]) -> ToolNotFound:
    """The refusal of a name that is not among `known`, with the one that was probably meant."""
    close = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return ToolNotFound(f"there is no tool {name!r}{hint}", known=sorted(known))


async def answer_given(deps: Deps, key: str, request: str, *, said: str) -> JsonObject | None:
    """What this key was answered before. Raises `IdempotencyConflict` when it was another request; `said` is the key as
    the caller gave it."""
    stored = await deps.store.requests.get(key)
    if stored is None:
        return None
    if stored.request_digest != request:
        message = f"the idempotency key {said!r} was used with other arguments; take a new one"
        raise IdempotencyConflict(message, key=said)
    return stored.answer


def checked(found: Tool, arguments: Mapping[str, Any], *, limits: Limits) -> BaseModel:
    """The arguments as the tool's model. Raises `UnknownArgument` or `InvalidArgument` with every fault."""
    known = [field.alias or name for name, field in found.params.model_fields.items()]
    for name in arguments:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it takes {', '.join(known) or 'none'}"
            raise UnknownArgument(f"{found.name} has no argument {name!r}{hint}", argument=name, known=known)
    try:
        return found.params.model_validate(dict(arguments), context=limits)
    except ValidationError as error:
        faults = [
            {"argument": ".".join(str(part) for part in fault["loc"]), "message": fault["msg"]}
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        said = "; ".join(f"{fault['argument']}: {fault['message']}" for fault in faults)
        raise InvalidArgument(f"{found.name}: {said}", faults=faults) from None


def success(data: JsonObject, *, max_bytes: int = 0) -> Envelope:
    """The envelope of an answer; ids inside `data` are repeated beside it. It is cut to `max_bytes` when that is not
    0; a picture is whole or none, and a client is not shown it as text."""
    if max_bytes and data.get("media_type") != PNG:
        data = fitted(data, max_bytes=max_bytes - AROUND_BYTES)
    return {"ok": True, "data": data, **{k: data[k] for k in ("graph_id", "graph_version", "run_id") if data.get(k)}}


def failure(refusal: AgentGraphError, *, max_bytes: int = 0) -> Envelope:
    """The envelope of a refusal, cut to `max_bytes` when that is not 0."""
    body: JsonObject = {
        "ok": False, "error_code": refusal.code, "error": refusal.message, "retryable": refusal.retryable,
    }  # fmt: skip
    if refusal.details:
        body["details"] = dict(refusal.details)
    return fitted(body, max_bytes=max_bytes) if max_bytes else body
