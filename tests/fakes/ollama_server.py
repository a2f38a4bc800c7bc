"""A scripted Ollama server on loopback: its routes, wording and shapes, and everything that can go wrong on the wire.

::

    async with OllamaServer() as server:
        server.on("capital of France", answer("Paris"))
        server.on("analyst", busy(), times=1)           # the first such prompt is turned away
        server.on("analyst", answer("fine", chunks=2))
        ...
        assert server.count("analyst") == 2

The first rule whose text is in the last user message answers; a rule with `times` is used up. It answers real
clients: a request it has no rule for gets `default`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

Json = dict[str, Any]
DIGEST = "b" * 64
CREATED = "2026-11-30T12:00:00.000000Z"


@dataclass(frozen=True)
class Gate:
    """A step that waits until `opened` is set; `reached` tells that it got there."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> None:
        self.opened.set()


Step = bytes | Gate | Literal["rst", "eof"] | Callable[[], AsyncIterator[bytes]]
"""Bytes of the body (one HTTP chunk each), a wait, an end the client does not expect, or bytes made on the way."""


@dataclass(frozen=True)
class Response:
    """What a request is answered with: either the lines of a stream, or status and body."""

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/x-ndjson"),)


def line(content: str = "", *, thinking: str = "", model: str = "fake", **rest: Any) -> Json:
    """One object of a chat stream."""
    message: Json = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    return {"model": model, "created_at": CREATED, "message": message, "done": False, **rest}


def last_line(reason: str = "stop", *, prompt: int | None = 11, out: int | None = 7, **rest: Any) -> Json:
    """The object that ends a chat stream; a count that is None is left out, as Ollama leaves out a zero."""
    counts = {"prompt_eval_count": prompt, "eval_count": out}
    durations = {"total_duration": 2_500_000_000, "load_duration": 500_000_000}
    found = {name: count for name, count in counts.items() if count is not None}
    return line("", **{"done": True, "done_reason": reason, **durations, **found, **rest})


def encoded(objects: Iterable[Json], *, end: bytes = b"\n") -> tuple[bytes, ...]:
    """Each object as a line of bytes."""
    return tuple(json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode() + end for each in objects)


