"""Statistics that NumPy has as functions, called whole: medians, averages, quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import ShapeError
from minigraph.ir import ArrayType, Op, Type, product

from .bind import Bound, keyword_operands, one_of, optional
from .derivation import Derivation, Term, TermLike, fit
from .reduce import axes_of, reduced, reduction, shares, taking_part
from .registry import declare
from .rules import array_type, is_zero, reduced_shape, result_dtype, shape_text
from .samples import Sample, array

# ---- elements by their rank -------------------------------------------------------------------


def _between(d: Derivation, x: Term, parts: Sequence[tuple[Term, TermLike]]) -> Term:
    """The cotangents of weighted sums of elements, each given by its value."""
    axes: tuple[int, ...] = d.attrs["axis"]
    kept = reduced_shape(x.shape, axes, d.attrs.get("keepdims", False))
    several = d.out.shape[: d.out.ndim - len(kept)]  # one for each q
    wide = (*several, *reduced_shape(x.shape, axes, True))
    inner = [axis + len(several) for axis in axes]
    found = [
        shares(d, x == value.reshape(wide), (d.g * weight).reshape(wide), inner)
        for value, weight in parts
    ]
    return sum(found[1:], found[0]).sum(range(len(several)))


def _vjp_median(d: Derivation, x: Term) -> Term:
    """Half for each of the two elements in the middle."""
    name = d.node.op.name.replace("median", "quantile")
    if is_zero(product(x.shape)):
        return d.zeros(x.type)
    ends = [d.op(name, x, 0.5, **d.attrs, method=end) for end in ("lower", "higher")]
    return _between(d, x, [(end, 0.5) for end in ends])


def _bind_median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Bound:
    return [a], {"axis": axes_of(a, axis)} | optional(keepdims=bool(keepdims))


for _name in ("median", "nanmedian"):
    reduction(_name, _bind_median, method=False, kind="library", vjp=_vjp_median)


def _infer_quantile(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x, q = array_type(types[0]), array_type(types[1])
    axes: tuple[int, ...] = attrs["axis"]
    if is_zero(product(x.shape[axis] for axis in axes)):
        raise ShapeError("a quantile of no elements is not defined")
    if q.ndim > 1:
        raise ShapeError("q must have at most one axis")
    method = {"method": attrs["method"]} if "method" in attrs else {}
    dtype = result_dtype(np.quantile, [ArrayType(x.dtype, (1,)), types[1]], method)
    return ArrayType(dtype, (*q.shape, *reduced(x, attrs)))


QUANTILES = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen "
    "weibull linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()


def _bind_quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Bound:
    one_of(method, QUANTILES, "method=")
    named = None if method == "linear" else method
    return [a, q], {"axis": axes_of(a, axis)} | optional(method=named, keepdims=bool(keepdims))


def _sample_quantile(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 3, 4)
    return [
        _bind_quantile(x, 0.5),
        _bind_quantile(x, np.array([0.25, 0.6]), 0, keepdims=True),
        _bind_quantile(x, 0.9, (0, 1), method="lower"),
    ]


def _vjp_quantile(d: Derivation, x: Term, q: Term) -> tuple[Term, Term | None]:
    """A quantile is an element, or lies between two; elements equal to one share its part."""
    name, method = d.node.op.name, d.attrs.get("method", "linear")
    if method in ("lower", "higher", "nearest", "inverted_cdf", "closest_observation"):
        return _between(d, x, [(d.out, 1)]), None
    if method not in ("linear", "midpoint"):
        raise d.unsupported(f"np.{name} with method={method!r}", 'method="linear"')
    ends = [d.op(name, x, q, **{**d.attrs, "method": end}) for end in ("lower", "higher")]
    if method == "midpoint":
        return _between(d, x, [(end, 0.5) for end in ends]), None
    steps = taking_part(d, x) - 1  # from the smallest element to the largest
    if name.endswith("percentile"):
        steps = steps / 100
    rest = d.out.ndim - q.ndim
    if isinstance(steps, Term) and not steps.is_number:
        steps = steps.reshape(d.out.shape[q.ndim :])
    position = q.reshape((*q.shape, *[1] * rest)) * steps
    part = position - d.op("floor", position)
    found = _between(d, x, [(ends[0], 1 - part), (ends[1], part)])
    of_q = (d.g * (ends[1] - ends[0]) * steps).sum(range(q.ndim, d.out.ndim))
    return found, of_q


for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    declare(
        Op(
            _name,
            "library",
            _infer_quantile,
            _name,
            raises=True,  # where q is out of its range
            defaults={"method": "linear", "keepdims": False},
            records=(_name,),
            bind=_bind_quantile,
            vjp=_vjp_quantile,
            sample=_sample_quantile,
            doc=f"np.{_name}",
        )
    )


# ---- average ----------------------------------------------------------------------------------


def _infer_average(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x = array_type(types[0])
    if len(types) == 1:
        return ArrayType(result_dtype(np.average, [x]), reduced(x, attrs))
    weights = array_type(types[1])
    axes: tuple[int, ...] = attrs["axis"]
    if weights.shape != x.shape and weights.shape != tuple(x.shape[axis] for axis in axes):
        raise ShapeError(
            f"weights of shape {shape_text(weights.shape)} fit neither the array, "
            f"{shape_text(x.shape)}, nor its axes {axes}"
        )
    dtype = result_dtype(_average, [ArrayType(t.dtype, (1,)) for t in (x, weights)])
    return ArrayType(dtype, reduced(x, attrs))


def _average(x: Any, weights: Any) -> Any:
    return np.average(x, weights=weights)


def _bind_average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: Any = False) -> Bound:
    inputs = [a]
    attrs = {"axis": axes_of(a, axis)} | optional(keepdims=bool(keepdims))
    return inputs, attrs | keyword_operands(inputs, weights=weights)


def _vjp_average(d: Derivation, x: Term, *weights: Term) -> tuple[Term, ...]:
    """Σwx / Σw: of x it is w / Σw, of w it is (x - mean) / Σw."""
    axes: tuple[int, ...] = d.attrs["axis"]
    g = d.unreduced(d.g, x)
    if not weights:
        return (g / d.count(x, axes),)
    (given,) = weights
    w = given
    if w.shape != x.shape:  # one weight for each position on the axes
        w = w.reshape(tuple(x.shape[axis] if axis in axes else 1 for axis in range(x.ndim)))
    scaled = g / w.broadcast_to(x.shape).sum(axes, keepdims=True)
    of_w = fit(scaled * (x - d.unreduced(d.out, x)), ArrayType(d.g.dtype, w.shape))
    return scaled * w, of_w.reshape(given.shape)


def _sample_average(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x, weights = array(rng, dtype, 3, 4), array(rng, dtype, 3, 4, positive=True)
    return [
        _bind_average(x),
        _bind_average(x, weights=weights | weights if dtype.kind == "b" else weights),
        _bind_average(x, 0, weights=np.arange(1.0, 4.0)),
        _bind_average(x, 1, weights=np.arange(1, 13).reshape(3, 4), keepdims=True),
    ]


declare(
    Op(
        "average",
        "library",
        _infer_average,
        "average",
        raises=lambda node: len(node.inputs) > 1,  # where the weights sum to zero
        defaults={"keepdims": False},
        records=("average",),
        bind=_bind_average,
        vjp=_vjp_average,
        sample=_sample_average,
        doc="np.average",
    )
)
