"""Performs one effect: asks a model and says as a fact what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent_graph import errors
from agent_graph.core import events as e
from agent_graph.core.effects import CallModel, answer_to_json
from agent_graph.core.jsonvalue import JsonObject, check_value
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.run import Run
from agent_graph.core.step import Perform
from agent_graph.engine.answer_cache import digest_of, key_of, recall
from agent_graph.engine.models import Chosen
from agent_graph.engine.shell import Shell
from agent_graph.engine.tool_calls import described
from agent_graph.llm.base import OnDelta

CLASSES: Final[tuple[tuple[type[errors.AgentGraphError], str], ...]] = (
    (errors.ModelTimeout, "timeout"),
    (errors.ModelUnreachable, "unreachable"),
    (errors.ModelOverloaded, "overloaded"),
    (errors.ModelServerError, "server_error"),
    (errors.ModelBadReply, "bad_reply"),
    (errors.ModelNotFound, "not_found"),
)
"""Engine.md 5; whatever is none of these is ``refused``."""


async def call_model(
    perform: Perform, call: CallModel, *, shell: Shell, run: Run, on_delta: OnDelta
) -> e.ModelAnswered | e.CacheHit | e.NodeFailed:
    """The fact of one attempt, for a node of `run`; its model is used when the node names none.

    Both may be ``HOST/MODEL``. The host's place is waited for before any time limit starts. Cancelling closes the
    connection.
    """
    asked = call.model or run.model
    try:
        if call.cites:
            shell.keys.mac_key()  # an answer that nothing could check is not paid for
        chosen = await shell.models.find(asked)
        client = chosen.client
        if call.model != chosen.model:
            call = replace(call, model=chosen.model)
        call = await described(call, shell.connections)
        key = await _cache_key(perform, call, chosen, run) if call.cache else ""
        if key and not call.fresh and (found := await recall(shell.store, key)) is not None:
            return e.CacheHit(perform.firing, found[0], key, found[1], perform.attempt)
        place = shell.limiter.place(chosen.place, parallel=client.parallel, run_id=run.run_id, model=call.model)
        async with place:
            answer = await client.chat(call, on_delta)
        body = answer_to_json(answer if answer.host == chosen.name else replace(answer, host=chosen.name))
        _check_storable(body, client.host)
        shell.telemetry.answered(answer)
    except errors.ModelNotFound as error:
        shell.telemetry.model_failures += 1
        return e.NodeFailed(perform.firing, failure(shell.models.explained(error, asked)), perform.attempt)
    except errors.AgentGraphError as error:
        shell.telemetry.model_failures += 1
        return e.NodeFailed(perform.firing, failure(error), perform.attempt)
    return e.ModelAnswered(perform.firing, body, perform.attempt, key)


async def _cache_key(perform: Perform, call: CallModel, chosen: Chosen, run: Run) -> str:
    """What the answer may be found by; "" where it is the host that picks the model, or where it does not list them:
    then nothing is remembered."""
    assert run.frame is not None, "a run that makes calls was accepted"
    if not call.model:
        return ""
    try:
        model_digest = await digest_of(chosen.client, call.model)
    except errors.ModelUnreachable:
        raise
    except errors.Upstream:
        return ""
    return key_of(
        call, model_digest=model_digest, host=chosen.place,
        scope={"started_by": run.started_by, **({"principal": run.principal} if run.principal else {})},
        firing={"graph": run.frame.graph.name, "path": perform.firing},
    )  # fmt: skip


def failure(error: errors.AgentGraphError) -> JsonObject:
    """A refusal of the host as the error of a `node_failed` fact."""
    failure_class = next((name for kind, name in CLASSES if isinstance(error, kind)), "refused")
    body: JsonObject = {"code": error.code, "message": error.message, "class": failure_class}
    if error.details:
        body["details"] = dict(error.details)
    try:
        check_value(body, max_depth=DEFAULTS.json_depth)
    except errors.InvalidRequest:  # a log holds nothing but JSON: a run must not stop over the words of a host
        return {"code": error.code, "message": _whole(error.message), "class": failure_class}
    return body


def _check_storable(body: JsonObject, host: str) -> None:
    """Raises `ModelBadReply` for an answer that no log can hold."""
    try:
        check_value(body, max_depth=DEFAULTS.json_depth)
    except errors.InvalidRequest as wrong:
        message = f"{host} answered with what is no JSON value: {wrong.message}"
        raise errors.ModelBadReply(message, reason="not_json") from wrong


def _whole(text: str) -> str:
    """`text` without lone surrogates."""
    return text.encode(errors="replace").decode()


def failure_of_a_bug(perform: Perform, bug: BaseException | None) -> e.NodeFailed:
    """What is recorded of a call that ended in a way no call should."""
    said = "it was cancelled from nowhere" if bug is None else _whole(f"{type(bug).__name__}: {bug}")
    error: JsonObject = {"code": "INTERNAL", "message": f"a bug in the call: {said}", "class": "bug"}
    return e.NodeFailed(perform.firing, error, perform.attempt)
