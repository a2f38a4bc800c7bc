"""What a firing hears beside its model: the two facts of a tool call, and how its evidence compares; makes no call.

A call that was under way when its process ended is `unsure`: it may have done its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_graph.core import events as e
from agent_graph.core.effects import Answer, CallTool, EvidenceAnswer, ToolAnswer
from agent_graph.core.firing import Firing
from agent_graph.core.graph import Graph
from agent_graph.core.run import Run


def kept(answers: Sequence[Answer]) -> list[Answer]:
    """What of a failed attempt the next one starts from: all up to the last result of a tool.

    What a tool did is done; asking the model from the beginning would do it again.
    """
    last = max((place for place, answer in enumerate(answers) if isinstance(answer, ToolAnswer)), default=-1)
    return list(answers[: last + 1])


def called(firing: Firing, call: CallTool, attempt: int) -> tuple[e.ToolCalled | None, CallTool]:
    """The fact to record before a call is made, None when the log has it, and the call as it is to be made."""
    made = replace(call, unsure=_is_unsure(firing, call.call_id, attempt))
    if firing.calling == (call.call_id, attempt):
        return None, made
    fact = e.ToolCalled(firing.path, call.call_id, call.name, call.arguments, call.connection, call.tool, attempt)
    return fact, made


def fold_called(_graph: Graph, run: Run, _event: e.Event, fact: e.ToolCalled) -> None:
    firing = run.firing(fact.firing)
    if firing is not None:
        firing.unsure = _is_unsure(firing, fact.call_id, fact.attempt)
        firing.calling = (fact.call_id, fact.attempt)


def _is_unsure(firing: Firing, call_id: str, attempt: int) -> bool:
    """The call was made before, in an attempt that did not live to hear the answer."""
    if firing.calling is None or firing.calling[0] != call_id:
        return False
    return firing.unsure or firing.calling[1] != attempt


def fold_answered(_graph: Graph, run: Run, _event: e.Event, fact: e.ToolAnswered) -> None:
    firing = run.firing(fact.firing)
    if firing is not None and firing.attempt == fact.attempt and not (firing.lost or firing.path in run.pausing):
        firing.calling, firing.unsure = None, False
        firing.answers.append(ToolAnswer(fact.call_id, fact.text, fact.failed))
        run.hear(firing)


def fold_checked(_graph: Graph, run: Run, _event: e.Event, fact: e.EvidenceChecked) -> None:
    firing = run.firing(fact.firing)
    if firing is not None and firing.attempt == fact.attempt and not (firing.lost or firing.path in run.pausing):
        firing.answers.append(EvidenceAnswer(fact.witnesses, fact.problems))
        run.hear(firing)
