"""Types: `dtype[shape]` for arrays, Python's own scalars, and named objects.

A NumPy array or NumPy scalar has an `ArrayType` (`f32[4,8]`, `f64[]`).  Python's `bool`, `int`,
`float`, `complex` are types of their own, weak as in NumPy 2 (NEP 50).  An `ObjectType` is
something a program holds but does not compute with (a random generator, a Python function).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from operator import index
from typing import Any

import numpy as np

from minigraph.errors import DtypeError

from .attrs import class_of
from .dims import Dim, parse_dim, product

Size = int | Dim
Shape = tuple[Size, ...]

SHORT = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
}
LONG = {short: long for long, short in SHORT.items()}


class ArrayType:
    """The type of an array: `dtype` (native byte order) and `shape` (ints and `Dim`s)."""

    __slots__ = ("_hash", "dtype", "shape")

    def __init__(self, dtype: np.dtype[Any], shape: Sequence[Size]) -> None:
        self.dtype = dtype
        self.shape: Shape = tuple(
            size if type(size) is int or isinstance(size, Dim) else int(index(size))
            for size in shape
        )
        self._hash = hash((dtype, self.shape))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Size:
        return product(self.shape)

    @property
    def size_bytes(self) -> Size:
        return self.size * self.dtype.itemsize

    @property
    def is_static(self) -> bool:
        """No named dimension in the shape."""
        return not any(isinstance(size, Dim) for size in self.shape)

    def __str__(self) -> str:
        return f"{SHORT[self.dtype.name]}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"ArrayType({self})"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ArrayType) and self.dtype == other.dtype and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash


class ScalarType:
    """The type of a Python number; `python` is the class (`bool`, `int`, `float`, `complex`)."""

    __slots__ = ("python",)

    def __init__(self, python: type) -> None:
        self.python = python

    def __str__(self) -> str:
        return self.python.__name__

    def __repr__(self) -> str:
        return f"ScalarType({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScalarType) and self.python is other.python

    def __hash__(self) -> int:
        return hash((ScalarType, self.python))

    def __reduce__(self) -> Any:
        return _named, (str(self),)


class ObjectType:
    """The type of something opaque, by name.

    `generator` is a `np.random.Generator`, `function` a function that the program calls.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"ObjectType({self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectType) and self.name == other.name

    def __hash__(self) -> int:
        return hash((ObjectType, self.name))

    def __reduce__(self) -> Any:
        return _named, (self.name,)


Type = ArrayType | ScalarType | ObjectType

BOOL, INT, FLOAT, COMPLEX = (ScalarType(python) for python in (bool, int, float, complex))
GENERATOR = ObjectType("generator")
FUNCTION = ObjectType("function")
SCALARS: dict[type, ScalarType] = {kind.python: kind for kind in (BOOL, INT, FLOAT, COMPLEX)}
_NAMED: dict[str, Type] = {
    str(kind): kind for kind in (BOOL, INT, FLOAT, COMPLEX, GENERATOR, FUNCTION)
}


def _named(name: str) -> Type:
    """The one type of this name: code asks whether a type is it."""
    return _NAMED[name]


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype in native byte order.

    Raises:
        DtypeError: not a dtype, or one that minigraph does not compute with.
    """
    try:
        return _as_dtype(dtype)
    except TypeError as error:
        if isinstance(error, DtypeError):
            raise
        raise DtypeError(f"{dtype!r} is not a dtype") from error  # not hashable


@cache
def _as_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError) as error:
        raise DtypeError(f"{dtype!r} is not a dtype") from error
    if found.name not in SHORT:
        raise DtypeError(
            f"arrays of dtype {found} cannot be compiled",
            instead="convert to one of " + ", ".join(SHORT),
        )
    return np.dtype(found.name)


def type_of(value: Any) -> Type:
    """The type of a Python number, NumPy scalar, array, generator or function.

    Raises:
        DtypeError: anything else.
    """
    scalar = SCALARS.get(class_of(value))
    if scalar is not None:
        return scalar
    if is_array(value):
        return ArrayType(as_dtype(value.dtype), value.shape)
    if isinstance(value, np.random.Generator):
        return GENERATOR
    if getattr(class_of(value), "python_function_", False):
        return FUNCTION
    raise DtypeError(f"a {type(value).__name__} is not an array or a number")


def is_array(value: object) -> bool:
    """Whether it is a value of an array type: an ndarray, or a scalar of NumPy's."""
    return isinstance(value, np.ndarray | np.generic)


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """Read back what `str(type)` prints.

    Raises:
        ValueError: not a type.
    """
    text = text.strip()
    if text in _NAMED:
        return _NAMED[text]
    short, bracket, rest = text.partition("[")
    if not bracket or not rest.endswith("]") or short not in LONG:
        raise ValueError(f"not a type: {text!r}")
    inner = rest[:-1].strip()
    shape = tuple(parse_dim(size) for size in inner.split(",")) if inner else ()
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise ValueError(f"not a type (a negative size): {text!r}")
    return ArrayType(np.dtype(LONG[short]), shape)
