"""Join: arrays put together, repeated, shifted and surrounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError, UnsupportedError
from minigraph.ir import (
    OPERAND,
    ArrayType,
    Node,
    Op,
    Size,
    Type,
    decide_at_least,
    decide_equal,
    product,
)

from .bind import (
    Bound,
    as_int,
    as_number,
    as_shape,
    as_size,
    dtype_attr,
    flat_axis,
    ndim_of,
    one_of,
    optional,
    sequence,
)
from .derivation import Derivation, Term
from .registry import declare
from .rules import array_type, items_of, normalize_axis, result_dtype, same_shape, shape_text
from .samples import Sample, array

Attrs = Mapping[str, Any]


# ---- concatenate, stack -----------------------------------------------------------------------


def _concatenated(*arrays: Any, **attrs: Any) -> Any:
    return np.concatenate([np.ravel(np.asarray(x)) for x in arrays], **attrs)


def _joined_dtype(types: Sequence[Type], attrs: Attrs) -> np.dtype[Any]:
    if not types:
        raise ShapeError("need at least one array to concatenate")
    given = {name: attrs[name] for name in ("dtype", "casting") if name in attrs}
    ones = [ArrayType(array_type(t).dtype, (1,)) for t in types]
    # The same dtypes in the same order say all: many equal operands are asked about once.
    return result_dtype(_concatenated, list(dict.fromkeys(ones)), given)


def _infer_concatenate(types: Sequence[Type], attrs: Attrs) -> Type:
    dtype = _joined_dtype(types, attrs)
    arrays = [array_type(t) for t in types]
    axis: int | None = attrs.get("axis", 0)
    total: Size = 0
    if axis is None:
        for x in arrays:
            total = total + x.size
        return ArrayType(dtype, (total,))
    first = arrays[0]
    if first.ndim == 0:
        raise ShapeError("zero-dimensional arrays cannot be concatenated", instead="np.stack")
    for x in arrays:
        if x.ndim != first.ndim or not all(
            decide_equal(a, b)
            for at, (a, b) in enumerate(zip(first.shape, x.shape, strict=True))
            if at != axis
        ):
            named = " and ".join(shape_text(each.shape) for each in arrays)
            raise ShapeError(
                f"all the input array dimensions except for the concatenation axis ({axis}) must "
                f"match exactly, not {named}"
            )
        total = total + x.shape[axis]
    return ArrayType(dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _concatenate(xp: Any, *arrays: Any, **attrs: Any) -> Any:
    return xp.concatenate(arrays, **attrs)


def _stack(xp: Any, *arrays: Any, **attrs: Any) -> Any:
    return xp.stack(arrays, **attrs)


def _joining(dtype: Any, casting: str) -> dict[str, Any]:
    return optional(dtype=dtype_attr(dtype), casting=None if casting == "same_kind" else casting)


def _bind_concatenate(
    arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Bound:
    inputs = sequence(arrays)
    if not inputs:
        raise ShapeError("need at least one array to concatenate")
    where = None if axis is None else normalize_axis(as_int(axis), max(1, ndim_of(inputs[0])))
    return inputs, ({} if where == 0 else {"axis": where}) | _joining(dtype, casting)


def _vjp_concatenate(d: Derivation, *arrays: Term) -> tuple[Term, ...]:
    axis: int | None = d.attrs.get("axis", 0)
    found: list[Term] = []
    start: Size = 0
    for x in arrays:
        stop = start + (product(x.shape) if axis is None else x.shape[axis])
        part = d.g[(*[slice(None)] * (axis or 0), slice(start, stop))]
        found.append(part.reshape(x.shape))
        start = stop
    return tuple(found)


def _sample_concatenate(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    a, b, c = (array(rng, dtype, 2, size, 3) for size in (1, 4, 0))
    return [
        _bind_concatenate([a, b, c], 1),
        _bind_concatenate([a, a]),
        _bind_concatenate([a, b[0], array(rng, np.dtype("i2"))], None),
        _bind_concatenate([a, array(rng, np.dtype("f4"), 2, 2, 3)], -2),
        _bind_concatenate([b, b], dtype=np.complex128),
    ]


declare(
    Op(
        "concatenate",
        "join",
        _infer_concatenate,
        _concatenate,
        defaults={"axis": 0, "dtype": None, "casting": "same_kind"},
        records=("concatenate", "concat"),
        bind=_bind_concatenate,
        vjp=_vjp_concatenate,
        sample=_sample_concatenate,
        doc="arrays side by side along an axis (None: flattened)",
    )
)


def _infer_stack(types: Sequence[Type], attrs: Attrs) -> Type:
    if not types:
        raise ShapeError("need at least one array to stack")
    dtype = _joined_dtype(types, attrs)
    shape = same_shape([array_type(t).shape for t in types], "all input arrays")
    axis: int = attrs.get("axis", 0)
    return ArrayType(dtype, (*shape[:axis], len(types), *shape[axis:]))


def _bind_stack(
    arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Bound:
    inputs = sequence(arrays)
    if not inputs:
        raise ShapeError("need at least one array to stack")
    where = normalize_axis(as_int(axis), ndim_of(inputs[0]) + 1)
    return inputs, ({"axis": where} if where else {}) | _joining(dtype, casting)


def _vjp_stack(d: Derivation, *arrays: Term) -> tuple[Term, ...]:
    before = [slice(None)] * d.attrs.get("axis", 0)
    return tuple(d.g[(*before, at)] for at in range(len(arrays)))


def _sample_stack(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    a, b = array(rng, dtype, 2, 3), array(rng, dtype, 2, 3)
    return [
        _bind_stack([a, b]),
        _bind_stack([a, b, a], 1),
        _bind_stack([a], -1),
        _bind_stack([array(rng, dtype), 1.5]),
        _bind_stack([a, b], dtype=np.complex128),
    ]


declare(
    Op(
        "stack",
        "join",
        _infer_stack,
        _stack,
        defaults={"axis": 0, "dtype": None, "casting": "same_kind"},
        records=("stack",),
        bind=_bind_stack,
        vjp=_vjp_stack,
        sample=_sample_stack,
        doc="arrays of one shape along a new axis",
    )
)


# ---- pad --------------------------------------------------------------------------------------

MODES = (
    "constant edge linear_ramp maximum mean median minimum reflect symmetric wrap empty"
).split()
PAD_DEFAULTS: dict[str, Any] = {"mode": "constant"}


def _infer_pad(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    shape: list[Size] = []
    for size, (before, after) in zip(x.shape, attrs["pad_width"], strict=True):
        if not (decide_at_least(before, 0) and decide_at_least(after, 0)):
            raise ShapeError("index can't contain negative values")
        shape.append(size + before + after)
    for name in ("constant_values", "end_values"):
        pairs: Any = attrs.get(name, 0)
        for number in np.ravel(pairs).tolist():
            try:
                np.zeros(1, x.dtype)[:] = number
            except (TypeError, OverflowError) as error:
                raise DtypeError(f"{name}={number} does not fit into {x.dtype}") from error
    return ArrayType(x.dtype, shape)


def _pad_raises(node: Node) -> bool:
    """Only a constant can surround an axis of extent 0."""
    x = array_type(node.inputs[0].type)
    if node.attrs.get("mode", "constant") in ("constant", "empty"):
        return False
    return not x.is_static or 0 in x.shape


def _pairs(value: Any, ndim: int, one: Callable[[Any], Any]) -> tuple[tuple[Any, Any], ...]:
    """A (before, after) pair for each axis, from one number, one pair or all of them."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        given: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        by_axis = {normalize_axis(axis, ndim): pair for axis, pair in given.items()}
        return tuple(_pairs(by_axis.get(axis, 0), 1, one)[0] for axis in range(ndim))
    items = items_of(value)
    if items is None:
        return ((one(value), one(value)),) * ndim
    rows = [items_of(item.tolist() if isinstance(item, np.ndarray) else item) for item in items]
    if len(items) in (1, 2) and not any(rows):
        return ((one(items[0]), one(items[-1])),) * ndim
    if len(rows) not in (1, ndim) or any(row is None or len(row) not in (1, 2) for row in rows):
        raise ShapeError(f"{value!r} is not a (before, after) pair for each of {ndim} axes")
    pairs = [(one(row[0]), one(row[-1])) for row in rows if row]
    return tuple(pairs * ndim if len(pairs) == 1 else pairs)


