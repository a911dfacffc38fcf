"""Where two ways meet: what each leaf of a structure is, and whether two are of one kind.

Structures are opened as deep as tuples, lists, dicts, dataclasses and named tuples go.  A leaf is
an array or a number; everything else must be the same on both ways.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import JoinError, Place
from minigraph.ir import (
    LEAF,
    SCALARS,
    ArrayType,
    Branch,
    Loc,
    ScalarType,
    Static,
    Tree,
    Type,
    Value,
    freeze,
    is_container,
    items,
)

from .arrays import TracedArray
from .operands import Traced, operand
from .recording import Recording, Storage
from .scalars import TracedDim, TracedScalar
from .sections import Section
from .twins import original
from .undefined import NEVER, Undefined
from .views import Layout

UNNAMED = "what the branches return"


class Kind:
    """What an array or a number is, apart from its contents.

    Attributes:
        type: dtype and shape, or the class of a Python number.
        scalar: it is a NumPy scalar, not an array without axes.
        layout: what is known of its memory layout (of arrays).
    """

    __slots__ = ("layout", "scalar", "type")

    def __init__(self, type_: Type, scalar: bool, layout: Layout | None) -> None:
        self.type = type_
        self.scalar = scalar
        self.layout = layout

    @classmethod
    def of(cls, recording: Recording, thing: Any) -> Kind:
        """The kind of an array or a number."""
        if isinstance(thing, TracedArray):
            return cls(thing.type_, thing.scalar_, thing.layout_)
        value = operand(recording, thing)
        if not isinstance(value.type, ArrayType):
            return cls(value.type, False, None)
        scalar = isinstance(thing, np.generic) and recording.arrays is None
        c_order = scalar or not isinstance(thing, np.ndarray) or thing.flags.c_contiguous
        return cls(value.type, scalar, Layout(value.type.shape, bool(c_order)))

    def fits(self, other: Kind) -> bool:
        """A value of the other kind may stand in the place of one of this kind."""
        return self.type == other.type and self.scalar == other.scalar

    def both(self, other: Kind) -> Kind:
        """What is known of something that is one of these two."""
        mine, its = self.layout, other.layout
        if mine is None or its is None or mine is its:
            return self
        c_order = mine.c_order and its.c_order
        depends = mine.depends | its.depends
        return Kind(self.type, self.scalar, Layout(mine.shape, c_order, depends))

    @property
    def c_order(self) -> bool:
        return self.layout is None or self.layout.c_order

    def stand(self, recording: Recording, value: Value) -> Any:
        """A value of this kind as the user's code sees it, in memory of its own."""
        if self.layout is None:
            return TracedScalar(recording, value)
        return TracedArray(recording, Storage(value), (), self.layout, self.scalar)

    def zero(self, recording: Recording) -> Value:
        """Some value of this kind, where nobody reads it."""
        if isinstance(self.type, ScalarType):
            return recording.constant(self.type.python(0))
        assert isinstance(self.type, ArrayType)
        attrs = {"shape": self.type.shape, "dtype": self.type.dtype}
        inputs = (recording.constant(0),)
        return recording.emit(ops.get("full"), inputs, attrs, checked=True)[0]

    def __str__(self) -> str:
        if self.scalar:
            assert isinstance(self.type, ArrayType)
            return f"np.{self.type.dtype.name}"
        return str(self.type)


def hint_of(name: str) -> str:
    """What a value is called for a user's name: `state[0].h` as `state_0_h`."""
    word = "".join(c if c.isalnum() or c == "_" else " " for c in name)
    word = "_".join(word.split())
    return word if word.isidentifier() else ""


def is_data(thing: Any) -> bool:
    """An array or a number, traced or not."""
    kind = type(thing)
    return (
        isinstance(thing, TracedArray | TracedScalar | TracedDim | np.ndarray | np.generic)
        or kind in SCALARS
        or hasattr(kind, "recorded_value_")
        or hasattr(kind, "eager_array_")
    )


