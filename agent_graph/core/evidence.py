"""Claims and the words of a captured source they rest on; reads no store, and judges no claim: it compares words.

A claim is ``{text, witness_id, span: {start, end}, quote?}``. A span counts UTF-8 bytes of the source as it was
captured, from 0, its end not included. What stands there has to be the claim's `quote`, or without one its `text`, to
the byte: nothing is trimmed, normalised or read without regard to case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from agent_graph.core.effects import Citation
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue

MOST_CLAIMS: Final = 500
"""Of one answer."""
MOST_WITNESSES: Final = 64
"""Sources that one answer cites."""
MOST_PROBLEMS: Final = 20
"""Told of one answer."""
SHOWN: Final = 80
"""Characters of a text in a sentence."""
_PLACES: Final = 3
_MEMBERS: Final = ("text", "witness_id", "span")
_ASKED: Final = ("/evidence_required",)
_Lack: TypeAlias = tuple[bool, str, tuple[str, ...]]
"""Whether no answer can have it (else it may be left out), a sentence, and where the schema says so."""


# -- what an answer cites ------------------------------------------------------------------------------------------


def cited(value: JsonValue) -> tuple[tuple[Citation, ...], list[JsonObject]]:
    """What the claims of an answer rest on, and what is wrong with them before any source is looked at.

    A problem is {code, message, claim?}: EVIDENCE_MISSING, EVIDENCE_INVALID, WITNESS_BINDING_REQUIRED,
    WITNESS_SPAN_REQUIRED, WITNESS_SPAN_INVALID.
    """
    claims = value.get("claims") if isinstance(value, dict) else None
    if not isinstance(claims, list) or not claims:
        return (), [_problem("EVIDENCE_MISSING", "the answer has to be an object with at least one claim in `claims`")]
    if len(claims) > MOST_CLAIMS:
        return (), [_problem("EVIDENCE_INVALID", f"the answer has {len(claims)} claims; {MOST_CLAIMS} can be checked")]
    found: list[Citation] = []
    problems: list[JsonObject] = []
    for place, claim in enumerate(claims):
        one = _citation(place, claim)
        if isinstance(one, Citation):
            found.append(one)
        else:
            problems.append(one)
    witnesses = len({one.witness_id for one in found})
    if witnesses > MOST_WITNESSES:
        message = f"the answer cites {witnesses} witnesses; {MOST_WITNESSES} can be checked"
        problems.append(_problem("EVIDENCE_INVALID", message))
    return tuple(found), problems[:MOST_PROBLEMS]


def _citation(place: int, claim: Any) -> Citation | JsonObject:
    name = f"claims[{place}]"
    if not isinstance(claim, dict):
        return _problem("EVIDENCE_INVALID", f"{name} has to be an object", place)
    words = claim.get("quote", claim.get("text"))
    if not _is_text(claim.get("text")) or not isinstance(words, str) or not words:
        said = "`text` (and `quote`, where it is given) has to be a text that is not empty"
        return _problem("EVIDENCE_INVALID", f"{name}: {said}", place)
    if not _is_text(claim.get("witness_id")):
        return _problem("WITNESS_BINDING_REQUIRED", f"{name} has to name the `witness_id` of its source", place)
    span = claim.get("span")
    if not isinstance(span, dict):
        said = "has to have a `span` {start, end}: bytes of its source"
        return _problem("WITNESS_SPAN_REQUIRED", f"{name} {said}", place)
    start, end = span.get("start"), span.get("end")
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        said = "`start` and `end` of its span have to be integers with 0 <= start < end"
        return _problem("WITNESS_SPAN_INVALID", f"{name}: {said}", place)
    return Citation(place, claim["witness_id"], start, end, words)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _problem(code: str, message: str, claim: int | None = None) -> JsonObject:
    return {"code": code, "message": message, **({} if claim is None else {"claim": claim})}


# -- whether it stands there ---------------------------------------------------------------------------------------


def compared(citations: Sequence[Citation], sources: Mapping[str, bytes]) -> list[JsonObject]:
    """What is wrong with citations of `sources`, which are UTF-8 by witness id; those not there were never captured.

    WITNESS_NOT_FOUND, WITNESS_SPAN_OUT_OF_RANGE, WITNESS_SPAN_INVALID (it cuts a character), WITNESS_TEXT_DIFFERS,
    which says where the words do stand.
    """
    found = []
    for one in citations:
        if (wrong := _compared(one, sources.get(one.witness_id))) is not None:
            found.append(wrong)
            if len(found) == MOST_PROBLEMS:
                break
    return found


def _compared(one: Citation, source: bytes | None) -> JsonObject | None:
    name, where = f"claims[{one.claim}]", f"bytes {one.start} to {one.end}"
    if source is None:
        message = f"{name}: there is no witness {_shown(one.witness_id)}"
        return _problem("WITNESS_NOT_FOUND", message, one.claim)
    quote = one.quote.encode()
    if one.end > len(source):
        message = f"{name}: its span ends at byte {one.end}, and the witness has {len(source)}{_stands(quote, source)}"
        return _problem("WITNESS_SPAN_OUT_OF_RANGE", message, one.claim)
    if _cuts(source, one.start) or _cuts(source, one.end):
        message = f"{name}: {where} cut a character in two: a span counts UTF-8 bytes{_stands(quote, source)}"
        return _problem("WITNESS_SPAN_INVALID", message, one.claim)
    stands = source[one.start : one.end]
    if stands != quote:
        message = f"{name}: at {where} stands {_shown(stands.decode())}, not {_shown(one.quote)}"
        return _problem("WITNESS_TEXT_DIFFERS", message + _stands(quote, source), one.claim)
    return None


def _cuts(source: bytes, at: int) -> bool:
    return at < len(source) and source[at] & 0xC0 == 0x80


def _stands(quote: bytes, source: bytes) -> str:
    """Where the words are to be found: who cannot count bytes is told."""
    places = [f"{at} to {at + len(quote)}" for at, _ in zip(_found(quote, source), range(_PLACES), strict=False)]
    return f"; these words stand at bytes {' and '.join(places)}" if places else "; these words are not in it"


def _found(quote: bytes, source: bytes) -> Iterator[int]:
    at = source.find(quote)
    while at >= 0:
        yield at
        at = source.find(quote, at + 1)


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= SHOWN else f'"{text[:SHOWN]}..."'


# -- whether a node can cite at all --------------------------------------------------------------------------------


def issues(schema: Any, *, json_mode: bool, node_id: str) -> list[Issue]:
    """What keeps a node whose answer has to cite from doing so: no JSON, or a schema without claims."""
    if schema is None:
        if json_mode:
            return []
        message = "claims are read from JSON: the node needs `json_mode` or an `output_schema`"
        fix: JsonObject = {"op": "add", "path": "/json_mode", "value": True}
        return [Issue("EVIDENCE_NEEDS_JSON", message, pointer="/evidence_required", node_id=node_id, fix=(fix,))]
    at = ("output_schema",)
    found = _lacks(schema, ("claims",), at)
    if not found:
        members = schema.get("properties")
        claims = members.get("claims") if isinstance(members, dict) else None
        found = _lacks_items(claims, (*at, "properties", "claims"))
    return [
        Issue("EVIDENCE_NOT_IN_SCHEMA", message, pointer=pointer(*place), node_id=node_id, related=_ASKED) if never
        else Issue("EVIDENCE_OPTIONAL", message, severity="warning", pointer=pointer(*place), node_id=node_id,
                   related=_ASKED)
        for never, message, place in found
    ]  # fmt: skip


def _lacks_items(claims: Any, at: tuple[str, ...]) -> list[_Lack]:
    if not isinstance(claims, dict):
        return []
    if not _may_be(claims, "array"):
        return [(True, "`claims` has to be a list, and the schema has it otherwise", at)]
    items = claims.get("items")
    return _lacks(items, _MEMBERS, (*at, "items")) if isinstance(items, dict) else []


def _lacks(schema: Any, names: Sequence[str], at: tuple[str, ...]) -> list[_Lack]:
    """What an object of that schema cannot have, or need not have, of members it has to have."""
    if not isinstance(schema, dict) or not _may_be(schema, "object"):
        return [(True, f"the schema allows no object with `{names[0]}`", at)]
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return []  # it is no schema, which is said elsewhere
    closed = schema.get("additionalProperties", True) is False
    lacking = [name for name in names if properties.get(name, not closed) is False]
    if lacking:
        said = ", ".join(f"`{name}`" for name in lacking)
        return [(True, f"no answer that fits the schema has {said}, which a claim needs", at)]
    loose = [name for name in names if name not in required]
    if loose and not {"allOf", "anyOf", "oneOf", "$ref"} & schema.keys():
        said = ", ".join(f"`{name}`" for name in loose)
        return [(False, f"the schema lets the model leave out {said}, and such an answer fails", at)]
    return []


def _may_be(schema: Mapping[str, Any], kind: str) -> bool:
    given = schema.get("type", kind)
    return kind in given if isinstance(given, str | list) else True
