"""Answers of models that may be used again: what makes two calls the same, and where the first one's answer is.

Nothing is kept twice: an answer is found in the event log of the run that paid for it, for as long as that is kept.
"""

from __future__ import annotations

from typing import Final

from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.errors import AgentGraphError
from agent_graph.llm.base import ModelClient
from agent_graph.store.base import Store

FORM: Final = 1
"""Of the key: another one finds none of the answers of before."""


def key_of(call: CallModel, *, model_digest: str, host: str, scope: JsonObject, firing: JsonObject) -> str:
    """The digest of all that an answer depends on.

    A model whose digest is unknown is taken for what its name at `host` says. `scope` is what an answer never leaves
    (who started the run). `firing` is part of it where the model draws its answer: five voters who are asked the same
    thing shall stay five voters, and a loop that asks again shall get another answer.
    """
    model: list[JsonValue] = [model_digest] if model_digest else [host, call.model]
    said: JsonObject = {
        "form": FORM, "model": model, "messages": list(call.messages), "format": call.format, "options": call.options,
        "think": call.think, "tools": list(call.tools), "scope": scope, "firing": firing if is_drawn(call) else None,
    }  # fmt: skip
    return digest(said)


def is_drawn(call: CallModel) -> bool:
    """Whether the same call may be answered differently: neither a seed nor a temperature of 0 is set."""
    return "seed" not in call.options and call.options.get("temperature") != 0


async def digest_of(client: ModelClient, model: str) -> str:
    """The digest of `model` as its host lists it, "" where it does not tell. Raises what listing raises."""
    names = {model.lower(), f"{model}:latest".lower()}
    return next((info.digest for info in await client.models() if info.name.lower() in names), "")


async def recall(store: Store, key: str) -> tuple[JsonObject, str] | None:
    """The answer recorded under `key`, as `events.ModelAnswered` holds it, and the run it was made in."""
    try:
        place = await store.answers.find(key)
        if place is None:
            return None
        run_id, seq = place
        for event in await store.runs.events(run_id, first_seq=seq, limit=1):
            answer = event.body.get("answer")
            if event.seq == seq and event.body.get("cache_key") == key and isinstance(answer, dict):
                return answer, run_id
    except AgentGraphError:  # a store in trouble: the model is asked, as if there had been nothing
        return None
    return None
