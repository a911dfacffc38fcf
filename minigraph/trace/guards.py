"""Guards: what must hold for a compiled entry to be used again, as one Python expression.

A `Path` says how the function reaches something (`x`, `self.w`, `table[0]`, a global, a cell), both
for people and as code.  `Guards` collects conditions about paths in the order they were found.
"""

from __future__ import annotations

import copy
import keyword
import math
import struct
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from minigraph.ir import Dim


class Path:
    """A way to reach an object: a root and steps from it.

    Attributes:
        text: as the user would write it.
        kind: "argument", "global", "cell", "object", "attribute", "class", "item".
        id: equal for equal paths only (two globals of one name differ).
    """

    __slots__ = ("holder", "id", "key", "kind", "parent", "text")

    def __init__(
        self, kind: str, key: Any, text: str, parent: Path | None = None, holder: Any = None
    ) -> None:
        self.kind = kind
        self.key = key
        self.text = text
        self.parent = parent
        self.holder = holder
        self.id: tuple[Any, ...] = (
            kind,
            type(key),
            key,
            id(holder),
            parent.id if parent is not None else None,
        )

    @classmethod
    def argument(cls, name: str) -> Path:
        return cls("argument", name, name)

    @classmethod
    def of_global(cls, namespace: dict[str, Any], name: str) -> Path:
        return cls("global", name, name, holder=namespace)

    @classmethod
    def of_cell(cls, cell: Any, name: str) -> Path:
        return cls("cell", name, name, holder=cell)

    @classmethod
    def of_object(cls, owner: Any, name: str) -> Path:
        """Something that the entry keeps alive itself (a function's defaults)."""
        return cls("object", name, name, holder=owner)

    def attribute(self, name: str) -> Path:
        return Path("attribute", name, f"{self.text}.{name}", self)

    def owner(self) -> Path:
        """The object that a bound method belongs to; to the method itself it is `self`."""
        text = "self" if self.kind == "object" else f"{self.text}.__self__"
        return Path("attribute", "__self__", text, self)

    def of_class(self) -> Path:
        """The class of the object."""
        return Path("class", None, f"type({self.text})", self)

    def item(self, key: Any) -> Path:
        return Path("item", key, f"{self.text}[{key!r}]", self)

    def steps(self) -> list[Path]:
        """From the root to this path."""
        chain: list[Path] = []
        path: Path | None = self
        while path is not None:
            chain.append(path)
            path = path.parent
        return chain[::-1]

    def code(self, names: Names) -> str:
        """The path as a Python expression; holders and odd keys are bound as `names`."""
        text = ""
        for path in self.steps():
            if path.kind == "argument":
                text = path.key
            elif path.kind == "global":
                text = f"{names.bind(path.holder, 'globals')}[{path.key!r}]"
            elif path.kind == "cell":
                text = f"{names.bind(path.holder, 'cell')}.cell_contents"
            elif path.kind == "object":
                text = names.bind(path.holder, "object")
            elif path.kind == "attribute":
                plain = path.key.isidentifier() and not keyword.iskeyword(path.key)
                text = f"{text}.{path.key}" if plain else f"getattr({text}, {path.key!r})"
            elif path.kind == "class":
                text = f"type({text})"
            elif type(path.key) in (int, str):
                text = f"{text}[{path.key!r}]"
            else:
                text = f"{text}[{names.bind(path.key, 'key')}]"
        return text

    def __repr__(self) -> str:
        return f"Path({self.text})"


class Names:
    """Objects that generated code refers to, each bound to one name."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.bound: dict[str, Any] = {}
        self._by_id: dict[int, str] = {}
        self._reserved = frozenset(reserved)
        self._counts: dict[str, int] = {}
        self.read: dict[str, str] = {}  # a path's code -> the local that holds what it led to

    def bind(self, thing: Any, word: str) -> str:
        name = self._by_id.get(id(thing))
        if name is None:
            name = self._by_id[id(thing)] = self._fresh(word)
            self.bound[name] = thing
        return name

    def local(self, code: str) -> str:
        """The local variable for what a path leads to; whoever asks first assigns it."""
        if code not in self.read:
            self.read[code] = self._fresh("read")
        return self.read[code]

    def _fresh(self, word: str) -> str:
        word = "".join(c for c in word if c.isalnum() or c == "_")
        index = self._counts.get(word, 0)
        while (name := f"_{word}{index}") in self._reserved:
            index += 1
        self._counts[word] = index + 1
        return name


class Condition:
    """One thing that must hold: code, and how it reads when it does not."""

    __slots__ = ("code", "describe", "path")

    def __init__(
        self, path: Path, code: Callable[[str, Names], str], describe: Callable[[Any], str]
    ) -> None:
        self.path = path
        self.code = code
        self.describe = describe


def same_number(a: Any, b: Any) -> bool:
    """Equal in type and in every bit, the sign of zero included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("=d", a) == struct.pack("=d", b)
    if isinstance(a, complex):
        return struct.pack("=dd", a.real, a.imag) == struct.pack("=dd", b.real, b.imag)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return bool(a == b)


