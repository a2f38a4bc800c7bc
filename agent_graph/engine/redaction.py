"""Takes secrets out of what comes in from outside: what a model or a tool said, and what is asked of a run.

From here on there is one form of it: it is what the log holds, what is shown live and after a restart, what a receipt
seals, and what the next model is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agent_graph.core import events as e
from agent_graph.core.approval import Ballot
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.redact import Redactor
from agent_graph.core.redact_stream import Stream
from agent_graph.engine.commands import Cancel, Command, Decide, Interrupt, PlaceGate, Signal

_SAID = ("text", "thinking", "tool_calls", "warnings")
"""What of a model's answer is the model's own words; the rest are names and counts."""


def clean_fact(redactor: Redactor, fact: e.Fact) -> e.Fact:
    """What came of a call, without secrets."""
    match fact:
        case e.ModelAnswered() | e.CacheHit():
            answer = clean_answer(redactor, fact.answer)
            return fact if answer is fact.answer else replace(fact, answer=answer)
        case e.ToolAnswered():
            text = redactor.text(fact.text)
            return fact if text is fact.text else replace(fact, text=text)
        case e.EvidenceChecked():  # a problem says what stands in the source
            return replace(fact, problems=tuple(map(redactor.members, fact.problems)))
        case e.NodeFailed():
            return replace(fact, error=redactor.members(fact.error))
        case _:
            return fact


def clean_answer(redactor: Redactor, answer: JsonObject) -> JsonObject:
    """A model's answer without secrets; the very same where it holds none."""
    said = {name: answer[name] for name in _SAID if name in answer}
    redacted = redactor.members(said)
    return answer if redacted is said else {**answer, **redacted}


def clean_command(redactor: Redactor, command: Command) -> Command:
    """What is asked of a run, without secrets."""
    match command:
        case Cancel() | Interrupt():
            return replace(command, reason=redactor.text(command.reason))
        case Decide():
            return replace(command, ballot=_ballot(redactor, command.ballot))
        case Signal():
            payload = redactor.value(command.payload)
            return command if payload is command.payload else replace(command, payload=payload)
        case PlaceGate():
            audience = tuple(map(redactor.text, command.audience))
            return replace(command, prompt=redactor.text(command.prompt), audience=audience)
        case _:
            return command


def _ballot(redactor: Redactor, ballot: Ballot) -> Ballot:
    patch = tuple(map(redactor.members, ballot.patch))
    note, by, behalf = (redactor.text(said) for said in (ballot.note, ballot.by, ballot.on_behalf_of))
    return replace(ballot, note=note, by=by, on_behalf_of=behalf, client=redactor.text(ballot.client), patch=patch)


class Live:
    """The text of one call as it streams: `show` hears ``(kind, text)`` of what surely holds no secret.

    `close` shows what was held back.
    """

    __slots__ = ("_redactor", "_show", "_streams")

    def __init__(self, redactor: Redactor, show: Callable[[str, str], None]) -> None:
        self._redactor = redactor
        self._show = show
        self._streams: dict[str, Stream] = {}

    def __call__(self, kind: str, text: str) -> None:
        stream = self._streams.get(kind)
        if stream is None:
            stream = self._streams[kind] = Stream(self._redactor)
        self._tell(kind, stream.piece(text))

    def close(self) -> None:
        for kind, stream in self._streams.items():
            self._tell(kind, stream.rest())
        self._streams.clear()

    def _tell(self, kind: str, text: str) -> None:
        if text:
            self._show(kind, text)
