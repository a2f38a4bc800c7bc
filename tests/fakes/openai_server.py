"""A scripted OpenAI-style server on loopback: `/v1/chat/completions` as a stream of events, and `/v1/models`.

Rules, steps and gates are those of `ollama_server`; only the shapes of the wire differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.fakes.ollama_server import Json, OllamaServer, Request, Response, Step

EVENTS = (("Content-Type", "text/event-stream; charset=utf-8"),)
JSON = (("Content-Type", "application/json"),)
DONE = b"data: [DONE]\n\n"


def chunk(content: str | None = None, *, finish: str | None = None, model: str = "fake", **delta: Any) -> Json:
    """One object of a stream."""
    said = delta if content is None else {"content": content, **delta}
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}


def usage(prompt: int = 11, out: int = 7, *, model: str = "fake") -> Json:
    """The object that tells the counts, without choices."""
    counts = {"prompt_tokens": prompt, "completion_tokens": out, "total_tokens": prompt + out}
    return {"id": "c-1", "object": "chat.completion.chunk", "model": model, "choices": [], "usage": counts}


def events(objects: Iterable[Json]) -> tuple[bytes, ...]:
    """Each object as an event."""
    return tuple(b"data: " + json.dumps(each, ensure_ascii=False).encode() + b"\n\n" for each in objects)


def said(text: str, *, chunks: int = 1, thinking: str = "", finish: str = "stop", counted: bool = True) -> Response:
    """A well-behaved stream of `text` in `chunks` pieces."""
    size = max(1, -(-len(text) // chunks))
    parts = [chunk("", role="assistant")]
    parts += [chunk(reasoning_content=thinking)] if thinking else []
    parts += [chunk(text[start : start + size]) for start in range(0, len(text), size)]
    parts += [chunk(finish=finish)] + ([usage()] if counted else [])
    return told(*events(parts), DONE)


def told(*steps: Step) -> Response:
    """A stream told step by step."""
    return Response(steps, headers=EVENTS)


def whole(text: str, *, finish: str = "stop", **message: Any) -> Response:
    """An answer in one object, of a host that does not stream."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return Response((json.dumps(usage() | {"choices": [choice]}).encode(),), headers=JSON)


def refused(status: int, message: str, *, code: str | None = None, **headers: str) -> Response:
    """OpenAI's error shape."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response((json.dumps(body).encode(),), status, (*JSON, *named))


class OpenAIServer(OllamaServer):
    """The server; `models` are matched by their exact names."""

    chat_path = "/v1/chat/completions"

    def __init__(self, *models: str, key: str = "", responder: Any = None) -> None:
        super().__init__(*models or ("fake",), key=key, responder=responder)
        self.default = said("A fine answer.")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _answer(self, request: Request) -> Response:
        if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
            return refused(401, "Incorrect API key provided", code="invalid_api_key")
        if request.path in self.routes:
            return self.routes[request.path]
        match request.method, request.path:
            case "GET", "/v1/models":
                listed = [{"id": model.name, "object": "model", "owned_by": "us"} for model in self.models]
                return Response((json.dumps({"object": "list", "data": listed}).encode(),), headers=JSON)
            case "POST", self.chat_path:
                name = request.body["model"]
                if name not in [model.name for model in self.models]:
                    return refused(404, f"The model `{name}` does not exist", code="model_not_found")
                return (await self._responder(request) if self._responder else None) or self._ruled(request)
        return refused(404, "no such route")