def is_plain(thing: Any) -> bool:
    """A number that is the same at each call."""
    return type(thing) in SCALARS or isinstance(thing, np.generic)


def same(a: Any, b: Any) -> bool:
    """The two are one object, or equal plain values, or numbers that are one value."""
    if a is b:
        return True
    if isinstance(a, TracedScalar) and isinstance(b, TracedScalar):
        return a.value_ is b.value_
    kinds = original(type(a)), original(type(b))
    if kinds[0] is not kinds[1] or isinstance(a, Traced | Undefined | np.ndarray):
        return False
    if kinds[0] in SCALARS or isinstance(a, np.generic):
        return freeze(a) == freeze(b)
    if kinds[0] in (str, bytes, range, slice, type(None)) or isinstance(a, np.dtype):
        return a == b
    return original(a) is original(b)


def children(thing: Any) -> tuple[type, list[tuple[Any, Any]]] | None:
    """The class and the (key, child) pairs of a structure; None: it is not opened."""
    if isinstance(thing, Traced | np.ndarray) or not is_container(thing):
        return None
    kind = original(thing.__class__)
    return kind, items(kind(thing) if kind in (list, dict) else thing)


def below(name: str, kind: type, key: Any) -> str:
    """How a user reaches a part of what is called `name`."""
    return f"{name}[{key!r}]" if kind in (tuple, list, dict) else f"{name}.{key}"


def describe(recording: Recording, thing: Any) -> str:
    """What something is, in a message."""
    if is_data(thing):
        return str(Kind.of(recording, thing))
    if isinstance(thing, Undefined):
        return "not assigned"
    if thing is None or isinstance(thing, str | bytes):
        return repr(thing)
    opened = children(thing)
    if opened is not None:
        return f"{opened[0].__name__} of {len(opened[1])}"
    return getattr(thing, "__name__", None) or f"a {original(type(thing)).__name__}"


def place_of(recording: Recording, thing: Any, function: Any, name: str) -> Place | None:
    """Where something was computed, or where the function assigns the name, or its `def`."""
    if isinstance(thing, TracedArray | TracedScalar):
        node = recording.producer(thing.value_)
        if node is not None and node.loc is not None and node.op.name != "const":
            return node.loc
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return None
    stores = [
        step.positions.lineno
        for step in dis.get_instructions(code)
        if step.opname.startswith("STORE_") and step.argval == name and step.positions
    ]
    return Loc(code.co_filename, next((s for s in stores[::-1] if s), code.co_firstlineno))


class Side:
    """One of two branches: the function, what it recorded, and what it returned."""

    def __init__(
        self, recording: Recording, word: str, function: Callable[..., Any], operands: Sequence[Any]
    ) -> None:
        self.word = word
        self.function = function
        self.section = Section(recording)
        with self.section:
            self.result = function(*operands)
            self._values = {
                id(thing): (thing, operand(recording, thing), Kind.of(recording, thing))
                for thing in _data_in(self.result)
            }

    def value(self, thing: Any) -> Value:
        """The value of a leaf of the result, as it was at the end of the branch."""
        return self._values[id(thing)][1]

    def kind(self, thing: Any) -> Kind:
        """The kind of a leaf of the result."""
        return self._values[id(thing)][2]

    def pad(self, recording: Recording, kind: Kind) -> Value:
        """Some value of this kind, made in this branch."""
        with Section(recording) as section:
            value = kind.zero(recording)
        self.section.add(section.nodes)
        return value


def _data_in(thing: Any) -> list[Any]:
    """The leaves of a structure that are data."""
    found: list[Any] = []
    pending = [thing]
    while pending:
        part = pending.pop()
        if is_data(part):
            found.append(part)
        else:
            opened = children(part)
            pending += [child for _, child in opened[1]] if opened else ()
    return found


