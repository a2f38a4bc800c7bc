"""llama.cpp inside this process, by xllamacpp: loads one GGUF file and generates in the calling thread.

It offers nothing on the network: llama.cpp insists on listening somewhere, so it gets a socket in a private folder
that is unlinked as soon as it is bound (where there are no such sockets: loopback, behind a random key).
"""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject

SOCKET_PATH_BYTES = 100
"""What the system takes as the name of a socket, a little less."""
BATCH = 128
"""Tokens of a prompt read at once. Between two batches the caller can end it: a second at most on a slow machine."""
DEFAULTS: JsonObject = {"temperature": 0.6, "repeat_penalty": 1.15, "num_predict": 256}
"""A small model rambles and repeats itself with the usual ones."""
RENAMED = {"num_predict": "max_tokens", "num_keep": "n_keep"}
TAKEN = frozenset({
    "num_predict", "num_keep", "temperature", "top_k", "top_p", "min_p", "typical_p", "repeat_last_n", "repeat_penalty",
    "presence_penalty", "frequency_penalty", "seed", "stop",
})  # fmt: skip
"""Ollama's options that llama.cpp takes with each call; the others are fixed when the model is loaded."""

Chunk = dict[str, Any]


class Llama:
    """One loaded model. Raises RuntimeError when the file cannot be loaded."""

    def __init__(self, path: Path, *, context: int) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = BATCH
        # More threads starve each other when two models or tests run at once; one is as fast on a busy machine.
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.verbosity = 0
        params.offline = True
        params.cache_ram_mib = 0
        params.ui = params.endpoint_props = params.endpoint_slots = params.endpoint_metrics = False
        params.api_keys = [secrets.token_hex(32)]
        params.port = 0
        folder = tempfile.mkdtemp(prefix="agent-graph-")
        try:
            name = str(Path(folder) / "s.sock")
            unix = hasattr(socket, "AF_UNIX") and len(name.encode()) <= SOCKET_PATH_BYTES
            params.hostnames = [name if unix else "127.0.0.1"]
            self._server = xllamacpp.Server(params)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def generate(self, body: JsonObject, on_chunk: Callable[[Chunk], bool]) -> None:
        """Run one chat in this thread; `on_chunk` gets each chunk and ends it by answering True.

        Raises ValueError for a request llama.cpp does not take, such as a schema it cannot follow.
        """

        def receive(received: object) -> bool:
            return any(on_chunk(chunk) for chunk in _chunks(received))

        self._server.handle_chat_completions(body, receive)


def request_body(call: CallModel) -> JsonObject:
    """The OpenAI-shaped request for `call`, with this module's defaults."""
    messages: list[Any] = list(call.messages)
    options = {name: value for name, value in (DEFAULTS | call.options).items() if name in TAKEN}
    body: JsonObject = {RENAMED.get(name, name): value for name, value in options.items()}
    body |= {"messages": messages, "stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    if call.format == "json":
        body["response_format"] = {"type": "json_object"}
    elif call.format is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": call.format}}
    return body


def _chunks(received: object) -> Iterator[Chunk]:
    """What the server hands over, a JSON text, an object or a list of them, as objects."""
    if isinstance(received, list):
        for each in received:
            yield from _chunks(each)
    elif isinstance(received, (str, bytes)):
        yield from _chunks(json.loads(received))
    elif isinstance(received, dict):
        yield received
