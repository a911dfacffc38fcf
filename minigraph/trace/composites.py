"""NumPy functions written over those that are ops: plain Python, traced through like a user's code.

`COMPOSITES[name](np, *args, **kwargs)` records `numpy.<name>`, with `np` the recording namespace.
Each follows NumPy's own arithmetic, so the results are the same bit for bit; those whose name is
`ndarray.<name>` are methods that take other arguments than the function, or change the array.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from typing import Any

from numpy import can_cast

from minigraph import ops
from minigraph.errors import DimensionError, DtypeError, ShapeError, UnsupportedError
from minigraph.ir import decide_equal
from minigraph.ops import (
    as_axes,
    as_shape,
    broadcast_shapes,
    common_dtype,
    dtype_of,
    ndim_of,
    normalize_axes,
    normalize_axis,
    shape_of,
)

COMPOSITES: dict[str, Callable[..., Any]] = {}
EVERY = slice(None)


def composite(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function under NumPy's names."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            assert name not in COMPOSITES and name not in ops.RECORDED, name
            COMPOSITES[name] = function
        return function

    return enter


def _along(axis: int, part: Any) -> tuple[Any, ...]:
    """The index that applies `part` to one axis."""
    return (*[EVERY] * axis, part)


# ---- axes -------------------------------------------------------------------------------------


ABSENT: Any = object()  # a parameter that was not given, where None is something else


@composite("swapaxes")
def _swapaxes(np: Any, a: Any, axis1: Any, axis2: Any) -> Any:
    ndim = ndim_of(a)
    first, second = normalize_axis(axis1, ndim), normalize_axis(axis2, ndim)
    axes = list(range(ndim))
    axes[first], axes[second] = second, first
    return np.transpose(a, axes)


@composite("moveaxis")
def _moveaxis(np: Any, a: Any, source: Any, destination: Any) -> Any:
    ndim = ndim_of(a)
    sources = [normalize_axis(axis, ndim) for axis in as_axes(source)]
    places = [normalize_axis(axis, ndim) for axis in as_axes(destination)]
    if len(sources) != len(places):
        raise ShapeError("`source` and `destination` must have the same number of elements")
    for axes in (sources, places):
        normalize_axes(tuple(axes), ndim)  # refuses equal ones
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return np.transpose(a, order)


@composite("rollaxis")
def _rollaxis(np: Any, a: Any, axis: Any, start: Any = 0) -> Any:
    ndim = ndim_of(a)
    axis = normalize_axis(axis, ndim)
    start = start + ndim if start < 0 else start
    if not 0 <= start <= ndim:
        raise ShapeError(f"start={start} is out of bounds for an array of {ndim} axes")
    return _moveaxis(np, a, axis, start - 1 if axis < start else start)


@composite("matrix_transpose", "linalg.matrix_transpose", "ndarray.mT")
def _matrix_transpose(np: Any, x: Any, /) -> Any:
    if ndim_of(x) < 2:
        raise ShapeError("matrix transpose with ndim < 2 is undefined")
    return _swapaxes(np, x, -1, -2)


@composite("ndarray.transpose")
def _transpose_method(np: Any, x: Any, *axes: Any) -> Any:
    if len(axes) == 1 and not isinstance(axes[0], int):
        return np.transpose(x, axes[0])
    return np.transpose(x, axes or None)


@composite("ndarray.reshape")
def _reshape_method(np: Any, x: Any, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
    sizes = as_shape(shape[0]) if len(shape) == 1 else as_shape(shape)
    if order == "F":
        return np.transpose(np.reshape(np.transpose(x), sizes[::-1]))
    return np.reshape(x, sizes, order)


@composite("ravel")
def _ravel(np: Any, a: Any, order: Any = "C") -> Any:
    a = np.asarray(a)
    return np.reshape(np.transpose(a), -1) if order == "F" else np.reshape(a, -1, order)


@composite("ndarray.flatten")
def _flatten(np: Any, a: Any, order: Any = "C") -> Any:
    return np.copy(_ravel(np, a, order))


@composite("atleast_1d")
def _atleast_1d(np: Any, *arys: Any) -> Any:
    return _each(lambda x: np.reshape(x, 1) if x.ndim == 0 else x, np, arys)


@composite("atleast_2d")
def _atleast_2d(np: Any, *arys: Any) -> Any:
    def at_least(x: Any) -> Any:
        if x.ndim == 0:
            return np.reshape(x, (1, 1))
        return x[None, :] if x.ndim == 1 else x

    return _each(at_least, np, arys)


@composite("atleast_3d")
def _atleast_3d(np: Any, *arys: Any) -> Any:
    def at_least(x: Any) -> Any:
        if x.ndim == 0:
            return np.reshape(x, (1, 1, 1))
        if x.ndim == 1:
            return x[None, :, None]
        return x[:, :, None] if x.ndim == 2 else x

    return _each(at_least, np, arys)


def _each(change: Callable[[Any], Any], np: Any, arys: Sequence[Any]) -> Any:
    changed = tuple(change(np.asarray(x)) for x in arys)
    return changed[0] if len(changed) == 1 else changed


# ---- flips ------------------------------------------------------------------------------------


@composite("flip")
def _flip(np: Any, m: Any, axis: Any = None) -> Any:
    m = np.asarray(m)
    axes = normalize_axes(None if axis is None else as_axes(axis), m.ndim)
    back = slice(None, None, -1)
    return m[tuple(back if at in axes else EVERY for at in range(m.ndim))]


@composite("fliplr")
def _fliplr(np: Any, m: Any) -> Any:
    if ndim_of(m) < 2:
        raise ShapeError("Input must be >= 2-d.")
    return _flip(np, m, 1)


@composite("flipud")
def _flipud(np: Any, m: Any) -> Any:
    if ndim_of(m) < 1:
        raise ShapeError("Input must be >= 1-d.")
    return _flip(np, m, 0)


@composite("rot90")
def _rot90(np: Any, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    m = np.asarray(m)
    first, second = (normalize_axis(axis, m.ndim) for axis in as_axes(axes))
    if first == second:
        raise ShapeError("Axes must be different.")
    k = k % 4
    if k == 0:
        return m[:]
    if k == 2:
        return _flip(np, _flip(np, m, first), second)
    if k == 1:
        return _swapaxes(np, _flip(np, m, second), first, second)
    return _flip(np, _swapaxes(np, m, first, second), second)


# ---- splitting and joining --------------------------------------------------------------------


@composite("array_split")
def _array_split(np: Any, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    ary = np.asarray(ary)
    axis = normalize_axis(axis, ary.ndim)
    total = shape_of(ary)[axis]
    if _is_several(indices_or_sections):
        bounds = [0, *ops.as_shape(indices_or_sections), None]
    else:
        sections = ops.as_size(indices_or_sections)
        if sections <= 0:
            raise ShapeError("number sections must be larger than 0.")
        each, extras = total // sections, total % sections
        if not isinstance(extras, int):
            raise DimensionError(
                f"whether {total} elements split into {sections} equal parts depends on the size"
            )
        bounds = [0]
        for index in range(sections):
            bounds.append(bounds[-1] + each + (1 if index < extras else 0))
    pairs = zip(bounds[:-1], bounds[1:], strict=True)
    return [ary[_along(axis, slice(start, stop))] for start, stop in pairs]


def _is_several(indices: Any) -> bool:
    return isinstance(indices, list | tuple) or getattr(indices, "ndim", 0) > 0


@composite("split")
def _split(np: Any, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    if not _is_several(indices_or_sections):
        total = shape_of(ary)[normalize_axis(axis, ndim_of(ary))]
        if not decide_equal(total % ops.as_size(indices_or_sections), 0):
            raise ShapeError("array split does not result in an equal division")
    return _array_split(np, ary, indices_or_sections, axis)


@composite("hsplit")
def _hsplit(np: Any, ary: Any, indices_or_sections: Any) -> Any:
    if ndim_of(ary) == 0:
        raise ShapeError("hsplit only works on arrays of 1 or more dimensions")
    return _split(np, ary, indices_or_sections, 1 if ndim_of(ary) > 1 else 0)


@composite("vsplit")
def _vsplit(np: Any, ary: Any, indices_or_sections: Any) -> Any:
    if ndim_of(ary) < 2:
        raise ShapeError("vsplit only works on arrays of 2 or more dimensions")
    return _split(np, ary, indices_or_sections, 0)


@composite("dsplit")
def _dsplit(np: Any, ary: Any, indices_or_sections: Any) -> Any:
    if ndim_of(ary) < 3:
        raise ShapeError("dsplit only works on arrays of 3 or more dimensions")
    return _split(np, ary, indices_or_sections, 2)


@composite("unstack")
def _unstack(np: Any, x: Any, /, *, axis: Any = 0) -> Any:
    x = np.asarray(x)
    if x.ndim == 0:
        raise ShapeError("Input array must be at least 1-d.")
    moved = _moveaxis(np, x, axis, 0)
    return tuple(moved[index] for index in range(shape_of(moved)[0]))


def _listed(arrays: Any) -> list[Any]:
    if getattr(arrays, "ndim", 0):
        return [arrays[index] for index in range(shape_of(arrays)[0])]
    return list(arrays)


@composite("vstack", "row_stack")
def _vstack(np: Any, tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = [_atleast_2d(np, x) for x in _listed(tup)]
    return np.concatenate(parts, 0, dtype=dtype, casting=casting)


@composite("hstack")
def _hstack(np: Any, tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = [_atleast_1d(np, x) for x in _listed(tup)]
    axis = 0 if parts and parts[0].ndim == 1 else 1
    return np.concatenate(parts, axis, dtype=dtype, casting=casting)


@composite("dstack")
def _dstack(np: Any, tup: Any) -> Any:
    return np.concatenate([_atleast_3d(np, x) for x in _listed(tup)], 2)


@composite("column_stack")
def _column_stack(np: Any, tup: Any) -> Any:
    parts = [np.asarray(x) for x in _listed(tup)]
    columns = [np.transpose(_atleast_2d(np, x)) if x.ndim < 2 else x for x in parts]
    return np.concatenate(columns, 1)


@composite("append")
def _append(np: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        return np.concatenate([_ravel(np, arr), _ravel(np, values)], 0)
    return np.concatenate([arr, values], axis)


@composite("broadcast_arrays")
def _broadcast_arrays(np: Any, *args: Any, subok: bool = False) -> Any:
    shape = broadcast_shapes([shape_of(x) for x in args])
    return tuple(np.asarray(x) if shape_of(x) == shape else np.broadcast_to(x, shape) for x in args)


@composite("meshgrid")
def _meshgrid(
    np: Any, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Any:
    if indexing not in ("xy", "ij"):
        raise ShapeError("Valid values for `indexing` are 'xy' and 'ij'.")
    count = len(xi)
    places = list(range(count))
    if indexing == "xy" and count > 1:
        places[:2] = [1, 0]
    grids = [
        np.reshape(x, tuple(-1 if axis == place else 1 for axis in range(count)))
        for x, place in zip(xi, places, strict=True)
    ]
    if not sparse:
        grids = _broadcast_arrays(np, *grids)
    return tuple(np.copy(grid) if copy else grid for grid in grids)


@composite("indices")
def _indices(np: Any, dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = as_shape(tuple(dimensions))
    grids = [
        np.reshape(
            np.arange(size, dtype=dtype),
            tuple(-1 if at == axis else 1 for at in range(len(shape))),
        )
        for axis, size in enumerate(shape)
    ]
    if sparse:
        return tuple(grids)
    if not grids:
        return np.zeros((0,), dtype)
    return np.stack([np.broadcast_to(grid, shape) for grid in grids], 0)


# ---- creation ---------------------------------------------------------------------------------


def _like(name: str) -> None:
    def like(
        np: Any,
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        sizes = shape_of(a) if shape is None else as_shape(shape)
        return getattr(np, name)(sizes, dtype_of(a) if dtype is None else dtype)

    composite(f"{name}_like")(like)


for _name in ("zeros", "ones", "empty"):
    _like(_name)


@composite("full_like")
def _full_like(
    np: Any,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    sizes = shape_of(a) if shape is None else as_shape(shape)
    return np.full(sizes, fill_value, dtype_of(a) if dtype is None else dtype)


@composite("identity")
def _identity(np: Any, n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return np.eye(n, dtype=float if dtype is None else dtype)


@composite("diag")
def _diag(np: Any, v: Any, k: Any = 0) -> Any:
    if ndim_of(v) == 1:
        return np.diagflat(v, k)
    if ndim_of(v) == 2:
        return np.diagonal(v, k)
    raise ShapeError("Input must be 1- or 2-d.")


@composite("tril")
def _tril(np: Any, m: Any, k: Any = 0) -> Any:
    m = np.asarray(m)
    mask = np.tri(*shape_of(m)[-2:], k=k, dtype=bool)
    return np.where(mask, m, np.zeros(1, m.dtype))


@composite("triu")
def _triu(np: Any, m: Any, k: Any = 0) -> Any:
    m = np.asarray(m)
    mask = np.tri(*shape_of(m)[-2:], k=k - 1, dtype=bool)
    return np.where(mask, np.zeros(1, m.dtype), m)


# ---- elementwise ------------------------------------------------------------------------------


@composite("isclose")
def _isclose(
    np: Any, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Any:
    x = a if a.__class__ in (int, float, complex) else np.asarray(a)
    y: Any = b
    if b.__class__ is int:
        y = b * 1.0
    elif b.__class__ not in (float, complex):
        y = np.asarray(b)
        y = _cast(np, y, common_dtype(y, 1.0))
    near = np.less_equal(np.absolute(x - y), atol + rtol * np.absolute(y))
    result = near & np.isfinite(y) | np.equal(x, y)
    return result | (np.isnan(x) & np.isnan(y)) if equal_nan else result


def _cast(np: Any, x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


@composite("nan_to_num")
def _nan_to_num(
    np: Any, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    target = x
    x = np.asarray(x)
    if x.dtype.kind == "c":
        raise UnsupportedError(
            "np.nan_to_num of complex numbers is not recorded",
            instead="np.nan_to_num(x.real) and np.nan_to_num(x.imag)",
        )
    if x.dtype.kind not in "f":
        return (np.copy(x) if copy else np.asarray(target))[() if x.ndim == 0 else ...]
    if any(fill.__class__ is complex for fill in (nan, posinf, neginf)):
        raise UnsupportedError("np.nan_to_num is recorded for real numbers to put in")
    limits = np.finfo(x.dtype)
    fills = [
        nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    ]
    result = np.copy(x)
    for where, fill in zip((np.isnan(x), _isposinf(np, x), _isneginf(np, x)), fills, strict=True):
        number = (
            fill if fill.__class__ in (bool, int, float) else _cast(np, np.asarray(fill), x.dtype)
        )
        result = np.where(where, number, result)
    if copy:
        return result if result.ndim else result[()]
    target[...] = result
    return target if target.ndim else target[()]


@composite("isposinf")
def _isposinf(np: Any, x: Any) -> Any:
    return np.logical_and(np.isinf(x), np.logical_not(np.signbit(x)))


@composite("isneginf")
def _isneginf(np: Any, x: Any) -> Any:
    return np.logical_and(np.isinf(x), np.signbit(x))


@composite("isreal")
def _isreal(np: Any, x: Any) -> Any:
    return np.imag(x) == 0


@composite("iscomplex")
def _iscomplex(np: Any, x: Any) -> Any:
    x = np.asarray(x)
    return np.not_equal(x.imag, 0) if x.dtype.kind == "c" else np.zeros(shape_of(x), bool)[()]


@composite("angle")
def _angle(np: Any, z: Any, deg: bool = False) -> Any:
    z = np.asarray(z)
    found = np.arctan2(z.imag, z.real) if z.dtype.kind == "c" else np.arctan2(0, z)
    return found * (180 / math.pi) if deg else found


@composite("select")
def _select(np: Any, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ShapeError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ShapeError("select with an empty condition list is not possible")
    numbers = (int, float, complex)
    choices = [
        choice if choice.__class__ in numbers else np.asarray(choice)
        for choice in (*choicelist, default)
    ]
    conditions = [np.asarray(condition) for condition in condlist]
    if any(condition.dtype.kind != "b" for condition in conditions):
        raise DtypeError("select: the conditions must be of bools")
    dtype = common_dtype(*choices)
    for choice in choices[:-1]:
        if not can_cast(dtype_of(choice), dtype, "same_kind"):
            raise DtypeError(f"select: cannot cast {dtype_of(choice)} to {dtype}")
    choices = [_cast(np, np.asarray(choice), dtype) for choice in choices]
    shape = broadcast_shapes([shape_of(x) for x in (*conditions, *choices)])
    result = np.broadcast_to(choices.pop(), shape)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = np.where(condition, choice, result)
    return result


@composite("isin")
def _isin(
    np: Any,
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    element = np.asarray(element)
    places = (*[EVERY] * element.ndim, None)
    found = np.any(element[places] == _ravel(np, test_elements), -1)
    return np.asarray(np.logical_not(found) if invert else found)


# ---- differences, products, sums --------------------------------------------------------------


@composite("diff")
def _diff(
    np: Any, a: Any, n: Any = 1, axis: Any = -1, prepend: Any = ABSENT, append: Any = ABSENT
) -> Any:
    a = np.asarray(a)
    if n == 0:
        return a
    if n < 0:
        raise ShapeError(f"order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ShapeError("diff requires input that is at least one dimensional")
    axis = normalize_axis(axis, a.ndim)
    parts = [None if x is ABSENT else np.asarray(x) for x in (prepend, a, append)]
    found = [
        np.broadcast_to(x, tuple(1 if at == axis else s for at, s in enumerate(shape_of(a))))
        if x.ndim == 0
        else x
        for x in parts
        if x is not None
    ]
    if len(found) > 1:
        a = np.concatenate(found, axis)
    for _ in range(n):
        later, earlier = a[_along(axis, slice(1, None))], a[_along(axis, slice(None, -1))]
        a = np.not_equal(later, earlier) if a.dtype.kind == "b" else np.subtract(later, earlier)
    return a


@composite("trapezoid", "trapz")
def _trapezoid(np: Any, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    y = np.asarray(y)
    along = normalize_axis(axis, y.ndim)  # of x and of the sum, the axis counts as it is given
    step = dx
    if x is not None:
        x = np.asarray(x)
        step = _diff(np, x, axis=-1 if x.ndim == 1 else axis)
        if x.ndim == 1:
            step = np.reshape(step, tuple(-1 if at == along else 1 for at in range(y.ndim)))
    later, earlier = y[_along(along, slice(1, None))], y[_along(along, slice(None, -1))]
    return np.sum(step * (later + earlier) / 2.0, axis)


@composite("cross", "linalg.cross")
def _cross(
    np: Any, a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _moveaxis(np, np.asarray(a), axisa, -1), _moveaxis(np, np.asarray(b), axisb, -1)
    if shape_of(a)[-1] != 3 or shape_of(b)[-1] != 3:
        raise ShapeError("the cross product is recorded for vectors of 3 elements")
    dtype = common_dtype(a, b)
    a, b = _cast(np, a, dtype), _cast(np, b, dtype)
    (a0, a1, a2), (b0, b1, b2) = ([x[..., i] for i in range(3)] for x in (a, b))
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    return _moveaxis(np, np.stack(parts, -1), -1, axisc)


@composite("kron")
def _kron(np: Any, a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    rank = max(a.ndim, b.ndim)
    if not a.ndim or not b.ndim:
        return np.multiply(a, b)
    a = np.reshape(a, (*[1] * (rank - a.ndim), *shape_of(a)))
    b = np.reshape(b, (*[1] * (rank - b.ndim), *shape_of(b)))
    every = [size * other for size, other in zip(shape_of(a), shape_of(b), strict=True)]
    spread = np.expand_dims(a, tuple(range(1, 2 * rank, 2)))
    return np.reshape(np.multiply(spread, np.expand_dims(b, tuple(range(0, 2 * rank, 2)))), every)


@composite("trace")
def _trace(
    np: Any, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None
) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), -1, dtype)


@composite("linalg.trace")
def _linalg_trace(np: Any, x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    return _trace(np, x, offset, -2, -1, dtype)


@composite("linalg.diagonal")
def _linalg_diagonal(np: Any, x: Any, /, *, offset: Any = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


@composite("linalg.matmul")
def _linalg_matmul(np: Any, x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, x2)


@composite("linalg.tensordot")
def _linalg_tensordot(np: Any, x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return np.tensordot(x1, x2, axes)


@composite("linalg.outer")
def _linalg_outer(np: Any, x1: Any, x2: Any, /) -> Any:
    if ndim_of(x1) != 1 or ndim_of(x2) != 1:
        raise ShapeError("linalg.outer: both operands must have one axis", instead="np.outer")
    return np.outer(x1, x2)


@composite("linalg.vector_norm")
def _vector_norm(
    np: Any, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Any:
    if axis is not None:
        if len(as_axes(axis)) != 1:
            raise UnsupportedError(
                "vector_norm over several axes is not recorded", instead="np.linalg.norm"
            )
        return np.linalg.norm(x, ord, as_axes(axis)[0], keepdims)
    found = np.linalg.norm(_ravel(np, x), ord, 0)
    return np.reshape(found, (1,) * ndim_of(x)) if keepdims else found


@composite("linalg.matrix_norm")
def _matrix_norm(np: Any, x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return np.linalg.norm(x, ord, (-2, -1), keepdims)


def _cumulative(name: str, running: str, first: int) -> None:
    def cumulative(
        np: Any,
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        include_initial: bool = False,
    ) -> Any:
        x = _atleast_1d(np, x)
        if axis is None:
            if x.ndim != 1:
                raise ShapeError(f"axis= is needed to {name} an array of {x.ndim} axes")
            axis = 0
        axis = normalize_axis(axis, x.ndim)
        found = getattr(np, running)(x, axis, dtype)
        if not include_initial:
            return found
        shape = [1 if at == axis else size for at, size in enumerate(shape_of(x))]
        return np.concatenate([np.full(shape, first, found.dtype), found], axis)

    composite(name)(cumulative)


_cumulative("cumulative_sum", "cumsum", 0)
_cumulative("cumulative_prod", "cumprod", 1)


# ---- writes -----------------------------------------------------------------------------------


@composite("put_along_axis")
def _put_along_axis(np: Any, arr: Any, indices: Any, values: Any, axis: Any) -> None:
    indices = np.asarray(indices)
    if axis is None:
        raise UnsupportedError(
            "put_along_axis without an axis is not recorded", instead="x.reshape(-1)[indices] = v"
        )
    axis = normalize_axis(axis, ndim_of(arr))
    if indices.ndim != ndim_of(arr):
        raise ShapeError("`indices` and `arr` must have the same number of dimensions")
    arr[_index_along(np, shape_of(arr), indices, axis)] = values


def _index_along(np: Any, shape: Sequence[Any], indices: Any, axis: int) -> tuple[Any, ...]:
    """The index arrays that address one element of each line along the axis."""
    ndim = len(shape)
    return tuple(
        indices
        if at == axis
        else np.reshape(np.arange(size), tuple(-1 if each == at else 1 for each in range(ndim)))
        for at, size in enumerate(shape)
    )


@composite("fill_diagonal")
def _fill_diagonal(np: Any, a: Any, val: Any, wrap: bool = False) -> None:
    shape = shape_of(a)
    if len(shape) < 2:
        raise ShapeError("array must be at least 2-d")
    if len(shape) > 2 and not all(decide_equal(shape[0], size) for size in shape):
        raise ShapeError("All dimensions of input must be of equal length")
    if wrap or ndim_of(val):
        raise UnsupportedError("fill_diagonal is recorded for one number, without wrap=True")
    count = shape[0] if decide_equal(shape[0], shape[1]) else min(shape[:2])
    places = np.arange(count)
    a[(places,) * len(shape)] = val


@composite("putmask")
def _putmask(np: Any, a: Any, mask: Any, values: Any) -> None:
    if ndim_of(values) and shape_of(values) != shape_of(a):
        raise UnsupportedError("putmask is recorded for one value, or one for each element")
    values = (
        values if values.__class__ in (bool, int, float) else np.asarray(values).astype(a.dtype)
    )
    a[...] = np.where(mask, values, a)


@composite("ndarray.sort")
def _sort_method(np: Any, x: Any, axis: Any = -1, kind: Any = None, **options: Any) -> None:
    x[...] = np.sort(x, axis, kind, **options)


@composite("ndarray.partition")
def _partition_method(np: Any, x: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> None:
    x[...] = np.partition(x, kth, axis, kind)


# ---- what to write instead --------------------------------------------------------------------

INSTEAD = {
    "argwhere": "where",
    "nonzero": "where",
    "flatnonzero": "where",
    "extract": "where",
    "compress": "where",
    "place": "putmask",
    "put": "put_along_axis",
    "unique": "sort",
    "unique_values": "sort",
    "unique_counts": "sort",
    "unique_inverse": "sort",
    "bincount": "add.at",
    "histogram": "searchsorted",
    "histogram2d": "searchsorted",
    "delete": "where",
    "insert": "concatenate",
    "resize": "tile",
    "block": "concatenate",
    "ix_": "meshgrid",
    "piecewise": "select",
    "vectorize": "where",
    "apply_along_axis": "sum",
    "in1d": "isin",
    "ediff1d": "diff",
    "cov": "matmul",
    "corrcoef": "matmul",
    "polyval": "power",
    "msort": "sort",
    "asfortranarray": "asarray",
    "require": "asarray",
    "fromfunction": "indices",
    "linalg.lstsq": "linalg.solve",
    "linalg.eig": "linalg.eigh",
    "linalg.eigvals": "linalg.eigvalsh",
    "linalg.tensorsolve": "linalg.solve",
    "linalg.tensorinv": "linalg.inv",
    "linalg.multi_dot": "matmul",
    "linalg.cond": "linalg.norm",
    "linalg.matrix_rank": "linalg.svd",
    "random.seed": "random.default_rng",
}
"""The nearest function that is recorded, where the name does not say it."""


def nearest(name: str) -> str | None:
    """The supported NumPy name nearest to one that is not; None where nothing is near."""
    if name in INSTEAD:
        return INSTEAD[name]
    if name.startswith("random."):
        return "random.default_rng"
    known = [known for known in (*ops.RECORDED, *COMPOSITES) if not known.startswith("ndarray.")]
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return found[0] if found else None
