"""The embedded model on OpenAI's wire: real tokens behind the routes of the scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.errors import Upstream
from agent_graph.llm.embedded import EmbeddedClient
from tests.fakes.ollama_server import Request, Response
from tests.fakes.openai_server import DONE, OpenAIServer, chunk, events, told, usage
from tests.live.weights import MODEL

NAMES = {"max_tokens": "num_predict"}


def serving(embedded: EmbeddedClient) -> OpenAIServer:
    """An OpenAI-style server whose one model is `embedded`; a client that hangs up ends its generation."""

    async def respond(request: Request) -> Response:
        body = request.body
        options = {NAMES.get(name, name): body[name] for name in ("max_tokens", "temperature", "seed") if name in body}
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        call = CallModel(tuple(body["messages"]), format=schema, options=options)
        return told(lambda: _events(embedded, call, request))

    return OpenAIServer(MODEL, responder=respond)


async def _events(embedded: EmbeddedClient, call: CallModel, request: Request) -> AsyncIterator[bytes]:
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    task = asyncio.create_task(embedded.chat(call, lambda kind, piece: pieces.put_nowait(piece)))
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    hung_up = asyncio.create_task(request.closed.wait())
    hung_up.add_done_callback(lambda _: task.cancel())
    try:
        while (piece := await pieces.get()) is not None:
            yield events([chunk(piece, model=MODEL)])[0]
        try:
            yield _end(task.result())
        except Upstream as failed:
            yield events([{"error": {"message": failed.message, "code": failed.details.get("status", 500)}}])[0]
    finally:
        task.cancel()
        hung_up.cancel()


def _end(said: ModelAnswer) -> bytes:
    counts = usage(said.prompt_tokens or 0, said.completion_tokens or 0, model=MODEL)
    return b"".join((*events([chunk(finish=said.done_reason, model=MODEL), counts]), DONE))
