"""Twins: objects and classes of the user's as traced code sees them.

The twin of an object is an instance of a subclass made for it.  Reading an attribute reads the
object's own and passes it through `Reach.see`; writing is an error; methods are rebuilt.  The twin
of a class has rebuilt methods too, and answers `isinstance` and `==` as the class itself.
"""

from __future__ import annotations

import abc
import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

from minigraph.errors import StateError, UnsupportedError

from .paths import Path
from .recording import current
from .users import is_users_function

if TYPE_CHECKING:
    from .reach import Reach

_MISSING = object()


def twin_parts(self: Any) -> tuple[Reach, Any, Path]:
    """The reach that made a twin, the object it stands for, and the path to that."""
    return object.__getattribute__(self, "twin_")


def is_twin(thing: Any) -> bool:
    """It stands for an object of the user's."""
    if not isinstance(type(thing), _ClassTwin) or not type(thing).__dictoffset__:
        return False
    return "twin_" in object.__getattribute__(thing, "__dict__")


def original(thing: Any) -> Any:
    """The user's own object behind a twin (or the thing itself)."""
    if is_twin(thing):
        return twin_parts(thing)[1]
    if isinstance(thing, _ClassTwin):
        return type.__getattribute__(thing, "reach_")[1]
    return thing


def twin_read(self: Any, name: str) -> Any:
    """Read an attribute of a twin: the object's own, seen and guarded."""
    reach, thing, path = twin_parts(self)
    if name == "__class__":
        return reach.classes.seen_class(thing)
    if _is_library_property(type(thing), name):
        return getattr(thing, name)
    if name == "__dict__":
        return reach.see(vars(thing), path.attribute(name))
    if name in ("__reduce_ex__", "__reduce__", "__copy__", "__deepcopy__"):
        raise UnsupportedError(
            f"{path.text} cannot be copied or pickled while tracing",
            where=current().here(),
            instead="copy it outside, or copy the arrays that it holds",
        )
    rebuilt = type.__getattribute__(type(self), "__dict__").get(name, _MISSING)
    if rebuilt is not _MISSING and name not in getattr(thing, "__dict__", {}):
        _guard_member_of(reach, thing, path, name)
        return rebuilt.__get__(self, type(self)) if hasattr(rebuilt, "__get__") else rebuilt
    try:
        found = getattr(thing, name)
    except AttributeError:
        reach.recording.guards.missing(path.attribute(name))
        raise
    if isinstance(found, types.MethodType) and found.__self__ is thing:
        return types.MethodType(
            reach.see(found.__func__, Path.of_object(found.__func__, name)), self
        )
    if getattr(found, "__self__", None) is thing:
        return found  # a method of the object's own that is written in C
    return reach.see(found, path.attribute(name))


def _is_library_property(kind: type, name: str) -> bool:
    """A property that a block has from the library: what it reads is behind the version."""
    if not getattr(kind, "traced_block_", False):
        return False
    member = inspect.getattr_static(kind, name, None)
    return isinstance(member, property) and not is_users_function(member.fget)


def _guard_member_of(reach: Reach, thing: Any, path: Path, name: str) -> None:
    """Neither the class nor the object puts something else in this member's place."""
    guards, own = reach.recording.guards, path.attribute(name)
    member = inspect.getattr_static(type(thing), name)
    if isinstance(member, types.FunctionType):
        guards.identity(own.attribute("__func__"), member)
    elif isinstance(member, classmethod):
        guards.identity(own.attribute("__func__"), member.__func__)
    elif isinstance(member, staticmethod):
        guards.identity(own, member.__func__)
    elif isinstance(member, property):
        guards.identity(path.of_class().attribute(name), member)


def twin_write(self: Any, name: str, *value: Any) -> None:
    """Refuse to write an attribute of a twin."""
    _, _, path = twin_parts(self)
    if value and getattr(self, name, None) is value[0]:
        return  # `self.w -= x` on an array: it has been changed in place
    raise StateError(
        f"the attribute {path.text}.{name} was assigned while tracing",
        where=current().here(),
        instead=f"keep it in an array and write into that ({path.text}.{name}[...] = value), "
        "or return the value",
    )


