"""Transforms: what each operation writes, that later ones see earlier ones, and that it is all or nothing."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core import statepath
from agent_graph.core.effects import MISSING, MaybeJson, Path, Write
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.ops import reducers, transforms
from agent_graph.core.ops.operations import MAX_SEGMENTS
from agent_graph.core.ops.transforms import apply, check, needs, reads, writes
from agent_graph.errors import NodeFailure


@dataclass
class State:
    """The values of a firing over one plain object."""

    state: Any = field(default_factory=dict)
    current: Any = "the input"
    run_input: Any = "the first input"
    reentered: bool = False
    reducers: dict[str, str] = field(default_factory=dict)
    limits: Limits = DEFAULTS

    def read(self, path: str) -> MaybeJson:
        return statepath.read(self.state, path)

    def resolve(self, path: str) -> Path:
        return statepath.resolve(self.state, path)

    def join_input(self, name: str) -> MaybeJson:
        return self.read(name)

    def reducer(self, key: str) -> str:
        return self.reducers.get(key, "")

    def after(self, writes: tuple[Write, ...]) -> Any:
        state = self.state
        for write in writes:
            if write.op == "delete":
                state = statepath.remove(state, write.path)
            elif write.op == "operand":
                key = write.path[0]
                value = reducers.fold(self.reducers[key], state.get(key, MISSING), write.value)
                state = {**state, key: value}
            else:
                state = statepath.put(state, write.path, write.value)
        return state


def run(state: Any, *operations: Any, **reducer_names: str) -> Any:
    """The state after the operations."""
    assert check(operations, "/operations") == []
    values = State(state, reducers=reducer_names)
    before = copy.deepcopy(state)
    after = values.after(apply(operations, values))
    assert state == before
    return after


def fails(state: Any, *operations: Any, **reducer_names: str) -> NodeFailure:
    before = copy.deepcopy(state)
    with pytest.raises(NodeFailure) as caught:
        apply(operations, State(state, reducers=reducer_names))
    assert state == before
    return caught.value


@pytest.mark.parametrize(
    ("state", "operation", "after"),
    [
        ({}, {"op": "set", "path": "a.b", "value": None}, {"a": {"b": None}}),
        ({"a.b": 1}, {"op": "set", "path": "a.b", "value": 2}, {"a.b": 2}),
        ({"x": [1]}, {"op": "set", "path": "y", "from": "x.0"}, {"x": [1], "y": 1}),
        ({"x": None}, {"op": "copy", "path": "y", "from": "x"}, {"x": None, "y": None}),
        ({"a": {"b": 1, "c": 2}}, {"op": "delete", "path": "a.b"}, {"a": {"c": 2}}),
        ({"a": 1}, {"op": "delete", "path": "a"}, {}),
        ({"a": 1}, {"op": "delete", "path": "b.c"}, {"a": 1}),
        ({}, {"op": "increment", "path": "n"}, {"n": 1}),
        ({"n": 2}, {"op": "increment", "path": "n", "value": -5}, {"n": -3}),
        ({"n": 10**400}, {"op": "increment", "path": "n"}, {"n": 10**400 + 1}),
        ({"n": 18446744073709551615}, {"op": "increment", "path": "n"}, {"n": 18446744073709551616}),
        ({"n": 1}, {"op": "increment", "path": "n", "value": 0.5}, {"n": 1.5}),
        ({"n": None, "s": 4}, {"op": "increment", "path": "n", "from": "s"}, {"n": 4, "s": 4}),
        ({}, {"op": "append", "path": "xs", "value": 1}, {"xs": [1]}),
        ({"xs": [1]}, {"op": "append", "path": "xs", "value": [2]}, {"xs": [1, [2]]}),
        ({"xs": [1]}, {"op": "append", "path": "xs", "value": [2, 3], "extend": True}, {"xs": [1, 2, 3]}),
        ({"xs": "a"}, {"op": "append", "path": "xs", "value": "b"}, {"xs": ["a", "b"]}),
        ({"xs": [1], "l": [2]}, {"op": "append", "path": "xs", "from": "l"}, {"xs": [1, [2]], "l": [2]}),
        ({"o": {"a": 1, "b": {"x": 1}}}, {"op": "merge", "path": "o", "value": {"b": {"y": 2}}}, {"o": {"a": 1,
        "b": {"y": 2}}}),
        ({"p": {"a": 1}}, {"op": "merge_object", "path": "o", "from": "p"}, {"p": {"a": 1}, "o": {"a": 1}}),
        ({"a": 1, "b": {"c": None}}, {"op": "select", "path": "s", "values": ["a", "b.c", "no"]}, {"a": 1,
        "b": {"c": None}, "s": {"a": 1, "b.c": None}}),
        ({"u": {"name": "x", "age": 1}}, {"op": "select", "path": "s", "from": "u",
        "values": ["name"]}, {"u": {"name": "x", "age": 1}, "s": {"name": "x"}}),
        ({"a": 3}, {"op": "compare", "path": "a", "value": 3.0}, {"a": True}),
        ({"a": 3}, {"op": "compare", "path": "a", "value": True, "into": "r"}, {"a": 3, "r": False}),
        ({"a": [1], "b": [1.0]}, {"op": "compare", "path": "a", "from": "b", "into": "r.same"}, {"a": [1],
        "b": [1.0], "r": {"same": True}}),
        ({}, {"op": "compare", "path": "a", "from": "b", "into": "r"}, {"r": True}),
        ({"a": 0}, {"op": "compare", "path": "a", "from": "b", "into": "r"}, {"a": 0, "r": False}),
        ({"n": 3}, {"op": "format", "path": "t", "template": '{"n": {n}} {input} {run_input} {no?}'}, {"n": 3,
        "t": '{"n": 3} the input the first input '}),
        ({"n": "{m}", "m": 1}, {"op": "format", "path": "t", "template": "{n} {m} {m?} {m|json}",
        "values": ["n"]}, {"n": "{m}", "m": 1, "t": "{m} {m} {m?} {m|json}"}),
        ({}, {"op": "set", "path": "c", "from": "__input__"}, {"c": "the input"}),
        ({"outputs": {"a.b": 1}}, {"op": "set", "path": "c", "from": "outputs.a.b"}, {"outputs": {"a.b": 1}, "c": 1}),
    ],
)  # fmt: skip
def test_an_operation_does_what_it_says(state: Any, operation: Any, after: Any) -> None:
    result = run(state, operation)
    assert result == after
    assert str(result) == str(after)  # 1 is not True, and 1.0 is not 1


def test_later_operations_see_what_earlier_ones_did() -> None:
    after = run(
        {"n": 1, "old": {"x": 1}},
        {"op": "increment", "path": "n"},
        {"op": "set", "path": "o.k", "from": "n"},
        {"op": "append", "path": "o.xs", "from": "o.k"},
        {"op": "delete", "path": "old.x"},
        {"op": "set", "path": "old.y", "from": "o.xs.0"},
        {"op": "format", "path": "text", "template": "{n} {o} {old}"},
        {"op": "delete", "path": "n"},
        {"op": "compare", "path": "n", "value": None, "into": "gone"},
        {"op": "increment", "path": "n"},
    )
    assert after == {
        "n": 1, "o": {"k": 2, "xs": [2]}, "old": {"y": 2}, "text": '2 {"k":2,"xs":[2]} {"y":2}', "gone": True,
    }  # fmt: skip


def test_a_flat_key_with_dots_made_by_one_operation_is_found_by_the_next() -> None:
    after = run(
        {},
        {"op": "set", "path": "/a.b", "value": 1},
        {"op": "increment", "path": "a.b"},
        {"op": "set", "path": "copy", "from": "a.b"},
    )
    assert after == {"a.b": 2, "copy": 2}


def test_the_current_value_can_be_read_into() -> None:
    values = State({}, current={"items": [{"t": "x"}]}, run_input={"q": 1})
    [first] = apply([{"op": "set", "path": "t", "from": "__input__.items.0.t"}], values)
    assert first == Write("set", ("t",), "x")
    [second] = apply([{"op": "format", "path": "t", "template": "{input.items.0.t} {run_input.q}"}], values)
    assert second == Write("set", ("t",), "x 1")


@pytest.mark.parametrize(
    ("reducer", "operation", "expected"),
    [
        ("add", {"op": "increment", "path": "k", "value": 2}, [Write("operand", ("k",), 2)]),
        ("add", {"op": "increment", "path": "k"}, [Write("operand", ("k",), 1)]),
        ("add", {"op": "set", "path": "k", "value": 7}, [Write("operand", ("k",), 7)]),
        ("add", {"op": "increment", "path": "k", "replace": True}, [Write("replace", ("k",), 6)]),
        ("append", {"op": "append", "path": "k", "value": [1]}, [Write("operand", ("k",), [[1]])]),
        ("append", {"op": "append", "path": "k", "value": [1], "extend": True}, [Write("operand", ("k",), [1])]),
        ("append", {"op": "set", "path": "k", "value": "x"}, [Write("operand", ("k",), "x")]),
        ("append", {"op": "set", "path": "k", "value": [], "replace": True}, [Write("replace", ("k",), [])]),
        ("merge", {"op": "merge", "path": "k", "value": {"a": 1}, "replace": True}, None),
        ("merge", {"op": "set", "path": "k.a.b", "value": 1}, [Write("operand", ("k",), {"a": {"b": 1}})]),
        ("last_write_wins", {"op": "increment", "path": "k"}, [Write("operand", ("k",), 6)]),
        ("last_write_wins", {"op": "append", "path": "k", "value": 1}, [Write("operand", ("k",), [5, 1])]),
        ("append", {"op": "delete", "path": "k"}, [Write("delete", ("k",))]),
        ("add", {"op": "delete", "path": "no"}, []),
        ("add", {"op": "compare", "path": "k", "value": 5, "into": "same"}, [Write("set", ("same",), True)]),
        ("", {"op": "set", "path": "k", "value": 1, "replace": True}, [Write("set", ("k",), 1)]),
    ],
)  # fmt: skip
def test_a_write_on_a_key_with_a_reducer_is_a_contribution(reducer: str, operation: Any, expected: Any) -> None:
    values = State({"k": 5}, reducers={"k": reducer} if reducer else {})
    if expected is None:
        assert "not an object" in fails({"k": 5}, operation, k=reducer).message
    else:
        assert list(apply([operation], values)) == expected


def test_merging_into_a_key_with_the_merge_reducer_contributes_the_object() -> None:
    values = State({"k": {"a": {"x": 1}}}, reducers={"k": "merge"})
    [write] = apply([{"op": "merge", "path": "k", "value": {"a": {"y": 2}}}], values)
    assert write == Write("operand", ("k",), {"a": {"y": 2}})
    [whole] = apply([{"op": "merge", "path": "k", "value": {"b": 1}, "replace": True}], values)
    assert whole == Write("replace", ("k",), {"a": {"x": 1}, "b": 1})


def test_contributions_are_seen_by_later_operations() -> None:
    after = run(
        {"log": ["x"], "n": 5},
        {"op": "append", "path": "log", "value": "a"},
        {"op": "append", "path": "log", "value": "b"},
        {"op": "increment", "path": "n", "value": 3},
        {"op": "set", "path": "seen", "from": "log"},
        {"op": "set", "path": "log", "value": [], "replace": True},
        {"op": "append", "path": "log", "value": "c"},
        {"op": "format", "path": "text", "template": "{log} {n}"},
        log="append",
        n="add",
    )
    assert after == {"log": ["c"], "n": 8, "seen": ["x", "a", "b"], "text": '["c"] 8'}


def test_deleting_a_gathered_key_starts_it_afresh() -> None:
    operations = [
        {"op": "append", "path": "log", "value": 1},
        {"op": "delete", "path": "log"},
        {"op": "append", "path": "log", "value": 2},
    ]
    assert run({"log": [0]}, *operations, log="append") == {"log": [2]}


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        ({"op": "copy", "path": "y", "from": "no.x"}, "there is nothing at no.x"),
        ({"op": "increment", "path": "s"}, "what is there is a string, not a number"),
        ({"op": "increment", "path": "n", "from": "s"}, "the step is a string"),
        ({"op": "increment", "path": "n", "from": "big"}, "larger than a number may be"),
        ({"op": "append", "path": "xs", "from": "n", "extend": True}, "`extend` takes an array, not a number"),
        ({"op": "merge", "path": "n", "value": {}}, "what is there is a number, not an object"),
        ({"op": "merge", "path": "o", "from": "n"}, "what is merged is a number"),
        ({"op": "set", "path": "s.a", "value": 1}, "cannot write /s/a"),
        ({"op": "set", "path": "xs.7", "value": 1}, "no such index"),
        ({"op": "format", "path": "t", "template": "{no} {n}"}, "no value for {no}"),
        ({"op": "select", "path": "t", "from": "no", "values": ["a"]}, "there is nothing at no"),
        ({"op": "set", "path": "total", "value": "x"}, "the reducer add takes a number"),
        ({"op": "set", "path": "total.x", "value": 1}, "write to it, not below it"),
        ({"op": "append", "path": "total", "value": 1}, "the reducer add takes a number, not an array"),
        ({"op": "increment", "path": "true"}, "what is there is a boolean"),
    ],
)  # fmt: skip
def test_an_operation_that_cannot_apply_fails_them_all_and_is_named(operation: Any, says: str) -> None:
    state = {"n": 10**4299, "big": 10**4300 - 1, "s": "text", "xs": [1], "o": {}, "true": True}
    failure = fails(state, {"op": "set", "path": "done", "value": 1}, operation, total="add")
    assert failure.code == "TRANSFORM_INVALID"
    assert failure.failure_class == "invalid"
    assert failure.details["operation"] == 1
    assert failure.message.startswith(f"operations/1 ({operation['op']} {operation['path']}): ")
    assert says in failure.message


def test_operations_cannot_blow_a_value_up() -> None:
    double = {"op": "append", "path": "xs", "from": "xs", "extend": True}
    assert fails({"xs": list(range(10))}, *[double] * 64).code == "VALUE_TOO_LARGE"
    wrap = [{"op": "set", "path": f"o.{n}", "from": "x"} for n in range(4)] + [{"op": "copy", "path": "x", "from": "o"}]
    assert fails({"x": "y" * 100_000}, *wrap * 12).code == "VALUE_TOO_LARGE"
    triple = {"op": "format", "path": "t", "template": "{t}{t}{t}"}
    assert fails({"t": "y" * 100}, *[triple] * 64).code == "VALUE_TOO_LARGE"
    deeper = [{"op": "set", "path": "o.o.o.o.o.o.o.o", "from": "x"}, {"op": "copy", "path": "x", "from": "o"}]
    assert "nested deeper" in fails({"x": 1}, *deeper * 32).message
    half = State({"xs": [0] * (DEFAULTS.value_bytes // 2)})
    with pytest.raises(NodeFailure) as caught:
        apply([{"op": "append", "path": "xs", "value": 1}], half)
    assert caught.value.code == "VALUE_TOO_LARGE"


def test_many_elements_are_gathered_without_copying_what_is_there() -> None:
    values = State({"log": list(range(1_000))}, reducers={"log": "append"})
    written = apply([{"op": "append", "path": "log", "value": n} for n in range(64)], values)
    assert written == tuple(Write("operand", ("log",), [n]) for n in range(64))


KEYS = st.sampled_from(["a", "b", "a.b", "c"])
SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("{ab}", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)
OPERATIONS = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["set", "append", "compare"]), "path": KEYS, "value": SMALL}),
    st.fixed_dictionaries(
        {"op": st.sampled_from(["set", "copy", "append", "increment", "merge"]), "path": KEYS, "from": KEYS}
    ),
    st.fixed_dictionaries({"op": st.sampled_from(["delete", "increment"]), "path": KEYS}),
    st.fixed_dictionaries({"op": st.just("set"), "path": KEYS, "value": SMALL, "replace": st.just(True)}),
)


@given(
    st.dictionaries(st.sampled_from("abc"), SMALL), st.lists(OPERATIONS, min_size=1, max_size=6),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from(sorted(reducers.REDUCERS))),
)  # fmt: skip
def test_doing_operations_together_is_doing_them_one_after_the_other(state: Any, operations: Any, names: Any) -> None:
    before = copy.deepcopy((state, operations))
    one_by_one: Any = state
    failed = False
    try:
        for operation in operations:
            values = State(one_by_one, reducers=names)
            one_by_one = values.after(apply([operation], values))
    except NodeFailure:
        failed = True
    together = State(state, reducers=names)
    if failed:
        with pytest.raises(NodeFailure):
            apply(operations, together)
    else:
        assert together.after(apply(operations, together)) == one_by_one
    assert (state, operations) == before


def issues_of(*operations: Any) -> list[tuple[str, str]]:
    return [(issue.code, issue.pointer) for issue in check(operations, "/operations")]


@pytest.mark.parametrize(
    ("operation", "found"),
    [
        ("x", [("FIELD_INVALID", "")]), ({"path": "a"}, [("FIELD_REQUIRED", "")]),
        ({"op": "sett", "path": "a"}, [("FIELD_INVALID", "/op")]),
        ({"op": 1, "path": "a"}, [("FIELD_INVALID", "/op")]), ({"op": "set", "value": 1}, [("FIELD_REQUIRED", "")]),
        ({"op": "set", "path": "a"}, [("FIELD_REQUIRED", "")]),
        ({"op": "set", "path": "a", "value": 1, "from": "b"}, [("FIELD_CONFLICT", "")]),
        ({"op": "set", "path": "a", "value": 1, "vale": 1}, [("UNKNOWN_FIELD", "/vale")]),
        ({"op": "delete", "path": "a", "replace": True}, [("UNKNOWN_FIELD", "/replace")]),
        ({"op": "delete", "path": "a", "value": 1}, [("UNKNOWN_FIELD", "/value")]),
        ({"op": "copy", "path": "a", "value": 1}, [("UNKNOWN_FIELD", "/value"), ("FIELD_REQUIRED", "")]),
        ({"op": "set", "path": "", "value": 1}, [("STATE_PATH_INVALID", "/path")]),
        ({"op": "set", "path": 1, "value": 1}, [("FIELD_INVALID", "/path")]),
        ({"op": "set", "path": "a", "from": "b..c"}, [("STATE_PATH_INVALID", "/from")]),
        ({"op": "set", "path": "a", "value": 1, "replace": "yes"}, [("FIELD_INVALID", "/replace")]),
        ({"op": "increment", "path": "a", "value": "1"}, [("FIELD_INVALID", "/value")]),
        ({"op": "merge", "path": "a", "value": []}, [("FIELD_INVALID", "/value")]),
        ({"op": "append", "path": "a", "value": 1, "extend": True}, [("FIELD_INVALID", "/value")]),
        ({"op": "append", "path": "a", "value": 1, "extend": False}, []),
        ({"op": "select", "path": "a"}, [("FIELD_REQUIRED", "")]),
        ({"op": "select", "path": "a", "values": []}, [("FIELD_INVALID", "/values")]),
        ({"op": "select", "path": "a", "values": ["b", "", 1]}, [("STATE_PATH_INVALID", "/values/1"),
        ("FIELD_INVALID", "/values/2")]),
        ({"op": "format", "path": "a", "template": 1}, [("FIELD_INVALID", "/template")]),
        ({"op": "format", "path": "a"}, [("FIELD_REQUIRED", "")]),
        ({"op": "compare", "path": "outputs.x", "value": 1, "into": "r"}, []),
        ({"op": "compare", "path": "a", "value": 1, "into": "__r"}, [("RESERVED_KEY", "/into")]),
        ({"op": "set", "path": "__input__", "value": 1}, [("RESERVED_KEY", "/path")]),
        ({"op": "set", "path": "/outputs/x", "value": 1}, [("RESERVED_KEY", "/path")]),
        ({"op": "delete", "path": "errors"}, [("RESERVED_KEY", "/path")]),
        ({"op": "increment", "path": "loops.x"}, [("RESERVED_KEY", "/path")]),
        ({"op": "set", "path": ".".join("a" * (MAX_SEGMENTS + 1)), "value": 1}, [("FIELD_INVALID", "/path")]),
        ({"op": "set", "path": ".".join("a" * MAX_SEGMENTS), "value": 1}, []),
        ({"op": "increment", "path": "a"}, []),
    ],
)  # fmt: skip
def test_a_wrong_operation_is_told_with_its_place(operation: Any, found: Any) -> None:
    right = {"op": "delete", "path": "a"}
    assert issues_of(right, operation) == [(code, "/operations/1" + place) for code, place in found]


def test_there_are_one_to_64_operations() -> None:
    operation = {"op": "increment", "path": "a"}
    assert issues_of(*[operation] * 64) == []
    assert issues_of() == issues_of(*[operation] * 65) == [("FIELD_INVALID", "/operations")]


def test_every_operation_has_a_form_and_a_function() -> None:
    from agent_graph.core.ops.operations import FORMS

    assert list(FORMS) == list(transforms.OPERATIONS)


@pytest.mark.parametrize(
    ("operation", "read", "needed", "written"),
    [
        ({"op": "set", "path": "a", "value": 1}, [], [], ["a"]),
        ({"op": "copy", "path": "a", "from": "b"}, ["b"], ["b"], ["a"]),
        ({"op": "set", "path": "a", "from": "__input__.x"}, [], [], ["a"]),
        ({"op": "increment", "path": "a"}, [], [], ["a"]),
        ({"op": "compare", "path": "a", "from": "b", "into": "c"}, ["a", "b"], [], ["c"]),
        ({"op": "compare", "path": "a", "value": 1}, ["a"], [], ["a"]),
        ({"op": "select", "path": "s", "values": ["a", "b"]}, ["a", "b"], [], ["s"]),
        ({"op": "select", "path": "s", "from": "u", "values": ["a"]}, ["u"], ["u"], ["s"]),
        ({"op": "format", "path": "t", "template": "{a} {b?} {a} {input} {run_input.x} {c}"}, ["a", "c", "b"], ["a",
        "c"], ["t"]),
        ({"op": "format", "path": "t", "template": "{a} {b}", "values": ["b"]}, ["b"], ["b"], ["t"]),
        ({"op": "format", "template": 1}, [], [], []), ({"op": "select", "path": "s", "values": 1}, [], [], ["s"]),
        ({"op": "set", "path": 1, "from": 2}, [], [], []),
    ],
)  # fmt: skip
def test_what_an_operation_reads_needs_and_writes(operation: Any, read: Any, needed: Any, written: Any) -> None:
    assert (reads(operation), needs(operation), writes(operation)) == (read, needed, written)
