"""Layout: views of the same elements, and `cast` and `copy`, which make new ones.

Swapping and moving axes is `transpose`, flipping is `slice`, flattening is `reshape`: one op for
each idea, so that passes need to know few (`trace/composites.py` has the other names).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from minigraph.errors import DimensionError, DtypeError, ShapeError
from minigraph.ir import (
    INT,
    OPERAND,
    ArrayType,
    Node,
    Op,
    ScalarType,
    Shape,
    Size,
    Type,
    as_dtype,
    decide_at_least,
    decide_equal,
    product,
)

from .bind import (
    Bound,
    as_axes,
    as_int,
    as_shape,
    bind_one,
    dtype_attr,
    dtype_of,
    ndim_of,
    one_of,
    optional,
    order_c,
    shape_of,
    unless_same,
)
from .derivation import SAME, ZERO, Derivation, Term
from .indexing import Entries, indexed, split_index
from .registry import declare
from .rules import array_type, normalize_axes, normalize_axis, result_dtype, shape_text, stretches
from .samples import Sample, array, special
from .scalar import cast_text

Attrs = Mapping[str, Any]


# ---- transpose --------------------------------------------------------------------------------


def _infer_transpose(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    axes: tuple[int, ...] = attrs["axes"]
    if sorted(axes) != list(range(x.ndim)):
        raise ShapeError(f"axes {axes} are not those of {x} in some order")
    return ArrayType(x.dtype, [x.shape[axis] for axis in axes])


def _bind_transpose(a: Any, axes: Any = None) -> Bound:
    ndim = ndim_of(a)
    if axes is None:
        return [a], {"axes": tuple(range(ndim))[::-1]}
    found = tuple(normalize_axis(axis, ndim) for axis in as_axes(axes))
    if sorted(found) != list(range(ndim)):
        raise ShapeError(f"axes {axes} do not match an array of {ndim} axes")
    return [a], {"axes": found}


def _vjp_transpose(d: Derivation, x: Term) -> Term:
    axes: tuple[int, ...] = d.attrs["axes"]
    return d.g.transpose([axes.index(axis) for axis in range(x.ndim)])


declare(
    Op(
        "transpose",
        "layout",
        _infer_transpose,
        "transpose",
        view=True,
        records=("transpose", "permute_dims", "ndarray.T"),
        bind=_bind_transpose,
        vjp=_vjp_transpose,
        sample=lambda rng, dtype: [
            _bind_transpose(array(rng, dtype, 2, 3, 4)),
            _bind_transpose(array(rng, dtype, 2, 3, 4), (0, -1, 1)),
            _bind_transpose(array(rng, dtype)),
        ],
        doc="the axes in another order",
    )
)


# ---- reshape ----------------------------------------------------------------------------------


def _infer_reshape(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    shape: Shape = attrs["shape"]
    if not decide_equal(x.size, product(shape)):
        raise _cannot_reshape(x.shape, shape)
    return ArrayType(x.dtype, shape)


def _reshape(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    return xp.reshape(x, shape)  # before NumPy 2.1 the keyword had another name


def _cannot_reshape(old: Shape, new: Shape) -> ShapeError:
    return ShapeError(
        f"cannot reshape array of size {product(old)} into shape {shape_text(new)}",
        instead="-1 for one extent leaves it to be computed",
    )


def resolve_shape(old: Shape, new: Shape) -> Shape:
    """The new shape with -1 replaced by what is left.

    Raises:
        ShapeError: the number of elements differs.
        DimensionError: that depends on a named dimension.
    """
    unknown = [index for index, size in enumerate(new) if isinstance(size, int) and size < 0]
    if not unknown:
        return new
    if len(unknown) > 1:
        raise ShapeError("can only specify one unknown dimension")
    known = product(size for index, size in enumerate(new) if index != unknown[0])
    total = product(old)
    if known == 0:
        raise _cannot_reshape(old, new)
    left = total // known
    if left * known != total:
        if isinstance(total, int) and isinstance(known, int):
            raise _cannot_reshape(old, new)
        raise DimensionError(
            f"whether {total} elements fit into shape {shape_text(new)} depends on the named "
            "dimensions",
            instead="give every extent, or leave the dimension static",
        )
    return tuple(left if index == unknown[0] else size for index, size in enumerate(new))


def _bind_reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Bound:
    order_c(order, "reshape")
    old, new = shape_of(a), as_shape(shape)
    new = resolve_shape(old, new)
    if not decide_equal(product(old), product(new)):
        raise _cannot_reshape(old, new)
    return [a], {"shape": new}


declare(
    Op(
        "reshape",
        "layout",
        _infer_reshape,
        "reshape" if "shape" in signature(np.reshape).parameters else _reshape,
        view=True,
        records=("reshape",),
        bind=_bind_reshape,
        vjp=lambda d, x: d.g.reshape(x.shape),
        sample=lambda rng, dtype: [
            _bind_reshape(array(rng, dtype, 2, 3, 4), (6, -1)),
            _bind_reshape(array(rng, dtype, 2, 3, 4), -1),
            _bind_reshape(array(rng, dtype, 1), ()),
            _bind_reshape(array(rng, dtype), (1, 1)),
            _bind_reshape(array(rng, dtype, 0, 3), (3, -1, 2)),
        ],
        doc="the elements, in C order, in another shape",
    )
)


# ---- axes of extent 1 -------------------------------------------------------------------------


def _infer_expand(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    axes = attrs["axis"]
    rest = iter(x.shape)
    shape = [1 if axis in axes else next(rest) for axis in range(x.ndim + len(axes))]
    return ArrayType(x.dtype, shape)


def _bind_expand(a: Any, axis: Any) -> Bound:
    axes = as_axes(axis)
    return [a], {"axis": normalize_axes(axes, ndim_of(a) + len(axes))}


declare(
    Op(
        "expand_dims",
        "layout",
        _infer_expand,
        "expand_dims",
        view=True,
        records=("expand_dims",),
        bind=_bind_expand,
        vjp=lambda d, x: d.g.reshape(x.shape),
        sample=lambda rng, dtype: [
            _bind_expand(array(rng, dtype, 2, 3), 0),
            _bind_expand(array(rng, dtype, 2, 3), (-1, 1)),
            _bind_expand(array(rng, dtype), 0),
        ],
        doc="new axes of extent 1",
    )
)


def _infer_squeeze(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    axes: tuple[int, ...] = attrs["axis"]
    for axis in axes:
        if not decide_equal(x.shape[axis], 1):
            raise ShapeError(
                f"cannot select an axis to squeeze out which has size {x.shape[axis]}, not one"
            )
    return ArrayType(x.dtype, [s for axis, s in enumerate(x.shape) if axis not in axes])


def _bind_squeeze(a: Any, axis: Any = None) -> Bound:
    shape = shape_of(a)
    if axis is None:
        axes = tuple(index for index, size in enumerate(shape) if decide_equal(size, 1))
    else:
        axes = normalize_axes(as_axes(axis), len(shape))
    return [a], {"axis": axes}


declare(
    Op(
        "squeeze",
        "layout",
        _infer_squeeze,
        "squeeze",
        view=True,
        records=("squeeze", "ndarray.squeeze"),
        bind=_bind_squeeze,
        vjp=lambda d, x: d.g.reshape(x.shape),
        sample=lambda rng, dtype: [
            _bind_squeeze(array(rng, dtype, 1, 3, 1)),
            _bind_squeeze(array(rng, dtype, 1, 3, 1), -1),
            _bind_squeeze(array(rng, dtype, 2, 3)),
        ],
        doc="without axes of extent 1",
    )
)


# ---- broadcast_to -----------------------------------------------------------------------------


def _infer_broadcast(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    shape: Shape = attrs["shape"]
    if not stretches(x.shape, shape):
        raise ShapeError(
            f"operands could not be broadcast together: {shape_text(x.shape)} does not stretch to "
            f"{shape_text(shape)}"
        )
    return ArrayType(x.dtype, shape)


def _bind_broadcast(array: Any, shape: Any) -> Bound:
    return [array], {"shape": as_shape(shape)}


declare(
    Op(
        "broadcast_to",
        "layout",
        _infer_broadcast,
        "broadcast_to",
        view=True,
        records=("broadcast_to",),
        bind=_bind_broadcast,
        vjp=SAME,
        sample=lambda rng, dtype: [
            _bind_broadcast(array(rng, dtype, 3, 1), (2, 3, 4)),
            _bind_broadcast(array(rng, dtype), (2, 2)),
            _bind_broadcast(array(rng, dtype, 1, 3), (0, 3)),
        ],
        doc="axes of extent 1 stretched, new ones in front (read-only)",
    )
)


# ---- slice ------------------------------------------------------------------------------------


def _infer_slice(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    shape = indexed(x.shape, attrs["index"], ()).shape
    assert shape is not None
    return ArrayType(x.dtype, shape)


def _slice(xp: Any, x: Any, index: Entries) -> Any:
    return x[tuple(index)] if hasattr(x, "ndim") else xp.asarray(x)[tuple(index)]


def _slice_raises(node: Node) -> bool:
    x = array_type(node.inputs[0].type)
    return not x.is_static and not indexed(x.shape, node.attrs["index"], ()).certain


def _bind_slice(a: Any, index: Any) -> Bound:
    entries, operands = split_index(index)
    assert not operands
    return [a], {"index": entries}


def _sample_slice(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 4, 5, 6)
    every = slice(None)
    return [
        _bind_slice(x, 1),
        _bind_slice(x, (1, -2, 3)),
        _bind_slice(x, (slice(1, 3), ..., -1)),
        _bind_slice(x, (slice(None, None, -1), slice(-1, 0, -2), slice(1, 100, 4))),
        _bind_slice(x, (None, every, 2, None)),
        _bind_slice(x, (slice(3, 1), slice(-100, 2))),
        _bind_slice(array(rng, dtype), ()),
        _bind_slice(array(rng, dtype), (None, ...)),
    ]


declare(
    Op(
        "slice",
        "layout",
        _infer_slice,
        _slice,
        view=True,
        raises=_slice_raises,
        bind=_bind_slice,
        vjp=lambda d, x: d.op("update", d.zeros(x.type), d.g, index=d.attrs["index"]),
        sample=_sample_slice,
        doc="basic indexing, x[1:3, ..., None]",
    )
)


# ---- diagonal, real, imag ---------------------------------------------------------------------


def _smaller(a: Size, b: Size) -> Size:
    return b if decide_at_least(a, b) else a


def _infer_diagonal(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    first: int = attrs.get("axis1", 0)
    second: int = attrs.get("axis2", 1)
    offset: int = attrs.get("offset", 0)
    if x.ndim < 2:
        raise ShapeError(f"diagonal needs an array of at least two axes, not {x}")
    rows = x.shape[first] - max(-offset, 0)
    columns = x.shape[second] - max(offset, 0)
    count = _smaller(rows, columns)
    count = count if decide_at_least(count, 0) else 0
    rest = [size for axis, size in enumerate(x.shape) if axis not in (first, second)]
    return ArrayType(x.dtype, [*rest, count])


_DIAGONAL = {"axis1": 0, "axis2": 1, "offset": 0}


def _bind_diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Bound:
    ndim = ndim_of(a)
    if ndim < 2:
        raise ShapeError("diagonal needs an array of at least two axes")
    first, second = normalize_axis(axis1, ndim), normalize_axis(axis2, ndim)
    if first == second:
        raise ShapeError("axis1 and axis2 cannot be the same")
    attrs = {"offset": as_int(offset), "axis1": first, "axis2": second}
    return [a], {name: attr for name, attr in attrs.items() if attr != _DIAGONAL[name]}


def _vjp_diagonal(d: Derivation, x: Term) -> Term:
    """The cotangent on the diagonal of zeros."""
    first, second, offset = (d.attrs.get(name, default) for name, default in _DIAGONAL.items())
    order = [axis for axis in range(x.ndim) if axis not in (first, second)] + [first, second]
    zeros = d.zeros(x.type).transpose(order)
    places = d.op("arange", stop=d.g.shape[-1], dtype=np.dtype(np.intp))
    rows, columns = places + max(-offset, 0), places + max(offset, 0)
    filled = d.op("update", zeros, d.g, rows, columns, index=[..., OPERAND, OPERAND])
    return filled.transpose([order.index(axis) for axis in range(x.ndim)])


declare(
    Op(
        "diagonal",
        "layout",
        _infer_diagonal,
        "diagonal",
        view=True,
        defaults=_DIAGONAL,
        records=("diagonal", "ndarray.diagonal"),
        bind=_bind_diagonal,
        vjp=_vjp_diagonal,
        sample=lambda rng, dtype: [
            _bind_diagonal(array(rng, dtype, 3, 4)),
            _bind_diagonal(array(rng, dtype, 3, 4), 2),
            _bind_diagonal(array(rng, dtype, 3, 4), -5),
            _bind_diagonal(array(rng, dtype, 2, 3, 4), 1, -1, 0),
        ],
        doc="the elements whose indices on two axes are equal (read-only)",
    )
)


def _real(xp: Any, x: Any) -> Any:
    return x.real if hasattr(x, "dtype") else xp.asarray(x).real


def _imag(xp: Any, x: Any) -> Any:
    return x.imag if hasattr(x, "dtype") else xp.asarray(x).imag


def _infer_part(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    return ArrayType(result_dtype(np.real, [x]), x.shape)


for _name, _part, _rule, _doc in (
    ("real", _real, SAME, "the real part"),
    ("imag", _imag, ZERO, "the imaginary part"),
):
    declare(
        Op(
            _name,
            "layout",
            _infer_part,
            _part,
            view=True,
            records=(_name, f"ndarray.{_name}"),
            bind=bind_one,
            vjp=_rule,
            sample=lambda rng, dtype: [([special(rng, dtype, 3, 4)], {})],
            doc=_doc,
        )
    )


# ---- cast and copy: elementwise ---------------------------------------------------------------


def _infer_cast(types: Sequence[Type], attrs: Attrs) -> Type:
    x, dtype = types[0], attrs["dtype"]
    if isinstance(x, ScalarType):
        if x.python is complex and dtype.kind != "c" and dtype.kind != "b":
            raise DtypeError(f"a Python complex number does not become {dtype}", instead="x.real")
        return ArrayType(dtype, ())
    return ArrayType(dtype, array_type(x).shape)


def _cast_raises(node: Node) -> bool:
    """A Python number may not fit an integer dtype."""
    kind = node.inputs[0].type
    return isinstance(kind, ScalarType) and (
        node.attrs["dtype"].kind in "iu" or (kind is INT and node.attrs["dtype"].kind in "fc")
    )


def _cast(xp: Any, x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype) if hasattr(x, "dtype") else dtype.type(x)


CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe", "same_value")


def _bind_cast(
    x: Any,
    /,
    dtype: Any,
    order: Any = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Bound:
    one_of(casting, CASTINGS[:-1], "casting=")
    target = as_dtype(dtype)
    if not np.can_cast(dtype_of(x), target, casting):  # type: ignore[arg-type]
        raise DtypeError(
            f"cannot cast from {dtype_of(x)} to {target} according to the rule {casting!r}"
        )
    return [x], {"dtype": target}


def _sample_cast(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 3, 4, positive=True)
    samples = [_bind_cast(x, dtype), _bind_cast(3, dtype), _bind_cast(array(rng, dtype), "c16")]
    for target in (np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.complex64):
        if np.can_cast(dtype, target, "same_kind") or dtype.kind == "f":
            samples.append(_bind_cast(x, target))
    return samples


declare(
    Op(
        "cast",
        "elementwise",
        _infer_cast,
        _cast,
        raises=_cast_raises,
        scalar=cast_text,
        records=("astype",),
        bind=_bind_cast,
        vjp=SAME,
        sample=_sample_cast,
        doc="the elements in another dtype, in a new array",
    )
)


def _infer_copy(types: Sequence[Type], attrs: Attrs) -> Type:
    x = array_type(types[0])
    return ArrayType(attrs.get("dtype", x.dtype), x.shape)


def _copy_raises(node: Node) -> bool:
    return "dtype" in node.attrs and _cast_raises(node)


def _copy(xp: Any, x: Any, dtype: np.dtype[Any] | None = None, order: str = "K") -> Any:
    return xp.array(x, dtype=dtype, order=order)


def _bind_copy(a: Any, order: Any = "K", subok: bool = False, dtype: Any = None) -> Bound:
    one_of(order, ("K", "C"), "order= of a copy")
    attrs = optional(dtype=unless_same(a, dtype_attr(dtype)))
    return [a], {**attrs, "order": "C"} if order == "C" else attrs


declare(
    Op(
        "copy",
        "elementwise",
        _infer_copy,
        _copy,
        raises=_copy_raises,
        scalar=cast_text,
        defaults={"dtype": None, "order": "K"},
        records=("copy", "ndarray.copy"),
        bind=_bind_copy,
        vjp=SAME,
        sample=lambda rng, dtype: [
            _bind_copy(special(rng, dtype, 3, 4)),
            _bind_copy(special(rng, dtype, 3, 4).T, "C"),
            _bind_copy(array(rng, dtype)),
            _bind_copy(array(rng, dtype, 3), dtype=np.complex128),
            _bind_copy(2),
            _bind_copy(2, dtype=dtype),
        ],
        doc="a new array with the same elements (of a Python number: an array without axes)",
    )
)
