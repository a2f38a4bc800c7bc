"""Who may act in a run: firings that want a step, those that wait for a place, and the places; it asks no node."""

from __future__ import annotations

from agent_graph.core import extents, mutexes
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
    enabled.clear()
    if run.until:
        _let_be(run, frame)
    if frame.regions.fresh:
        fresh, frame.regions.fresh = frame.regions.fresh, []
        for region in fresh:
            run.frames[region.path] = run.parts[region.path] = region
            admit(run, region)
    if frame.part is not None:
        admit(run, frame.part.around)
    if run.queue:
        give(run)


def _let_be(run: Run, frame: Frame) -> None:
    """Static branches that are through were in time."""
    for path in [*run.until]:
        begun = extents.begun_by(run, path)
        if begun is not None and begun[0] is frame and not frame.active & extents.whole(frame.graph, begun[1]):
            del run.until[path]


def enter(run: Run, firing: Firing) -> None:
    """A firing wants its first step, or a place before that."""
    if firing.declared.id in run.barriers and not firing.cleared:
        firing.barred = True
    if is_placed(firing):
        run.queue[firing.path] = firing
    else:
        run.open[firing.path] = firing


def is_placed(firing: Firing) -> bool:
    """Whether its effect holds a place; who may not begin holds none."""
    return firing.declared.type in PLACED and not firing.barred


def give(run: Run) -> None:
    """Places that are free, to those who wait for one; who has to wait for others of its static branches is passed
    over."""
    most = run.frames[""].graph.max_parallelism
    passed: list[Firing] = []
    while run.queue and run.places < most:
        _, firing = run.queue.popitem(last=False)
        if any(run.taken.get(fork, 0) >= bound for fork, bound in extents.bounds(firing)):
            passed.append(firing)
        else:
            take(run, firing)
            run.open[firing.path] = firing
    for firing in reversed(passed):
        run.queue[firing.path] = firing
        run.queue.move_to_end(firing.path, last=False)


def take(run: Run, firing: Firing) -> None:
    """A place is the firing's."""
    run.places += 1
    count(run, firing)


def count(run: Run, firing: Firing) -> None:
    """The firing has a place: it is one of those of all static branches around it."""
    for fork, _ in extents.bounds(firing):
        run.taken[fork] = run.taken.get(fork, 0) + 1


def free(run: Run, firing: Firing) -> None:
    """The firing's place, if it is of those that need one, is free."""
    if not is_placed(firing):
        return
    run.places -= 1
    for fork, _ in extents.bounds(firing):
        run.taken[fork] -= 1
        if not run.taken[fork]:
            del run.taken[fork]


def remove(run: Run, firing: Firing) -> None:
    """A firing no longer acts: what it held is free."""
    path = firing.path
    run.told.pop(path, None)
    if run.open.pop(path, None) is not None or run.out.pop(path, None) is not None:
        free(run, firing)
    else:
        run.queue.pop(path, None)
        run.pausing.pop(path, None)
        run.waits.pop(path, None)
        if run.ledger is not None:
            run.ledger.parked.pop(path, None)
