"""Mutexes: at most one firing of a run holds a name, in the order in which they came; each grant is a fact.

A firing that holds a name while frames run inside it lends it to what runs there, one at a time: it could never go on
if it kept it from them.
"""

from __future__ import annotations

from agent_graph.core import events as e
from agent_graph.core.failure import follow_up
from agent_graph.core.firing import Firing
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.run import Mutex, Run


def wait(run: Run, firing: Firing) -> None:
    """The firing stands in line for the name its node gives."""
    run.mutexes.setdefault(firing.declared.config.mutex, Mutex()).waiting.append(firing.path)


def grants(run: Run) -> list[e.MutexGranted]:
    """For every name that is free for somebody: who is next."""
    return [e.MutexGranted(path, name) for name, mutex in run.mutexes.items() if (path := mutex.following)]


def hold(run: Run, name: str, path: str) -> bool:
    """The log says who holds it now; False when that firing is not in line."""
    mutex = run.mutexes.get(name)
    if mutex is None or path not in mutex.waiting:
        return False
    mutex.waiting.remove(path)
    mutex.holders.append(path)
    return True


def broken(run: Run) -> list[e.Fact]:
    """How a circle of owners that wait for each other's mutexes ends: the deepest firing in line, the first of those,
    fails."""
    lines = [(path, name) for name, mutex in run.mutexes.items() for path in mutex.waiting]
    path, name = min(lines, key=lambda one: (-one[0].count("/"), one[0]))
    held = run.mutexes[name].holders[0]
    message = (
        f'"{path}" waits for mutex "{name}", which "{held}" holds, and what runs there waits for one held around it'
    )
    error: JsonObject = {
        "code": "MUTEX_DEADLOCK", "message": f"{message}; take the two in the same order everywhere",
        "class": "refused", "details": {"mutex": name, "holder": held},
    }  # fmt: skip
    return [e.NodeStarted(path, 1), follow_up(run, e.NodeFailed(path, error, 1))]


def release(run: Run, firing: Firing) -> None:
    """The firing is through: it holds the name no longer, nor stands in line for it."""
    name = firing.declared.config.mutex
    mutex = run.mutexes.get(name) if name else None
    if mutex is None:
        return
    for line in (mutex.holders, mutex.waiting):
        if firing.path in line:
            line.remove(firing.path)
    if not mutex.holders and not mutex.waiting:
        del run.mutexes[name]
