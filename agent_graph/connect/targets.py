"""Makes the targets that settings ask for, and tries them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from agent_graph.connect.base import Letter, Receipt, Target
from agent_graph.core.jsonvalue import compact
from agent_graph.errors import SettingInvalid


class Wanted(Protocol):
    """What of the settings says who is told."""

    @property
    def url(self) -> str: ...

    @property
    def secret(self) -> Sequence[bytes]: ...

    @property
    def loopback(self) -> bool: ...

    @property
    def ca_file(self) -> Path | None: ...

    @property
    def command(self) -> Sequence[str]: ...

    @property
    def timeout_ms(self) -> int: ...


def make_targets(wanted: Wanted) -> tuple[Target, ...]:
    """Who is told of approvals and ends of runs: nobody, the webhook, the command, or both."""
    found: list[Target] = []
    if wanted.url:
        from agent_graph.connect.webhook import Webhook

        found.append(
            Webhook(
                wanted.url, keys=wanted.secret, timeout_ms=wanted.timeout_ms, loopback=wanted.loopback,
                ca_file=wanted.ca_file,
            )
        )  # fmt: skip
    if wanted.command:
        from agent_graph.connect.command import CommandHook

        found.append(CommandHook(wanted.command, timeout_ms=wanted.timeout_ms, environ=os.environ))
    return tuple(found)


async def try_targets(wanted: Wanted) -> dict[str, Receipt]:
    """Tell everybody once that this is a test; what came of it, by target. Raises `SettingInvalid` when nobody is
    told."""
    targets = make_targets(wanted)
    if not targets:
        message = "nobody is told: set notify.url and its secret, or notify.command"
        raise SettingInvalid(message, setting="notify_url")
    now_ms = time.time_ns() // 1_000_000
    letter_id = f"test_{now_ms}"
    body = compact({"id": letter_id, "type": "test", "at_ms": now_ms, "data": {}}).encode()
    found = {}
    for target in targets:
        found[target.name] = await target.tell(Letter(letter_id, body))
        await target.aclose()
    return found