def same_content(a: Any, b: Any) -> bool:
    """Equal in type and content, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_content(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_content, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return same_number(a, b)


def _plain(value: Any) -> bool:
    """`is` or `==` with the type settles equality."""
    return not isinstance(value, float | complex | np.generic) or (
        isinstance(value, float) and value != 0.0 and not math.isnan(value)
    )


class Guards:
    """The conditions of one entry."""

    def __init__(self) -> None:
        self.conditions: list[Condition] = []
        self._seen: set[tuple[Any, ...]] = set()
        self._absent: dict[int, set[str]] = {}

    def _add(self, key: tuple[Any, ...], condition: Condition) -> None:
        if key not in self._seen:
            self._seen.add(key)
            self.conditions.append(condition)

    def type_is(self, path: Path, kind: type) -> None:
        """`type(path) is kind`."""
        self._add(
            ("type", path.id, kind),
            Condition(
                path,
                lambda code, names: f"type({code}) is {names.bind(kind, kind.__name__)}",
                lambda now: f"{path.text} is a {type(now).__name__}, was a {kind.__name__}",
            ),
        )

    def array(self, path: Path, array: Any, dims: dict[int, Any] | None = None) -> None:
        """Type, dtype, shape and order of an array or NumPy scalar.

        An array that is no argument itself is mostly the same object at each call.  Of such a one
        only dtype and shape are looked at: its order changes by nothing but assignment to strides.

        Args:
            path: how it is reached.
            array: as it is now; of its memory layout only counts whether it is in C order.
            dims: the axes of named size.
        """
        kind, dtype, shape = type(array), array.dtype, array.shape
        dense = bool(array.flags.c_contiguous)
        named = dims or {}
        new = kind is not np.ndarray or named or path.kind == "argument"
        same = None if new else weakref.ref(array)  # an entry keeps no array alive

        def code(text: str, names: Names) -> str:
            if same is None:
                return in_full(text, names)
            local = names.local(text)
            is_same = f"({local} := {text}) is {names.bind(same, 'array')}()"
            looks = (
                f"{local}.dtype is {names.bind(dtype, dtype.name)} and {local}.shape == {shape!r}"
            )
            return f"({is_same} and {looks} or {in_full(local, names)})"

        def in_full(text: str, names: Names) -> str:
            found = f"type({text}) is {names.bind(kind, kind.__name__)}"
            if not issubclass(kind, np.generic):
                bound = names.bind(dtype, dtype.name)
                found += f" and ({text}.dtype is {bound} or {text}.dtype == {bound})"
                if not named:
                    found += f" and {text}.shape == {shape!r}"
                else:
                    found += f" and {text}.ndim == {len(shape)}"
                    for axis, size in enumerate(shape):
                        wanted = " > 0" if axis in named else f" == {size}"
                        found += f" and {text}.shape[{axis}]{wanted}"
                if len(shape) > 1:
                    found += f" and {'' if dense else 'not '}{text}.flags.c_contiguous"
            return found

        def describe(now: Any) -> str:
            then = f"{kind.__name__} {dtype}{shape}"
            seen = type(now).__name__
            if isinstance(now, np.ndarray | np.generic):
                seen += f" {now.dtype}{now.shape}"
                if seen == then:
                    seen += " in C order" if now.flags.c_contiguous else " not in C order"
            return f"{path.text} is {seen}, was {then}"

        self._add(("array", path.id), Condition(path, code, describe))

    def size(self, path: Path, axis: int, size: Dim, read: Mapping[str, tuple[Path, int]]) -> None:
        """The extent of an axis agrees with the named dimensions, read from other arrays."""

        def extent(names: Names, name: str) -> str:
            source, at = read[name]
            return f"{source.code(names)}.shape[{at}]"

        def code(text: str, names: Names) -> str:
            symbols = {"add": "+", "multiply": "*", "floor_divide": "//"}
            wanted = size.build(
                lambda name: extent(names, name),
                str,
                lambda op, a, b: f"({a} {symbols[op]} {b})",
            )
            return f"{text}.shape[{axis}] == {wanted}"

        def describe(now: Any) -> str:
            return f"{path.text} has extent {now.shape[axis]} on axis {axis}, which is not {size}"

        self._add(("size", path.id, axis), Condition(path, code, describe))

    def layout(self, path: Path, array: np.ndarray[Any, Any]) -> None:
        """The memory layout, where the program depends on it."""
        strides = array.strides
        self._add(
            ("layout", path.id),
            Condition(
                path,
                lambda code, names: f"{code}.strides == {strides!r}",
                lambda now: f"{path.text} has strides {now.strides}, had {strides}",
            ),
        )

    def writable(self, path: Path) -> None:
        """An array that is written is not read-only."""
        self._add(
            ("writable", path.id),
            Condition(
                path,
                lambda code, names: f"{code}.flags.writeable",
                lambda now: f"{path.text} is read-only",
            ),
        )

    def identity(self, path: Path, thing: Any) -> None:
        """The very same object (a function, a class, a module)."""
        if path.kind == "object":
            return  # the entry itself holds it
        self._add(
            ("identity", path.id),
            Condition(
                path,
                lambda code, names: f"{code} is {names.bind(thing, 'object')}",
                lambda now: f"{path.text} is another object now",
            ),
        )

    def equals_method(self, path: Path, thing: Any) -> None:
        """The same method written in C, of any owner (which has its own conditions)."""
        self._add(
            ("method", path.id),
            Condition(
                path,
                lambda code, names: f"{code}.__name__ == {thing.__name__!r}",
                lambda now: f"{path.text} is another method now",
            ),
        )

    def equals(self, path: Path, thing: Any) -> None:
        """Equal in type and value."""

        def code(text: str, names: Names) -> str:
            if thing is None or thing is True or thing is False:
                return f"{text} is {thing!r}"
            if _plain(thing):
                kind = names.bind(type(thing), type(thing).__name__)
                spelled = repr(thing) if type(thing) in (int, str, float) else None
                other = (
                    spelled
                    if spelled is not None and spelled != "inf" and spelled != "-inf"
                    else names.bind(thing, "constant")
                )
                return f"type({text}) is {kind} and {text} == {other}"
            same = names.bind(same_number, "same")
            return f"{same}({text}, {names.bind(thing, 'constant')})"

        self._add(
            ("equals", path.id),
            Condition(path, code, lambda now: f"{path.text} is {now!r}, was {thing!r}"),
        )

    def equals_deeply(self, path: Path, thing: Any) -> None:
        """Equal in content: a static argument, kept as a copy."""
        kept = copy.deepcopy(thing)
        if not same_content(thing, kept):  # it holds what has no equality: the object itself then
            return self.identity(path, thing)
        self._add(
            ("deep", path.id),
            Condition(
                path,
                lambda code, names: (
                    f"{names.bind(same_content, 'same')}({code}, {names.bind(kept, 'static')})"
                ),
                lambda now: f"the static argument {path.text} is {now!r}, was {kept!r}",
            ),
        )

    def pin(self, path: Path, value: Any, why: str) -> None:
        """A Python number among the arguments whose value was needed while tracing."""

        def describe(now: Any) -> str:
            return f"{path.text} is {now!r}, was {value!r} (its value was needed: {why})"

        def code(text: str, names: Names) -> str:
            if type(value) is int or (
                type(value) is float and _plain(value) and not math.isinf(value)
            ):
                return f"{text} == {value!r}"
            same = names.bind(same_number, "same")
            return f"{same}({text}, {names.bind(value, 'constant')})"

        self._add(("pin", path.id), Condition(path, code, describe))

    def length(self, path: Path, kind: type, length: int) -> None:
        """A container of this class and length."""
        self._add(
            ("length", path.id),
            Condition(
                path,
                lambda code, names: (
                    f"type({code}) is {names.bind(kind, kind.__name__)} and len({code}) == {length}"
                ),
                lambda now: f"{path.text} is another {kind.__name__} (length {length} before)",
            ),
        )

    def keys(self, path: Path, kind: type, keys: tuple[Any, ...]) -> None:
        """A dict with these keys in this order."""
        self._add(
            ("keys", path.id),
            Condition(
                path,
                lambda code, names: (
                    f"type({code}) is {names.bind(kind, kind.__name__)} and "
                    f"tuple({code}) == {names.bind(keys, 'keys')}"
                ),
                lambda now: f"{path.text} has other keys than {keys!r}",
            ),
        )

    def absent(self, namespace: dict[str, Any], name: str) -> None:
        """A global of this name does not exist (a builtin of that name was meant)."""
        names = self._absent.get(id(namespace))
        if names is not None:
            names.add(name)
            return
        names = self._absent[id(namespace)] = {name}
        self._add(
            ("absent", id(namespace)),
            Condition(
                Path.of_object(namespace, "the globals"),
                lambda code, bound: (
                    f"{code}.keys().isdisjoint({bound.bind(frozenset(names), 'names')})"
                ),
                lambda now: f"there is a global {min(names & now.keys(), default='')} now",
            ),
        )

    def missing(self, path: Path) -> None:
        """An attribute or global that does not exist."""
        owner, name = path.parent, path.key
        if owner is None:
            return
        self._add(
            ("missing", path.id),
            Condition(
                owner,
                lambda code, names: f"not hasattr({code}, {name!r})",
                lambda now: f"{path.text} exists now",
            ),
        )

    def expressions(self, names: Names) -> list[str]:
        """Each condition as a Python expression."""
        return [condition.code(condition.path.code(names), names) for condition in self.conditions]
