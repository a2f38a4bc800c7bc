"""`dataclass` as in the standard library, made in a tenth of the time: a method is compiled when somebody calls it.

The standard decorator writes and compiles up to seven functions, half a millisecond a class. A process that only brings
an approval loads two hundred classes, makes a few objects of a fourth of them, and compares and prints none. Which
methods there are and what they do is the same, and so is what `dataclasses` says of a class (``fields``, ``replace``,
``asdict``). Not for ``InitVar``; a frozen class is no base for one of the standard decorator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from collections.abc import Callable
    from dataclasses import FrozenInstanceError

    METHODS: Final = {
        "__init__": {"init": True, "eq": False},
        "__repr__": {"init": False, "eq": False, "repr": True},
        "__eq__": {"init": False},
        "__hash__": {"init": False, "eq": False, "unsafe_hash": True},
    }
    """What of it the standard decorator is asked for, by method."""
    BEFORE_COMPILING: Final = 20
    """Objects that are made field by field: about as much work as compiling is."""

    def dataclass(
        *, frozen: bool = False, guarded: bool = True, eq: bool = True, order: bool = False, **options: Any
    ) -> Any:
        """The decorator. Frozen and not `guarded`: the type checker alone keeps it so (`core.frozen`)."""

        def made(cls: type) -> type:
            if not cls.__doc__:
                cls.__doc__ = cls.__name__  # the standard decorator would write a signature, and search it first
            cls = dataclasses.dataclass(init=False, repr=False, eq=order, order=order, **options)(cls)
            keeps = frozen and guarded
            own = cls.__dict__
            if "__init__" not in own:
                cls.__init__ = _first_inits(cls, frozen=keeps)
            for name in ("__repr__", "__eq__") if eq else ("__repr__",):
                if name not in own:
                    setattr(cls, name, _later(cls, name))
            if eq and own.get("__hash__") is None:
                cls.__hash__ = _later(cls, "__hash__") if frozen else None
            if keeps:
                cls.__setattr__, cls.__delattr__ = _kept_from_setting, _kept_from_deleting
                if "__slots__" in own and "__getstate__" not in own:
                    cls.__getstate__, cls.__setstate__ = _state, _set_state
            return cls

        return made

    def _later(cls: type, name: str) -> Any:
        """In place of a method until it is called."""

        def first(self: Any, /, *args: Any) -> Any:
            method = _compiled(cls, name)
            setattr(cls, name, method)
            return method(self, *args)

        first.__name__ = name
        return first

    def _first_inits(cls: type, *, frozen: bool) -> Any:
        """In place of ``__init__`` for the first objects, and until somebody calls it in a way that is an error."""
        left, plan = BEFORE_COMPILING, None

        def __init__(self: Any, /, *args: Any, **named: Any) -> None:  # noqa: N807  (that is what it is)
            nonlocal left, plan
            left, plan = left - 1, plan or _Plan(cls)
            if left < 0 or not plan.fits(args, named):
                cls.__init__ = _compiled(cls, "__init__", frozen=frozen)
                cls.__init__(self, *args, **named)
                return
            plan.fill(self, args, named, object.__setattr__ if frozen else setattr)

        return __init__

    class _Plan:
        """What an object of a class is made of."""

        def __init__(self, cls: type) -> None:
            self.fields = dataclasses.fields(cls)
            asked = [one for one in self.fields if one.init]
            self.names = {one.name for one in asked}
            self.places = [one.name for one in asked if not one.kw_only]
            self.required = {one.name for one in asked if one.default is one.default_factory}  # both are missing

        def fits(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
            placed = self.places[: len(args)]
            return (
                len(placed) == len(args)
                and named.keys() <= self.names
                and named.keys().isdisjoint(placed)
                and self.required <= named.keys() | placed
            )

        def fill(self, made: Any, args: tuple[Any, ...], named: dict[str, Any], put: Callable[..., None]) -> None:
            given = named | dict(zip(self.places, args, strict=False))
            for one in self.fields:
                name = one.name
                if name in given:
                    put(made, name, given[name])
                elif one.default is not dataclasses.MISSING:
                    put(made, name, one.default)
                elif one.default_factory is not dataclasses.MISSING:
                    put(made, name, one.default_factory())
            if hasattr(made, "__post_init__"):
                made.__post_init__()

    def _compiled(cls: type, name: str, *, frozen: bool = False) -> Any:
        """The method as the standard decorator makes it, of a class made for this, with the same fields."""
        fields = dataclasses.fields(cls)
        body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        body |= {"__annotations__": {one.name: one.type for one in fields}} | {one.name: one for one in fields}
        if hasattr(cls, "__post_init__"):
            body["__post_init__"] = cls.__post_init__
        options = {"repr": False, "match_args": False, "slots": "__slots__" in cls.__dict__, **METHODS[name]}
        return dataclasses.dataclass(frozen=frozen, **options)(type(cls.__name__, (), body)).__dict__[name]

    def _kept_from_setting(self: Any, name: str, value: Any) -> None:
        if _is_kept(self, name):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def _kept_from_deleting(self: Any, name: str) -> None:
        if _is_kept(self, name):
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    def _is_kept(self: Any, name: str) -> bool:
        """A class that only inherits may have more, which are its own affair."""
        return "__dataclass_fields__" in type(self).__dict__ or name in self.__dataclass_fields__

    def _state(self: Any) -> list[Any]:
        return [getattr(self, one.name) for one in dataclasses.fields(self)]

    def _set_state(self: Any, state: list[Any]) -> None:
        for one, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)
