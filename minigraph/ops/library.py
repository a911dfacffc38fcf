"""Functions of NumPy that are called whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import ShapeError, UnsupportedError
from minigraph.ir import BOOL, OPERAND, ArrayType, Op, Size, Type, decide_at_least, product

from .bind import (
    Bound,
    as_axes,
    as_int,
    as_number,
    bind_one,
    keyword_operands,
    ndim_of,
    one_of,
    optional,
    sequence,
)
from .derivation import Derivation, Term
from .index import put_along
from .registry import declare
from .rules import array_type, broadcast_shapes, elementwise, normalize_axis, result_dtype
from .samples import Sample, array, special

Attrs = Mapping[str, Any]


# ---- sort, argsort, partition, argpartition, lexsort ------------------------------------------

KINDS = ("quicksort", "mergesort", "heapsort", "stable")


def _infer_sort(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    return ArrayType(x.dtype, (x.size,) if attrs.get("axis", -1) is None else x.shape)


def _infer_argsort(types: Sequence[Type], attrs: Attrs) -> Type:
    return ArrayType(np.dtype(np.intp), array_type(_infer_sort(types, attrs)).shape)


def _last_axis(axis: Any, ndim: int) -> dict[str, Any]:
    """The axis, left out where it is the last."""
    if axis is None:
        return {} if ndim == 1 else {"axis": None}
    where = normalize_axis(as_int(axis), ndim)
    return {} if where == ndim - 1 else {"axis": where}


def _bind_sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Bound:
    if order is not None:
        raise UnsupportedError("sort with order= is for structured arrays", instead="leave it out")
    if kind is not None:
        one_of(kind, KINDS, "kind=")
    chosen = "stable" if stable or kind == "mergesort" else kind
    return [a], _last_axis(axis, ndim_of(a)) | optional(
        kind=None if chosen == "quicksort" else chosen
    )


def _vjp_sort(d: Derivation, x: Term) -> Term:
    """Each cotangent goes to the element of the same rank."""
    axis: int | None = d.attrs.get("axis", -1)
    flat = x.reshape((product(x.shape),)) if axis is None else x
    where = flat.ndim - 1 if axis is None or axis == -1 else axis
    attrs = {"axis": -1 if where == flat.ndim - 1 else where, "kind": "stable"}
    g = d.g
    if d.node.op.name == "partition":
        g = d.op("take_along_axis", g, d.op("argsort", d.out, **attrs), axis=where)
    return put_along(d, flat, g, d.op("argsort", flat, **attrs), where).reshape(x.shape)


def _sample_sort(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 3, 5)
    return [
        _bind_sort(x),
        _bind_sort(x, 0, "stable"),
        _bind_sort(x, None),
        _bind_sort(x[0], stable=True),
        _bind_sort(x[:0]),
    ]


for _name in ("sort", "argsort"):
    declare(
        Op(
            _name,
            "library",
            _infer_sort if _name == "sort" else _infer_argsort,
            _name,
            defaults={"axis": -1, "kind": None},
            records=("sort",) if _name == "sort" else ("argsort", "ndarray.argsort"),
            bind=_bind_sort,
            vjp=_vjp_sort if _name == "sort" else None,
            sample=_sample_sort,
            doc=f"np.{_name}",
        )
    )


def _infer_partition(types: Sequence[Type], attrs: Attrs) -> Type:
    found = array_type(_infer_sort(types, attrs))
    axis = attrs.get("axis", -1)
    size: Size = found.shape[-1 if axis is None else axis]
    for place in attrs["kth"]:
        if not (decide_at_least(size - 1, place) and decide_at_least(place, -size)):
            raise ShapeError(f"kth(={place}) out of bounds ({size})")
    return found


def _infer_argpartition(types: Sequence[Type], attrs: Attrs) -> Type:
    return ArrayType(np.dtype(np.intp), array_type(_infer_partition(types, attrs)).shape)


def _bind_partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Bound:
    one_of(kind, ("introselect",), "kind=")
    if order is not None:
        raise UnsupportedError("partition with order= is for structured arrays")
    return [a], {"kth": as_axes(kth)} | _last_axis(axis, ndim_of(a))


for _name in ("partition", "argpartition"):
    declare(
        Op(
            _name,
            "library",
            _infer_partition if _name == "partition" else _infer_argpartition,
            _name,
            defaults={"axis": -1},
            records=("partition",)
            if _name == "partition"
            else ("argpartition", "ndarray.argpartition"),
            bind=_bind_partition,
            vjp=_vjp_sort if _name == "partition" else None,
            sample=lambda rng, dtype: [
                _bind_partition(array(rng, dtype, 3, 5), 2),
                _bind_partition(array(rng, dtype, 3, 5), (0, -1), 0),
                _bind_partition(array(rng, dtype, 3, 5), 7, None),
            ],
            doc=f"np.{_name}",
        )
    )


def _infer_lexsort(types: Sequence[Type], attrs: Attrs) -> Type:
    if not types:
        raise ShapeError("need sequence of keys with len > 0 in lexsort")
    keys = [array_type(t) for t in types]
    if any(key.shape != keys[0].shape for key in keys):
        raise ShapeError("all keys need to be the same shape")
    return ArrayType(np.dtype(np.intp), keys[0].shape)


def _lexsort(xp: Any, *keys: Any, **attrs: Any) -> Any:
    return xp.lexsort(keys, **attrs)


def _bind_lexsort(keys: Any, axis: Any = -1) -> Bound:
    inputs = sequence(keys)
    return inputs, _last_axis(axis, ndim_of(inputs[0])) if inputs else {}


declare(
    Op(
        "lexsort",
        "library",
        _infer_lexsort,
        _lexsort,
        defaults={"axis": -1},
        records=("lexsort",),
        bind=_bind_lexsort,
        sample=lambda rng, dtype: [
            _bind_lexsort([array(rng, dtype, 6), array(rng, dtype, 6)]),
            _bind_lexsort([array(rng, dtype, 3, 2), array(rng, dtype, 3, 2)], 0),
        ],
        doc="np.lexsort",
    )
)


# ---- interp, convolve, correlate --------------------------------------------------------------


def _infer_interp(types: Sequence[Type], attrs: Attrs) -> Type:
    x, places, values = (array_type(t) for t in types[:3])
    if places.ndim != 1 or values.ndim != 1:
        raise ShapeError("interp: xp and fp must have one axis")
    broadcast_shapes([places.shape, values.shape])
    dtype = result_dtype(np.interp, [x, places, values])
    return ArrayType(dtype, x.shape)


def _bind_interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Bound:
    inputs = [x, xp, fp]
    return inputs, keyword_operands(inputs, left=left, right=right, period=period)


def _vjp_interp(d: Derivation, x: Term, xp: Term, fp: Term, *ends: Term) -> tuple[Any, ...]:
    """Between two points a line; outside of them the ends, or what was given for them."""
    if "period" in d.attrs:
        raise d.unsupported("np.interp with period=", "the remainder of x and xp")
    count = d.count(xp, [0])
    after = d.op("clip", d.op("searchsorted", xp, x, side="right"), 1, count - 1)
    before = d.op("maximum", after - 1, 0)
    x0, x1, y0, y1 = (d.op("take", of, at) for of in (xp, fp) for at in (before, after))
    low, high = x < xp[0], x > xp[-1]
    inside = ~(low | high)
    width = d.where(x1 == x0, 1, x1 - x0)
    part = d.op("clip", (x - x0) / width, 0, 1)
    slope = d.where(inside, d.g * (y1 - y0) / width, 0)
    left, right = (d.named.get(name) for name in ("left", "right"))
    g = d.g if left is None else d.where(low, 0, d.g)
    g = g if right is None else d.where(high, 0, g)

    def at_points(of: Term, first: Term, second: Term) -> Term:
        found = d.op("scatter_add", d.zeros(of.type), first, before, index=[OPERAND])
        return d.op("scatter_add", found, second, after, index=[OPERAND])

    of_points = at_points(xp, slope * (part - 1), -slope * part)
    of_values = at_points(fp, g * (1 - part), g * part)
    outer = {id(left): low, id(right): high}
    return slope, of_points, of_values, *(d.where(outer[id(end)], d.g, 0) for end in ends)


declare(
    Op(
        "interp",
        "library",
        _infer_interp,
        "interp",
        raises=True,  # a period of zero, no points
        records=("interp",),
        bind=_bind_interp,
        vjp=_vjp_interp,
        sample=lambda rng, dtype: [
            _bind_interp(array(rng, dtype, 2, 3), np.array([0.0, 1.0, 2.0]), array(rng, dtype, 3)),
            _bind_interp(1.5, np.arange(3), array(rng, dtype, 3), left=-1.0, right=7),
            _bind_interp(np.array([1.0, 9.0]), np.arange(3), array(rng, dtype, 3), period=2.5),
        ],
        doc="np.interp",
    )
)


def _infer_convolve(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    if x.ndim > 1 or y.ndim > 1:
        raise ShapeError("object too deep for desired array: convolve takes arrays of one axis")
    n, m = x.size, y.size
    if not (decide_at_least(n, 1) and decide_at_least(m, 1)):
        raise ShapeError("convolve: an operand is empty")
    larger, smaller = (n, m) if decide_at_least(n, m) else (m, n)
    size = {
        "full": n + m - 1,
        "same": larger,
        "valid": larger - smaller + 1,
    }[attrs.get("mode", "full")]
    dtype = result_dtype(np.convolve, [ArrayType(t.dtype, (1,)) for t in (x, y)])
    return ArrayType(dtype, (size,))


def _bind_convolve(a: Any, v: Any, mode: str = "full") -> Bound:
    one_of(mode, ("full", "same", "valid"), "mode=")
    return [a, v], {} if mode == "full" else {"mode": mode}


def _infer_correlate(types: Sequence[Type], attrs: Attrs) -> Type:
    return _infer_convolve(types, {"mode": attrs.get("mode", "valid")})


def _bind_correlate(a: Any, v: Any, mode: str = "valid") -> Bound:
    one_of(mode, ("full", "same", "valid"), "mode=")
    return [a, v], {} if mode == "valid" else {"mode": mode}


def _vjp_convolve(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    """A product of polynomials, of which `mode=` keeps a part; correlate turns the second round."""
    correlates = d.node.op.name == "correlate"
    x, y = (each.reshape((product(each.shape),)) for each in (x, y))
    (n,), (m,) = x.shape, y.shape
    mode = d.attrs.get("mode", "valid" if correlates else "full")
    longer = decide_at_least(n, m)
    smaller = m if longer else n
    start = {"full": 0, "same": (smaller - 1) // 2, "valid": smaller - 1}[mode]
    if correlates and not longer and mode == "same":
        start = smaller // 2  # NumPy correlates in the other order and turns the result round
    widths = ((start, n + m - 1 - start - d.g.shape[0]),)
    g = d.op("pad", d.g, pad_width=widths)
    if not correlates:
        return d.op("correlate", g, y), d.op("correlate", g, x)
    return d.op("convolve", g, y, mode="valid"), d.op("correlate", g, x)[::-1]


def _sample_convolve(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    a, v = array(rng, dtype, 6), array(rng, dtype, 3)
    same = {"mode": "same"}
    return [([a, v], {}), ([v, a], {}), ([a, v], same), ([a, a[:4]], same), ([a[:2], a], same)]


for _name in ("convolve", "correlate"):
    declare(
        Op(
            _name,
            "library",
            _infer_convolve if _name == "convolve" else _infer_correlate,
            _name,
            defaults={"mode": "full" if _name == "convolve" else "valid"},
            records=(_name,),
            bind=_bind_convolve if _name == "convolve" else _bind_correlate,
            vjp=_vjp_convolve,
            sample=_sample_convolve,
            doc=f"np.{_name}",
        )
    )


# ---- comparisons of whole arrays, which give a Python bool ------------------------------------


def _infer_equal(types: Sequence[Type], attrs: Attrs) -> Type:
    for t in types:
        array_type(t)
    return BOOL


def _infer_allclose(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    broadcast_shapes([x.shape, y.shape])
    result_dtype(np.isclose, [x, y])
    return BOOL


def _bind_array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Bound:
    return [a1, a2], optional(equal_nan=bool(equal_nan))


def _bind_array_equiv(a1: Any, a2: Any) -> Bound:
    return [a1, a2], {}


def _bind_allclose(
    a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Bound:
    rtol, atol = as_number(rtol, "rtol="), as_number(atol, "atol=")
    attrs = {} if rtol == 1e-5 else {"rtol": rtol}
    attrs |= {} if atol == 1e-8 else {"atol": atol}
    return [a, b], attrs | optional(equal_nan=bool(equal_nan))


_COMPARED: tuple[tuple[str, Any, Any, dict[str, Any]], ...] = (
    ("array_equal", _infer_equal, _bind_array_equal, {"equal_nan": False}),
    ("array_equiv", _infer_equal, _bind_array_equiv, {}),
    ("allclose", _infer_allclose, _bind_allclose, {"rtol": 1e-5, "atol": 1e-8, "equal_nan": False}),
)


def _sample_compared(bind: Any) -> Any:
    def sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
        x = array(rng, dtype, 2, 3)
        samples = [bind(x, x), bind(x, array(rng, dtype, 3)), bind(array(rng, dtype), 1)]
        return samples if bind is _bind_array_equiv else [*samples, bind(x, x, equal_nan=True)]

    return sample


for _name, _infer, _bind, _defaults in _COMPARED:
    declare(
        Op(
            _name,
            "library",
            _infer,
            _name,
            defaults=_defaults,
            records=(_name,),
            bind=_bind,
            sample=_sample_compared(_bind),
            doc=f"np.{_name}, a Python bool",
        )
    )


# ---- sinc: elementwise, but not one loop of NumPy ---------------------------------------------


def _vjp_sinc(d: Derivation, x: Term) -> Term:
    """(cos πx - sinc x) / x, which is about -π²x / 3 at 0."""
    origin = x == 0
    away = d.where(origin, 1, x)
    slope = (d.op("cos", math.pi * away) - d.op("sinc", away)) / away
    return d.g * d.where(origin, x * (-(math.pi**2) / 3), slope)


declare(
    Op(
        "sinc",
        "library",
        elementwise(np.sinc),
        "sinc",
        records=("sinc",),
        bind=bind_one,
        vjp=_vjp_sinc,
        sample=lambda rng, dtype: [([special(rng, dtype, 3, 4)], {}), ([array(rng, dtype)], {})],
        doc="np.sinc",
    )
)
