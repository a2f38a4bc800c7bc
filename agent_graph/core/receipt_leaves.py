"""The leaves of a receipt: one for each firing of a run, gathered while its log is folded; holds digests, no values."""

from __future__ import annotations

from typing import Any, Final

from agent_graph.core import events as e
from agent_graph.core import images
from agent_graph.core.firing import Firing
from agent_graph.core.jsonvalue import JsonObject, JsonValue, digest
from agent_graph.core.record import cited_by, place_of, seen
from agent_graph.core.run import Run
from agent_graph.core.step import call_of

ENGINE: Final = "engine"
OUTSIDE: Final = {"human_approval": "person", "signal": "outside"}
"""Node types whose answer comes from outside; who decided stands among the approvals."""
WRITTEN: Final = ("writes", "output", "current", "inputs", "error")
"""The members of the event that ends a firing which its output digest is of."""


class Leaves:
    """What is known of the firings so far. Ask `note` of every event before it is folded."""

    def __init__(self) -> None:
        self.ended: list[JsonObject] = []
        """In the order in which they ended."""
        self._calls: dict[str, list[JsonValue]] = {}
        self._tools: dict[str, list[JsonObject]] = {}

    def note(self, run: Run, event: e.Event) -> None:
        """Take from an event what belongs into a leaf; `run` is the fold of those before it."""
        fact = event.fact
        match fact:
            case e.ModelAnswered() | e.CacheHit() | e.AnswerGiven():
                self._calls.setdefault(fact.firing, []).append(_call(run, event.seq, fact))
            case e.ToolCalled():
                asked: JsonObject = {"seq": event.seq, "name": fact.name, "arguments": digest(fact.arguments)}
                if fact.connection:
                    asked |= {"connection": fact.connection, "tool": fact.tool}
                self._tools.setdefault(fact.firing, []).append(asked)
            case e.ToolAnswered():  # a firing makes one call at a time
                self._tools[fact.firing][-1] |= {"answer": digest(fact.text), "failed": fact.failed}
            case e.NodeFinished() | e.NodeFailed() | e.FiringCancelled():
                if (firing := run.firing(fact.firing)) is not None:
                    self.ended.append(self._leaf(firing, event.seq, fact))
            case _:
                pass

    def of(self, run: Run) -> list[JsonObject]:
        """All of them, given the fold of all events but the last: first those that ended, then those that never did,
        by path."""
        ended = {str(leaf["node_path"]) for leaf in self.ended}
        left = [firing for firing in run.running if firing.path not in ended]
        left.sort(key=lambda firing: place_of(firing.path))
        return [*self.ended, *(self._leaf(firing, None, None) for firing in left)]

    def _leaf(
        self, firing: Firing, seq: int | None, fact: e.NodeFinished | e.NodeFailed | e.FiringCancelled | None
    ) -> JsonObject:
        node, path = firing.declared, firing.path
        calls = self._calls.pop(path, [])
        leaf: JsonObject = {
            "node_path": path, "node_type": node.type, "depth": firing.depth, "attempt": firing.attempt,
            "outcome": outcome(fact), "input": digest(seen(firing)), "output": None, "route": None,
            "performer": _performer(node.type, calls),
        }  # fmt: skip
        if seq is not None:
            leaf["seq"] = seq
        if isinstance(fact, e.NodeFinished | e.NodeFailed):
            leaf |= {"attempt": fact.attempt, "output": output_digest(e.to_json(fact))}
            leaf["route"] = None if fact.targets is None else list(fact.targets)
        if isinstance(fact, e.NodeFailed):
            leaf["error_code"] = str(fact.error.get("code", ""))
        if calls:
            leaf["calls"] = calls
        if tools := self._tools.pop(path, None):
            leaf["tools"] = [*tools]
        if witnesses := cited_by(firing):
            leaf["evidence"] = [*witnesses]
        if tags := getattr(node.config, "requirements", None):
            leaf["requirements"] = [str(tag) for tag in tags]
        return leaf


def outcome(fact: object) -> str:
    """finished, failed, cancelled, or unfinished."""
    kinds = ((e.NodeFinished, "finished"), (e.NodeFailed, "failed"), (e.FiringCancelled, "cancelled"))
    return next((name for kind, name in kinds if isinstance(fact, kind)), "unfinished")


def output_digest(body: JsonObject) -> str:
    """The digest of what a firing wrote or failed with, from the event that ended it; its other members left out."""
    return digest({name: body[name] for name in WRITTEN if name in body})


def _call(run: Run, seq: int, fact: e.ModelAnswered | e.CacheHit | e.AnswerGiven) -> JsonObject:
    """One answer of a model: who gave it, digests of what it was asked and said, tokens (null where the host did not
    say), pictures by digest; of one that was used again, the run it was recorded in."""
    answer: Any = fact.answer
    made: JsonObject = {
        "seq": seq, "attempt": fact.attempt, "performer": performer(answer), "prompt": None, "answer": digest(answer),
        "prompt_tokens": exact(answer.get("prompt_tokens")),
        "completion_tokens": exact(answer.get("completion_tokens")),
    }  # fmt: skip
    if isinstance(fact, e.CacheHit):
        made["cached_from"] = fact.run_id
    firing = run.firing(fact.firing)
    if firing is not None and (asked := call_of(run, firing)) is not None:
        messages: list[Any] = [dict(message) for message in asked.messages]
        shown = [images.parse(url).digest for message in messages for url in message.get("images", ())]
        made["prompt"] = digest(messages)
        if shown:
            made["images"] = [*shown]
    return made


def performer(answer: JsonObject) -> str:
    """``server:<provider>/<model>@<digest of its weights>``, without the last part where the host did not say."""
    who, weights = str(answer.get("performer") or answer.get("model") or "unknown"), answer.get("model_digest")
    return f"{who}@{weights}" if weights else who


def _performer(node_type: str, calls: list[JsonValue]) -> str | None:
    """Who gave the last answer; None for a model that gave none."""
    if calls:
        last: Any = calls[-1]
        return str(last["performer"])
    return None if node_type == "llm" else OUTSIDE.get(node_type, ENGINE)


def exact(value: JsonValue) -> JsonValue:
    """A number as any JSON parser keeps it: what has a fraction, or is beyond 2^53, as a text."""
    if isinstance(value, dict):
        return {name: exact(one) for name, one in value.items()}
    if isinstance(value, list):
        return [exact(one) for one in value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > 2**53 - 1):
        return str(value)
    return value