def _bind_pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Bound:
    if callable(mode):
        raise UnsupportedError("np.pad with a function is not recorded", instead='mode="constant"')
    one_of(mode, MODES, "mode=")
    ndim = ndim_of(array)
    attrs: dict[str, Any] = {"pad_width": _pairs(pad_width, ndim, as_size)}
    if mode != "constant":
        attrs["mode"] = mode
    known = {"constant": "constant_values", "linear_ramp": "end_values"}.get(mode)
    for name, option in options.items():
        if name == known:
            pairs = _pairs(option, ndim, partial(as_number, what=name))
            if any(number != 0 or type(number) is float for pair in pairs for number in pair):
                attrs[name] = pairs
        elif name == "reflect_type" and mode in ("reflect", "symmetric"):
            attrs |= {} if option == "even" else {name: one_of(option, ("odd",), name)}
        elif name == "stat_length" and mode in ("maximum", "mean", "median", "minimum"):
            attrs |= {} if option is None else {name: _pairs(option, ndim, as_int)}
        else:
            raise ShapeError(f"unsupported keyword argument for mode {mode!r}: {name}")
    return [array], attrs


def _vjp_pad(d: Derivation, x: Term) -> Term:
    """Of a constant, what lies inside; else each element adds up what was put in for it."""
    mode, widths = d.attrs.get("mode", "constant"), d.attrs["pad_width"]
    sizes = list(zip(x.shape, widths, strict=True))
    if mode in ("constant", "empty"):
        return d.g[tuple(slice(before, before + size) for size, (before, _) in sizes)]
    if mode not in ("edge", "reflect", "symmetric", "wrap") or "reflect_type" in d.attrs:
        raise d.unsupported(f"np.pad with mode={mode!r}", "np.concatenate")
    found = d.g
    for axis, (size, width) in enumerate(sizes):
        places = d.op("arange", stop=size, dtype=np.dtype(np.intp))
        places = d.op("pad", places, pad_width=(width,), mode=mode)
        zeros = d.zeros(ArrayType(x.dtype, (*x.shape[: axis + 1], *found.shape[axis + 1 :])))
        index = [*[slice(None)] * axis, OPERAND]
        found = d.op("scatter_add", zeros, found, places, index=index)
    return found


