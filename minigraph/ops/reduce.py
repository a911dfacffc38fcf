"""Reductions over axes: `sum %x {axis=(0, 1), keepdims=True}`.

`axis` is always a sorted tuple from the front; `()` reduces nothing.  `argmax` and `argmin` take
one axis, or none for the flattened array.  `where=%` and `initial=%` are operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError, UnsupportedError
from minigraph.ir import OPERAND, ArrayType, Node, Op, Shape, Type, product, type_of

from .bind import (
    PLAIN,
    Bound,
    as_axes,
    as_number,
    dtype_attr,
    flat_axis,
    keyword_operands,
    ndim_of,
    optional,
)
from .derivation import ZERO, Derivation, Term, TermLike
from .registry import declare
from .rules import (
    array_type,
    is_zero,
    normalize_axes,
    reduced_shape,
    result_dtype,
    shape_text,
    stretches,
)
from .samples import Sample, array, special

DEFAULTS = {"keepdims": False, "dtype": None}


def reduced(x: ArrayType, attrs: Mapping[str, Any]) -> Shape:
    """The shape of the result."""
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
        return ArrayType(result_dtype(function, types[:1], given), reduced(x, attrs))

    return rule


def _may_be_empty(node: Node) -> bool:
    """Whether a named dimension decides if there is anything to reduce."""
    return _empty(array_type(node.inputs[0].type).shape, node.attrs) is None


def axes_of(x: Any, axis: Any) -> tuple[int, ...]:
    """The `axis=` of a reduction in its normal form."""
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
    if not ndim_of(a) and axis in (0, -1):
        axis = None  # NumPy's ufuncs take one number for an array
    attrs = {"axis": axes_of(a, axis)} | optional(keepdims=bool(keepdims), dtype=dtype_attr(dtype))
    return inputs, attrs | _start(inputs, initial, where)


def _bind_mean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Bound:
    return _bind_sum(a, axes_of(a, axis), dtype, keepdims=keepdims, where=where)


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
    """Axes and nothing else."""
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
    inputs, attrs = _bind_sum(a, axes_of(a, axis), dtype, keepdims=keepdims, where=where)
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


def taking_part(d: Derivation, x: Term) -> TermLike:
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
    return _spread(d, x, d.unreduced(d.g, x) / taking_part(d, x)), *ZERO(d, *others)


def _vjp_var(d: Derivation, x: Term, *others: Term) -> tuple[Term | None, ...]:
    """2·(x - mean) / (n - ddof); of the square root 0 where all elements are equal."""
    name, axes = d.node.op.name, d.attrs["axis"]
    mask = [d.named["where"]] if "where" in d.named else []
    attrs = {"axis": axes, "keepdims": True, "dtype": d.attrs.get("dtype")}
    attrs |= {"where": OPERAND} if mask else {}
    center = d.op(name[:-3] + "mean", x, *mask, **attrs)
    count = taking_part(d, x)
    scaled = d.unreduced(d.g, x) / (count - d.attrs["ddof"] if "ddof" in d.attrs else count)
    if name.endswith("std"):
        out = d.unreduced(d.out, x)
        scaled = scaled / d.where(out == 0, 1, out)
    else:
        scaled = scaled * 2
    taken, found = _taken(d, x), scaled * (x - center)
    return found if taken is None else d.where(taken, found, 0), *ZERO(d, *others)


def shares(
    d: Derivation, hits: Term, g: Term, axes: Sequence[int], more: Term | None = None
) -> Term:
    """The cotangents of extremes, in equal shares on the elements that are extreme.

    Args:
        d: the derivation.
        hits: which elements are.
        g: the cotangents, with extent 1 on the reduced axes.
        axes: the reduced axes.
        more: how many others have a share.
    """
    return d.where(hits, g / _holders(d, hits, g, axes, more), 0)


def _holders(
    d: Derivation, hits: Term, g: Term, axes: Sequence[int], more: Term | None = None
) -> Term:
    """How many have a share in each cotangent; 1 where nobody has."""
    count = d.op("sum", hits, axis=tuple(axes), keepdims=True).cast(g.dtype)
    return d.op("maximum", count if more is None else count + more, 1)


def _vjp_max(d: Derivation, x: Term, *others: Term) -> tuple[Term | None, ...]:
    """In equal shares to all elements that are the extreme, `initial` among them."""
    axes: tuple[int, ...] = d.attrs["axis"]
    out, g, taken = d.unreduced(d.out, x), d.unreduced(d.g, x), _taken(d, x)
    hits = x == out if taken is None else (x == out) & taken
    if "initial" not in d.attrs:
        return shares(d, hits, g, axes), *ZERO(d, *others)
    start = d.named.get("initial", d.attrs["initial"])
    first = (out == start).cast(g.dtype)
    of_start = g * first / _holders(d, hits, g, axes, first)
    found = shares(d, hits, g, axes, first)
    return found, *(of_start if other is start else None for other in others)


def _vjp_ptp(d: Derivation, x: Term) -> Term:
    axes: tuple[int, ...] = d.attrs["axis"]
    high, low = (d.op(name, x, axis=axes, keepdims=True) for name in ("max", "min"))
    g = d.unreduced(d.g, x)
    return shares(d, x == high, g, axes) - shares(d, x == low, g, axes)


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
    axes = None if axis is None else axes_of(a, axis)
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