def answer(text: str = "", *, chunks: int = 1, thinking: str = "", reason: str = "stop", **last: Any) -> Response:
    """A well-behaved stream of `text` in `chunks` pieces."""
    size = max(1, -(-len(text) // chunks))
    lines = [line(thinking=thinking)] if thinking else []
    lines += [line(text[start : start + size]) for start in range(0, len(text), size)]
    return Response(encoded([*lines, last_line(reason, **last)]))


def tool_calls(*calls: tuple[str, str, Json], text: str = "") -> Response:
    """A model that wants tools called, each (id, name, arguments), after it has said `text`."""
    lines = [line(text)] if text else []
    for place, (call_id, name, arguments) in enumerate(calls):
        wanted = line("")
        function = {"index": place, "name": name, "arguments": arguments}
        wanted["message"]["tool_calls"] = [{"id": call_id, "function": function}]
        lines.append(wanted)
    return Response(encoded([*lines, last_line()]))


def stream(*steps: Step) -> Response:
    """A stream told step by step."""
    return Response(steps)


def error(status: int, text: str, **headers: str) -> Response:
    """Ollama's error shape."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(
        (json.dumps({"error": text}).encode(),), status, (("Content-Type", "application/json; charset=utf-8"), *named)
    )


def busy(retry_after: str = "") -> Response:
    """The queue is full."""
    extra = {"Retry_After": retry_after} if retry_after else {}
    return error(503, "server busy, please try again.  maximum pending requests exceeded", **extra)


def page(body: str, *, status: int = 200, **headers: str) -> Response:
    """What a proxy puts in the way."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response((body.encode(),), status, (("Content-Type", "text/html"), *named))


@dataclass
class Request:
    """One request as it came; `closed` is set when the client hangs up before the answer is over."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def prompt(self) -> str:
        """The last user message of a chat."""
        messages = self.body.get("messages") or [] if isinstance(self.body, dict) else []
        return next((m["content"] for m in reversed(messages) if m.get("role") == "user"), "")


@dataclass
class Model:
    """An installed model."""

    name: str
    capabilities: tuple[str, ...] = ("completion",)
    digest: str = DIGEST
    context: int | None = None
    """What it can read at most, in tokens; None: it does not tell."""
    loaded: int = 4096
    """The context it is loaded with; 0: it is not."""
    parameters: str = ""
    """Of its own file, such as ``num_ctx 8192``."""

    def listed(self) -> Json:
        details = {"parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"]}
        details |= {"parameter_size": "135M", "quantization_level": "Q4_1"}
        return {
            "name": self.name, "model": self.name, "modified_at": CREATED, "size": 98_362_432, "digest": self.digest,
            "details": details, "capabilities": list(self.capabilities),
        }  # fmt: skip

    def shown(self) -> Json:
        context = {} if self.context is None else {"llama.context_length": self.context}
        return {
            "modelfile": "", "parameters": self.parameters, "template": "{{ .Prompt }}",
            "details": self.listed()["details"], "model_info": {"general.architecture": "llama", **context},
            "capabilities": list(self.capabilities),
            "modified_at": CREATED,
        }  # fmt: skip


@dataclass
class _Rule:
    when: str
    response: Response
    times: int | None


Responder = Callable[[Request], Awaitable[Response | None]]


class OllamaServer:
    """The server; `requests` holds everything that came, `most_at_once` how many chats were ever open together."""

    chat_path = "/api/chat"

    def __init__(
        self, *models: Model | str, prefix: str = "", key: str = "", responder: Responder | None = None
    ) -> None:
        self.models = [m if isinstance(m, Model) else Model(m) for m in models or ("fake:latest",)]
        self.default = answer("A fine answer.")
        self.requests: list[Request] = []
        self.routes: dict[str, Response] = {}
        """Answers that replace a whole route, by path."""
        self.most_at_once = 0
        self.connections = 0
        self.port = 0
        self._prefix = prefix
        self._key = key
        self._responder = responder
        self._rules: list[_Rule] = []
        self._open = 0
        self._server: asyncio.Server | None = None
        self._arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._prefix}"

    async def __aenter__(self) -> OllamaServer:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def on(self, when: str, response: Response, *, times: int | None = None) -> None:
        """Answer prompts that hold `when` with `response`, at most `times` times."""
        self._rules.append(_Rule(when, response, times))

    @property
    def chats(self) -> list[Request]:
        return [request for request in self.requests if request.path == self.chat_path]

    def count(self, text: str) -> int:
        """How many chats came whose prompt holds `text`."""
        return sum(text in request.prompt for request in self.chats)

    async def arrived(self, text: str, *, count: int = 1) -> Request:
        """The last of at least `count` chats whose prompt holds `text`, waiting for it."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.count(text) >= count)
        return [request for request in self.chats if text in request.prompt][-1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        connection = _Connection(reader, writer)
        try:
            while (request := await connection.next_request(self._prefix)) is not None:
                self.requests.append(request)
                async with self._arrived:
                    self._arrived.notify_all()
                if not await self._serve(request, connection):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, request: Request, connection: _Connection) -> bool:
        chat = request.path == self.chat_path
        self._open += chat
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            response = await self._answer(request)
            if chat and response.status == 200 and request.body.get("stream") is False:
                response = self.at_once(response)
            return await connection.send(request, response)
        finally:
            self._open -= chat

    async def _answer(self, request: Request) -> Response:
        if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
            return error(401, "unauthorized")
        if request.path in self.routes:
            return self.routes[request.path]
        match request.method, request.path:
            case "GET" | "HEAD", "/":
                return Response((b"Ollama is running",), headers=(("Content-Type", "text/plain; charset=utf-8"),))
            case "GET", "/api/version":
                return _json({"version": "0.12.0"})
            case "GET", "/api/tags":
                return _json({"models": [model.listed() for model in self.models]})
            case "GET", "/api/ps":
                there = {"expires_at": CREATED, "size_vram": 0}
                running = [(model.listed() | there, model.loaded) for model in self.models if model.loaded]
                return _json({"models": [one | {"context_length": loaded} for one, loaded in running]})
            case "POST", "/api/show" | "/api/chat":
                return await self._model_route(request)
        return Response((b"404 page not found",), 404, (("Content-Type", "text/plain"),))

    async def _model_route(self, request: Request) -> Response:
        if not request.raw:
            return error(400, "missing request body")
        if not isinstance(request.body, dict):
            return error(400, "invalid character in request body")
        name = request.body.get("model") or ""
        if not name:
            return error(400, "model is required")
        tagged = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        model = next((m for m in self.models if m.name.lower() == tagged.lower()), None)
        if model is None:
            return error(404, f"model '{name}' not found")
        if request.path == "/api/show":
            return _json(model.shown())
        if request.body.get("think") and "thinking" not in model.capabilities:
            return error(400, f'"{name}" does not support thinking')
        if request.body.get("tools") and "tools" not in model.capabilities:
            return error(400, f'"{name}" does not support tools')
        if not request.body.get("messages"):
            reason = "unload" if request.body.get("keep_alive") == 0 else "load"
            return Response(encoded([line(done=True, done_reason=reason)]))
        return (await self._responder(request) if self._responder else None) or self._ruled(request)

    def at_once(self, response: Response) -> Response:
        """A stream as the one object that ``stream: false`` asks for."""
        return _at_once(response)

    def _ruled(self, request: Request) -> Response:
        for rule in self._rules:
            if rule.when in request.prompt and rule.times != 0:
                if rule.times is not None:
                    rule.times -= 1
                return rule.response
        return self.default


def _json(value: Json) -> Response:
    return Response((json.dumps(value).encode(),), headers=(("Content-Type", "application/json; charset=utf-8"),))


def _at_once(response: Response) -> Response:
    """The lines of a stream as the one object that ``stream: false`` asks for."""
    whole = b"".join(step for step in response.steps if isinstance(step, bytes))
    lines = [json.loads(each) for each in whole.split(b"\n") if each.strip()]
    messages = [each.get("message") or {} for each in lines]
    thinking = "".join(m.get("thinking", "") for m in messages)
    message: Json = {"role": "assistant", "content": "".join(m.get("content", "") for m in messages)}
    message |= {"thinking": thinking} if thinking else {}
    calls = [call for m in messages for call in m.get("tool_calls", ())]
    return _json(lines[-1] | {"message": message | ({"tool_calls": calls} if calls else {})})


class _Connection:
    """One socket: reads requests, and while it answers one it notices when the client hangs up."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""

    async def _fill(self) -> bool:
        more = await self._reader.read(65_536)
        self._buffer += more
        return bool(more)

    async def next_request(self, prefix: str) -> Request | None:
        while b"\r\n\r\n" not in self._buffer:
            if not await self._fill():
                return None
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
        length = int(headers.get("content-length", "0"))
        while len(self._buffer) < length:
            if not await self._fill():
                return None
        raw, self._buffer = self._buffer[:length], self._buffer[length:]
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        path = target.partition("?")[0]
        return Request(method, path.removeprefix(prefix) if path.startswith(prefix) else "?", headers, raw, body)

    async def send(self, request: Request, response: Response) -> bool:
        """False when the connection is not to be used again."""
        watch = asyncio.create_task(self._watch(request))
        try:
            self._head(request, response)
            for step in response.steps if request.method != "HEAD" else ():
                if not await self._step(step, request):
                    return False
            self._writer.write(b"0\r\n\r\n" if request.method != "HEAD" else b"")
            await self._writer.drain()
            request.finished.set()
            return not request.closed.is_set()
        except ConnectionError:
            request.closed.set()
            return False
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _watch(self, request: Request) -> None:
        try:
            while await self._fill():
                pass
        except ConnectionError:
            pass
        if not request.finished.is_set():
            request.closed.set()
            self._writer.transport.abort()  # ends a step that writes for ever

    def _head(self, request: Request, response: Response) -> None:
        lines = [f"HTTP/1.1 {response.status} Scripted", *(f"{name}: {value}" for name, value in response.headers)]
        lines.append("Transfer-Encoding: chunked" if request.method != "HEAD" else "Content-Length: 0")
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def _step(self, step: Step, request: Request) -> bool:
        """False when the step ends the connection."""
        if isinstance(step, bytes):
            await self._chunk(step)
        elif isinstance(step, Gate):
            step.reached.set()
            await self._writer.drain()
            waits = [asyncio.ensure_future(event.wait()) for event in (step.opened, request.closed)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()
        elif step == "rst":
            await self._writer.drain()
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
            return False
        elif step == "eof":
            await self._writer.drain()
            return False
        else:
            async for piece in step():
                await self._chunk(piece)
        return True

    async def _chunk(self, piece: bytes) -> None:
        if piece:
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self._writer.drain()
