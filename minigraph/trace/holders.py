"""What the functions of a branch or a loop can reach and change in Python.

Lists, dicts, sets, objects, and the variables that functions share (cells) are not part of a graph.
A section looks at them before and after: what was exchanged becomes a result of the node.
"""

from __future__ import annotations

import array
import collections
import dis
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

from minigraph.errors import UnsupportedError

from .growing import Growing
from .operands import Traced
from .recording import Recording
from .twins import is_twin
from .undefined import Undefined
from .users import is_users

Key = Any
EMPTY = Undefined("a variable")


class Holder:
    """Something that holds things by key: a container, a variable, an object.

    Attributes:
        name: how the user reaches it.
        thing: the container, the cell or the object.
    """

    def __init__(self, name: str, thing: Any) -> None:
        self.name = name
        self.thing = thing

    def items(self) -> dict[Key, Any]:
        """What it holds."""
        raise NotImplementedError

    def hold(self, items: dict[Key, Any]) -> None:
        """Let it hold this, and nothing else."""
        raise NotImplementedError

    def differs(self, before: dict[Key, Any]) -> bool:
        """It holds something else than before."""
        now = self.items()
        return list(now) != list(before) or any(now[key] is not before[key] for key in now)

    def word(self, key: Key) -> str:
        """How the user reaches a thing in it."""
        return f"{self.name}[{key!r}]"

    def describe(self, items: dict[Key, Any]) -> str:
        """What it holds, in a message."""
        return f"{type(self.thing).__name__} of {len(items)}"


class _Contents(Holder):
    """What a container of Python's holds, also where the user's class adds methods to it."""

    def __init__(self, name: str, thing: Any) -> None:
        super().__init__(name, thing)
        self.kind: Any = next(each for each in type(thing).__mro__ if each in _KINDS)


class _List(_Contents):
    def items(self) -> dict[Key, Any]:
        return dict(enumerate(self.kind.__iter__(self.thing)))

    def hold(self, items: dict[Key, Any]) -> None:
        self.kind.__setitem__(self.thing, slice(None), items.values())


class _Numbers(_List):
    """A `bytearray` or an `array.array`, which makes its items anew each time."""

    def __init__(self, name: str, thing: Any) -> None:
        super().__init__(name, thing)
        self.known: list[Any] = []

    def items(self) -> dict[Key, Any]:
        now = list(self.kind.__iter__(self.thing))
        pairs = zip(self.known, now, strict=False)
        kept = [old if repr(old) == repr(new) else new for old, new in pairs]
        self.known = kept + now[len(kept) :]
        return dict(enumerate(self.known))

    def hold(self, items: dict[Key, Any]) -> None:
        numbers = self.kind.__getitem__(self.thing, slice(0, 0))
        numbers.extend(items.values())
        self.kind.__setitem__(self.thing, slice(None), numbers)


class _Deque(_List):
    def hold(self, items: dict[Key, Any]) -> None:
        self.kind.clear(self.thing)
        self.kind.extend(self.thing, items.values())


class _Dict(_Contents):
    def items(self) -> dict[Key, Any]:
        return dict(self.kind.items(self.thing))

    def hold(self, items: dict[Key, Any]) -> None:
        self.kind.clear(self.thing)
        for key, thing in items.items():
            self.kind.__setitem__(self.thing, key, thing)


class _Set(_Contents):
    def items(self) -> dict[Key, Any]:
        return dict.fromkeys(self.kind.__iter__(self.thing))

    def hold(self, items: dict[Key, Any]) -> None:
        self.kind.clear(self.thing)
        self.kind.update(self.thing, items)


class _Object(_Dict):
    def __init__(self, name: str, thing: Any) -> None:
        super().__init__(name, object.__getattribute__(thing, "__dict__"))

    def word(self, key: Key) -> str:
        return f"{self.name}.{key}"


class _Slots(Holder):
    """The attributes of an object that its class names in `__slots__`."""

    def __init__(self, name: str, thing: Any) -> None:
        super().__init__(name, thing)
        self.slots = _slots(type(thing))

    def items(self) -> dict[Key, Any]:
        found: dict[Key, Any] = {}
        for name, slot in self.slots.items():
            try:
                found[name] = slot.__get__(self.thing)
            except AttributeError:
                found[name] = EMPTY
        return found

    def hold(self, items: dict[Key, Any]) -> None:
        for (name, slot), before in zip(self.slots.items(), self.items().values(), strict=True):
            if items[name] is not EMPTY:
                slot.__set__(self.thing, items[name])
            elif before is not EMPTY:
                slot.__delete__(self.thing)

    def word(self, key: Key) -> str:
        return f"{self.name}.{key}"


def _slots(kind: type) -> dict[str, Any]:
    """The descriptors of the slots of a class of the user's, and of those that it is made from."""
    return {
        name: slot
        for each in reversed(kind.__mro__)
        if is_users(each)
        for name, slot in vars(each).items()
        if isinstance(slot, types.MemberDescriptorType)
    }


class _Cell(Holder):
    def items(self) -> dict[Key, Any]:
        try:
            return {"": self.thing.cell_contents}
        except ValueError:
            return {"": EMPTY}

    def hold(self, items: dict[Key, Any]) -> None:
        if items[""] is EMPTY:
            del self.thing.cell_contents
        else:
            self.thing.cell_contents = items[""]

    def word(self, key: Key) -> str:
        return self.name


