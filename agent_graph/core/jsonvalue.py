"""JSON values: their type, strict reading, canonical bytes, equality and digests; knows nothing of graphs."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from agent_graph.errors import InputInvalid, InputTooDeep, InputTooLarge

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"
JsonObject: TypeAlias = "dict[str, JsonValue]"

MAX_INTEGER_DIGITS: Final = 4_300
"""Integers are exact up to this many digits and refused beyond.

It is CPython's own default bound on turning text into an integer and back. A larger bound of ours would hold here and
break in the first library that reads or prints the value; lifting the interpreter's is a switch for the whole process,
and the bound is its guard against quadratic time.
"""

_NUMBERS: Final = (int, float)  # named: a union written where it is asked for is made anew at each asking
_INTEGER_BOUND: Final = 10**MAX_INTEGER_DIGITS
_STRUCTURE: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]+|[\]}]+', re.DOTALL)
"""Strings without backtracking (``*+``): remembering where to go back to takes 60 bytes for every escape."""
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LOOKS_LIKE_FLOAT: Final = re.compile(r"[:,\[]-?[0-9]+[.eE]")  # where a value stands: a hash in quotes is none


def _encode(*, sort_keys: bool) -> Callable[[JsonValue], str]:
    """``JSONEncoder.encode``, which makes the C encoder anew at each call: that takes longer than most values do."""
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"), sort_keys=sort_keys
    )
    parts: Any = json.encoder  # typeshed knows only what is documented
    if getattr(parts, "c_make_encoder", None) is None:  # no CPython
        return encoder.encode
    chunks = parts.c_make_encoder(
        None, encoder.default, parts.encode_basestring, None, encoder.key_separator, encoder.item_separator,
        encoder.sort_keys, encoder.skipkeys, encoder.allow_nan,
    )  # fmt: skip
    return lambda value: "".join(chunks(value, 0))


_compact_text: Final = _encode(sort_keys=False)
_sorted_text: Final = _encode(sort_keys=True)
quoted: Final = json.encoder.encode_basestring
"""A string as JSON writes it, in quotes; canonical as it is."""


class _NotJson(ValueError):
    """What our hooks find wrong while the parser runs."""


def parse_json(text: str | bytes, *, max_bytes: int, max_depth: int) -> JsonValue:
    """The JSON value written in `text` (bytes are UTF-8); `[[1]]` has depth 2.

    Raises `InputTooLarge` above `max_bytes`, `InputTooDeep` above `max_depth`, and `InputInvalid` for what is not
    JSON (RFC 8259) or could not be kept exactly: ``NaN``, a float that overflows, a key given twice, a lone
    surrogate, an integer of more than `MAX_INTEGER_DIGITS` digits. Other integers are exact.
    """
    text = _decoded(text, max_bytes)
    if text.count("[") + text.count("{") > max_depth:
        _check_text_depth(text, max_depth)
    try:
        value: JsonValue = _decoder.decode(text)
    except RecursionError:
        raise _too_deep(max_depth) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputInvalid(f"not JSON: {error.msg} ({where})", line=error.lineno, column=error.colno) from None
    except ValueError as error:
        raise InputInvalid(str(error)) from None
    if _ESCAPED_SURROGATE.search(text):
        check_value(value, max_depth=max_depth)
    return value


def check_value(value: Any, *, max_depth: int, max_bytes: int | None = None) -> None:
    """The rules of `parse_json` for a value somebody else parsed; raises the same errors, returns nothing."""
    level: list[Any] = [value]
    depth = 0
    while level:
        below: list[Any] = []
        nested = False
        for item in level:
            if type(item) is str:  # most of what there is
                if not item.isascii():
                    _check_scalar(item)
            elif isinstance(item, dict):
                nested = True
                for key in item:
                    if not isinstance(key, str) or not key.isascii():
                        _check_key(key)
                below.extend(item.values())
            elif isinstance(item, list):
                nested = True
                below.extend(item)
            else:
                _check_scalar(item)
        depth += nested
        if depth > max_depth:
            raise _too_deep(max_depth)
        level = below
    if max_bytes is not None and size(value) > max_bytes:
        raise _too_large(max_bytes)


def canonical(value: JsonValue) -> bytes:
    """RFC 8785 bytes of `value`, with one addition: integers beyond 2^53 are written out exactly.

    Expects a value that `check_value` accepts (a tuple is written as a list); ``NaN``, a lone surrogate or a longer
    integer is a ValueError.
    """
    return canonical_text(value).encode()


def canonical_text(value: JsonValue) -> str:
    """`canonical` before it is bytes."""
    try:
        text = _sorted_text(value)
    except RecursionError:
        return _canonical_carefully(value)
    # Either may only be text that looks like it; the careful way is right for both. A float has a point or an exponent,
    # which Python writes with its sign: looking for these costs next to nothing.
    pointed = "." in text or ("+" in text and "e+" in text) or ("-" in text and "e-" in text)
    if (pointed and _has_float(value, text)) or (not text.isascii() and _has_astral(text)):
        return _canonical_carefully(value)
    return text


def digest(value: JsonValue) -> str:
    """``sha256:<hex>`` of the canonical bytes."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def compact(value: JsonValue) -> str:
    """JSON without white space, keys in their own order; floats as Python writes them (``3.0`` stays ``3.0``)."""
    try:
        return _compact_text(value)
    except RecursionError:
        return "".join(_chunks(value, list, repr))


