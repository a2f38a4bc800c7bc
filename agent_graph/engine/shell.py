"""What every run of a process shares: where it is kept, what time it is, who is told, who answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import field
from typing import Final

from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.redact import PLAIN, Redactor
from agent_graph.core.sealing import Seal
from agent_graph.engine.announce import Announcer
from agent_graph.engine.clock import Clock
from agent_graph.engine.connections import Connections
from agent_graph.engine.key_files import KEYLESS
from agent_graph.engine.keys import KeyRing, open_keys
from agent_graph.engine.limiter import Limiter
from agent_graph.engine.models import Models
from agent_graph.engine.notify import Notify
from agent_graph.engine.telemetry import Telemetry
from agent_graph.errors import AgentGraphError, Corrupt, StoreCorrupt
from agent_graph.store.base import Answered, Notice, Store

MOST_GATES: Final = 200


@dataclass(frozen=True, slots=True)
class Shell:
    """What every runner of a process shares."""

    store: Store
    clock: Clock
    notify: Notify
    models: Models
    limiter: Limiter
    connections: Connections = field(default_factory=Connections)
    telemetry: Telemetry = field(default_factory=Telemetry)
    keys: KeyRing = field(default_factory=lambda: open_keys(None, now_ms=0))
    """What seals and checks; by default a key in memory."""
    redactor: Redactor = PLAIN
    """Takes secrets out of all that comes in."""
    announcer: Announcer | None = None
    """What is to be told outside; None where nobody is."""

    @property
    def seal(self) -> Callable[[JsonObject], Seal] | None:
        """Seals what a run that ends comes to; None in a keyless folder."""
        return None if self.keys.mode == KEYLESS else self.keys.seal


async def set_aside(shell: Shell, run_id: str, refusal: AgentGraphError) -> None:
    """Have a run whose log takes nothing read ``interrupted``, and wake who waits for it."""
    await set_aside_with(shell, run_id, {"code": refusal.code, "message": refusal.message})


async def set_aside_with(shell: Shell, run_id: str, error: JsonObject) -> None:
    """`set_aside`, with the error as the run's row will show it."""
    await shell.store.runs.set_aside(run_id, error)
    with contextlib.suppress(Corrupt):  # its row says nothing that could be told
        shell.notify.committed(await shell.store.runs.get(run_id), ())


async def write_off(shell: Shell, run_id: str, damage: StoreCorrupt, *, reason: str, answered: Answered | None) -> None:
    """Have a run whose log cannot be read be cancelled, and wake who waits for it."""
    reason = shell.redactor.text(reason)
    error: JsonObject = {
        "code": damage.code,
        "message": f"{damage.message} It was cancelled: {reason}",
        "reason": reason,
    }
    now_ms = shell.clock.now_ms()
    notices: tuple[Notice, ...] = ()
    if shell.announcer is not None:
        gates, _ = await shell.store.approvals.list(run_id=run_id, statuses=("pending",), limit=MOST_GATES)
        row = await shell.store.runs.get(run_id)
        gates = tuple(gate for gate in gates if not gate.damaged)
        notices = shell.announcer.of_written_off(row, gates, code=damage.code, at_ms=now_ms)
    await shell.store.retention.write_off(run_id, error, at_ms=now_ms, answered=answered, notices=notices)
    shell.notify.committed(await shell.store.runs.get(run_id), ())
    shell.notify.gates.set()
    if shell.announcer is not None:
        shell.announcer.written()