class _Growing(Holder):
    """A list that grows in a loop around: what a turn appends to it."""

    def items(self) -> dict[Key, Any]:
        return {"": self.thing.added_}

    def hold(self, items: dict[Key, Any]) -> None:
        self.thing.added_ = items[""]

    def word(self, key: Key) -> str:
        return self.name


class _Globals(Holder):
    """Those variables of a module that are assigned in functions."""

    def __init__(self, namespace: dict[str, Any], names: Iterable[str]) -> None:
        super().__init__("the module", namespace)
        self.names = list(names)

    def items(self) -> dict[Key, Any]:
        return {name: self.thing.get(name, EMPTY) for name in self.names}

    def hold(self, items: dict[Key, Any]) -> None:
        for name, thing in items.items():
            if thing is EMPTY:
                self.thing.pop(name, None)
            else:
                self.thing[name] = thing

    def word(self, key: Key) -> str:
        return key


_KINDS: dict[type, type[Holder]] = {
    list: _List,
    dict: _Dict,
    set: _Set,
    bytearray: _Numbers,
    array.array: _Numbers,
    collections.deque: _Deque,
    collections.defaultdict: _Dict,
    collections.OrderedDict: _Dict,
    collections.Counter: _Dict,
    types.CellType: _Cell,
    Growing: _Growing,
}

_OBJECTS = (
    collections.UserDict,
    collections.UserList,
    collections.ChainMap,
    types.SimpleNamespace,
)
"""Classes of Python's own whose objects are like those of the user's."""


def reachable(recording: Recording, roots: Iterable[tuple[str, Any]]) -> list[Holder]:
    """What can be changed by whoever has these (each with the name that the user has for it).

    Raises:
        UnsupportedError: an iterator is among it, whose place cannot be set back.
    """
    found: list[Holder] = []
    seen: set[int] = set()
    pending = list(roots)[::-1]
    while pending:
        name, thing = pending.pop()
        if id(thing) in seen or isinstance(thing, Traced | Undefined) or type(thing) in _PLAIN:
            continue
        seen.add(id(thing))
        holders = _holders(name, thing)
        found += holders
        for holder in holders:
            pending += [
                (holder.word(key), child)
                for key, child in holder.items().items()
                if type(child) not in _PLAIN
            ]
        if holders:
            continue
        if isinstance(thing, tuple):
            pending += [(f"{name}[{at}]", child) for at, child in enumerate(thing)]
        elif isinstance(thing, types.FunctionType):
            pending += _of_function(recording, thing, found)
        elif isinstance(thing, types.BuiltinMethodType):  # `append = items.append`
            pending.append((name, thing.__self__))
        elif isinstance(thing, types.MethodType):
            pending += [(name, thing.__func__), ("self", thing.__self__)]
        elif isinstance(thing, functools.partial):
            pending += [(name, thing.func), (name, thing.args), (name, thing.keywords)]
        elif isinstance(thing, types.BuiltinMethodType | types.MethodWrapperType):
            pending.append((name, thing.__self__))
        elif isinstance(thing, Iterator) and not hasattr(type(thing), "symbolic_"):
            raise UnsupportedError(
                f"{name} is an iterator, and a recorded branch or loop would take its next item "
                "once only, while tracing",
                where=recording.here(),
                instead=f"a list of the items; or {name} = next(...) outside",
            )
    return found


_PLAIN = (bool, int, float, complex, str, bytes, type(None), types.ModuleType, type)


def _holders(name: str, thing: Any) -> list[Holder]:
    """What holds things in this one: of an object, its contents, its variables and its slots."""
    kind = type(thing)
    if kind in _KINDS:
        return [_KINDS[kind](name, thing)]
    if is_twin(thing) or isinstance(thing, types.FunctionType | types.ModuleType | type):
        return []
    if not is_users(kind) and kind not in _OBJECTS:
        return []
    found = [_KINDS[each](name, thing) for each in kind.__mro__ if each in _KINDS][:1]
    if hasattr(thing, "__dict__"):
        found.append(_Object(name, thing))
    if _slots(kind):
        found.append(_Slots(name, thing))
    return found


def _of_function(
    recording: Recording, function: types.FunctionType, found: list[Holder]
) -> list[tuple[str, Any]]:
    """What a function can reach: its cells, its defaults, and a program's globals."""
    names = function.__code__.co_freevars
    children: list[tuple[str, Any]] = list(zip(names, function.__closure__ or (), strict=True))
    children += [("a default", thing) for thing in function.__defaults__ or ()]
    children += [("a default", thing) for thing in (function.__kwdefaults__ or {}).values()]
    if recording.reach is None and function.__globals__.get("__name__") == "__main__":
        read, stored = _global_names(function.__code__)
        namespace = function.__globals__
        lists = [name for name in read if type(namespace.get(name)) in (list, Growing)]
        if stored or lists:
            found.append(_Globals(namespace, dict.fromkeys([*stored, *lists])))
        children += [(name, namespace[name]) for name in read if name in namespace]
    return children


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that code (and code within) reads, and the globals that it assigns."""
    read: dict[str, None] = {}
    stored: dict[str, None] = {}
    pending = [code]
    while pending:
        part = pending.pop()
        read.update(dict.fromkeys(part.co_names))
        for step in dis.get_instructions(part):
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                stored[str(step.argval)] = None
        pending += [each for each in part.co_consts if isinstance(each, types.CodeType)]
    return tuple(read), tuple(stored)
