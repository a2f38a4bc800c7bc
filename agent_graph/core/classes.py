"""`dataclass` as in the standard library, made in a sixth of the time: a method is compiled when it is first called.

The standard decorator writes and compiles up to seven functions, half a millisecond a class. A process that only
brings an approval loads two hundred classes, and compares, hashes and prints next to none of their objects; so only
``__init__`` is compiled at once. Which methods there are, what they do, and what `dataclasses` says of a class
(``fields``, ``replace``, ``asdict``) is the same. Not for ``InitVar``; a frozen class is no base for a standard one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from dataclasses import FrozenInstanceError

    METHODS: Final = {
        "__repr__": {"eq": False, "repr": True},
        "__eq__": {},
        "__hash__": {"eq": False, "unsafe_hash": True},
    }
    """What of it the standard decorator is asked for, by method."""

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
                cls.__init__ = _init(cls, frozen=keeps)
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

    def _init(cls: type, *, frozen: bool) -> Any:
        """``__init__``, compiled by itself: that is all of it that nearly every class is asked for."""
        scope: dict[str, Any] = {"_put": object.__setattr__, "_unset": dataclasses.MISSING}
        placed, named, lines = ["self"], [], []
        for one in dataclasses.fields(cls):
            name = value = one.name
            usual = f"_usual_{name}"
            if one.default is not dataclasses.MISSING:
                scope[usual] = one.default
                parameter = f"{name}={usual}"
                otherwise = usual
            elif one.default_factory is not dataclasses.MISSING:
                scope[usual] = one.default_factory
                parameter = f"{name}=_unset"
                otherwise, value = f"{usual}()", f"{usual}() if {name} is _unset else {name}"
            else:
                parameter, otherwise = name, ""
            if one.init:
                (named if one.kw_only else placed).append(parameter)
            elif otherwise:
                value = otherwise
            else:
                continue
            lines.append(f" _put(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append(" self.__post_init__()")
        head = ", ".join([*placed, "*", *named] if named else placed)
        exec(f"def __init__({head}):\n" + "\n".join(lines or [" pass"]), scope)  # noqa: S102  (names of fields alone)
        made = scope["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        return made

    def _compiled(cls: type, name: str) -> Any:
        """The method as the standard decorator makes it, of a class made for this, with the same fields."""
        fields = dataclasses.fields(cls)
        body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        body |= {"__annotations__": {one.name: one.type for one in fields}} | {one.name: one for one in fields}
        options = {"init": False, "repr": False, "match_args": False, **METHODS[name]}
        return dataclasses.dataclass(**options)(type(cls.__name__, (), body)).__dict__[name]

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
