"""Guards: what must hold for a compiled entry to be used again, as one Python expression.

`Guards` collects conditions about paths in the order they were found.  What is known to change only
when a block's version is raised goes into a group, behind that one number (`groups.py`).
"""

from __future__ import annotations

import copy
import math
import struct
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minigraph.ir import Dim

from .paths import Names, Path


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


def _nothing(path: Path, inside: bool) -> None:
    """No version covers a path."""


class Guards:
    """The conditions of one entry.

    Attributes:
        conditions: in the order they were found.
        behind: the list of conditions behind a version that covers a path, if one does; the second
            argument says that the condition is about what is inside of an object, too.
        bound: by the ids of their paths the inputs that are bound in the entry, and the group that
            binds them anew (None: they stay the same).
        keyed: entries are kept by mode.
        pinned: the paths of numbers among the arguments whose value was needed.
    """

    def __init__(self) -> None:
        self.conditions: list[Condition] = []
        self.behind: Callable[[Path, bool], list[Condition] | None] = _nothing
        self.bound: dict[tuple[Any, ...], Any] = {}
        self.keyed = False
        self.pinned: list[Path] = []
        self._seen: set[tuple[Any, ...]] = set()
        self._absent: dict[int, set[str]] = {}

    def _add(self, key: tuple[Any, ...], condition: Condition, *, inside: bool = False) -> None:
        if key not in self._seen:
            self._seen.add(key)
            behind = self.behind(condition.path, inside)
            (self.conditions if behind is None else behind).append(condition)

    def seal(self) -> None:
        """The trace has ended; the guards keep nothing of it alive."""
        self.behind = _nothing

    def answer(self, path: Path, ask: Callable[[Any], bool], value: bool, text: str) -> None:
        """A question about what the path leads to has the same answer."""
        self._add(
            ("answer", path.id, id(ask)),
            Condition(
                path,
                lambda code, names: f"{names.bind(ask, ask.__name__)}({code}) is {value}",
                lambda now: f"no longer: {text}",
            ),
        )

    def mode(self, read: Callable[[], bool], value: bool, text: str) -> None:
        """A mode of the thread, such as training, is the same."""
        if self.keyed:
            return  # whoever keeps the entries looks at the mode first
        self._add(
            ("mode", id(read)),
            Condition(
                Path.of_object(read, text),
                lambda code, names: f"{code}() is {value}",
                lambda now: f"no longer: {text}",
            ),
        )

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

    def array(
        self,
        path: Path,
        array: Any,
        dims: dict[int, Any] | None = None,
        *,
        new: bool = False,
    ) -> None:
        """Type, dtype, shape and order of an array or NumPy scalar.

        An array that is no argument itself is mostly the same object at each call.  Of such a one
        only dtype and shape are looked at: its order changes by nothing but assignment to strides.

        Args:
            path: how it is reached.
            array: as it is now; of its memory layout only counts whether it is in C order.
            dims: the axes of named size.
            new: it is another one at each call.
        """
        kind, dtype, shape = type(array), array.dtype, array.shape
        dense = bool(array.flags.c_contiguous)
        named = dims or {}
        new = new or kind is not np.ndarray or bool(named) or path.kind == "argument"
        same = None if new else weakref.ref(array)  # an entry keeps no array alive

        def code(text: str, names: Names) -> str:
            if same is None and text.isidentifier():
                return in_full(text, names)
            local = names.local(text)
            if same is None:
                return in_full(local, names, f"({local} := {text})")
            is_same = f"({local} := {text}) is {names.bind(same, 'array')}()"
            looks = (
                f"{local}.dtype is {names.bind(dtype, dtype.name)} and {local}.shape == {shape!r}"
            )
            return f"({is_same} and {looks} or {in_full(local, names)})"

        def in_full(text: str, names: Names, first: str = "") -> str:
            found = f"type({first or text}) is {names.bind(kind, kind.__name__)}"
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

        self._add(("array", path.id), Condition(path, code, describe), inside=True)

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
            inside=True,
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
            inside=True,
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
            inside=isinstance(thing, set),
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
            inside=True,
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

        self.pinned.append(path)
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
            inside=True,
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
            inside=True,
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
            inside=True,
        )

    def expressions(self, names: Names) -> list[str]:
        """Each condition as a Python expression."""
        return [condition.code(condition.path.code(names), names) for condition in self.conditions]
