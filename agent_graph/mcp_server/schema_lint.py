"""Finds what some client would refuse, drop or misread in a published tool: one sentence for each fault.

Every rule is there because a client in use breaks on what it forbids: names that are too long once the client has put
its own in front, unions at the root, references, null in a union or a list of types, values without a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

NAME: Final = re.compile(r"[a-z][a-z_]{0,39}")
DESCRIPTION_CHARACTERS: Final = 600
LIST_BYTES: Final = 40_000
"""Bytes of a whole ``tools/list``."""
UNIONS: Final = ("anyOf", "oneOf", "allOf")
NOT_AT_ROOT: Final = (*UNIONS, "not", "enum", "const", "if", "$ref")
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions")
DROPPED: Final = (
    "not", "if", "then", "else", "patternProperties", "propertyNames", "dependentSchemas", "dependentRequired",
    "unevaluatedProperties", "prefixItems", "contains", "unevaluatedItems",
)  # fmt: skip
"""Keywords that the model APIs behind a client refuse or leave out: what they say has to be checked in code."""
META_KEY: Final = re.compile(r"(?:[a-z](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*/)?[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
TYPES: Final = frozenset({"object", "array", "string", "number", "integer", "boolean"})


def tool_faults(tool: Mapping[str, Any]) -> list[str]:
    """The faults of a tool as ``tools/list`` shows it: {name, title, description, inputSchema, outputSchema,
    annotations}; [] when there are none."""
    name = str(tool.get("name", ""))
    found: list[str] = []
    if not NAME.fullmatch(name):
        found.append(f"the name {name!r} is not 1 to 40 of a to z and _")
    description = tool.get("description") or ""
    if not 1 <= len(description) <= DESCRIPTION_CHARACTERS:
        found.append(f"the description has {len(description)} characters, not 1 to {DESCRIPTION_CHARACTERS}")
    if "Example" not in description:
        found.append("the description has no example")
    if not tool.get("title"):
        found.append("there is no title")
    hints = tool.get("annotations") or {}
    found += [
        f"the annotations do not say {hint}"
        for hint in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        if not isinstance(hints.get(hint), bool)
    ]
    if hints.get("readOnlyHint") and hints.get("destructiveHint"):
        found.append("it cannot only read and destroy")
    found += [f"_meta: the key {key!r}" for key in tool.get("_meta") or {} if not META_KEY.fullmatch(key)]
    found += [f"inputSchema{fault}" for fault in schema_faults(tool.get("inputSchema"), closed=True)]
    found += [f"outputSchema{fault}" for fault in schema_faults(tool.get("outputSchema"), closed=False)]
    return found


def schema_faults(schema: Any, *, closed: bool) -> list[str]:
    """The faults of one schema, each beginning with a pointer to it.

    `closed` holds arguments to more: other properties must be refused, and each must be described.
    """
    if not isinstance(schema, dict):
        return [": there is no schema"]
    found = [f": {key} at the root" for key in NOT_AT_ROOT if key in schema]
    if schema.get("type") != "object":
        found.append(": the root is no object")
    if not isinstance(schema.get("properties"), dict):
        found.append(": the root has no properties")
    if closed and schema.get("additionalProperties") is not False:
        found.append(": additionalProperties is not false")
    if closed:
        found += [
            f"/properties/{name}: no description"
            for name, argument in (schema.get("properties") or {}).items()
            if isinstance(argument, dict) and not argument.get("description")
        ]
    found += _node_faults(schema, "", in_union=False)
    return found + _draft_faults(schema)


def _node_faults(node: Any, pointer: str, *, in_union: bool) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{pointer}: {node!r} in place of a schema"
        return
    for key in (*REFERENCES, *DROPPED):
        if key in node:
            yield f"{pointer}: {key}"
    yield from _type_faults(node, pointer, in_union=in_union)
    yield from _value_faults(node, pointer)
    yield from _below(node, pointer)


def _type_faults(node: dict[str, Any], pointer: str, *, in_union: bool) -> Iterator[str]:
    kind = node.get("type")
    unions = [key for key in UNIONS if key in node]
    if isinstance(kind, list):
        yield f"{pointer}: a list of types"
    elif kind is None and not unions:
        yield f"{pointer}: no type"
    elif kind is not None and kind not in TYPES:
        yield f"{pointer}: the type {kind!r}"
    if unions and in_union:
        yield f"{pointer}: a union in a union"
    for key in unions:
        for index, branch in enumerate(node[key]):
            yield from _node_faults(branch, f"{pointer}/{key}/{index}", in_union=True)


def _value_faults(node: dict[str, Any], pointer: str) -> Iterator[str]:
    if "enum" in node and not all(isinstance(value, str) for value in node["enum"]):
        yield f"{pointer}: an enum of other things than strings"
    if "default" in node and node["default"] is None:
        yield f"{pointer}: null as default"
    if node.get("type") == "array" and not isinstance(node.get("items"), dict):
        yield f"{pointer}: an array without items"
    required = node.get("required", [])
    if not isinstance(required, list) or not set(required) <= set(node.get("properties", {})):
        yield f"{pointer}: required names {required!r}"


def _below(node: dict[str, Any], pointer: str) -> Iterator[str]:
    for name, child in (node.get("properties") or {}).items():
        yield from _node_faults(child, f"{pointer}/properties/{name}", in_union=False)
    if isinstance(items := node.get("items"), dict):
        yield from _node_faults(items, f"{pointer}/items", in_union=False)
    if isinstance(others := node.get("additionalProperties"), dict):
        yield from _node_faults(others, f"{pointer}/additionalProperties", in_union=False)


def _draft_faults(schema: dict[str, Any]) -> list[str]:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return [f": not a schema of draft 2020-12: {error.message}"]
    return []
