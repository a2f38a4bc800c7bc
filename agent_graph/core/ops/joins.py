"""Joins: what becomes of the values that branches left, one function a mode; always in the order of `inputs`.

An input is *missing* when it holds nothing or null. `on_missing` says what that means, the same for every mode:
``null``: it takes part as null; ``skip``: as if it were not listed; ``error``: the join fails. When all inputs are
missing there is nothing to join, whatever `on_missing` says. An item *fails* when it is an object with nothing but
``error`` (a branch whose failure was collected). An item *succeeds* when it is not missing, has not failed, is not
``false`` and, being an object with ``success``, has it true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Final, Protocol, TypeAlias

from agent_graph.core import statepath
from agent_graph.core.effects import MaybeJson, Missing
from agent_graph.core.jsonvalue import JsonObject, JsonValue, equality_key, json_equal
from agent_graph.core.ops import predicates
from agent_graph.errors import NodeFailure

Item: TypeAlias = tuple[str, JsonValue]
MAX_CONTRADICTIONS: Final = 1_000
"""Pairs listed; how many more there are is said in the notes."""


class JoinConfig(Protocol):
    """The fields of a `join` node that the modes read."""

    @property
    def on_missing(self) -> str: ...
    @property
    def required(self) -> int: ...
    @property
    def of(self) -> JsonObject | None: ...
    @property
    def require(self) -> bool: ...
    @property
    def identity_path(self) -> str: ...
    @property
    def scope_path(self) -> str: ...
    @property
    def claim_path(self) -> str: ...
    @property
    def time_path(self) -> str: ...
    @property
    def strict(self) -> bool: ...
    @property
    def dissent_path(self) -> str: ...
    @property
    def required_fields(self) -> Sequence[str]: ...


def collect_array(items: Sequence[Item], _config: JoinConfig) -> JsonValue:
    """[value, ...]"""
    return [value for _, value in items]


def collect_object(items: Sequence[Item], _config: JoinConfig) -> JsonValue:
    """{name of the input: value}"""
    return dict(items)


def merge_objects(items: Sequence[Item], _config: JoinConfig) -> JsonValue:
    """One object of all members, of the same key the later input's; what is no object stands under its input's name."""
    merged: JsonObject = {}
    for name, value in items:
        merged.update(value if isinstance(value, dict) else {name: value})
    return merged


def first_non_null(items: Sequence[Item], _config: JoinConfig) -> JsonValue:
    """The first value that is not missing."""
    return next(value for _, value in items if value is not None)


def all_success(items: Sequence[Item], config: JoinConfig) -> JsonValue:
    """{all_success, values}; with `require` JOIN_QUORUM_NOT_MET unless every item succeeds."""
    failed = [name for name, value in items if not succeeds(value)]
    if failed and config.require:
        raise NodeFailure("JOIN_QUORUM_NOT_MET", f"not every input succeeded: {', '.join(failed)}", failed=failed)
    return {"all_success": not failed, "values": [value for _, value in items]}


def quorum(items: Sequence[Item], config: JoinConfig) -> JsonValue:
    """{met, approvals, required}: how many items satisfy `of` (paths start at the item, "" is the item itself), or
    without `of` succeed; a missing or failed item never counts. With `require` JOIN_QUORUM_NOT_MET when too few."""
    counts = _of(config.of) if config.of is not None else succeeds
    approvals = sum(1 for _, value in items if value is not None and not failed_item(value) and counts(value))
    if approvals < config.required and config.require:
        message = f"{approvals} of the {config.required} required inputs count"
        raise NodeFailure("JOIN_QUORUM_NOT_MET", message, approvals=approvals, required=config.required)
    return {"met": approvals >= config.required, "approvals": approvals, "required": config.required}


def dedupe_by_identity(items: Sequence[Item], config: JoinConfig) -> JsonValue:
    """The first item of each identity (the value at `identity_path`, or the whole item); one without identity stays."""
    seen: set[str] = set()
    kept: list[JsonValue] = []
    notes: list[JsonValue] = []
    for name, value in items:
        identity = _find(value, config.identity_path)
        if isinstance(identity, Missing):
            notes.append(f"{name}: nothing at {config.identity_path}")
        else:
            key = equality_key(identity)
            if key in seen:
                continue
            seen.add(key)
        kept.append(value)
    return _envelope("dedupe_by_identity", kept, sound=not notes, notes=notes)


def contradiction_matrix(items: Sequence[Item], config: JoinConfig) -> JsonValue:
    """All items, and every pair that claims different things of the same scope at the same time.

    Items without a claim say nothing; a scope or time that is not given equals another that is not given. `strict`
    puts a join with contradictions in quarantine.
    """
    groups: dict[str, list[tuple[str, JsonValue, JsonValue, JsonValue]]] = {}
    for name, value in items:
        claim = _find(value, config.claim_path)
        if not isinstance(claim, Missing):
            scope, time = _at(value, config.scope_path), _at(value, config.time_path)
            groups.setdefault(equality_key([scope, time]), []).append((name, claim, scope, time))
    found: list[JsonValue] = []
    more = 0
    for group in groups.values():
        for (left, claim, scope, time), (right, other, _, _) in combinations(group, 2):
            if json_equal(claim, other):
                continue
            if len(found) == MAX_CONTRADICTIONS:
                more += 1
                continue
            found.append(
                {"left": left, "right": right, "scope": scope, "time": time, "left_claim": claim, "right_claim": other}
            )
    notes: list[JsonValue] = [f"{more} more contradictions are not listed"] if more else []
    values = [value for _, value in items]
    sound = not (config.strict and found)
    return _envelope("contradiction_matrix", values, sound=sound, contradictions=found, notes=notes)


def minority_report(items: Sequence[Item], config: JoinConfig) -> JsonValue:
    """The items that do not dissent (true at `dissent_path`), and those that do as {input, value}."""
    dissent: list[JsonValue] = []
    agreed: list[JsonValue] = []
    for name, value in items:
        if _at(value, config.dissent_path) is True:
            dissent.append({"input": name, "value": value})
        else:
            agreed.append(value)
    return _envelope("minority_report", agreed, minority=dissent)


def proof_carrying_join(items: Sequence[Item], config: JoinConfig) -> JsonValue:
    """The items that carry every required field; what the others lack is in the notes, and the join in quarantine.

    ``evidence`` is a list of at least one {witness_id, digest}, ``checks`` of at least one {status: "passed"}; any
    other required field only has to be there.
    """
    faults = [(name, value, _lacks(value, config.required_fields)) for name, value in items]
    notes: list[JsonValue] = [f"{name}: {fault}" for name, _, fault in faults if fault]
    kept = [value for _, value, fault in faults if not fault]
    return _envelope("proof_carrying_join", kept, sound=not notes, notes=notes)


Mode: TypeAlias = Callable[[Sequence[Item], JoinConfig], JsonValue]
MODES: Final[dict[str, Mode]] = {
    "collect_array": collect_array,
    "collect_object": collect_object,
    "merge_objects": merge_objects,
    "first_non_null": first_non_null,
    "all_success": all_success,
    "quorum": quorum,
    "dedupe_by_identity": dedupe_by_identity,
    "contradiction_matrix": contradiction_matrix,
    "minority_report": minority_report,
    "proof_carrying_join": proof_carrying_join,
}
"""By their names in a spec."""


def join(mode: str, inputs: Sequence[tuple[str, MaybeJson]], config: JoinConfig) -> JsonValue:
    """The joined value of `inputs`, pairs of name and value in the order of the spec.

    Raises `NodeFailure` as `present` does, and JOIN_QUORUM_NOT_MET where `require` demands what was not reached.
    """
    return MODES[mode](present(inputs, config), config)


def present(inputs: Sequence[tuple[str, MaybeJson]], config: JoinConfig) -> list[Item]:
    """What takes part, in order; what is missing as null, or left out where `on_missing` is ``skip``.

    Raises `NodeFailure` JOIN_NO_INPUTS when all are missing, JOIN_INPUT_MISSING (details.inputs) when one is and
    `on_missing` is ``error``.
    """
    items: list[Item] = [(name, None if isinstance(value, Missing) else value) for name, value in inputs]
    missing = [name for name, value in items if value is None]
    if len(missing) == len(items):
        raise NodeFailure("JOIN_NO_INPUTS", f"no input holds a value: {', '.join(missing)}", inputs=missing)
    if missing and config.on_missing == "error":
        raise NodeFailure("JOIN_INPUT_MISSING", f"these inputs hold no value: {', '.join(missing)}", inputs=missing)
    if config.on_missing == "skip":
        items = [(name, value) for name, value in items if value is not None]
    return items


def failed_item(value: JsonValue) -> bool:
    """The place of a branch that failed: an object with nothing but ``error``, which says something."""
    return isinstance(value, dict) and len(value) == 1 and value.get("error") is not None


def succeeds(value: JsonValue) -> bool:
    """See the module: present, not failed, not ``false``, and no ``success`` other than true."""
    if value is None or value is False or failed_item(value):
        return False
    return not isinstance(value, dict) or value.get("success", True) is True


def _of(rule: JsonObject) -> Callable[[JsonValue], bool]:
    holds = predicates.prepare(rule)

    def counts(item: JsonValue) -> bool:
        return holds(lambda path: _find(item, path))

    return counts


def _find(item: JsonValue, path: str) -> MaybeJson:
    """What an item holds at a path; "" is the item itself."""
    return statepath.read(item, path) if path else item


def _at(item: JsonValue, path: str) -> JsonValue:
    found = _find(item, path)
    return None if isinstance(found, Missing) else found


def _lacks(item: JsonValue, required: Sequence[str]) -> str:
    """What keeps an item from carrying its proof, "" when nothing does."""
    if not isinstance(item, dict):
        return "missing" if item is None else "not an object"
    for field in required:
        value = item.get(field)
        if value is None:
            return f"no {field}"
        if field == "evidence" and not _each(value, _witnessed):
            return "evidence is not a list of {witness_id, digest}"
        if field == "checks" and not _each(value, _passed):
            return 'checks are not a list of {status: "passed"}'
    return ""


def _each(value: JsonValue, holds: Callable[[JsonObject], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) and holds(part) for part in value)


def _witnessed(part: JsonObject) -> bool:
    return all(isinstance(part.get(name), str) and part[name] for name in ("witness_id", "digest"))


def _passed(part: JsonObject) -> bool:
    return part.get("status") == "passed"


def _envelope(
    join_mode: str, value: Any, *, sound: bool = True, contradictions: Any = (), minority: Any = (), notes: Any = ()
) -> JsonValue:
    """The form of the last four modes; `certification` is ``certified`` or ``quarantine``."""
    return {
        "join": join_mode,
        "certification": "certified" if sound else "quarantine",
        "value": value,
        "contradictions": list(contradictions),
        "minority_report": list(minority),
        "notes": list(notes),
    }
