"""What a thing is, apart from its contents: the kind of an array or a number, and structures.

Structures are opened as deep as tuples, lists, dicts, dataclasses and named tuples go.  A leaf is
an array or a number.
"""

from __future__ import annotations

import dis
import math
import sys
from types import CodeType, FrameType
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import Place
from minigraph.ir import (
    SCALARS,
    ArrayType,
    Loc,
    ScalarType,
    Type,
    Value,
    freeze,
    is_container,
    items,
    type_of,
)

from .arrays import TracedArray
from .operands import Traced
from .recording import Recording, Storage
from .scalars import TracedDim, TracedScalar
from .twins import original
from .undefined import Undefined
from .views import Layout


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
        if isinstance(thing, TracedScalar):
            return cls(thing.value_.type, False, None)
        if not isinstance(thing, np.ndarray | np.generic) and hasattr(type(thing), "eager_array_"):
            thing = thing.data_
        if not isinstance(thing, np.ndarray | np.generic):
            return cls(SCALARS[thing.__class__], False, None)
        scalar = isinstance(thing, np.generic) and recording.arrays is None
        c_order = isinstance(thing, np.generic) or bool(thing.flags.c_contiguous)
        return cls(type_of(thing), scalar, Layout(np.shape(thing), c_order))

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

    def number(self, thing: Any) -> str:
        """A plain number as one of this kind, in Python."""
        if isinstance(self.type, ScalarType):
            return repr(self.type.python(thing))
        assert isinstance(self.type, ArrayType)
        return repr(self.type.dtype.type(thing))

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
    return type(thing) in SCALARS or issubclass(type(thing), np.generic)


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
    if isinstance(thing, Traced | np.ndarray) or hasattr(type(thing), "sealed_"):
        return None
    if not is_container(thing):
        return None
    kind = original(thing.__class__)
    return kind, items(kind(thing) if kind in (list, dict) else thing)


def is_frozen(thing: Any) -> bool:
    """A structure that always holds the same things."""
    params = getattr(thing, "__dataclass_params__", None)
    return isinstance(thing, tuple) or (params is not None and params.frozen)


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
    """Where something was computed, or where the name is assigned, or the function's `def`."""
    if isinstance(thing, TracedArray | TracedScalar):
        node = recording.producer(thing.value_)
        if node is not None and node.loc is not None and node.op.name != "const":
            return node.loc
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return None
    lines = _stores(code, name)
    return Loc(code.co_filename, lines[-1]) if lines else _before(name, code)


def _stores(code: CodeType, name: str, stop: float = math.inf) -> list[int]:
    """The lines on which the code assigns a name, before one of its instructions."""
    return [
        step.positions.lineno
        for step in dis.get_instructions(code)
        if step.opname.startswith("STORE_") and step.argval == name and step.offset < stop
        if step.positions and step.positions.lineno
    ]


def _before(name: str, code: CodeType) -> Loc:
    """Where the functions that are running have last assigned a name; else the `def` of one."""
    frame: FrameType | None = sys._getframe(1) if name else None
    while frame is not None:
        around = frame.f_code
        if around.co_filename == code.co_filename:
            lines = _stores(around, name, frame.f_lasti)
            if lines:
                return Loc(code.co_filename, lines[-1])
        frame = frame.f_back
    return Loc(code.co_filename, code.co_firstlineno)
