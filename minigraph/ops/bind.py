"""Helpers of `bind`: from the arguments of a NumPy call to inputs and attrs.

An operand may be traced (anything with `shape`, `ndim` and `dtype`), a NumPy array or scalar, a
Python number, or a list of such.  Metadata becomes plain data in one normal form, so that equal
computations have equal attrs; what has its default value is left out.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, MinigraphError, ShapeError, UnsupportedError
from minigraph.ir import OPERAND, Dim, Shape, Size, as_dtype

from .rules import items_of, normalize_axis, same_shape

Bound = tuple[list[Any], dict[str, Any]]

PLAIN = (bool, int, float, complex)


def shape_of(x: Any) -> Shape:
    """The shape of an operand, of ints and `Dim`s.

    Raises:
        ShapeError: a list whose items differ in shape.
    """
    shape = getattr(x, "shape", None)
    if shape is not None:
        return tuple(as_size(size) for size in shape)
    items = items_of(x)
    if items is not None:
        inner = same_shape([shape_of(item) for item in items], "the items of a list")
        return (len(items), *inner) if items else (0,)
    return np.shape(x)


def ndim_of(x: Any) -> int:
    """The number of axes of an operand."""
    ndim = getattr(x, "ndim", None)
    return len(shape_of(x)) if ndim is None else int(ndim)


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype that an operand has as an array (int64 for a Python int)."""
    found = getattr(x, "dtype", None)
    if found is not None:
        return as_dtype(found)
    items = items_of(x)
    if items is not None:
        return as_dtype(np.result_type(*(dtype_of(item) for item in items)) if items else float)
    for kind in PLAIN:  # bool before int: it is one
        if isinstance(x, kind):
            return np.dtype(kind)
    return as_dtype(np.asarray(x).dtype)


def common_dtype(*operands: Any) -> np.dtype[Any]:
    """`np.result_type` of operands: Python numbers are weak."""
    return as_dtype(np.result_type(*(weak(x) for x in operands)))


def weak(x: Any) -> Any:
    """What stands for an operand in a question about dtypes: its dtype, or a Python number."""
    if getattr(x, "dtype", None) is None:
        for kind in PLAIN:
            if isinstance(x, kind):
                return kind(1)
    return dtype_of(x)


def as_size(x: Any) -> Size:
    """One extent, position or count: an int, or a `Dim` where it is not known while tracing.

    Raises:
        DtypeError: it is no integer.
    """
    if isinstance(x, Dim):
        return x
    named = getattr(x, "dim", None)
    if isinstance(named, Dim):
        return named
    return as_int(x)


def as_int(x: Any) -> int:
    """One number that must be known while tracing.

    Raises:
        DtypeError: it is no integer.
    """
    try:
        return operator.index(x)
    except MinigraphError:
        raise
    except TypeError as error:
        raise DtypeError(f"an integer is needed here, not {x!r}") from error


def as_shape(shape: Any) -> Shape:
    """A shape given as one size or as several."""
    if isinstance(shape, Dim) or isinstance(getattr(shape, "dim", None), Dim):
        return (as_size(shape),)
    if getattr(shape, "ndim", 0) == 1 or isinstance(shape, Iterable):
        return tuple(as_size(size) for size in shape)  # pyright: ignore[reportUnknownVariableType]
    return (as_size(shape),)


def as_axes(axis: Any) -> tuple[int, ...]:
    """Axes given as one int or as several."""
    axes = items_of(axis)
    return tuple(as_int(one) for one in ([axis] if axes is None else axes))


def flat_axis(axis: Any, ndim: int) -> int | None:
    """The axis of a function for which None means the flattened array; 0 if it is flat.

    For such functions a number has one axis.
    """
    if axis is None:
        return 0 if ndim == 1 else None
    found = normalize_axis(as_int(axis), ndim or 1)
    return found if ndim else None


def as_number(x: Any, what: str) -> int | float | complex | Dim:
    """A number that is metadata, as a Python number.

    Raises:
        UnsupportedError: it is an array.
    """
    named = getattr(x, "dim", None)
    if isinstance(x, Dim):
        return x
    if isinstance(named, Dim):
        return named
    concrete: Any = x
    if isinstance(x, np.ndarray | np.generic) and x.ndim == 0:
        return concrete.item()
    for kind in PLAIN:
        if isinstance(x, kind):
            return kind(concrete)
    raise UnsupportedError(
        f"{what} must be a number that is known while tracing, not {x!r}",
        instead="compute with the array after the call",
    )


def bind_one(x: Any, /) -> Bound:
    """One array and nothing else."""
    return [x], {}


def bind_two(a: Any, b: Any) -> Bound:
    """Two arrays and nothing else."""
    return [a, b], {}


def optional(**attrs: Any) -> dict[str, Any]:
    """The attrs that are not None and not False."""
    return {name: attr for name, attr in attrs.items() if attr is not None and attr is not False}


def dtype_attr(dtype: Any) -> np.dtype[Any] | None:
    """A `dtype=` argument: None stays."""
    return None if dtype is None else as_dtype(dtype)


def unless_same(x: Any, dtype: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """The dtype, or None if it is that of the operand."""
    found = getattr(x, "dtype", None)  # None == np.dtype(float) is true in NumPy
    return None if dtype is None or (found is not None and found == dtype) else dtype


def keyword_operands(inputs: list[Any], **operands: Any) -> dict[str, Any]:
    """Append operands that NumPy takes by keyword; None is left out (see `call_arguments`)."""
    attrs: dict[str, Any] = {}
    for name, operand in operands.items():
        if operand is not None:
            inputs.append(operand)
            attrs[name] = OPERAND
    return attrs


def sequence(arrays: Any) -> list[Any]:
    """The operands of a function that takes a sequence of arrays (or an array, along axis 0)."""
    if ndim_of_array(arrays):
        count = shape_of(arrays)[0]
        return [arrays[index] for index in range(as_int(count))]
    return list(arrays)


def ndim_of_array(x: Any) -> int:
    """The number of axes of something that is one array; 0 for lists and numbers."""
    return int(getattr(x, "ndim", 0))


def one_of(value: Any, known: Sequence[str], what: str) -> str:
    """A word from a closed list.

    Raises:
        ShapeError: it is not in the list.
    """
    if value not in known:
        raise OptionValueError(f"{what} must be one of {', '.join(known)}, not {value!r}")
    return str(value)


class OptionValueError(ShapeError):
    """A word that a NumPy function does not know; a ValueError, as in NumPy."""

    page = ""


def order_c(order: Any, what: str) -> None:
    """Refuse memory orders other than C.

    Raises:
        UnsupportedError: the order of the elements would depend on memory layout.
    """
    if order not in (None, "C"):
        raise UnsupportedError(
            f"{what} with order={order!r} is not recorded: memory layout is no part of a type",
            instead="leave out order=",
        )
