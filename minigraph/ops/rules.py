"""Inference of types.

Shapes follow NumPy's rules, written out here for sizes that may be named dimensions.  Dtypes are
not a second copy of NumPy's rules: the function itself is asked, once for each combination of
dtypes, with operands of one element.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from minigraph.errors import RAISED, DimensionError, DtypeError, ShapeError
from minigraph.ir import (
    SCALARS,
    ArrayType,
    Dim,
    ScalarType,
    Shape,
    Size,
    Type,
    as_dtype,
    decide_equal,
    freeze,
)

ANNOTATIONS = ("safe", "result")  # attrs that say something about the node and change no value
NO_ATTRS: Mapping[str, Any] = MappingProxyType({})
ONE: dict[type, Any] = {bool: True, int: 1, float: 1.0, complex: 1 + 0j}


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis that the array does not have: of NumPy's own class too."""

    page = ""


class OutOfBoundsError(ShapeError, IndexError):
    """An index outside of the array: an IndexError, as in NumPy."""

    page = ""


def array_type(type_: Type, what: str = "an array") -> ArrayType:
    """The type as an array's.

    Raises:
        DtypeError: it is a generator, or a Python number where an array is needed.
    """
    if isinstance(type_, ArrayType):
        return type_
    if isinstance(type_, ScalarType):
        return ArrayType(np.asarray(ONE[type_.python]).dtype, ())
    raise DtypeError(f"{what} is needed here, not a {type_}")


def items_of(thing: Any) -> list[Any] | None:
    """The items of a tuple or list; None for anything else."""
    if isinstance(thing, tuple | list):
        items: list[Any] = list(thing)  # pyright: ignore[reportUnknownArgumentType]
        return items
    return None


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcasting: axes aligned at the end, extent 1 stretches.

    Raises:
        ShapeError: two extents differ and neither is 1.
        DimensionError: that depends on a named dimension.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            current = result[axis]
            if size == current or size == 1:
                continue
            if current == 1:
                result[axis] = size
            elif isinstance(size, Dim) or isinstance(current, Dim):
                if not decide_equal(size, current):
                    raise _cannot_broadcast(shapes)
            else:
                raise _cannot_broadcast(shapes)
    return tuple(result)


def stretches(old: Shape, new: Shape) -> bool:
    """Whether an array of shape `old` broadcasts to exactly `new`.

    Raises:
        DimensionError: that depends on a named dimension.
    """
    pairs = zip(reversed(old), reversed(new), strict=False)
    # An extent of 1 stretches; one that may or may not be 1 must be the same.
    return len(old) <= len(new) and all(a == 1 or decide_equal(a, b) for a, b in pairs)


def _cannot_broadcast(shapes: Sequence[Shape]) -> ShapeError:
    named = " and ".join(shape_text(shape) for shape in shapes)
    return ShapeError(
        f"operands could not be broadcast together with shapes {named}",
        instead="align the axes from the right, e.g. with x[:, None] or np.expand_dims",
    )


