"""What a failed attempt leads to: another attempt, another model, `on_error`, or the end; it has no clock and no dice.

Engine.md 5. Delays are drawn from a digest and become part of an event, so a replay waits for the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

from agent_graph.core import events as e
from agent_graph.core.firing import Firing
from agent_graph.core.graph import END
from agent_graph.core.jsonvalue import JsonObject, digest
from agent_graph.core.nodes.base import FailureClass, Retry
from agent_graph.core.outcome import ways_on
from agent_graph.core.run import Run

PASSING: Final = frozenset(get_args(FailureClass))
"""Classes of failures that can pass: only these are retried."""
ELSEWHERE: Final = PASSING | {"not_found"}
"""Classes after which another model may do better."""
LONGEST_ASKED_MS: Final = 300_000
"""What a host's ``Retry-After`` can lengthen a delay to at most."""
_DEFAULT: Final = Retry()
_DRAW_BITS: Final = 52


def follow_up(run: Run, failed: e.NodeFailed) -> e.NodeFailed | e.NodeRetried:
    """What is to be recorded of an attempt that failed; `failed` itself when the firing is no longer at it."""
    firing = run.firing(failed.firing)
    if firing is None or firing.attempt not in (0, failed.attempt):
        return failed
    return _again(run, firing, failed) or _given_up(firing, failed)


def delay_ms(retry: Retry, *, tries: int, drawn_from: Sequence[str | int], error: JsonObject) -> int:
    """How long to wait after the `tries`-th failed attempt in a row.

    Full jitter (Brooker 2015): anything between 0 and ``initial_delay_ms * backoff_factor ** (tries - 1)``, bounded by
    `max_delay_ms`; the same for the same `drawn_from`. What the host asked for is waited at least.
    """
    longest = int(min(retry.max_delay_ms, retry.initial_delay_ms * float(retry.backoff_factor) ** (tries - 1)))
    if retry.jitter:
        draw = int(digest(list(drawn_from)).removeprefix("sha256:")[: _DRAW_BITS // 4], 16)
        longest = draw * (longest + 1) >> _DRAW_BITS
    return max(longest, min(_asked_ms(error), LONGEST_ASKED_MS))


def _asked_ms(error: JsonObject) -> int:
    details: Any = error.get("details") or {}
    asked = details.get("retry_after_ms")
    return asked if isinstance(asked, int) else 0


def _again(run: Run, firing: Firing, failed: e.NodeFailed) -> e.NodeRetried | None:
    if firing.owned is not None:  # what failed inside it has had its attempts
        return None
    config = firing.declared.config
    retry: Retry = config.retry or _DEFAULT
    kind, model, tries = failed.error.get("class"), firing.model, firing.tries + 1
    if kind not in (retry.on or PASSING) or tries >= retry.max_attempts:
        following = _fallbacks(config, firing.model) if kind in ELSEWHERE else ()
        if not following:
            return None
        model, tries = following[0], 1
    wait_ms = delay_ms(retry, tries=tries, drawn_from=(run.run_id, firing.path, failed.attempt), error=failed.error)
    return e.NodeRetried(failed.firing, failed.error, wait_ms, failed.attempt, model)


def _fallbacks(config: Any, asked: str) -> Sequence[str]:
    """The models that have not been asked yet, in order."""
    named: Sequence[str] = getattr(config, "fallback_models", ())
    return named[named.index(asked) + 1 :] if asked in named else named


def _given_up(firing: Firing, failed: e.NodeFailed) -> e.NodeFailed:
    on_error = firing.declared.config.on_error
    if on_error == "fail":
        return failed
    chosen = None if on_error == "continue" else tuple(dict.fromkeys(on_error["goto"])) or (END,)
    return e.NodeFailed(failed.firing, failed.error, failed.attempt, ways_on(firing.frame.graph, firing.node, chosen))
