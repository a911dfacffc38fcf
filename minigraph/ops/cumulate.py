"""Running sums, products and extremes along an axis: `cumsum %x {axis=0}`.

Without an axis the array is flattened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.ir import ArrayType, Op, Type

from .bind import Bound, dtype_attr, flat_axis, ndim_of, optional
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
    return [array], optional(axis=flat_axis(axis, ndim_of(array)), dtype=dtype_attr(dtype))


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
            sample=_sample_accumulate,
            doc=f"np.{_ufunc.__name__}.accumulate",
        )
    )
