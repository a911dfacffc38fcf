"""What the functions of a branch or a loop can reach and change in Python.

Lists, dicts, sets, objects, and the variables that functions share (cells) are not part of a graph.
A section looks at them before and after: what was exchanged becomes a result of the node.
"""

from __future__ import annotations

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

    def word(self, key: Key) -> str:
        """How the user reaches a thing in it."""
        return f"{self.name}[{key!r}]"

    def describe(self, items: dict[Key, Any]) -> str:
        """What it holds, in a message."""
        return f"{type(self.thing).__name__} of {len(items)}"


class _List(Holder):
    def items(self) -> dict[Key, Any]:
        return dict(enumerate(self.thing))

    def hold(self, items: dict[Key, Any]) -> None:
        self.thing[:] = items.values()


class _Deque(_List):
    def hold(self, items: dict[Key, Any]) -> None:
        self.thing.clear()
        self.thing.extend(items.values())


class _Dict(Holder):
    def items(self) -> dict[Key, Any]:
        return dict(self.thing)

    def hold(self, items: dict[Key, Any]) -> None:
        self.thing.clear()
        self.thing.update(items)


class _Set(Holder):
    def items(self) -> dict[Key, Any]:
        return dict.fromkeys(self.thing)

    def hold(self, items: dict[Key, Any]) -> None:
        self.thing.clear()
        self.thing.update(items)


class _Object(_Dict):
    def __init__(self, name: str, thing: Any) -> None:
        super().__init__(name, object.__getattribute__(thing, "__dict__"))

    def word(self, key: Key) -> str:
        return f"{self.name}.{key}"


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
    collections.deque: _Deque,
    collections.defaultdict: _Dict,
    collections.OrderedDict: _Dict,
    collections.Counter: _Dict,
    types.CellType: _Cell,
    Growing: _Growing,
}


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
        holder = _holder(name, thing)
        if holder is not None:
            found.append(holder)
            pending += [
                (holder.word(key), child)
                for key, child in holder.items().items()
                if type(child) not in _PLAIN
            ]
        elif isinstance(thing, tuple):
            pending += [(f"{name}[{at}]", child) for at, child in enumerate(thing)]
        elif isinstance(thing, types.FunctionType):
            pending += _of_function(recording, thing, found)
        elif isinstance(thing, types.BuiltinMethodType):  # `append = items.append`
            pending.append((name, thing.__self__))
        elif isinstance(thing, types.MethodType):
            pending += [(name, thing.__func__), ("self", thing.__self__)]
        elif isinstance(thing, functools.partial):
            pending += [(name, thing.func), (name, thing.args), (name, thing.keywords)]
        elif isinstance(thing, Iterator) and not hasattr(type(thing), "symbolic_"):
            raise UnsupportedError(
                f"{name} is an iterator, and a recorded branch or loop would take its next item "
                "once only, while tracing",
                where=recording.here(),
                instead=f"a list of the items; or {name} = next(...) outside",
            )
    return found


_PLAIN = (bool, int, float, complex, str, bytes, type(None), types.ModuleType, type)


def _holder(name: str, thing: Any) -> Holder | None:
    kind = _KINDS.get(type(thing))
    if kind is not None:
        return kind(name, thing)
    if is_twin(thing) or isinstance(thing, types.FunctionType | types.ModuleType | type):
        return None
    if is_users(type(thing)) and hasattr(thing, "__dict__"):
        return _Object(name, thing)
    return None


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