def _sample_pad(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 3, 4)
    return [
        _bind_pad(x, 1),
        _bind_pad(x, ((0, 2), (1, 0)), constant_values=1),
        _bind_pad(x, (1, 2), constant_values=((0, 1), (1, 0))),
        *(
            _bind_pad(x, 2, mode)
            for mode in MODES
            if mode != "empty" and not (dtype.kind == "b" and mode in ("linear_ramp", "mean"))
        ),
        _bind_pad(x, ((1,), (2,)), "reflect", reflect_type="even"),
        _bind_pad(x[0], 2, "maximum", stat_length=2),
    ]


declare(
    Op(
        "pad",
        "join",
        _infer_pad,
        "pad",
        raises=_pad_raises,
        defaults=PAD_DEFAULTS,
        records=("pad",),
        bind=_bind_pad,
        vjp=_vjp_pad,
        sample=_sample_pad,
        doc="np.pad",
    )
)


# ---- tile, repeat, roll -----------------------------------------------------------------------


def _infer_tile(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    reps = attrs["reps"]
    rank = max(x.ndim, len(reps))
    sizes = [*[1] * (rank - x.ndim), *x.shape]
    counts = [*[1] * (rank - len(reps)), *reps]
    if not all(decide_at_least(count, 0) for count in counts):
        raise ShapeError("negative dimensions are not allowed")
    return ArrayType(x.dtype, [size * count for size, count in zip(sizes, counts, strict=True)])


def _vjp_tile(d: Derivation, x: Term) -> Term:
    """The sum over all repetitions, each on an axis of its own before that which it repeats."""
    reps: tuple[Size, ...] = d.attrs["reps"]
    rank = d.g.ndim
    sizes = [*[1] * (rank - x.ndim), *x.shape]
    counts = [*[1] * (rank - len(reps)), *reps]
    parts = d.g.reshape([size for pair in zip(counts, sizes, strict=True) for size in pair])
    return parts.sum(range(0, 2 * rank, 2)).reshape(x.shape)


def _bind_tile(A: Any, reps: Any) -> Bound:  # noqa: N803  NumPy's name
    return [A], {"reps": as_shape(reps)}


declare(
    Op(
        "tile",
        "join",
        _infer_tile,
        "tile",
        records=("tile",),
        bind=_bind_tile,
        vjp=_vjp_tile,
        sample=lambda rng, dtype: [
            _bind_tile(array(rng, dtype, 2, 3), 2),
            _bind_tile(array(rng, dtype, 2, 3), (2, 1, 3)),
            _bind_tile(array(rng, dtype), (2,)),
            _bind_tile(array(rng, dtype, 2, 3), (0, 1)),
        ],
        doc="np.tile",
    )
)


def _infer_repeat(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    axis: int | None = attrs.get("axis")
    size = x.size if axis is None else x.shape[axis]
    counts = items_of(attrs["repeats"])
    if not all(decide_at_least(count, 0) for count in counts or [attrs["repeats"]]):
        raise ShapeError("repeats may not contain negative values")
    if counts is not None and not decide_equal(size, len(counts)):
        raise ShapeError(f"{len(counts)} repeats do not fit {size} elements")
    total: Size = size * attrs["repeats"] if counts is None else sum(counts)
    if axis is None:
        return ArrayType(x.dtype, (total,))
    return ArrayType(x.dtype, (*x.shape[:axis], total, *x.shape[axis + 1 :]))


def _vjp_repeat(d: Derivation, x: Term) -> Term:
    axis: int | None = d.attrs.get("axis")
    flat, repeats = x.reshape((product(x.shape),)) if axis is None else x, d.attrs["repeats"]
    axis = axis or 0
    counts = items_of(repeats)
    if counts is None:
        shape = (*flat.shape[: axis + 1], repeats, *flat.shape[axis + 1 :])
        return d.g.reshape(shape).sum((axis + 1,)).reshape(x.shape)
    places = np.repeat(np.arange(len(counts)), counts)
    index = [*[slice(None)] * axis, OPERAND]
    return d.op("scatter_add", d.zeros(flat.type), d.g, places, index=index).reshape(x.shape)


def _bind_repeat(a: Any, repeats: Any, axis: Any = None) -> Bound:
    counts = tuple(map(as_size, _several(repeats)))
    where = optional(axis=flat_axis(axis, ndim_of(a)))
    return [a], {"repeats": counts[0] if len(counts) == 1 else counts} | where


declare(
    Op(
        "repeat",
        "join",
        _infer_repeat,
        "repeat",
        defaults={"axis": None},
        records=("repeat", "ndarray.repeat"),
        bind=_bind_repeat,
        vjp=_vjp_repeat,
        sample=lambda rng, dtype: [
            _bind_repeat(array(rng, dtype, 2, 3), 2),
            _bind_repeat(array(rng, dtype, 2, 3), 3, -1),
            _bind_repeat(array(rng, dtype, 2, 3), [2, 0, 1], 1),
            _bind_repeat(array(rng, dtype), 2),
            _bind_repeat(array(rng, dtype, 2, 3), [0], 0),
        ],
        doc="each element several times",
    )
)


def _infer_roll(types: Sequence[Type], attrs: Attrs) -> Type:
    return array_type(types[0])


def _vjp_roll(d: Derivation, x: Term) -> Term:
    shift: Any = d.attrs["shift"]
    shifts = items_of(shift)
    back = -shift if shifts is None else tuple(-each for each in shifts)
    return d.op("roll", d.g, shift=back, axis=d.attrs.get("axis"))


def _bind_roll(a: Any, shift: Any, axis: Any = None) -> Bound:
    if axis is None:
        return [a], {"shift": sum(map(as_int, _several(shift)))}
    ndim = ndim_of(a)
    shifts, axes = _several(shift), _several(axis)
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise ShapeError(f"shift {shift} and axis {axis} do not go together")
    total: dict[int, int] = {}
    for index in range(max(len(shifts), len(axes))):
        at = normalize_axis(axes[index % len(axes)], ndim)
        total[at] = total.get(at, 0) + as_int(shifts[index % len(shifts)])
    where = sorted(total)
    return [a], {"shift": tuple(total[at] for at in where), "axis": tuple(where)}


def _several(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray) and value.ndim:
        value = value.tolist()
    items = items_of(value)
    return [value] if items is None else items


declare(
    Op(
        "roll",
        "join",
        _infer_roll,
        "roll",
        defaults={"axis": None},
        records=("roll",),
        bind=_bind_roll,
        vjp=_vjp_roll,
        sample=lambda rng, dtype: [
            _bind_roll(array(rng, dtype, 3, 4), 5),
            _bind_roll(array(rng, dtype, 3, 4), -1, 1),
            _bind_roll(array(rng, dtype, 3, 4), (1, 2), (1, 0)),
            _bind_roll(array(rng, dtype, 3, 4), (1, 2), (0, 0)),
        ],
        doc="np.roll",
    )
)
