"""Index: elements chosen by arrays, and arrays with some elements replaced.

`gather %x, %i {index=[:, %]}` is `x[:, i]`; `update %x, %v, %i {index=[%]}` is a copy of `x` after
`x[i] = v`.  An array of positions may point outside of the array: then the op raises, as in NumPy,
unless `safe=True` says that it was checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError
from minigraph.ir import (
    OPERAND,
    ArrayType,
    Node,
    Op,
    Size,
    Type,
    decide_equal,
    product,
)

from .bind import (
    Bound,
    as_int,
    flat_axis,
    keyword_operands,
    ndim_of,
    one_of,
    optional,
    sequence,
)
from .derivation import ZERO, Derivation, Term, TermLike
from .indexing import Entries, indexed, is_basic, split_index
from .registry import declare, get
from .rules import (
    OutOfBoundsError,
    array_type,
    broadcast_shapes,
    is_zero,
    result_dtype,
    result_dtypes,
    shape_text,
    stretches,
)
from .samples import Sample, array, special

Attrs = Mapping[str, Any]


# ---- gather, update, scatter_add --------------------------------------------------------------


_INTP = np.dtype(np.intp)


def index_key(entries: Entries, operands: Sequence[Any]) -> tuple[Any, ...]:
    """What stands between the brackets, with the operands in their places."""
    remaining = iter(operands)
    return tuple(next(remaining) if entry is OPERAND else entry for entry in entries)


def _infer_gather(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    shape = indexed(x.shape, attrs["index"], types[1:]).shape
    if shape is None:
        raise ShapeError("x[mask] has a shape that depends on data", instead="np.where(mask, x, 0)")
    return ArrayType(x.dtype, shape)


def _gather(xp: Any, x: Any, *arrays: Any, index: Entries) -> Any:
    found = xp.asarray(x)[index_key(index, arrays)]
    if any(map(np.ndim, arrays)) or not found.ndim:
        return found
    return found.copy("K")  # of single numbers NumPy makes a view


def bind_getitem(x: Any, index: Any) -> tuple[Op, list[Any], dict[str, Any]]:
    """`x[index]`: a `slice` (a view) where no array stands in the index, else a `gather`."""
    entries, operands = split_index(index)
    op = get("slice") if is_basic(entries) else get("gather")
    return op, [x, *operands], {"index": entries}


def _bind_gather(x: Any, index: Any) -> Bound:
    entries, operands = split_index(index)
    return [x, *operands], {"index": entries}


def _vjp_gather(d: Derivation, x: Term, *places: Term) -> tuple[Term | None, ...]:
    """Equal positions add up."""
    found = d.op("scatter_add", d.zeros(x.type), d.g, *places, index=d.attrs["index"])
    return found, *ZERO(d, *places)


def _sample_gather(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 4, 5, 6)
    rows, columns = rng.integers(-4, 4, (3,)), rng.integers(-5, 5, (2, 1))
    every = slice(None)
    return [
        _bind_gather(x, rows),
        _bind_gather(x, (rows, columns)),
        _bind_gather(x, (rows, every, columns)),
        _bind_gather(x, (every, columns, 3)),
        _bind_gather(x, (0, every, columns)),
        _bind_gather(x, (..., rows, None)),
        _bind_gather(x, (rows, slice(None, None, -2), None)),
        _bind_gather(x, [0, -1, 2]),
        _bind_gather(x, np.array(2)),
        _bind_gather(x, rows.astype("u1") % 4),
        _bind_gather(x, (every, [True, False, True, False, True])),
    ]


declare(
    Op(
        "gather",
        "index",
        _infer_gather,
        _gather,
        raises=True,
        bind=_bind_gather,
        vjp=_vjp_gather,
        sample=_sample_gather,
        doc="x[index] with arrays of positions",
    )
)


def _infer_update(types: Sequence[Type], attrs: Attrs) -> Type:
    base, value = array_type(types[0]), array_type(types[1])
    shape = indexed(base.shape, attrs["index"], types[2:]).shape
    if shape is not None:
        # Leading axes of extent 1 of the value fall away.
        kept = value.shape
        while len(kept) > len(shape) and kept[0] == 1:
            kept = kept[1:]
        if not stretches(kept, shape):
            raise ShapeError(
                f"could not broadcast input array from shape {shape_text(value.shape)} into shape "
                f"{shape_text(shape)}"
            )
    result_dtypes(_store, [base, types[1]], {})
    return base


def _store(base: np.ndarray[Any, Any], value: Any) -> Any:
    base[...] = value
    return base


def _update(xp: Any, base: Any, value: Any, *arrays: Any, index: Entries) -> Any:
    result = xp.array(base)
    result[index_key(index, arrays)] = value
    return result


def _update_raises(node: Node) -> bool:
    base = array_type(node.inputs[0].type)
    value = node.inputs[1].type
    plain_integer = not isinstance(value, ArrayType) and base.dtype.kind in "iu"
    return (
        len(node.inputs) > 2
        or plain_integer
        or not indexed(base.shape, node.attrs["index"], ()).certain
    )


def bind_setitem(base: Any, index: Any, value: Any) -> Bound:
    """A copy of `base` after `base[index] = value`."""
    entries, operands = split_index(index, masks=True)
    return [base, value, *operands], {"index": entries}


def _vjp_update(d: Derivation, base: Term, value: Term, *places: Term) -> tuple[Term | None, ...]:
    """What was replaced gets nothing; of equal positions the last value stays."""
    index = d.attrs["index"]
    of_base = d.op("update", d.g, 0.0, *places, index=index)
    stored = _stored(d, value, places)
    if stored is not None and _may_be_equal(places):
        order = d.op("arange", stop=product(stored.shape), dtype=_INTP).reshape(stored.shape)
        last = d.zeros(ArrayType(_INTP, base.shape))
        last = d.op("update", last, order, *places, index=index)
        last = d.op("gather", last, *places, index=index)
        stored = d.where(last == order, stored, 0)
    return of_base, stored, *ZERO(d, *places)


def _may_be_equal(places: Sequence[Term]) -> bool:
    """Arrays of positions may name one element twice; a mask does not."""
    several = any(product(place.shape) != 1 for place in places)
    return several and not any(place.dtype.kind == "b" for place in places)


def _stored(d: Derivation, value: Term, places: Sequence[Term]) -> Term | None:
    """The cotangent of what was stored at an index."""
    if not any(place.dtype.kind == "b" for place in places):
        name = "slice" if is_basic(d.attrs["index"]) else "gather"
        return d.op(name, d.g, *places, index=d.attrs["index"])
    mask, rest = places[0], d.g.ndim - places[0].ndim
    covers = d.attrs["index"][:1] == [OPERAND] and len(d.attrs["index"]) == 1
    if not covers or any(size != 1 for size in value.shape[: value.ndim - rest]):
        raise d.unsupported(
            "x[mask] = value with a value for each element", "np.where(mask, value, x)"
        )
    found = d.where(mask.reshape((*mask.shape, *[1] * rest)), d.g, 0)
    return found.sum(range(mask.ndim))


def _sample_update(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 4, 5)
    rows, mask = rng.integers(-4, 4, (3,)), rng.integers(0, 2, (4, 5)).astype(bool)
    samples = [
        bind_setitem(x, 1, array(rng, dtype, 5)),
        bind_setitem(x, (slice(None, None, -2), 0), 1),
        bind_setitem(x, ..., array(rng, dtype, 1, 1, 4, 1)),
        bind_setitem(x, rows, array(rng, dtype, 3, 5)),
        bind_setitem(x, (rows, slice(1, 3)), array(rng, dtype, 2)),
        bind_setitem(x, (slice(1, 2), [0, 2]), True),
        bind_setitem(array(rng, dtype), (), 1),
        bind_setitem(x, mask, array(rng, dtype)),
    ]
    # A mask that is not known while tracing stays an operand.
    masked = {"index": [OPERAND]}
    return [
        *samples,
        ([x, array(rng, dtype), mask], masked),
        ([x, array(rng, dtype, 5), mask[:, 0]], masked),
        ([x, 0, mask[:, 0], np.array(2)], {"index": [OPERAND, OPERAND]}),
    ]


declare(
    Op(
        "update",
        "index",
        _infer_update,
        _update,
        raises=_update_raises,
        records=("ndarray.__setitem__",),
        stores=True,
        bind=bind_setitem,
        vjp=_vjp_update,
        sample=_sample_update,
        doc="a copy with base[index] = value",
    )
)


def _scatter_add(xp: Any, base: Any, value: Any, *arrays: Any, index: Entries) -> Any:
    result = xp.array(base)
    if xp is np and index == [OPERAND]:
        add_rows(result, arrays[0], value)
    else:
        xp.add.at(result, index_key(index, arrays), value)
    return result


FEW = 512  # elements: for so few it does not pay to compute the position of each


def add_rows(base: np.ndarray[Any, Any], places: Any, value: Any) -> None:
    """`np.add.at(base, places, value)`, which is many times faster element by element than by rows.

    Each element gets the same numbers in the same order.
    """
    places, value = np.asarray(places), np.asarray(value)
    count, width = len(base), base.size // max(len(base), 1)
    shape = (*places.shape, *base.shape[1:])
    plain = base.flags.c_contiguous and value.dtype == base.dtype and value.ndim <= len(shape)
    inside = places.dtype.kind in "iu" and not ((places >= count) | (places < -count)).any()
    if base.ndim == 1 or places.size * width < FEW or not (plain and inside):
        np.add.at(base, places, value)
        return
    rows = places.astype(np.intp)
    rows += (rows < 0) * count
    elements = rows[..., None] * width + np.arange(width)
    values = np.broadcast_to(value, shape)
    np.add.at(base.reshape(-1), elements.reshape(-1), values.reshape(-1))


def _infer_scatter_add(types: Sequence[Type], attrs: Attrs) -> Type:
    found = _infer_update(types, attrs)
    # Asked of arrays without axes: the value may have more of them than the base.
    ones = [ArrayType(t.dtype, ()) if isinstance(t, ArrayType) else t for t in types[:2]]
    result_dtypes(_add_at, ones, {})
    return found


def _add_at(base: np.ndarray[Any, Any], value: Any) -> Any:
    np.add.at(base, (), value)
    return base


def _bind_add_at(a: Any, indices: Any, b: Any) -> Bound:
    return bind_setitem(a, indices, b)


def _vjp_scatter_add(
    d: Derivation, base: Term, value: Term, *places: Term
) -> tuple[Term | None, ...]:
    return d.g, _stored(d, value, places), *ZERO(d, *places)


def _sample_scatter_add(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x, rows = array(rng, dtype, 4, 5), rng.integers(-4, 4, (6,))
    return [
        _bind_add_at(x, rows, array(rng, dtype, 6, 5)),
        _bind_add_at(x, (rows, rows), 1),
        _bind_add_at(x, (rows, slice(0, 2)), array(rng, dtype, 1, 2)),
        _bind_add_at(x, (slice(None), 1), array(rng, dtype)),
    ]


declare(
    Op(
        "scatter_add",
        "index",
        _infer_scatter_add,
        _scatter_add,
        raises=_update_raises,
        records=("add.at",),
        stores=True,
        bind=_bind_add_at,
        vjp=_vjp_scatter_add,
        sample=_sample_scatter_add,
        doc="a copy with np.add.at(base, index, value): each of equal positions counts",
    )
)


# ---- take, take_along_axis --------------------------------------------------------------------


def _integers(type_: Type, what: str) -> ArrayType:
    found = array_type(type_, what)
    if found.dtype.kind not in "iub":
        raise DtypeError(f"{what} must be of integers, not {found}")
    return found


def _infer_take(types: Sequence[Type], attrs: Attrs) -> Type:
    x, places = array_type(types[0]), _integers(types[1], "indices")
    if not np.can_cast(places.dtype, np.intp, "same_kind"):
        raise DtypeError(f"indices must be of integers, not {places}")
    axis: int | None = attrs.get("axis")
    size = x.size if axis is None else x.shape[axis]
    if is_zero(size) and is_zero(places.size) is False:
        raise OutOfBoundsError("cannot do a non-empty take from an empty axes.")
    if axis is None:
        return ArrayType(x.dtype, places.shape)
    return ArrayType(x.dtype, (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))


def _take_raises(node: Node) -> bool:
    if node.attrs.get("mode", "raise") == "raise":
        return True
    axis: int | None = node.attrs.get("axis")
    x = array_type(node.inputs[0].type)
    return is_zero(x.size if axis is None else x.shape[axis]) is not False


TAKE_MODES = ("raise", "wrap", "clip")


def _bind_take(a: Any, indices: Any, axis: Any = None, *, mode: str = "raise") -> Bound:
    one_of(mode, TAKE_MODES, "mode=")
    where = flat_axis(axis, ndim_of(a))
    return [a, indices], optional(axis=where, mode=None if mode == "raise" else mode)


def _within(d: Derivation, places: Term, size: TermLike) -> Term:
    """The positions that `mode=` makes of others."""
    mode = d.attrs.get("mode", "raise")
    if mode == "raise":
        return places
    return places % size if mode == "wrap" else d.op("clip", places, 0, size - 1)


def _vjp_take(d: Derivation, x: Term, places: Term) -> tuple[Term, None]:
    axis: int | None = d.attrs.get("axis")
    flat = x.reshape((product(x.shape),)) if axis is None else x
    axis = axis or 0
    found = _within(d, places, d.count(flat, [axis]))
    index = [*[slice(None)] * axis, OPERAND]
    return d.op("scatter_add", d.zeros(flat.type), d.g, found, index=index).reshape(x.shape), None


def _sample_take(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 4, 5)
    return [
        _bind_take(x, rng.integers(-20, 20, (2, 3))),
        _bind_take(x, rng.integers(-4, 4, (3,)), 0),
        _bind_take(x, np.array([[7, -9]]), -1, mode="wrap"),
        _bind_take(x, np.array([7, -9]), 0, mode="clip"),
        _bind_take(x, 2, 1),
        _bind_take(x[0], [1, 2]),
    ]


declare(
    Op(
        "take",
        "index",
        _infer_take,
        "take",
        raises=_take_raises,
        defaults={"axis": None, "mode": "raise"},
        records=("take", "ndarray.take"),
        bind=_bind_take,
        vjp=_vjp_take,
        sample=_sample_take,
        doc="np.take",
    )
)


def _infer_take_along(types: Sequence[Type], attrs: Attrs) -> Type:
    x, places = array_type(types[0]), _integers(types[1], "indices")
    if places.dtype.kind == "b":
        raise DtypeError("`indices` must be an integer array")
    axis: int | None = attrs.get("axis")
    if axis is None:
        if places.ndim != 1:
            raise ShapeError("when axis=None, `indices` must have a single dimension.")
        return ArrayType(x.dtype, places.shape)
    if places.ndim != x.ndim:
        raise ShapeError("`indices` and `arr` must have the same number of dimensions")

    def around(t: ArrayType) -> tuple[Size, ...]:
        return (*t.shape[:axis], 1, *t.shape[axis + 1 :])

    # The other axes of the array are indexed by all their positions: they cannot stretch.
    shape = broadcast_shapes([around(x), around(places)])
    return ArrayType(x.dtype, (*shape[:axis], places.shape[axis], *shape[axis + 1 :]))


def _bind_take_along(arr: Any, indices: Any, axis: Any = -1) -> Bound:
    return [arr, indices], {"axis": flat_axis(axis, ndim_of(arr))}


def put_along(d: Derivation, like: Term, g: Term, places: Term, axis: int) -> Term:
    """Zeros of the type of `like`, with `g` added at these positions along an axis."""

    def everywhere(at: int) -> Term:
        shape = [size if each == at else 1 for each, size in enumerate(like.shape)]
        return d.op("arange", stop=like.shape[at], dtype=np.dtype(np.intp)).reshape(shape)

    index = [places if at == axis else everywhere(at) for at in range(like.ndim)]
    return d.op("scatter_add", d.zeros(like.type), g, *index, index=[OPERAND] * like.ndim)


def _vjp_take_along(d: Derivation, x: Term, places: Term) -> tuple[Term, None]:
    axis: int | None = d.attrs.get("axis")
    flat = x.reshape((product(x.shape),)) if axis is None else x
    return put_along(d, flat, d.g, places, axis or 0).reshape(x.shape), None


def _sample_take_along(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 4, 5)
    return [
        _bind_take_along(x, rng.integers(-4, 4, (2, 5)), 0),
        _bind_take_along(x, rng.integers(-5, 5, (4, 3)), 1),
        _bind_take_along(x, rng.integers(-5, 5, (1, 3)), -1),
        _bind_take_along(x, rng.integers(-20, 20, 7), None),
    ]


declare(
    Op(
        "take_along_axis",
        "index",
        _infer_take_along,
        "take_along_axis",
        raises=True,
        records=("take_along_axis",),
        bind=_bind_take_along,
        vjp=_vjp_take_along,
        sample=_sample_take_along,
        doc="np.take_along_axis",
    )
)


# ---- choose, searchsorted, digitize, interp ---------------------------------------------------


def _infer_choose(types: Sequence[Type], attrs: Attrs) -> Type:
    places = _integers(types[0], "the array of choices")
    if not np.can_cast(places.dtype, np.intp, "safe"):
        raise DtypeError(f"cannot choose by {places.dtype}", instead="np.int64")
    arrays = [array_type(t) for t in types[1:]]
    if not arrays:
        raise ShapeError("nothing to choose from")
    probes = (ArrayType(t.dtype, (1,)) if isinstance(t, ArrayType) else t for t in types[1:])
    dtype = result_dtype(_choice, list(dict.fromkeys(probes)))
    return ArrayType(dtype, broadcast_shapes([places.shape, *(t.shape for t in arrays)]))


def _choice(*arrays: Any) -> Any:
    return np.choose(0, arrays)


def _choose(xp: Any, a: Any, *choices: Any, **attrs: Any) -> Any:
    return xp.choose(a, choices, **attrs)


def _bind_choose(a: Any, choices: Any, *, mode: str = "raise") -> Bound:
    one_of(mode, TAKE_MODES, "mode=")
    return [a, *sequence(choices)], {} if mode == "raise" else {"mode": mode}


def _vjp_choose(d: Derivation, places: Term, *choices: Term) -> tuple[Term | None, ...]:
    chosen = _within(d, places, len(choices))
    return None, *(d.where(chosen == at, d.g, 0) for at in range(len(choices)))


def _sample_choose(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    choices = [array(rng, dtype, 3, 1), array(rng, dtype, 4), array(rng, dtype)]
    places = rng.integers(0, 3, (3, 4))
    return [
        _bind_choose(places, choices),
        _bind_choose(places - 5, choices, mode="wrap"),
        _bind_choose(places * 2, [1, *choices], mode="clip"),
    ]


declare(
    Op(
        "choose",
        "index",
        _infer_choose,
        _choose,
        raises=lambda node: node.attrs.get("mode", "raise") == "raise",
        defaults={"mode": "raise"},
        records=("choose", "ndarray.choose"),
        bind=_bind_choose,
        vjp=_vjp_choose,
        sample=_sample_choose,
        doc="np.choose",
    )
)


def _infer_searchsorted(types: Sequence[Type], attrs: Attrs) -> Type:
    sorted_, values = array_type(types[0]), array_type(types[1])
    if sorted_.ndim != 1:
        raise ShapeError("object of too small depth for desired array: `a` must have one axis")
    if "sorter" in attrs and not decide_equal(sorted_.size, array_type(types[2]).size):
        raise ShapeError("sorter.size differs from a.size")
    result_dtype(np.searchsorted, [sorted_, values], {})
    return ArrayType(np.dtype(np.intp), values.shape)


def _bind_searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Bound:
    one_of(side, ("left", "right"), "side=")
    inputs = [a, v]
    named = {} if side == "left" else {"side": side}
    return inputs, named | keyword_operands(inputs, sorter=sorter)


def _sample_searchsorted(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    a = array(rng, dtype, 6)
    return [
        _bind_searchsorted(np.sort(a), array(rng, dtype, 2, 3)),
        _bind_searchsorted(np.sort(a), array(rng, dtype), "right"),
        _bind_searchsorted(a, array(rng, dtype, 3), sorter=np.argsort(a)),
    ]


declare(
    Op(
        "searchsorted",
        "library",
        _infer_searchsorted,
        "searchsorted",
        raises=lambda node: "sorter" in node.attrs,
        defaults={"side": "left"},
        records=("searchsorted", "ndarray.searchsorted"),
        bind=_bind_searchsorted,
        sample=_sample_searchsorted,
        doc="np.searchsorted",
    )
)


def _infer_digitize(types: Sequence[Type], attrs: Attrs) -> Type:
    x, bins = array_type(types[0]), array_type(types[1])
    if bins.ndim != 1:
        raise ShapeError("object of too small depth for desired array: bins must have one axis")
    result_dtype(np.digitize, [x, bins], {})
    return ArrayType(np.dtype(np.intp), x.shape)


def _bind_digitize(x: Any, bins: Any, right: bool = False) -> Bound:
    return [x, bins], optional(right=bool(right))


declare(
    Op(
        "digitize",
        "library",
        _infer_digitize,
        "digitize",
        raises=True,  # bins must be monotonic
        defaults={"right": False},
        records=("digitize",),
        bind=_bind_digitize,
        sample=lambda rng, dtype: [
            _bind_digitize(array(rng, dtype, 2, 3), np.array([0.0, 1.0, 2.5])),
            _bind_digitize(array(rng, dtype, 3), np.sort(array(rng, dtype, 4))[::-1], right=True),
        ],
        doc="np.digitize",
    )
)


# ---- diagflat ---------------------------------------------------------------------------------


def _infer_diagflat(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    size = x.size + abs(attrs.get("k", 0))
    return ArrayType(x.dtype, (size, size))


def _bind_diagflat(v: Any, k: Any = 0) -> Bound:
    offset = as_int(k)
    return [v], {"k": offset} if offset else {}


def _vjp_diagflat(d: Derivation, x: Term) -> Term:
    return d.op("diagonal", d.g, offset=d.attrs.get("k", 0)).reshape(x.shape)


declare(
    Op(
        "diagflat",
        "index",
        _infer_diagflat,
        "diagflat",
        defaults={"k": 0},
        records=("diagflat",),
        bind=_bind_diagflat,
        vjp=_vjp_diagflat,
        sample=lambda rng, dtype: [
            _bind_diagflat(special(rng, dtype, 3)),
            _bind_diagflat(array(rng, dtype, 2, 2), -1),
            _bind_diagflat(array(rng, dtype), 2),
        ],
        doc="a matrix of zeros with these elements on a diagonal",
    )
)
