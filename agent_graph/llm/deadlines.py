"""The two clocks of a model call: one for the whole attempt, one for silence after the first byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from agent_graph.core.effects import CallModel
from agent_graph.errors import ModelTimeout

T = TypeVar("T")


@asynccontextmanager
async def attempt(call: CallModel, who: str) -> AsyncIterator[None]:
    """Everything inside ends within ``call.timeout_ms``; `who` names the host. Raises `ModelTimeout`."""
    clock = asyncio.timeout(call.timeout_ms / 1000)
    try:
        async with clock:
            yield
    except TimeoutError:
        if not clock.expired():
            raise
        raise ModelTimeout(
            f"{who} took longer than {call.timeout_ms} ms", timeout_ms=call.timeout_ms, idle=False
        ) from None


async def unbroken(chunks: AsyncIterator[T], call: CallModel, *, who: str) -> AsyncGenerator[T, None]:
    """`chunks` as they come; a pause longer than ``call.idle_timeout_ms`` after the first raises `ModelTimeout`.

    The first may take as long as the attempt: the host may be loading the model or serve others before us.
    """
    first = True
    while True:
        clock = asyncio.timeout(None if first else call.idle_timeout_ms / 1000)
        try:
            async with clock:
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if not clock.expired():
                raise
            raise ModelTimeout(
                f"{who} fell silent for {call.idle_timeout_ms} ms in the middle of its answer",
                timeout_ms=call.idle_timeout_ms,
                idle=True,
            ) from None
        first = False
        yield chunk
