"""A class of `core.classes` and the same class of the standard decorator: nobody can tell them apart."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from agent_graph.core import classes, frozen

FORMS: list[dict[str, Any]] = [
    {"frozen": frozen_, "slots": slots, "eq": eq, "kw_only": kw_only}
    for frozen_ in (False, True) for slots in (False, True) for eq in (False, True) for kw_only in (False, True)
]  # fmt: skip


def made(decorator: Any, **options: Any) -> Any:
    """A class with all that a field can have."""

    @decorator(**options)
    class Sample:
        kind: ClassVar[str] = "sample"
        name: str
        size: int = field(default=1, compare=False)
        parts: tuple[str, ...] = field(default_factory=tuple, repr=False)
        nested: Any = None
        length: int = field(init=False)
        always: int = field(default=5, init=False)
        listed: list[int] = field(default_factory=list, init=False, compare=False)
        late: str = field(init=False, repr=False, compare=False, default="late", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.name))

    return Sample


def both(**options: Any) -> tuple[Any, Any]:
    return made(classes.dataclass, **options), made(dataclasses.dataclass, **options)


def outcome(call: Any, *arguments: Any, **named: Any) -> Any:
    """What it gives, or how it refuses."""
    try:
        return call(*arguments, **named)
    except TypeError as error:
        return str(error)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    ((), {"name": "a", "parts": ("b",)}),
    ((), {}),
    (("a",), {"other": 1}),
    (("a", 1, (), 2, 3), {}),
]


@pytest.mark.parametrize("options", FORMS)
def test_objects_are_made_compared_hashed_and_shown_as_by_the_standard_decorator(options: dict[str, Any]) -> None:
    ours, standard = both(**options)
    for arguments, named in CALLS * 2:  # the first call of a method compiles it
        one, other = outcome(ours, *arguments, **named), outcome(standard, *arguments, **named)
        if isinstance(other, str):
            assert one == other
            continue
        assert repr(one) == repr(other)
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        twin, larger = dataclasses.replace(one), dataclasses.replace(one, size=7)
        assert (one == twin, one == larger, one == "a") == (options["eq"], options["eq"], False)
        if options["eq"]:
            assert outcome(hash, one) == outcome(hash, other)
        else:
            assert hash(one) != hash(twin)
    assert [one.name for one in dataclasses.fields(ours)] == [one.name for one in dataclasses.fields(standard)]
    assert ours.__match_args__ == standard.__match_args__
    assert hasattr(ours, "__slots__") == options["slots"]


@pytest.mark.parametrize("slots", [False, True])
def test_what_is_frozen_can_neither_be_set_nor_deleted(*, slots: bool) -> None:
    for cls in both(frozen=True, slots=slots):
        one = cls("a")
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
            one.name = "b"
        with pytest.raises((FrozenInstanceError, TypeError)):  # TypeError: a slip of the standard one
            one.other = "b"
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
            del one.name
        assert one == cls("a")


def test_a_class_that_only_inherits_may_have_more() -> None:
    class More(made(classes.dataclass, frozen=True)):  # type: ignore[misc]  # the base is made at run time, which mypy does not follow
        pass

    one = More("a")
    one.other = 1
    assert one.other == 1
    del one.other
    with pytest.raises(FrozenInstanceError):
        one.name = "b"


@classes.dataclass(frozen=True, slots=True)
class Kept:
    """What can be found by its name, as pickle wants it."""

    name: str
    parts: list[str] = field(default_factory=list)


def test_a_frozen_object_with_slots_is_copied_and_pickled() -> None:
    one = Kept("a", ["b"])
    assert copy.copy(one) == one
    assert copy.deepcopy(one).parts is not one.parts
    assert pickle.loads(pickle.dumps(one)) == one


def test_methods_and_the_docstring_the_class_has_are_its_own() -> None:
    @classes.dataclass(frozen=True, slots=True)
    class Own:
        """Its own."""

        name: str

        def __init__(self, name: str) -> None:
            object.__setattr__(self, "name", name.upper())

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

        def __getstate__(self) -> list[str]:
            return ["kept"]

    one = Own("a")
    assert (one.name, repr(one), one == 1, hash(one), one.__getstate__()) == ("A", "own", True, 1, ["kept"])
    assert Own.__doc__ == "Its own."


def test_a_class_without_a_docstring_is_called_by_its_name() -> None:
    assert made(classes.dataclass).__doc__ == "Sample"


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    @classes.dataclass(frozen=True, slots=True)
    class Base:
        name: str
        size: int = 1

    @classes.dataclass(frozen=True, slots=True)
    class More(Base):
        extra: str = ""

    assert Base("a") == Base("a", 1)
    assert More("a", 2, "b") == More("a", extra="b", size=2) != Base("a", 2)
    assert repr(More("a")).endswith("More(name='a', size=1, extra='')")


def test_what_the_type_checker_alone_keeps_frozen_can_be_set_and_hashed() -> None:
    cls = made(frozen.dataclass, frozen=True, slots=True)
    one = cls("a")
    one.name = "b"
    assert one == cls("b") or one.length == 1
    assert hash(cls("a")) == hash(cls("a"))


def test_a_method_nobody_calls_is_not_compiled() -> None:
    cls = made(classes.dataclass)
    stub = cls.__repr__
    cls("a")
    assert cls.__repr__ is stub
    assert repr(cls("a")) == repr(cls("a"))
    assert cls.__repr__ is not stub


def test_order_is_that_of_the_fields() -> None:
    @classes.dataclass(slots=True, order=True)
    class Placed:
        place: int
        name: str = field(compare=False)

    first, second = Placed(1, "b"), Placed(2, "a")
    assert sorted([second, first]) == [first, second]
    assert first == Placed(1, "c")
    assert Placed.__hash__ is None
