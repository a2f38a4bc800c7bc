"""What all node types share: the table, the protocol, and configs that refuse what they do not know."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from types import ModuleType

import pytest
from pydantic import TypeAdapter, ValidationError

from agent_graph.core.nodes import DECLARED_TYPES, KNOWN_TYPES, NODE_TYPES, UNAVAILABLE_TYPES
from agent_graph.core.nodes.base import NodeConfig, NodeType

REQUIRED = {
    "state_transform": {"operations": [{"op": "set"}]}, "loop": {"entry": "a", "exit": "END"},
    "subgraph": {"graph_name": "g"},
}  # fmt: skip
each_type = pytest.mark.parametrize(("name", "module"), NODE_TYPES.items(), ids=list(NODE_TYPES))


@each_type
def test_a_module_is_named_like_its_type_and_is_a_node_type(name: str, module: ModuleType) -> None:
    assert module.__name__.rpartition(".")[2] == name
    members = [member for member in (*NodeType.__annotations__, *vars(NodeType)) if not member.startswith("_")]
    assert [member for member in members if not hasattr(module, member)] == []
    assert issubclass(module.Config, NodeConfig)


@each_type
def test_every_unavailable_field_is_a_field_with_a_default_and_a_sentence(name: str, module: ModuleType) -> None:
    defaults = {f.name: (f.default, f.default_factory) for f in fields(module.Config)}
    for field_name, sentence in module.UNAVAILABLE.items():
        assert defaults[field_name] != (MISSING, MISSING)
        assert sentence
        assert not sentence.endswith(".")


@each_type
def test_a_config_refuses_unknown_fields_and_wrong_kinds(name: str, module: ModuleType) -> None:
    adapter = TypeAdapter(module.Config)
    good = REQUIRED.get(name, {})
    assert adapter.validate_json(json.dumps(good), strict=True) == module.Config(**good)
    for bad in ({"zz": 1}, {"timeout_ms": "3"}, {"timeout_ms": True}, {"timeout_ms": 0}, {"output_key": 5}):
        with pytest.raises(ValidationError):
            adapter.validate_json(json.dumps({**good, **bad}), strict=True)


def test_a_type_is_available_or_not() -> None:
    assert not NODE_TYPES.keys() & UNAVAILABLE_TYPES.keys()
    assert NODE_TYPES.keys() | UNAVAILABLE_TYPES.keys() == {
        "llm", "router", "passthrough", "state_transform", "join", "parallel", "subgraph", "loop", "human_approval",
        "signal", "timer", "tool", "http", "graphql",
    }  # fmt: skip


@pytest.mark.parametrize("name", list(DECLARED_TYPES))
def test_a_type_nobody_performs_yet_is_known_to_the_checker(name: str) -> None:
    form = KNOWN_TYPES[name]
    config = (
        form.Config(**{"connection": "c", **({"tool": "t"} if name == "tool" else {})})
        if name != "graphql"
        else (
            form.Config(connection="c", document="{ x }")  # type: ignore[call-arg]  # a module's own class
        )
    )
    assert (form.CHOOSES, name in UNAVAILABLE_TYPES) == (False, True)
    assert (form.writes_current(config), list(form.writes("a", config))) == (True, [])
    assert list(form.targets(config)) == []