def refuse_write(self: Any, name: str, value: Any) -> None:
    """Refuse to write an attribute of an argument's stand-in."""
    if getattr(self, name, None) is value:
        return
    path = type.__getattribute__(type(self), "reach_")[2]
    raise StateError(
        f"the attribute {path.text}.{name} was assigned while tracing",
        where=current().here(),
        instead="return the new value, e.g. with dataclasses.replace",
    )


class _ClassTwin(type):
    """The metaclass of class twins: they answer as the class they stand for."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type.__getattribute__(cls, "reach_")[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(original(subclass), type.__getattribute__(cls, "reach_")[1])

    def __eq__(cls, other: object) -> bool:
        return original(cls) is original(other)

    def __hash__(cls) -> int:
        return hash(original(cls))

    def __getattribute__(cls, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("__") or name in ("reach_", "mro"):
            return found
        reach, thing, path = type.__getattribute__(cls, "reach_")
        if name in type.__getattribute__(cls, "__dict__") or isinstance(
            found, types.FunctionType | types.MethodType | property
        ):
            member = inspect.getattr_static(thing, name, None)
            if isinstance(member, staticmethod | classmethod):
                own = Path.of_object(thing, thing.__name__).attribute(name)
                own = own.attribute("__func__") if isinstance(member, classmethod) else own
                reach.recording.guards.identity(own, member.__func__)
            return found
        return reach.see(getattr(thing, name), path.attribute(name))

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith("_") and name.endswith("_") or name.startswith("_abc_"):
            return super().__setattr__(name, value)  # Python's own, of the twin alone
        raise StateError(
            f"the class attribute {cls.__name__}.{name} was assigned while tracing",
            where=current().here(),
            instead="return the value",
        )


class _AbstractClassTwin(_ClassTwin, abc.ABCMeta):
    """The same for abstract base classes."""


@functools.cache
def class_twin_meta(meta: type) -> type:
    """The metaclass for the twin of a class that has the metaclass `meta`."""
    if issubclass(meta, _ClassTwin):
        return meta
    if meta in (type, abc.ABCMeta):
        return _AbstractClassTwin if meta is abc.ABCMeta else _ClassTwin
    return type(f"_Twin{meta.__name__}", (_ClassTwin, meta), {})


def call_block(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Calling the twin of a block: the library's own code runs on the block itself."""
    return twin_parts(self)[1](*args, **kwargs)


class TwinModule(types.ModuleType):
    """A module of the user's: its members are seen like globals."""

    def __init__(self, reach: Reach, module: types.ModuleType, path: Path) -> None:
        super().__init__(module.__name__)
        types.ModuleType.__getattribute__(self, "__dict__")["twin_"] = (reach, module, path)

    def __getattribute__(self, name: str) -> Any:
        reach, module, path = types.ModuleType.__getattribute__(self, "__dict__")["twin_"]
        if name == "__class__":
            return types.ModuleType
        if name.startswith("__"):
            return getattr(module, name)
        try:
            found = getattr(module, name)
        except AttributeError:
            reach.recording.guards.missing(path.attribute(name))
            raise
        return reach.see(found, path.attribute(name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise StateError(
            f"the module attribute {name} was assigned while tracing", where=current().here()
        )


class SuperTwin:
    """`super()` whose methods are rebuilt."""

    def __init__(self, reach: Reach, proxy: Any, instance: Any) -> None:
        self._parts = (reach, proxy, instance)

    def __getattribute__(self, name: str) -> Any:
        reach, proxy, _ = object.__getattribute__(self, "_parts")
        found = getattr(proxy, name)
        if isinstance(found, types.MethodType) and is_users_function(found.__func__):
            guard_member(reach, proxy.__thisclass__, name, found.__func__)
            return types.MethodType(reach.rebuild(found.__func__), found.__self__)
        return found


def guard_member(reach: Reach, below: type, name: str, member: Any) -> None:
    """The class from which `super()` of `below` takes a method keeps that method."""
    for base in below.__mro__[1:]:
        if vars(base).get(name) is member:
            path = Path.of_object(base, base.__name__).attribute(name)
            return reach.recording.guards.identity(path, member)
