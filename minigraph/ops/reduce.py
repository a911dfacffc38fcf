"""Reductions over axes: `sum %x {axis=(0, 1), keepdims=True}`.

`axis` is always a sorted tuple from the front; `()` reduces nothing.  `argmax` and `argmin` take
one axis, or none for the flattened array.  `where=%` and `initial=%` are operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError, UnsupportedError
from minigraph.ir import OPERAND, ArrayType, Node, Op, Shape, Type, product, type_of

from .bind import (
    PLAIN,
    Bound,
    as_axes,
    as_int,
    as_number,
    dtype_attr,
    flat_axis,
    keyword_operands,
    ndim_of,
    one_of,
    optional,
)
from .derivation import ZERO, Derivation, Term, TermLike, fit
from .registry import declare
from .rules import (
    array_type,
    is_zero,
    items_of,
    normalize_axes,
    normalize_axis,
    reduced_shape,
    result_dtype,
    shape_text,
    stretches,
)
from .samples import Sample, array, special

DEFAULTS = {"keepdims": False, "dtype": None}


def _reduced(x: ArrayType, attrs: Mapping[str, Any]) -> Shape:
    return reduced_shape(x.shape, attrs["axis"], attrs.get("keepdims", False))


def _check_where(types: Sequence[Type], attrs: Mapping[str, Any]) -> None:
    """`where=` must be of bools and fit into the array."""
    named = [name for name, attr in attrs.items() if attr is OPERAND]
    for name, type_ in zip(named, types[len(types) - len(named) :], strict=True):
        mask, x = array_type(type_), array_type(types[0])
        if name != "where":
            continue
        if mask.dtype != np.dtype(bool):
            raise DtypeError(f"where= must be of bools, not {mask}", instead="where=mask != 0")
        if not stretches(mask.shape, x.shape):
            raise ShapeError(
                f"where= of shape {shape_text(mask.shape)} does not fit into {shape_text(x.shape)}"
            )


def _empty(x: Shape, attrs: Mapping[str, Any]) -> bool | None:
    """Whether there is a result of which no element is reduced; None: it depends on sizes."""
    if "initial" in attrs:
        return False
    axes: tuple[int, ...] = attrs["axis"]
    reduced = is_zero(product(x[axis] for axis in axes))
    kept = is_zero(product(reduced_shape(x, axes, False)))
    if reduced is False or kept is True:
        return False
    return True if reduced and kept is False else None


def _infer(
    function: Callable[..., Any], *, identity: bool = True
) -> Callable[[Sequence[Type], Mapping[str, Any]], Type]:
    """Inference of a reduction; `identity`: whether it is defined on no elements."""

    def rule(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
        x = array_type(types[0])
        _check_where(types, attrs)
        if not identity and _empty(x.shape, attrs):
            raise ShapeError(
                f"zero-size array to reduction operation {function.__name__}, "
                "which has no identity",
                instead="initial=, where the function takes it",
            )
        given = {"dtype": attrs["dtype"]} if "dtype" in attrs else {}
        return ArrayType(result_dtype(function, types[:1], given), _reduced(x, attrs))

    return rule


def _may_be_empty(node: Node) -> bool:
    """Whether a named dimension decides if there is anything to reduce."""
    return _empty(array_type(node.inputs[0].type).shape, node.attrs) is None


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    ndim = ndim_of(x)
    return normalize_axes(None if axis is None else as_axes(axis), ndim)


def _start(inputs: list[Any], initial: Any, where: Any) -> dict[str, Any]:
    """`initial` is an attr where it is a plain number."""
    plain = type(initial) in PLAIN or isinstance(initial, np.generic)
    attrs = {"initial": as_number(initial, "initial=")} if plain else {}
    mask = None if where is True else where
    return attrs | keyword_operands(inputs, initial=None if plain else initial, where=mask)


def _bind_sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Bound:
    inputs = [a]
    attrs = {"axis": _axes(a, axis)} | optional(keepdims=bool(keepdims), dtype=dtype_attr(dtype))
    return inputs, attrs | _start(inputs, initial, where)


def _bind_mean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Bound:
    return _bind_sum(a, axis, dtype, keepdims=keepdims, where=where)


def _bind_max(
    a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Bound:
    if where is not True and initial is None:
        raise ShapeError(
            "a maximum or minimum of some elements has no identity", instead="also give initial="
        )
    return _bind_sum(a, axis, keepdims=keepdims, initial=initial, where=where)


def _bind_any(a: Any, axis: Any = None, *, keepdims: bool = False, where: Any = True) -> Bound:
    return _bind_sum(a, axis, keepdims=keepdims, where=where)


def _bind_plain(a: Any, axis: Any = None, *, keepdims: bool = False) -> Bound:
    return _bind_sum(a, axis, keepdims=keepdims)


def _bind_var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Bound:
    if mean is not None:
        raise UnsupportedError("var and std with mean= are not recorded", instead="leave out mean=")
    degrees = as_number(ddof if correction is None else correction, "ddof=")
    inputs, attrs = _bind_sum(a, axis, dtype, keepdims=keepdims, where=where)
    return inputs, ({"ddof": degrees} if degrees != 0 else {}) | attrs


def _sample(
    bind: Callable[..., Bound], *, options: Sequence[Mapping[str, Any]] = (), empty: bool = False
) -> Callable[[np.random.Generator, np.dtype[Any]], list[Sample]]:
    """All, one, several and no axes; then the options; then no elements."""

    def sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
        x = array(rng, dtype, 2, 3, 4)
        found = [
            bind(x),
            bind(special(rng, dtype, 4, 5)),
            bind(x, 1),
            bind(x, (-1, 0), keepdims=True),
            bind(array(rng, dtype)),
            bind(x[0], axis=()),
            *(bind(x, **each) for each in options),
        ]
        return [*found, bind(x[:0], axis=0)] if empty else found

    return sample


MASK = np.array([[True], [False], [True]])


def reduction(
    name: str,
    bind: Callable[..., Bound],
    *,
    records: Sequence[str] = (),
    method: bool = True,
    identity: bool = True,
    options: Sequence[Mapping[str, Any]] = (),
    raises: bool | Callable[[Node], bool] = False,
    kind: str = "reduce",
    defaults: Mapping[str, Any] = DEFAULTS,
    vjp: Callable[..., Any] | None = None,
) -> Op:
    """Declare a reduction that is `np.<name>`."""
    found = (name, *records)
    return declare(
        Op(
            name,
            kind,
            _infer(getattr(np, name), identity=identity),
            name,
            raises=raises if identity else _may_be_empty,
            defaults=defaults,
            records=(*found, f"ndarray.{name}") if method else found,
            bind=bind,
            vjp=vjp,
            sample=_sample(bind, options=options, empty=identity),
            doc=f"np.{name}",
        )
    )


# The rules: each spreads the cotangent of a reduction over the elements that were reduced


def _taken(d: Derivation, x: Term) -> Term | None:
    """Which elements take part; None: all of them."""
    given = d.named.get("where")
    if not d.node.op.name.startswith("nan"):
        return given
    numbers = ~d.op("isnan", x)
    return numbers if given is None else given & numbers


def _spread(d: Derivation, x: Term, reduced: Term) -> Term:
    """One number for each reduction, on the elements that take part in it."""
    taken, found = _taken(d, x), d.unreduced(reduced, x)
    return found if taken is None else d.where(taken, found, 0)


def _count(d: Derivation, x: Term) -> TermLike:
    """How many elements take part in each reduction (with extent 1 on the reduced axes)."""
    axes: tuple[int, ...] = d.attrs["axis"]
    taken = _taken(d, x)
    if taken is None:
        return d.count(x, axes)
    counted = d.op("sum", taken.broadcast_to(x.shape), axis=axes, keepdims=True)
    return counted.cast(d.g.dtype)


def _vjp_sum(d: Derivation, x: Term, *others: Term) -> tuple[Term | None, ...]:
    start = d.named.get("initial")
    return _spread(d, x, d.g), *(d.g if other is start else None for other in others)


def _vjp_mean(d: Derivation, x: Term, *others: Term) -> tuple[Term | None, ...]:
    return _spread(d, x, d.unreduced(d.g, x) / _count(d, x)), *ZERO(d, *others)


def _vjp_var(d: Derivation, x: Term, *others: Term) -> tuple[Term | None, ...]:
    """2·(x - mean) / (n - ddof); of the square root 0 where all elements are equal."""
    name, axes = d.node.op.name, d.attrs["axis"]
    mask = [d.named["where"]] if "where" in d.named else []
    attrs = {"axis": axes, "keepdims": True, "dtype": d.attrs.get("dtype")}
    attrs |= {"where": OPERAND} if mask else {}
    center = d.op(name[:-3] + "mean", x, *mask, **attrs)
    scaled = d.unreduced(d.g, x) / (_count(d, x) - d.attrs.get("ddof", 0))
    if name.endswith("std"):
        scaled = scaled / d.where(d.unreduced(d.out, x) == 0, 1, d.unreduced(d.out, x))
    else:
        scaled = scaled * 2
    taken, found = _taken(d, x), scaled * (x - center)
    return found if taken is None else d.where(taken, found, 0), *ZERO(d, *others)


def _shares(d: Derivation, hits: Term, g: Term, axes: Sequence[int], more: TermLike = 0) -> Term:
    """The cotangents of extremes, in equal shares on the elements that are extreme.

    Args:
        d: the derivation.
        hits: which elements are.
        g: the cotangents, with extent 1 on the reduced axes.
        axes: the reduced axes.
        more: how many others have a share.
    """
    count = d.op("sum", hits, axis=tuple(axes), keepdims=True).cast(g.dtype) + more
    return d.where(hits, g / d.op("maximum", count, 1), 0)


def _vjp_max(d: Derivation, x: Term, *others: Term) -> tuple[Term | None, ...]:
    """In equal shares to all elements that are the extreme, `initial` among them."""
    axes: tuple[int, ...] = d.attrs["axis"]
    out, g, taken = d.unreduced(d.out, x), d.unreduced(d.g, x), _taken(d, x)
    hits = x == out if taken is None else (x == out) & taken
    if "initial" not in d.attrs:
        return _shares(d, hits, g, axes), *ZERO(d, *others)
    start = d.named.get("initial", d.attrs["initial"])
    first = (out == start).cast(g.dtype)
    count = d.op("sum", hits, axis=axes, keepdims=True).cast(g.dtype) + first
    of_start = g * first / d.op("maximum", count, 1)
    found = _shares(d, hits, g, axes, first)
    return found, *(of_start if other is start else None for other in others)


def _vjp_ptp(d: Derivation, x: Term) -> Term:
    axes: tuple[int, ...] = d.attrs["axis"]
    high, low = (d.op(name, x, axis=axes, keepdims=True) for name in ("max", "min"))
    g = d.unreduced(d.g, x)
    return _shares(d, x == high, g, axes) - _shares(d, x == low, g, axes)


def _vjp_prod(d: Derivation, x: Term, *others: Term) -> tuple[Term | None, ...]:
    """The product of the others, without a division: right where elements are zero, too."""
    axes: tuple[int, ...] = d.attrs["axis"]
    taken = _taken(d, x)
    factors = (x if taken is None else d.where(taken, x, 1)).cast(d.g.dtype).broadcast_to(x.shape)
    start = d.named.get("initial")
    factor: TermLike = d.attrs.get("initial", 1) if start is None else start.cast(d.g.dtype)
    of_start = d.unreduced(d.g, x) * d.op("prod", factors, axis=axes, keepdims=True)
    order = [axis for axis in range(x.ndim) if axis not in axes] + list(axes)
    rows = factors.transpose(order)
    flat = rows.reshape(
        (*rows.shape[: x.ndim - len(axes)], product(rows.shape[x.ndim - len(axes) :]))
    )
    product_of_others = _before(d, flat) * _before(d, flat[..., ::-1])[..., ::-1]
    back = [order.index(axis) for axis in range(x.ndim)]
    found = _spread(d, x, d.g * factor) * product_of_others.reshape(rows.shape).transpose(back)
    return found, *(of_start if other is start else None for other in others)


def _before(d: Derivation, x: Term) -> Term:
    """For each element the product of those before it on the last axis."""
    one = d.op("ones", shape=(*x.shape[:-1], 1), dtype=x.dtype)
    last = x.ndim - 1
    return d.op("cumprod", d.op("concatenate", one, x, axis=last), axis=last)[..., :-1]


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
    steps = _count(d, x) - 1  # from the smallest element to the largest
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


def _vjp_median(d: Derivation, x: Term) -> Term:
    """Half for each of the two elements in the middle."""
    name = d.node.op.name.replace("median", "quantile")
    if is_zero(product(x.shape)):
        return d.zeros(x.type)
    ends = [d.op(name, x, 0.5, **d.attrs, method=end) for end in ("lower", "higher")]
    return _between(d, x, [(end, 0.5) for end in ends])


def _between(d: Derivation, x: Term, parts: Sequence[tuple[Term, TermLike]]) -> Term:
    """The cotangents of weighted sums of elements, each given by its value."""
    axes: tuple[int, ...] = d.attrs["axis"]
    kept = reduced_shape(x.shape, axes, d.attrs.get("keepdims", False))
    several = d.out.shape[: d.out.ndim - len(kept)]  # one for each q
    wide = (*several, *reduced_shape(x.shape, axes, True))
    inner = [axis + len(several) for axis in axes]
    found = [
        _shares(d, x == value.reshape(wide), (d.g * weight).reshape(wide), inner)
        for value, weight in parts
    ]
    return sum(found[1:], found[0]).sum(range(len(several)))


_MASKED = {"axis": 1, "where": MASK}
for _name in ("sum", "prod"):
    reduction(
        _name,
        _bind_sum,
        vjp=_vjp_sum if _name == "sum" else _vjp_prod,
        options=[
            {"dtype": np.float64},
            {"axis": 2, "initial": 3},
            _MASKED,
            {**_MASKED, "initial": np.array(2)},
        ],
    )
reduction("mean", _bind_mean, vjp=_vjp_mean, options=[{"dtype": np.float64}, _MASKED])
for _name in ("var", "std"):
    reduction(
        _name,
        _bind_var,
        vjp=_vjp_var,
        options=[{"ddof": 1}, {"axis": 1, "ddof": 1.5}, _MASKED],
        defaults={**DEFAULTS, "ddof": 0},
    )
for _name in ("max", "min"):
    reduction(
        _name,
        _bind_max,
        vjp=_vjp_max,
        records=(f"a{_name}",),
        identity=False,
        options=[{"initial": 1}, {**_MASKED, "initial": 0}],
    )
for _name in ("any", "all"):
    reduction(_name, _bind_any, options=[_MASKED])
reduction("ptp", _bind_plain, method=False, identity=False, vjp=_vjp_ptp)
for _name, _rule in (("nansum", _vjp_sum), ("nanprod", _vjp_prod)):
    reduction(_name, _bind_sum, method=False, options=[{"axis": 2, "initial": 3}], vjp=_rule)
for _name in ("nanmax", "nanmin"):
    reduction(
        _name, _bind_max, method=False, identity=False, options=[{"initial": 1}], vjp=_vjp_max
    )
reduction("nanmean", _bind_mean, method=False, vjp=_vjp_mean)
for _name in ("nanvar", "nanstd"):
    reduction(
        _name,
        _bind_var,
        vjp=_vjp_var,
        method=False,
        options=[{"ddof": 1}],
        defaults={**DEFAULTS, "ddof": 0},
    )
for _name in ("median", "nanmedian"):
    reduction(_name, _bind_plain, method=False, kind="library", vjp=_vjp_median)


# Positions of extremes: one axis, or the flattened array


def _infer_position(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x = array_type(types[0])
    axis = attrs.get("axis")
    axes = range(x.ndim) if axis is None else (axis,)
    if is_zero(product(x.shape[each] for each in axes)):
        raise ShapeError("the position of an extreme of no elements is not defined")
    result_dtype(np.argmax, types, {})  # the dtype must have an order
    return ArrayType(np.dtype(np.intp), reduced_shape(x.shape, axes, attrs.get("keepdims", False)))


def _position_raises(node: Node) -> bool:
    x = array_type(node.inputs[0].type)
    axis: int | None = node.attrs.get("axis")
    return is_zero(x.size if axis is None else x.shape[axis]) is not False


def _bind_position(a: Any, axis: Any = None, *, keepdims: bool = False) -> Bound:
    return [a], optional(axis=flat_axis(axis, ndim_of(a)), keepdims=bool(keepdims))


def _sample_position(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 3, 4)
    return [
        _bind_position(x),
        _bind_position(x, 0),
        _bind_position(x, -1, keepdims=True),
        _bind_position(x, keepdims=True),
        _bind_position(array(rng, dtype)),
    ]


def _sample_nan_position(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 3, 4)
    if dtype.kind in "fc":
        x[1, 2] = np.nan
    return [_bind_position(x), _bind_position(x, 0), _bind_position(x, -1, keepdims=True)]


for _name in ("argmax", "argmin"):
    declare(
        Op(
            _name,
            "reduce",
            _infer_position,
            _name,
            raises=_position_raises,
            defaults={"axis": None, "keepdims": False},
            records=(_name, f"ndarray.{_name}"),
            bind=_bind_position,
            sample=_sample_position,
            doc=f"np.{_name}",
        )
    )
    declare(
        Op(
            f"nan{_name}",
            "reduce",
            _infer_position,
            f"nan{_name}",
            raises=True,  # on a slice of nothing but NaN
            defaults={"axis": None, "keepdims": False},
            records=(f"nan{_name}",),
            bind=_bind_position,
            sample=_sample_nan_position,
            doc=f"np.nan{_name}",
        )
    )


# Without an axis the count is a Python int in some versions of NumPy


def _infer_count(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x = array_type(types[0])
    keepdims = attrs.get("keepdims", False)
    if attrs.get("axis") is None:
        if not keepdims:
            return type_of(np.count_nonzero(np.ones(1, x.dtype)))
        return ArrayType(np.dtype(np.intp), (1,) * x.ndim)
    return ArrayType(np.dtype(np.intp), reduced_shape(x.shape, attrs["axis"], keepdims))


def _bind_count(a: Any, axis: Any = None, *, keepdims: bool = False) -> Bound:
    axes = None if axis is None else _axes(a, axis)
    return [a], optional(axis=axes, keepdims=bool(keepdims))


declare(
    Op(
        "count_nonzero",
        "reduce",
        _infer_count,
        "count_nonzero",
        defaults={"axis": None, "keepdims": False},
        records=("count_nonzero",),
        bind=_bind_count,
        sample=_sample(_bind_count, empty=True),
        doc="np.count_nonzero",
    )
)


# Whole functions of the library that reduce


def _infer_average(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x = array_type(types[0])
    if len(types) == 1:
        return ArrayType(result_dtype(np.average, [x]), _reduced(x, attrs))
    weights = array_type(types[1])
    axes: tuple[int, ...] = attrs["axis"]
    if weights.shape != x.shape and weights.shape != tuple(x.shape[axis] for axis in axes):
        raise ShapeError(
            f"weights of shape {shape_text(weights.shape)} fit neither the array, "
            f"{shape_text(x.shape)}, nor its axes {axes}"
        )
    dtype = result_dtype(_average, [ArrayType(t.dtype, (1,)) for t in (x, weights)])
    return ArrayType(dtype, _reduced(x, attrs))


def _average(x: Any, weights: Any) -> Any:
    return np.average(x, weights=weights)


def _bind_average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: Any = False) -> Bound:
    inputs = [a]
    attrs = {"axis": _axes(a, axis)} | optional(keepdims=bool(keepdims))
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


def _infer_quantile(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x, q = array_type(types[0]), array_type(types[1])
    axes: tuple[int, ...] = attrs["axis"]
    if is_zero(product(x.shape[axis] for axis in axes)):
        raise ShapeError("a quantile of no elements is not defined")
    if q.ndim > 1:
        raise ShapeError("q must have at most one axis")
    method = {"method": attrs["method"]} if "method" in attrs else {}
    dtype = result_dtype(np.quantile, [ArrayType(x.dtype, (1,)), types[1]], method)
    return ArrayType(dtype, (*q.shape, *_reduced(x, attrs)))


QUANTILES = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen "
    "weibull linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()


def _bind_quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Bound:
    one_of(method, QUANTILES, "method=")
    named = None if method == "linear" else method
    return [a, q], {"axis": _axes(a, axis)} | optional(method=named, keepdims=bool(keepdims))


def _sample_quantile(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 3, 4)
    return [
        _bind_quantile(x, 0.5),
        _bind_quantile(x, np.array([0.25, 0.6]), 0, keepdims=True),
        _bind_quantile(x, 0.9, (0, 1), method="lower"),
    ]


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


def _infer_norm(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x = array_type(types[0])
    axis: Any = attrs.get("axis")
    axes = list(range(x.ndim)) if axis is None else items_of(axis) or [axis]
    ord_ = attrs.get("ord")
    if ord_ is not None and (len(axes) > 2 or (axis is None and x.ndim > 2) or not axes):
        raise ShapeError("a norm with ord= is of one or two axes", instead="give axis=")
    if isinstance(ord_, str) and len(axes) != 2:
        raise ShapeError(f"the norm {ord_!r} is of matrices")
    probe = ArrayType(x.dtype, (1,) * max(1, len(axes)))
    dtype = result_dtype(np.linalg.norm, [probe], {"ord": ord_} if ord_ is not None else {})
    return ArrayType(dtype, reduced_shape(x.shape, axes, attrs.get("keepdims", False)))


def _bind_norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Bound:
    ndim = ndim_of(x)
    pair = items_of(axis)
    if pair is not None:
        where = tuple(normalize_axis(one, ndim) for one in pair)
        if len(where) > 2:
            raise ShapeError("a norm is of one or two axes")
        if len(where) == 1:
            where = where[0]
    else:
        where = None if axis is None else normalize_axis(as_int(axis), ndim)
    which = ord if ord is None or isinstance(ord, str) else as_number(ord, "ord=")
    attrs = {} if which is None else {"ord": which}
    return [x], attrs | optional(axis=where, keepdims=bool(keepdims))


def _vjp_norm(d: Derivation, x: Term) -> Term | None:
    """At the origin 0."""
    axis, ord_ = d.attrs.get("axis"), d.attrs.get("ord")
    axes: list[int] = list(range(x.ndim)) if axis is None else items_of(axis) or [axis]
    wide = reduced_shape(x.shape, axes, True)
    g, out = d.g.reshape(wide), d.out.reshape(wide)
    length = d.where(out == 0, 1, out)
    if ord_ in (None, "fro") or (ord_ == 2 and len(axes) == 1):
        return g * (x / length)
    if len(axes) == 2:
        return _vjp_matrix_norm(d, x, g, out, axes)
    sign, size = d.op("sign", x), d.op("absolute", x)
    if ord_ == 0:
        return None
    if math.isinf(ord_):
        return _shares(d, size == out, g, axes) * sign
    return g * sign * (size / length) ** (ord_ - 1)


def _vjp_matrix_norm(d: Derivation, x: Term, g: Term, out: Term, axes: Sequence[int]) -> Term:
    """Of sums over one axis the extreme one; or of singular values the extreme ones, or the sum."""
    ord_: Any = d.attrs["ord"]
    if ord_ not in (2, -2, "nuc"):
        rows, columns = axes if abs(ord_) == 1 else reversed(axes)
        sums = d.op("sum", d.op("absolute", x), axis=(rows,), keepdims=True)
        return _shares(d, sums == out, g, [columns]) * d.op("sign", x)
    order = [axis for axis in range(x.ndim) if axis not in axes] + list(axes)
    u, values, v = d.ops("svd", x.transpose(order), full_matrices=False)
    matrices, last = u.ndim - 2, values.ndim - 1
    share = g.transpose(order).reshape((*u.shape[:matrices], 1))
    if ord_ != "nuc":
        hits = values == d.op("max" if ord_ == 2 else "min", values, axis=(last,), keepdims=True)
        share = _shares(d, hits, share, [last])
    found = (u * share.reshape((*share.shape[:-1], 1, share.shape[-1]))) @ v
    return found.transpose([order.index(axis) for axis in range(x.ndim)])


def _sample_norm(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 3, 4)
    return [
        _bind_norm(x),
        _bind_norm(x, 2, 0),
        _bind_norm(x, axis=(0, 1), keepdims=True),
        _bind_norm(x, 1, -1),
        _bind_norm(x, np.inf, 1, keepdims=True),
        _bind_norm(x, "fro"),
        _bind_norm(x[0], 0),
        _bind_norm(x[0], 3),
        _bind_norm(x, 1),
        _bind_norm(x, -np.inf),
        _bind_norm(x, "nuc"),
        _bind_norm(x, 2, (1, 0)),
    ]


declare(
    Op(
        "norm",
        "library",
        _infer_norm,
        "linalg.norm",
        defaults={"ord": None, "axis": None, "keepdims": False},
        records=("linalg.norm",),
        bind=_bind_norm,
        vjp=_vjp_norm,
        sample=_sample_norm,
        doc="np.linalg.norm",
    )
)