def shape_text(shape: Shape) -> str:
    """A shape as Python writes it: `(3,)`, `(batch, 4)`."""
    inner = ", ".join(map(str, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def result_dtypes(
    function: Callable[..., Any], types: Sequence[Type], attrs: Mapping[str, Any]
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the results of `function(*arrays, **attrs)`, found by calling it.

    Each array operand is replaced by one of the same rank with one element; attrs must be such that
    this makes no difference to the dtype.

    Raises:
        DtypeError: NumPy has no loop for these dtypes.
    """
    attrs = {name: attr for name, attr in attrs.items() if name not in ANNOTATIONS}
    key = tuple(
        (t.dtype.str, t.ndim) if isinstance(t, ArrayType) else t.python
        for t in types
        if isinstance(t, ArrayType | ScalarType)
    )
    return _probe(function, key, freeze(attrs), _Plain(attrs))


def result_dtype(
    function: Callable[..., Any], types: Sequence[Type], attrs: Mapping[str, Any] = NO_ATTRS
) -> np.dtype[Any]:
    """The dtype of the one result (see `result_dtypes`)."""
    (found,) = result_dtypes(function, types, attrs)
    return found


class _Plain:
    """Carries attrs past the cache: they are in the key already, in frozen form."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self.attrs = attrs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Plain)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4096)
def _probe(
    function: Callable[..., Any], key: tuple[Any, ...], _: Any, plain: _Plain
) -> tuple[np.dtype[Any], ...]:
    operands = [
        ONE[entry] if isinstance(entry, type) else np.ones((1,) * entry[1], entry[0])
        for entry in key
    ]
    with np.errstate(all="ignore"):
        try:
            results = function(*operands, **plain.attrs)
        except TypeError as error:  # UFuncTypeError among them
            raise DtypeError(str(error)) from error
    several = items_of(results)
    return tuple(
        as_dtype(np.asarray(result).dtype) for result in ([results] if several is None else several)
    )


@lru_cache(maxsize=1024)
def python_types(
    python: Callable[..., Any], kinds: tuple[type, ...]
) -> tuple[ScalarType, ...] | None:
    """The types of `python(...)` on Python numbers of these kinds; None: it is not defined."""
    try:
        results = python(*(ONE[kind] for kind in kinds))
    except TypeError:
        return None
    several = items_of(results)
    return tuple(SCALARS[type(result)] for result in ([results] if several is None else several))


def elementwise(
    function: Callable[..., Any], python: Callable[..., Any] | None = None
) -> Callable[[Sequence[Type], Mapping[str, Any]], Type | tuple[Type, ...]]:
    """Inference of an elementwise op: broadcast shapes, dtypes as `function` gives them.

    Of Python numbers alone, with a `python` meaning, the result is a Python number.
    """

    def rule(types: Sequence[Type], given: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        attrs = {name: attr for name, attr in given.items() if name not in ANNOTATIONS}
        kinds = tuple(t.python for t in types if isinstance(t, ScalarType))
        if python is not None and len(kinds) == len(types) and "dtype" not in attrs:
            if "result" in given:
                return given["result"]
            if python in (min, max) and len(set(kinds)) > 1:
                raise DtypeError(
                    f"{python.__name__} of {' and '.join(kind.__name__ for kind in kinds)}: the "
                    "type of the result depends on which one it is",
                    instead="two numbers of one type, such as max(0.0, x) of a float",
                )
            numbers = python_types(python, kinds)
            if numbers is None:
                named = " and ".join(kind.__name__ for kind in kinds)
                raise DtypeError(f"Python does not define this operation on {named}")
            return numbers[0] if len(numbers) == 1 else numbers
        for t in types:
            if not isinstance(t, ArrayType | ScalarType):
                raise DtypeError(f"an array or a number is needed here, not a {t}")
        shape = broadcast_shapes([t.shape for t in types if isinstance(t, ArrayType)])
        found = tuple(ArrayType(dtype, shape) for dtype in result_dtypes(function, types, attrs))
        return found[0] if len(found) == 1 else found

    return rule


def normalize_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from the front.

    Raises:
        AxisError: out of bounds.
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """All reduced axes, sorted; None means every axis, () none."""
    if axis is None:
        return tuple(range(ndim))
    axes = items_of(axis)
    found = [normalize_axis(one, ndim) for one in ([axis] if axes is None else axes)]
    if len(set(found)) != len(found):
        raise ShapeError(f"duplicate axis in {axis}")
    return tuple(sorted(found))


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """The shape after the axes are reduced: left out, or of extent 1 if `keepdims`."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def decided(question: Callable[[Size, Size], bool], a: Size, b: Size) -> bool | None:
    """The answer to a question about sizes; None where it depends on a named dimension."""
    raised = RAISED.set(None)  # this error is no one's mistake
    try:
        return question(a, b)
    except DimensionError:
        return None
    finally:
        RAISED.reset(raised)


def is_zero(size: Size) -> bool | None:
    """Whether an extent is 0; None where that depends on a named dimension."""
    return decided(decide_equal, size, 0)


def same_shape(shapes: Sequence[Shape], what: str) -> Shape:
    """The one shape that all operands have.

    Raises:
        ShapeError: they differ.
        DimensionError: that depends on a named dimension.
    """
    first = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(first) or not all(map(decide_equal, first, shape)):
            named = " and ".join(map(shape_text, shapes))
            raise ShapeError(f"{what} must have the same shape, not {named}")
    return first