class Join:
    """What two branches return, as one structure.

    Attributes:
        outputs: the values that become results of the node, a pair of one from each branch.
        kinds: what the results are; hints: what the user calls them.
    """

    def __init__(self, recording: Recording, first: Side, second: Side) -> None:
        self.recording = recording
        self.sides = (first, second)
        self.outputs: list[tuple[Value, Value]] = []
        self.kinds: list[Kind] = []
        self.hints: list[str] = []

    def join(self, a: Any, b: Any, name: str) -> Tree:
        """The structure of what is `a` after the first branch and `b` after the second.

        Raises:
            JoinError: they are not the same kind of thing.
        """
        if self._stays(a, b):
            return Static(a, "")
        if a is NEVER or b is NEVER or isinstance(a, Undefined) or isinstance(b, Undefined):
            return self._one_side(a, b, name)
        if is_data(a) and is_data(b):
            return self._leaf(a, b, name)
        one, other = children(a), children(b)
        if one is None or other is None or one[0] is not other[0]:
            raise self._error(a, b, name)
        if [key for key, _ in one[1]] != [key for key, _ in other[1]]:
            raise self._error(a, b, name)
        parts = [
            self.join(x, y, below(name, one[0], key))
            for (key, x), (_, y) in zip(one[1], other[1], strict=True)
        ]
        return Branch(one[0], [key for key, _ in one[1]], parts)

    def _stays(self, a: Any, b: Any) -> bool:
        """Both are one thing from before, or equal plain values."""
        return same(a, b) and not (
            isinstance(a, TracedScalar) and any(side.section.made(a.value_) for side in self.sides)
        )

    def _one_side(self, a: Any, b: Any, name: str) -> Tree:
        """One branch does not come here, or does not assign this."""
        here = 1 if a is NEVER or isinstance(a, Undefined) else 0
        there = 1 - here
        found, lacking = (a, b) if here == 0 else (b, a)
        if isinstance(found, Undefined) or found is NEVER:
            return Static(a if isinstance(a, Undefined) else b, "")
        if lacking is not NEVER and not lacking.guarded:
            where = place_of(self.recording, found, self.sides[here].function, name)
            missing = place_of(self.recording, None, self.sides[there].function, "")
            sides = (
                (self.sides[here].word, f"{name} is assigned", where),
                (self.sides[there].word, f"{name} is not", missing),
            )
            return Static(Undefined(lacking.name, sides), "")
        if is_data(found):
            if is_plain(found):
                return Static(found, "")
            kind = self.sides[here].kind(found)
            value, padding = (
                self.sides[here].value(found),
                self.sides[there].pad(self.recording, kind),
            )
            pair = (value, padding) if here == 0 else (padding, value)
            return self._output(pair, kind, name)
        opened = children(found)
        if opened is None:
            return Static(found, "")
        parts = [
            self._one_side(
                *((child, lacking) if here == 0 else (lacking, child)), below(name, opened[0], key)
            )
            for key, child in opened[1]
        ]
        return Branch(opened[0], [key for key, _ in opened[1]], parts)

    def _leaf(self, a: Any, b: Any, name: str) -> Tree:
        first, second = self.sides
        one, other = first.kind(a), second.kind(b)
        if not one.fits(other):
            raise self._error(a, b, name)
        return self._output((first.value(a), second.value(b)), one.both(other), name)

    def _output(self, pair: tuple[Value, Value], kind: Kind, name: str) -> Tree:
        self.outputs.append(pair)
        self.kinds.append(kind)
        self.hints.append("" if name.startswith(UNNAMED) else hint_of(name))
        return LEAF

    def _error(self, a: Any, b: Any, name: str) -> JoinError:
        recording = self.recording
        what = [describe(recording, thing) for thing in (a, b)]
        sides = tuple(
            (side.word, text, place_of(recording, thing, side.function, name))
            for side, text, thing in zip(self.sides, what, (a, b), strict=True)
        )
        return JoinError(
            f"{name} is {what[0]} after one branch and {what[1]} after the other",
            sides=sides,
            where=recording.here(),
            instead="the same type, dtype and shape after both",
        )
