"""The embedded model: GGUF weights run inside this process, one call at a time, nothing sent anywhere."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agent_graph.core import model_options
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import CallModel, ModelAnswer
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.limits import DEFAULTS
from agent_graph.errors import CapabilityMissing, ModelBadReply, ModelRefused
from agent_graph.llm.base import ModelInfo, OnDelta
from agent_graph.llm.choose import missing_model
from agent_graph.llm.deadlines import attempt, unbroken
from agent_graph.llm.llama import TAKEN, Chunk, Llama, request_body
from agent_graph.llm.refusals import refusal
from agent_graph.llm.reply import WHITESPACE_LOOP, Reply, option_warnings
from agent_graph.llm.weights import file_sha256, installed_weights

CONTEXT = 4096
"""Tokens of prompt and answer together."""
DIGEST_BYTES = 512 * 1024 * 1024
"""Larger weights are not digested: it would take longer than loading them."""
HOST = "embedded"


@dataclass(slots=True)
class _Loaded:
    """What the worker thread holds: one model, the last one asked for."""

    path: Path
    llama: Llama
    digest: str


@dataclass(slots=True)
class _Told:
    """What a generation told besides its text."""

    finish: str = "stop"
    timings: dict[str, Any] = field(default_factory=dict)
    load_ms: int = 0
    digest: str = ""


class EmbeddedClient:
    """Weights from `models_dir`; `model` is the name of one of them or the path of any GGUF file, "" the default.

    Only what stands in `models_dir` or is `model` itself can be called: a graph cannot name a file. Needs the extra
    ``local``. Raises `CapabilityMissing` where that or the weights are missing, `ModelNotFound` for another `model`.
    """

    provider = "embedded"
    host = HOST
    parallel = 1

    def __init__(
        self,
        models_dir: Path,
        *,
        model: str = "",
        context: int = CONTEXT,
        max_reply_bytes: int = DEFAULTS.value_bytes,
    ) -> None:
        if find_spec("xllamacpp") is None:
            raise CapabilityMissing(
                "the embedded model needs the extra `local`: pip install 'agent-graph[local]'", extra="local"
            )
        self._models_dir = models_dir
        self._context = context
        self._max_reply_bytes = max_reply_bytes
        self._given = model
        self._named: dict[str, Path] = {}
        if model.endswith(".gguf") and (path := Path(model).expanduser().absolute()).is_file():
            self._named = {path.stem: path}
        self._model = self._default(model)
        self._loaded: _Loaded | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._stops: set[threading.Event] = set()

    async def chat(self, call: CallModel, on_delta: OnDelta) -> ModelAnswer:
        """Perform one call; calls wait for one another. Cancelling ends the generation at its next token."""
        async with attempt(call, "the embedded model"):
            name, path = self._pick(call.model or self._model)
            if call.think:
                raise ModelRefused(f'"{name}" does not support thinking', model=name, body="")
            if any("images" in message for message in call.messages):
                raise ModelRefused(f'"{name}" does not see pictures', model=name, body="")
            if call.tools:
                raise ModelRefused(f'"{name}" does not call tools', model=name, body="")
            reply = Reply(call, on_delta, max_bytes=self._max_reply_bytes, who="the embedded model")
            told = _Told()
            async with (
                aclosing(self._generate(path, call, told)) as chunks,
                aclosing(unbroken(chunks, call, who="the embedded model")) as timed,
            ):
                async for chunk in timed:
                    _take(chunk, reply, told, name)
                    if reply.over:
                        break
        return _answer(call, reply, told, name, self._context)

    async def models(self) -> tuple[ModelInfo, ...]:
        """The weights there are, the default first."""
        return await asyncio.to_thread(self._infos)

    async def aclose(self) -> None:
        """End what is being generated, wait for its thread and let go of the weights."""
        for stop in self._stops:
            stop.set()
        worker, self._worker = self._worker, None
        if worker is not None:
            await asyncio.to_thread(worker.shutdown)
        self._loaded = None

    def _default(self, model: str) -> str:
        found = self._all()
        if model:
            return self._pick(model)[0]
        if not found:
            raise CapabilityMissing(
                "the embedded model has no weights: `agent-graph local setup` fetches them once (93 MB), or name a GGUF"
                " file with --model",
                extra="local",
                models_dir=str(self._models_dir),
            )
        return next(iter(found))

    def _all(self) -> dict[str, Path]:
        return self._named | installed_weights(self._models_dir)

    def _infos(self) -> tuple[ModelInfo, ...]:
        return tuple(
            ModelInfo(name, size_bytes=path.stat().st_size, capabilities=("completion",))
            for name, path in self._all().items()
        )

    def _pick(self, model: str) -> tuple[str, Path]:
        if self._named and model == self._given:
            return next(iter(self._named.items()))
        for name, path in self._all().items():
            if name.lower() == model.lower():
                return name, path
        raise missing_model(model, self._infos(), host=HOST)

    # ------------------------------------------------------------------------------------------- the worker's thread

    async def _generate(self, path: Path, call: CallModel, told: _Told) -> AsyncGenerator[Chunk, None]:
        """The chunks of one generation as its thread makes them; closing this ends it."""
        loop = asyncio.get_running_loop()
        made: asyncio.Queue[Chunk | None] = asyncio.Queue()
        stop = threading.Event()
        self._stops.add(stop)

        def tell(chunk: Chunk | None) -> bool:
            try:
                loop.call_soon_threadsafe(made.put_nowait, chunk)
            except RuntimeError:  # the loop is closed: nobody listens any more
                return True
            return stop.is_set()

        def work() -> None:
            try:
                if not stop.is_set():
                    self._run(path, call, told, tell)
            finally:
                tell(None)

        if self._worker is None:
            self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedded-model")
        running = loop.run_in_executor(self._worker, work)
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            while (chunk := await made.get()) is not None:
                yield chunk
            await running
        except ValueError as error:
            raise ModelRefused(f"the embedded model does not take this request: {error}", body=str(error)) from error
        finally:
            stop.set()
            self._stops.discard(stop)
            running.cancel()

    def _run(self, path: Path, call: CallModel, told: _Told, tell: Callable[[Chunk], bool]) -> None:
        if self._loaded is None or self._loaded.path != path:
            self._loaded = None  # first let go of the other, so that both are never in memory together
            began = time.monotonic_ns()
            digest = file_sha256(path) if path.stat().st_size <= DIGEST_BYTES else ""
            try:
                llama = Llama(path, context=self._context)
            except RuntimeError as error:
                raise ModelRefused(f"the weights {path} cannot be loaded: {error}", body=str(error)) from error
            self._loaded = _Loaded(path, llama, digest)
            told.load_ms = (time.monotonic_ns() - began) // 1_000_000
        told.digest = self._loaded.digest
        self._loaded.llama.generate(request_body(call), tell)


def _take(chunk: Chunk, reply: Reply, told: _Told, name: str) -> None:
    if "error" in chunk:
        status = chunk["error"].get("code") if isinstance(chunk["error"], dict) else None
        raise refusal(
            status if isinstance(status, int) else 500,
            json.dumps(chunk).encode(),
            who="the embedded model",
            model=name,
        )
    told.timings = chunk.get("timings") or told.timings
    for choice in chunk.get("choices") or ():
        told.finish = choice.get("finish_reason") or told.finish
        delta = choice.get("delta") or {}
        reply.add("thinking", delta.get("reasoning_content") or "")
        reply.add("text", delta.get("content") or "")


def _answer(call: CallModel, reply: Reply, told: _Told, name: str, context: int) -> ModelAnswer:
    warnings = option_warnings(call.options) + _ignored(call.options, context)
    if not told.timings and not reply.over:
        raise ModelBadReply("the embedded model ended before the answer was done", reason="cut", model=name)
    spent = told.timings
    return ModelAnswer(
        text=reply.text,
        thinking=reply.thinking,
        done_reason=told.finish,
        model=name,
        performer=f"server:embedded/{name}",
        model_digest=told.digest,
        prompt_tokens=int(spent["prompt_n"] + spent["cache_n"]) if spent else None,
        completion_tokens=int(spent["predicted_n"]) if spent else None,
        total_ms=told.load_ms + round(spent["prompt_ms"] + spent["predicted_ms"]) if spent else None,
        load_ms=told.load_ms,
        warnings=warnings if spent else (*warnings, WHITESPACE_LOOP),
    )


def _ignored(options: JsonObject, context: int) -> tuple[JsonObject, ...]:
    """A warning for each option of Ollama's that was fixed when the weights were loaded."""
    asked = options.get("num_ctx")
    fits = isinstance(asked, int) and asked <= context
    names = [name for name in options if name in model_options.KNOWN - TAKEN and not (name == "num_ctx" and fits)]
    return tuple(
        {"code": "OPTION_IGNORED", "message": f'the embedded model cannot change the option "{name}"'} for name in names
    )
