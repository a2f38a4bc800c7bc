"""Counts for who watches a server, as OpenMetrics text: how many, never which."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from starlette.types import Scope

from agent_graph import __version__
from agent_graph.system.modules import optional
from agent_graph.tools.deps import Deps

MEDIA_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
ROUTES: Final = ("/mcp", "/healthz", "/metrics", "/.well-known")
STATUSES: Final = ("accepted", "running", "waiting", "interrupted", "completed", "failed", "cancelled")
STATM: Final = Path("/proc/self/statm")
METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS"})


class Requests:
    """Requests that were answered, by method, route and status; what a stranger writes is no name here."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()

    def answered(self, scope: Scope, status: int) -> None:
        path = str(scope["path"])
        route = next((name for name in ROUTES if path == name or path.startswith(f"{name}/")), "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.counts[method, route, status] += 1


async def text(deps: Deps, requests: Requests, *, sessions: int) -> str:
    """The page. Raises what the store raises."""
    counts, load, told = await deps.store.runs.counts(), deps.supervisor.load(), deps.supervisor.shell.telemetry
    lines = [
        *_info(),
        *_metric("runs", "gauge", "Runs that are stored.", {f'status="{s}"': counts.get(s, 0) for s in STATUSES}),
        *_metric("runs_active", "gauge", "Runs that are being driven.", {"": load["active"]}),
        *_metric("runs_queued", "gauge", "Runs that wait for a place.", {"": load["queued"]}),
        *_metric("model_calls", "counter", "Calls of models that were answered.", {"": told.model_calls}),
        *_metric("model_failures", "counter", "Calls of models that were not.", {"": told.model_failures}),
        *_metric(
            "model_tokens", "counter", "Tokens as model hosts report them.",
            {'kind="prompt"': told.prompt_tokens, 'kind="completion"': told.completion_tokens},
        ),
        *_metric(
            "http_requests", "counter", "Requests that were answered.",
            {f'method="{m}",route="{r}",status="{s}"': n for (m, r, s), n in sorted(requests.counts.items())},
        ),
        *_metric("sessions", "gauge", "Sessions of the protocol that are open.", {"": sessions}),
        *_metric("uptime_milliseconds", "gauge", "Since the start.", {"": deps.clock.now_ms() - deps.started_at_ms}),
        *_metric("resident_memory_bytes", "gauge", "Memory of the process.", _known(rss_bytes())),
    ]  # fmt: skip
    return "\n".join([*lines, "# EOF", ""])


def rss_bytes() -> int | None:
    """Resident memory of this process; where the system does not tell, the most it has been, or None."""
    page, resource = getattr(os, "sysconf", None), optional("resource")
    if page is not None and STATM.exists():
        return int(STATM.read_text(encoding="ascii").split()[1]) * int(page("SC_PAGE_SIZE"))
    if resource is None:
        return None
    most = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most if sys.platform == "darwin" else most * 1024


def _known(value: int | None) -> dict[str, int]:
    return {} if value is None else {"": value}


def _info() -> Iterator[str]:
    yield "# TYPE agent_graph_build info"
    yield "# HELP agent_graph_build The program."
    yield f'agent_graph_build_info{{version="{__version__}"}} 1'


def _metric(name: str, kind: str, said: str, values: Mapping[str, int]) -> Iterator[str]:
    yield f"# TYPE agent_graph_{name} {kind}"
    yield f"# HELP agent_graph_{name} {said}"
    suffix = "_total" if kind == "counter" else ""
    for labels, value in values.items():
        yield f"agent_graph_{name}{suffix}{f'{{{labels}}}' if labels else ''} {value}"
