"""The embedded model on Ollama's wire: real tokens behind the routes of the scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.errors import ModelRefused, Upstream
from agent_graph.llm.embedded import EmbeddedClient
from tests.fakes.ollama_server import Model, OllamaServer, Request, Response, encoded, error, last_line, line, stream
from tests.live.weights import MODEL


def serving(embedded: EmbeddedClient) -> OllamaServer:
    """An Ollama server whose one model is `embedded`; a client that hangs up ends its generation."""

    async def respond(request: Request) -> Response:
        body = request.body
        call = CallModel(tuple(body["messages"]), format=body.get("format") or None, options=body.get("options") or {})
        if body.get("stream") is False:
            try:
                said = await embedded.chat(call, lambda *_: None)
            except ModelRefused as refused:
                return error(400, refused.message)
            return Response(encoded([line(said.text, model=MODEL), _end(said)]))
        return stream(lambda: _lines(embedded, call, request))

    return OllamaServer(Model(MODEL), responder=respond)


async def _lines(embedded: EmbeddedClient, call: CallModel, request: Request) -> AsyncIterator[bytes]:
    told: asyncio.Queue[str | None] = asyncio.Queue()
    task = asyncio.create_task(embedded.chat(call, lambda kind, piece: told.put_nowait(piece)))
    task.add_done_callback(lambda _: told.put_nowait(None))
    hung_up = asyncio.create_task(request.closed.wait())
    hung_up.add_done_callback(lambda _: task.cancel())
    try:
        while (piece := await told.get()) is not None:
            yield encoded([line(piece, model=MODEL)])[0]
        try:
            yield encoded([_end(task.result())])[0]
        except Upstream as failed:
            yield encoded([{"error": failed.message}])[0]
    finally:
        task.cancel()
        hung_up.cancel()


def _end(said: ModelAnswer) -> dict[str, object]:
    times = {"total_duration": (said.total_ms or 0) * 1_000_000, "load_duration": (said.load_ms or 0) * 1_000_000}
    return last_line(said.done_reason, prompt=said.prompt_tokens, out=said.completion_tokens, model=MODEL, **times)
