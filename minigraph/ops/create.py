"""Create: arrays from nothing but sizes and numbers.

`empty` has the meaning of `zeros`: its contents are not defined, and of all contents it could have,
these are the same at every stage and for every backend, so an `empty` may be merged, moved and
folded like any other pure op.  (Large zeros cost nothing until they are touched.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DimensionError, ShapeError, UnsupportedError
from minigraph.ir import (
    ArrayType,
    Dim,
    Node,
    Op,
    ScalarType,
    Shape,
    Size,
    Type,
    as_dtype,
    decide_at_least,
)

from .bind import (
    Bound,
    as_int,
    as_number,
    as_shape,
    as_size,
    dtype_attr,
    ndim_of,
    optional,
    unless_same,
)
from .derivation import SAME, Derivation, Term
from .registry import declare
from .rules import array_type, broadcast_shapes, normalize_axis, result_dtype, stretches
from .samples import Sample, array

Attrs = Mapping[str, Any]
FLOAT64 = np.dtype(np.float64)
_known_range: Any = np.arange


def _filled(shape: Shape, dtype: np.dtype[Any]) -> ArrayType:
    if not all(decide_at_least(size, 0) for size in shape):
        raise ShapeError("negative dimensions are not allowed")
    return ArrayType(dtype, shape)


# ---- zeros, ones, empty, full -----------------------------------------------------------------


def _bind_zeros(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Bound:
    target = dtype_attr(dtype)
    return [], {"shape": as_shape(shape)} | optional(dtype=None if target == FLOAT64 else target)


for _name, _function in (("zeros", "zeros"), ("ones", "ones"), ("empty", "zeros")):
    declare(
        Op(
            _name,
            "create",
            lambda types, attrs: _filled(attrs["shape"], attrs.get("dtype", FLOAT64)),
            _function,
            defaults={"dtype": FLOAT64},
            records=(_name,),
            bind=_bind_zeros,
            sample=lambda rng, dtype: [
                _bind_zeros((2, 3), dtype),
                _bind_zeros(3),
                _bind_zeros((), dtype),
                _bind_zeros((0, 2), dtype),
            ],
            doc=f"np.{_name}",
        )
    )


def _infer_full(types: Sequence[Type], attrs: Attrs) -> Type:
    value = array_type(types[0])
    shape: Shape = attrs["shape"]
    if not stretches(value.shape, shape):
        raise ShapeError(f"could not broadcast {value} into shape {shape}")
    return _filled(shape, attrs.get("dtype", value.dtype))


def _full_raises(node: Node) -> bool:
    """A Python number may not fit the dtype."""
    return "dtype" in node.attrs and isinstance(node.inputs[0].type, ScalarType)


def _bind_full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Bound:
    target = dtype_attr(dtype)
    attrs = {"shape": as_shape(shape)} | optional(dtype=unless_same(fill_value, target))
    return [fill_value], attrs


def _full(xp: Any, fill_value: Any, shape: Shape, dtype: np.dtype[Any] | None = None) -> Any:
    return xp.full(shape, fill_value, dtype=dtype)


declare(
    Op(
        "full",
        "create",
        _infer_full,
        _full,
        raises=_full_raises,
        defaults={"dtype": None},
        records=("full",),
        bind=_bind_full,
        vjp=SAME,
        sample=lambda rng, dtype: [
            _bind_full((2, 3), 1, dtype),
            _bind_full(3, 2.5),
            _bind_full((2, 3), array(rng, dtype, 3)),
            _bind_full((), array(rng, dtype)),
            _bind_full(2, array(rng, dtype), np.complex128),
        ],
        doc="np.full",
    )
)


# ---- arange -----------------------------------------------------------------------------------


def _infer_arange(types: Sequence[Type], attrs: Attrs) -> Type:
    start: Any = attrs.get("start", 0)
    stop: Any = attrs["stop"]
    step: Any = attrs.get("step", 1)
    dtype: np.dtype[Any] = attrs["dtype"]
    if step == 0:
        raise ShapeError("arange: the step is zero")
    if not any(isinstance(part, Dim) for part in (start, stop, step)):
        return ArrayType(dtype, _known_range(start, stop, step).shape)
    if isinstance(step, Dim) or any(isinstance(part, float | complex) for part in (start, stop)):
        raise DimensionError(
            "arange over a named dimension takes integers, with a step known while tracing"
        )
    distance: Size = stop - start if step > 0 else start - stop
    if not decide_at_least(distance, 0):
        return ArrayType(dtype, (0,))
    return ArrayType(dtype, ((distance + (abs(step) - 1)) // abs(step),))


def _arange(xp: Any, stop: Any, dtype: np.dtype[Any], start: Any = 0, step: Any = 1) -> Any:
    return xp.arange(start, stop, step, dtype=dtype)


def _bind_arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
) -> Bound:
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    given = dict(
        start=as_number(start, "start"), stop=as_number(stop, "stop"), step=as_number(step, "step")
    )
    if given["step"] == 0:
        raise ZeroStepError("arange: the step is zero")
    target = dtype_attr(dtype)
    if target is None:
        numbers: list[Any] = [
            1 if isinstance(number, Dim) else type(number)(1) for number in given.values()
        ]
        target = as_dtype(_known_range(*numbers).dtype)
    plain = {"start": 0, "step": 1}
    attrs = {
        name: number
        for name, number in given.items()
        if not (name in plain and type(number) is int and number == plain[name])
    }
    return [], attrs | {"dtype": target}


class ZeroStepError(ShapeError, ZeroDivisionError):
    """A step of zero: a ZeroDivisionError, as in NumPy."""

    page = ""


def _sample_arange(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    if dtype.kind == "b":
        return [_bind_arange(5)]
    return [
        _bind_arange(5, dtype=dtype),
        _bind_arange(1, 9, 3, dtype),
        _bind_arange(9, 1, -2, np.float64),
        _bind_arange(0.5, 3.0, 0.3),
        _bind_arange(2, 1),
        _bind_arange(np.int32(4)),
    ]


declare(
    Op(
        "arange",
        "create",
        _infer_arange,
        _arange,
        defaults={"start": 0, "step": 1},
        records=("arange",),
        bind=_bind_arange,
        sample=_sample_arange,
        doc="np.arange",
    )
)


# ---- linspace, logspace, geomspace ------------------------------------------------------------


def _infer_space(types: Sequence[Type], attrs: Attrs) -> Type:
    start, stop = (array_type(t) for t in types[:2])
    num, axis = attrs.get("num", 50), attrs.get("axis", 0)
    if not decide_at_least(num, 0):
        raise ShapeError(f"number of samples, {num}, must be non-negative")
    shape = broadcast_shapes([start.shape, stop.shape])
    given = {"dtype": attrs["dtype"]} if "dtype" in attrs else {}
    dtype = result_dtype(np.linspace, types[:2], {"num": 1, **given})
    return ArrayType(dtype, (*shape[:axis], num, *shape[axis:]))


def _space_attrs(
    start: Any, stop: Any, num: Any, endpoint: bool, dtype: Any, axis: Any
) -> dict[str, Any]:
    where = normalize_axis(as_int(axis), max(ndim_of(start), ndim_of(stop)) + 1)
    count = as_size(num)
    attrs: dict[str, Any] = {} if count == 50 else {"num": count}
    attrs |= {} if endpoint else {"endpoint": False}
    return attrs | optional(dtype=dtype_attr(dtype)) | ({"axis": where} if where else {})


def _fractions(d: Derivation) -> Term:
    """How far each step lies on the way from start to stop: 0, ..., 1."""
    axis: int = d.attrs.get("axis", 0)
    attrs = {name: d.attrs.get(name, SPACE[name]) for name in ("num", "endpoint")}
    found = d.op("linspace", 0.0, 1.0, **attrs, dtype=d.out.dtype)
    return found.reshape((*found.shape, *[1] * (d.out.ndim - 1 - axis)))


def _ends(d: Derivation, g: Term, part: Term) -> tuple[Term, Term]:
    """The cotangents of start and stop, from that of start + (stop - start)·part."""
    axis: int = d.attrs.get("axis", 0)
    return (g * (1 - part)).sum((axis,)), (g * part).sum((axis,))


def _vjp_linspace(d: Derivation, start: Term, stop: Term) -> tuple[Term, Term]:
    return _ends(d, d.g, _fractions(d))


def _vjp_logspace(d: Derivation, start: Term, stop: Term) -> tuple[Term, Term]:
    return _ends(d, d.g * d.out * math.log(d.attrs.get("base", 10.0)), _fractions(d))


def _vjp_geomspace(d: Derivation, start: Term, stop: Term) -> tuple[Term, Term]:
    """start·(stop / start)ᵗ."""
    of_start, of_stop = _ends(d, d.g * d.out, _fractions(d))
    return of_start / start, of_stop / stop


def _bind_linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
) -> Bound:
    if retstep:
        raise UnsupportedError("linspace with retstep=True is not recorded", instead="x[1] - x[0]")
    return [start, stop], _space_attrs(start, stop, num, endpoint, dtype, axis)


def _bind_geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: Any = 0
) -> Bound:
    return [start, stop], _space_attrs(start, stop, num, endpoint, dtype, axis)


def _bind_logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Bound:
    number = as_number(base, "base=")
    attrs = {} if number == 10.0 else {"base": number}
    return [start, stop], attrs | _space_attrs(start, stop, num, endpoint, dtype, axis)


SPACE = {"num": 50, "endpoint": True, "dtype": None, "axis": 0}

declare(
    Op(
        "linspace",
        "create",
        _infer_space,
        "linspace",
        defaults=SPACE,
        records=("linspace",),
        bind=_bind_linspace,
        vjp=_vjp_linspace,
        sample=lambda rng, dtype: [
            _bind_linspace(0, 1, 5),
            _bind_linspace(0.0, 3.0, 4, endpoint=False),
            _bind_linspace(array(rng, dtype, 2), array(rng, dtype, 3, 1), 4, axis=-1),
            _bind_linspace(array(rng, dtype), 4, 3),
            _bind_linspace(0, 9, 4, dtype=np.int64),
        ],
        doc="np.linspace",
    )
)
declare(
    Op(
        "logspace",
        "create",
        _infer_space,
        "logspace",
        defaults={**SPACE, "base": 10.0},
        records=("logspace",),
        bind=_bind_logspace,
        vjp=_vjp_logspace,
        sample=lambda rng, dtype: [
            _bind_logspace(0, 1, 5),
            _bind_logspace(0, array(rng, dtype, 2), 4, endpoint=False, axis=1),
            _bind_logspace(array(rng, dtype, 2), 3, 4, base=2.0, dtype=np.float32),
        ],
        doc="np.logspace",
    )
)


def _infer_geomspace(types: Sequence[Type], attrs: Attrs) -> Type:
    found = array_type(_infer_space(types, attrs))
    given = {"dtype": attrs["dtype"]} if "dtype" in attrs else {}
    return ArrayType(result_dtype(np.geomspace, types[:2], {"num": 2, **given}), found.shape)


declare(
    Op(
        "geomspace",
        "create",
        _infer_geomspace,
        "geomspace",
        raises=True,  # from or to zero
        defaults=SPACE,
        records=("geomspace",),
        bind=_bind_geomspace,
        vjp=_vjp_geomspace,
        sample=lambda rng, dtype: [
            _bind_geomspace(1, 8, 4),
            _bind_geomspace(array(rng, dtype, 2, positive=True) | True, 3, 4)
            if dtype.kind == "b"
            else _bind_geomspace(array(rng, dtype, 2, positive=True), 3, 4),
        ],
        doc="np.geomspace",
    )
)


# ---- eye, tri ---------------------------------------------------------------------------------


def _infer_eye(types: Sequence[Type], attrs: Attrs) -> Type:
    rows: Size = attrs["N"]
    return _filled((rows, attrs.get("M", rows)), attrs.get("dtype", FLOAT64))


def _bind_eye(
    N: Any,  # noqa: N803  NumPy's names
    M: Any = None,  # noqa: N803
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Bound:
    rows = as_size(N)
    columns = rows if M is None else as_size(M)
    attrs: dict[str, Any] = {"N": rows} | ({} if columns == rows else {"M": columns})
    offset, target = as_int(k), dtype_attr(dtype)
    attrs |= {"k": offset} if offset else {}
    return [], attrs | optional(dtype=None if target == FLOAT64 else target)


def _bind_tri(
    N: Any,  # noqa: N803  NumPy's names
    M: Any = None,  # noqa: N803
    k: Any = 0,
    dtype: Any = float,
    *,
    like: Any = None,
) -> Bound:
    return _bind_eye(N, M, k, dtype)


for _name, _doc in (
    ("eye", "ones on a diagonal, zeros elsewhere"),
    ("tri", "ones on and below a diagonal, zeros elsewhere"),
):
    declare(
        Op(
            _name,
            "create",
            _infer_eye,
            _name,
            defaults={"M": None, "k": 0, "dtype": FLOAT64},
            records=(_name,),
            bind=_bind_eye if _name == "eye" else _bind_tri,
            sample=lambda rng, dtype: [
                _bind_tri(3, dtype=dtype),
                _bind_tri(3, 4, 1),
                _bind_tri(4, 2, -1, dtype),
                _bind_tri(0),
            ],
            doc=_doc,
        )
    )