def text_of(value: JsonValue) -> str:
    """How a value reads inside a text: a string as it is, anything else as canonical JSON.

    Canonical, so that a prompt is the same whether its values came just now or were read back from the log.
    """
    return value if isinstance(value, str) else canonical_text(value)


def size(value: JsonValue) -> int:
    """Bytes of the compact form in UTF-8."""
    return len(compact(value).encode())


def json_equal(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are the same JSON: ``3 == 3.0``, ``True != 1``, objects without regard to key order."""
    pairs: list[tuple[JsonValue, JsonValue]] = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict):
            if not isinstance(b, dict) or a.keys() != b.keys():
                return False
            pairs.extend((item, b[key]) for key, item in a.items())
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            pairs.extend(zip(a, b, strict=True))
        elif isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif a != b:
            return False
    return True


def equality_key(value: JsonValue) -> str:
    """A text that two values share exactly when `json_equal` holds; for sets and dicts, not for showing."""
    return "".join(_chunks(value, sorted, _whole_number))


def is_number(value: object) -> bool:
    """Whether `value` is a JSON number; a bool is none."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def fits(number: int | float) -> bool:
    """Whether a computed number is one JSON can carry here: finite, at most `MAX_INTEGER_DIGITS` digits."""
    return math.isfinite(number) if isinstance(number, float) else -_INTEGER_BOUND < number < _INTEGER_BOUND


# Reading


def _decoded(text: str | bytes, max_bytes: int) -> str:
    if len(text) > max_bytes:
        raise _too_large(max_bytes)
    try:
        if isinstance(text, bytes):
            return text.removeprefix(b"\xef\xbb\xbf").decode()  # a byte order mark says nothing: RFC 8259, 8.1
        if not text.isascii() and len(text.encode()) > max_bytes:
            raise _too_large(max_bytes)
    except UnicodeDecodeError as error:
        raise InputInvalid(f"not UTF-8 at byte {error.start}", byte=error.start) from None
    except UnicodeEncodeError as error:
        raise InputInvalid(f"a lone surrogate at character {error.start}", character=error.start) from None
    return text


def _check_text_depth(text: str, max_depth: int) -> None:
    """Before the parser sees it: a hundred thousand brackets are refused without being followed."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        run = match.group()
        if run[0] in "[{":
            depth += len(run)
            if depth > max_depth:
                raise _too_deep(max_depth)
        elif run[0] != '"':
            depth -= len(run)


def _object(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise _NotJson(f"the key {compact(twice)[:80]} is given twice in one object")
    return made


def _integer(text: str) -> int:
    if len(text) > MAX_INTEGER_DIGITS + (text[0] == "-"):
        raise _NotJson(f"an integer has more than {MAX_INTEGER_DIGITS} digits")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotJson(f"the number {text[:40]} is too large for a float")
    return number


def _constant(name: str) -> float:
    raise _NotJson(f"{name} is not JSON")


_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise InputInvalid(f"an object's key is a {type(key).__name__}, not a string")
    _check_text(key)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputInvalid(f"a lone surrogate at character {error.start} of a string") from None


def _check_scalar(value: object) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, _NUMBERS):
        if not fits(value):
            what = str(value) if isinstance(value, float) else f"an integer of more than {MAX_INTEGER_DIGITS} digits"
            raise InputInvalid(f"{what} is not allowed as a number")
    elif value is not None:
        raise InputInvalid(f"a {type(value).__name__} is not a JSON value")


def _too_deep(limit: int) -> InputTooDeep:
    return InputTooDeep(f"nested deeper than {limit} levels", limit=limit)


def _too_large(limit: int) -> InputTooLarge:
    return InputTooLarge(f"larger than {limit} bytes", limit=limit)


# Writing


def _canonical_carefully(value: JsonValue) -> str:
    text = "".join(_chunks(value, _utf16_order, _es_number))
    text.encode()  # a lone surrogate is a ValueError
    return text


def _has_float(value: JsonValue, text: str) -> bool:
    return isinstance(value, float) or _LOOKS_LIKE_FLOAT.search(text) is not None


def _has_astral(text: str) -> bool:
    """Only there do the order of code points and that of UTF-16 units differ."""
    return len(text.encode("utf-16-le")) != 2 * len(text)


def _utf16_order(keys: Any) -> list[str]:
    return sorted(keys, key=lambda key: key.encode("utf-16-be"))


def _es_number(number: float) -> str:
    import rfc8785  # here, not above: values without floats, nearly all, never need it

    return rfc8785.dumps(number).decode()


def _whole_number(number: float) -> str:
    """A float that is a whole number is written like the equal integer."""
    return str(int(number)) if number.is_integer() else repr(number)


def _chunks(value: JsonValue, order: Callable[[Any], list[str]], number: Callable[[float], str]) -> Iterator[str]:
    """`value` as pieces of JSON text, on a stack of our own: no depth can exhaust the interpreter's."""
    todo: list[Any] = [(value,)]  # a tuple is a value to write, a str is text to put out
    while todo:
        entry = todo.pop()
        if isinstance(entry, str):
            yield entry
            continue
        item = entry[0]
        if isinstance(item, dict):
            todo.append("}")
            for place, key in reversed(list(enumerate(order(item)))):
                todo.append((item[key],))
                todo.append(("," if place else "") + _compact_text(key) + ":")
            todo.append("{")
        elif isinstance(item, list | tuple):
            todo.append("]")
            for place, member in reversed(list(enumerate(item))):
                todo.append((member,))
                if place:
                    todo.append(",")
            todo.append("[")
        elif isinstance(item, float):
            yield number(item)
        else:
            yield _compact_text(item)
