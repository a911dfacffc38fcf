"""Classes of the user's, and their objects, as traced code sees them: with rebuilt methods."""

from __future__ import annotations

import builtins
import types
from typing import TYPE_CHECKING, Any

from .blocks import is_block
from .effects import record_print
from .paths import Path
from .twins import call_block, class_twin_meta, original, twin_read, twin_write
from .users import is_rebuildable, is_users, is_users_code, is_users_function

if TYPE_CHECKING:
    from .reach import Reach

_MISSING = object()


class Classes:
    """The classes that one trace has met, each with its twin."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self._made: dict[type, type] = {}

    def twin_of(self, thing: type, path: Path) -> type:
        """A subclass whose own methods are rebuilt; to `isinstance` the two are one."""
        made = self._made.get(thing)
        if made is None:
            meta: Any = class_twin_meta(type(thing))
            made = self._made[thing] = meta(
                thing.__name__, (thing,), self._rebuilt_namespace(thing)
            )
            type.__setattr__(made, "reach_", (self.reach, thing, path))
            mro = Path.of_object(thing, thing.__name__).attribute("__mro__")
            self.reach.recording.guards.identity(mro, thing.__mro__)
            self._guard_members(thing)
            self._see_data(thing, made)
        return made

    def _see_data(self, thing: type, made: type) -> None:
        """What a class holds besides methods, for its objects that are made while tracing."""
        root = Path.of_object(thing, thing.__name__)
        for base in reversed(thing.__mro__):
            for name, member in vars(base).items() if is_users(base) else ():
                if (
                    name not in type.__getattribute__(made, "__dict__")
                    and not name.startswith(("__", "_abc_"))
                    and not hasattr(type(member), "__get__")
                    and getattr(thing, name, None) is member
                ):
                    type.__setattr__(made, name, self.reach.see(member, root.attribute(name)))

    def _guard_members(self, thing: type) -> None:
        """The methods of a class whose objects are made while tracing stay the same."""
        root = Path.of_object(thing, thing.__name__)
        for base in thing.__mro__:
            if is_users(base):
                for name, member in vars(base).items():
                    if is_users_function(member) and getattr(thing, name, None) is member:
                        self.reach.recording.guards.identity(root.attribute(name), member)

    def seen_class(self, thing: Any) -> type:
        """`type(thing)` as traced code sees it."""
        kind = original(thing.__class__)
        if not is_rebuildable(kind):
            return kind
        return self.twin_of(kind, Path.of_object(kind, kind.__name__))

    def _rebuilt_namespace(self, thing: type) -> dict[str, Any]:
        path = Path.of_object(thing, thing.__name__)
        namespace: dict[str, Any] = {
            "__qualname__": thing.__qualname__,
            "__module__": thing.__module__,
            "__slots__": (),
            "__class__": property(lambda _: self.twin_of(thing, path)),
        }
        own = set(namespace)
        for base in reversed(thing.__mro__):
            if not is_users(base):
                continue
            for name, member in vars(base).items():
                if name in ("__class__", "__dict__", "__weakref__", "__init_subclass__"):
                    continue
                rebuilt = self._member(member)
                if rebuilt is not _MISSING:
                    namespace[name] = rebuilt
                elif name not in own:  # it stands before what a base class has under this name
                    namespace.pop(name, None)
        return namespace

    def _member(self, member: Any) -> Any:
        """A method, property, class or static method with its functions rebuilt."""
        if member is builtins.print:
            return record_print
        if isinstance(member, types.FunctionType):
            return self.reach.rebuild(member) if is_users_code(member.__code__) else _MISSING
        if isinstance(member, property):
            parts: list[Any] = [
                self._member(part) if isinstance(part, types.FunctionType) else part
                for part in (member.fget, member.fset, member.fdel)
            ]
            return property(*(None if part is _MISSING else part for part in parts))
        if isinstance(member, classmethod | staticmethod):
            inner = self._member(member.__func__)
            return type(member)(inner) if inner is not _MISSING else _MISSING
        inner = getattr(type(member), "traced_function_", None)
        if inner is not None:
            self.reach.recording.script |= getattr(member, "script", False)
            return self._member(inner(member))
        return _MISSING

    def stand_in(self, thing: Any, path: Path) -> Any:
        """An object that stands for `thing`: reads are seen and guarded, writes are errors."""
        namespace = self._rebuilt_namespace(type(thing))
        for name in namespace:  # Python looks these up on the class, past `twin_read`
            member = getattr(type(thing), name, None)
            if name.startswith("__") and isinstance(member, types.FunctionType):
                self.reach.recording.guards.identity(path.of_class().attribute(name), member)
        namespace.pop("__slots__")
        namespace.update(
            __getattribute__=twin_read,
            __setattr__=twin_write,
            __delattr__=twin_write,
            __new__=lambda cls: object.__new__(cls),
        )
        namespace.pop("__init__", None)
        if is_block(thing) and "__call__" not in namespace:
            namespace["__call__"] = call_block
        namespace.setdefault("__hash__", lambda self: hash(original(self)))
        if "__eq__" in namespace and namespace.get("__hash__") is None:
            namespace["__hash__"] = None
        meta = class_twin_meta(type(type(thing)))
        made_class: Any = meta(type(thing).__name__, (type(thing),), namespace)
        type.__setattr__(made_class, "reach_", (self.reach, type(thing), path))
        made = object.__new__(made_class)
        object.__setattr__(made, "twin_", (self.reach, thing, path))
        own = object.__getattribute__(made, "__dict__")
        self.reach.attributes.append((own, dict(own)))
        return made
