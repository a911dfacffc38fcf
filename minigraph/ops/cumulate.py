"""Running sums, products and extremes along an axis: `cumsum %x {axis=0}`.

Without an axis the array is flattened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.ir import ArrayType, Op, Type, product

from .bind import Bound, dtype_attr, flat_axis, ndim_of, optional
from .derivation import Derivation, Term
from .index import put_along
from .registry import declare
from .rules import array_type, result_dtype
from .samples import Sample, array, special


def _infer(function: Callable[..., Any]) -> Callable[[Sequence[Type], Mapping[str, Any]], Type]:
    def rule(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
        x = array_type(types[0])
        given = {"dtype": attrs["dtype"]} if "dtype" in attrs else {}
        dtype = result_dtype(function, [ArrayType(x.dtype, (1,))], given)
        return ArrayType(dtype, (x.size,) if attrs.get("axis") is None else x.shape)

    return rule


def _bind(a: Any, axis: Any = None, dtype: Any = None) -> Bound:
    return [a], optional(axis=flat_axis(axis, ndim_of(a)), dtype=dtype_attr(dtype))


def _bind_accumulate(array: Any, axis: Any = 0, dtype: Any = None) -> Bound:
    return _bind(array, axis, dtype)


def _sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 3, 5)
    return [
        _bind(x),
        _bind(x, 0),
        _bind(x, -1, np.float64),
        _bind(x[0]),
        _bind(array(rng, dtype)),
        _bind(x[:0], 0),
    ]


def _sample_accumulate(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 3, 5)
    return [_bind_accumulate(x), _bind_accumulate(x, -1), _bind_accumulate(x[0])]


def _flat(d: Derivation, x: Term) -> tuple[Term, int]:
    """What is summed along which axis."""
    axis: int | None = d.attrs.get("axis")
    return (x.reshape((product(x.shape),)), 0) if axis is None else (x, axis)


def _sum_of_later(d: Derivation, x: Term, axis: int) -> Term:
    """For each element the sum of itself and those after it."""
    back = (*[slice(None)] * axis, slice(None, None, -1))
    return d.op("cumsum", x[back], axis=axis)[back]


def _vjp_cumsum(d: Derivation, x: Term) -> Term:
    flat, axis = _flat(d, x)
    found = _sum_of_later(d, d.g, axis)
    if d.node.op.name.startswith("nan"):
        found = d.where(d.op("isnan", flat), 0, found)
    return found.reshape(x.shape)


def _vjp_cumprod(d: Derivation, x: Term) -> Term:
    """Before the first zero Σ ḡ·out / x; on it the products without it; behind it nothing.

    Of second derivatives, those by two elements of which one is zero come out as 0.
    """
    flat, axis = _flat(d, x)
    absent = d.op("isnan", flat) if d.node.op.name.startswith("nan") else None
    factors = flat if absent is None else d.where(absent, 1, flat)
    zero = factors == 0
    count = d.op("cumsum", zero, axis=axis)
    first = zero & (count == 1)
    without = d.where(first, 1, factors)
    of_first = _sum_of_later(d, d.g * d.op("cumprod", without, axis=axis), axis)
    before = _sum_of_later(d, d.g * d.out, axis) / d.where(zero, 1, factors)
    found = d.where(count == 0, before, d.where(first, of_first, 0))
    return (found if absent is None else d.where(absent, 0, found)).reshape(x.shape)


def _vjp_extreme(d: Derivation, x: Term) -> Term:
    """All to the last element so far that is the extreme."""
    axis: int = d.attrs["axis"]
    shape = [size if each == axis else 1 for each, size in enumerate(x.shape)]
    places = d.op("arange", stop=x.shape[axis], dtype=np.dtype(np.intp)).reshape(shape)
    hits = (x == d.out) | d.op("isnan", x)
    return put_along(d, x, d.g, d.op("cummax", d.where(hits, places, 0), axis=axis), axis)


for _name in "cumsum cumprod nancumsum nancumprod".split():
    _method = () if _name.startswith("nan") else (f"ndarray.{_name}",)
    declare(
        Op(
            _name,
            "cumulate",
            _infer(getattr(np, _name)),
            _name,
            defaults={"axis": None, "dtype": None},
            records=(_name, *_method),
            bind=_bind,
            vjp=_vjp_cumsum if _name.endswith("sum") else _vjp_cumprod,
            sample=_sample,
            doc=f"np.{_name}",
        )
    )

for _name, _ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
    declare(
        Op(
            _name,
            "cumulate",
            _infer(_ufunc.accumulate),
            f"{_ufunc.__name__}.accumulate",
            defaults={"dtype": None},
            records=(f"{_ufunc.__name__}.accumulate",),
            bind=_bind_accumulate,
            vjp=_vjp_extreme,
            sample=_sample_accumulate,
            doc=f"np.{_ufunc.__name__}.accumulate",
        )
    )
