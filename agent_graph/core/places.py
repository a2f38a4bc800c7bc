"""Who may act in a run: firings that want a step, those that wait for a place, and the places; it asks no node."""

from __future__ import annotations

from agent_graph.core import mutexes
from agent_graph.core.firing import Firing
from agent_graph.core.frames import Frame
from agent_graph.core.run import PLACED, Run


def admit(run: Run, frame: Frame) -> None:
    """Give newly enabled firings their turn; calls to models wait for one of the run's places, in order."""
    enabled = frame.enabled
    if len(enabled) > 1:
        enabled.sort(key=lambda firing: firing.node)  # as declared: it is also how places are given
    for firing in enabled:
        if firing.declared.config.mutex:
            mutexes.wait(run, firing)
        else:
            enter(run, firing)
    frame.enabled = []
    fresh, frame.regions.fresh = frame.regions.fresh, []
    for region in fresh:
        run.frames[region.path] = run.parts[region.path] = region
        admit(run, region)
    if frame.around is not None:
        admit(run, frame.around)
    give(run)


def enter(run: Run, firing: Firing) -> None:
    """A firing wants its first step, or a place before that."""
    if firing.declared.type in PLACED:
        run.queue[firing.path] = firing
    else:
        run.open[firing.path] = firing


def give(run: Run) -> None:
    """Places that are free, to those who wait for one."""
    most = run.frames[""].graph.max_parallelism
    while run.queue and run.places < most:
        _, firing = run.queue.popitem(last=False)
        run.places += 1
        run.open[firing.path] = firing


def remove(run: Run, firing: Firing) -> None:
    """A firing no longer acts: what it held is free."""
    path = firing.path
    run.told.pop(path, None)
    placed = firing.declared.type in PLACED
    if run.open.pop(path, None) is not None or run.out.pop(path, None) is not None:
        run.places -= placed
    else:
        run.queue.pop(path, None)
        run.pausing.pop(path, None)
        run.waits.pop(path, None)
        if run.ledger is not None:
            run.ledger.parked.pop(path, None)
