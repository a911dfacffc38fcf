"""Contractions: products summed over shared axes."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import ShapeError, UnsupportedError
from minigraph.ir import (
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
    as_axes,
    as_int,
    bind_two,
    dtype_attr,
    ndim_of,
    optional,
)
from .derivation import Derivation, Term
from .registry import declare
from .rules import (
    array_type,
    broadcast_shapes,
    items_of,
    normalize_axis,
    result_dtype,
    shape_text,
)
from .samples import Sample, array

Attrs = Mapping[str, Any]


def contracted(a: Size, b: Size, what: str, x: ArrayType, y: ArrayType) -> None:
    """Refuse extents that are summed over together and differ.

    Raises:
        ShapeError: they do.
        DimensionError: that depends on a named dimension.
    """
    if not decide_equal(a, b):
        raise ShapeError(
            f"{what}: the shapes {shape_text(x.shape)} and {shape_text(y.shape)} do not fit: "
            f"{a} and {b} differ"
        )


# ---- matmul, dot, inner, outer, vdot ----------------------------------------------------------


def _infer_matmul(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError("matmul: an operand has no axes", instead="x * y")
    contracted(x.shape[-1], y.shape[-2] if y.ndim > 1 else y.shape[0], "matmul", x, y)
    batch = broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    rows = x.shape[-2:-1] if x.ndim > 1 else ()
    columns = y.shape[-1:] if y.ndim > 1 else ()
    return ArrayType(result_dtype(np.matmul, [x, y], attrs), (*batch, *rows, *columns))


def _sample_matmul(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    def make(*shape: int) -> Any:
        return array(rng, dtype, *shape)

    return [
        ([make(3, 4), make(4, 5)], {}),
        ([make(4), make(4)], {}),
        ([make(2, 1, 3, 4), make(6, 4, 5)], {}),
        ([make(4), make(2, 4, 3)], {}),
        ([make(2, 3, 4), make(4)], {}),
        ([make(3, 0), make(0, 2)], {}),
        ([make(3, 4), array(rng, np.dtype("f4"), 4, 2)], {}),
        ([make(3, 4), make(4, 2)], {"dtype": np.dtype(np.complex128)}),
    ]


def _vjp_matmul(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    """x̄ = ḡ·yᵀ and ȳ = xᵀ·ḡ; what is broadcast is summed."""
    g = d.g
    if x.ndim == 1 and y.ndim == 1:
        return g * y, g * x
    if y.ndim == 1:
        column = g.reshape((*g.shape, 1))
        return column * y, g.reshape((product(g.shape),)) @ _as_rows(x)
    if x.ndim == 1:
        row = g.reshape((*y.shape[:-2], 1, y.shape[-1]))
        of_x = y @ g if y.ndim == 2 else y @ row.mT
        return of_x.reshape((*y.shape[:-2], *x.shape)), x.reshape((*x.shape, 1)) * row
    if y.ndim == 2:  # one product for all of a batch
        return g @ y.mT, _as_rows(x).mT @ _as_rows(g)
    return g @ y.mT, x.mT @ g


def _as_rows(x: Term) -> Term:
    """All axes but the last one as one."""
    return x.reshape((product(x.shape[:-1]), x.shape[-1]))


declare(
    Op(
        "matmul",
        "contract",
        _infer_matmul,
        "matmul",
        operator="{0} @ {1}",
        records=("matmul",),
        bind=bind_two,
        vjp=_vjp_matmul,
        sample=_sample_matmul,
        doc="matrix product over the last two axes, broadcasting the others",
    )
)


def _contract(
    d: Derivation, x: Term, y: Term, first: Sequence[int], second: Sequence[int]
) -> tuple[Term, Term]:
    """The cotangents of a product summed over these axes, whose others stand in order in ḡ."""
    free_x = [axis for axis in range(x.ndim) if axis not in first]
    free_y = [axis for axis in range(y.ndim) if axis not in second]
    left, right = tuple(range(len(free_x))), tuple(range(len(free_x), d.g.ndim))
    of_x = d.op("tensordot", d.g, y, axes=(right, tuple(free_y)))
    of_y = d.op("tensordot", x, d.g, axes=(tuple(free_x), left))
    # What was summed over stands in the order that the other operand had.
    axes_x = [*free_x, *(first[second.index(axis)] for axis in sorted(second))]
    axes_y = [*(second[first.index(axis)] for axis in sorted(first)), *free_y]
    return (
        of_x.transpose([axes_x.index(axis) for axis in range(x.ndim)]),
        of_y.transpose([axes_y.index(axis) for axis in range(y.ndim)]),
    )


def _vjp_dot(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    if x.ndim == 0 or y.ndim == 0:
        return d.g * y, d.g * x
    if x.ndim <= 2 and y.ndim <= 2:
        return _vjp_matmul(d, x, y)
    return _contract(d, x, y, [x.ndim - 1], [max(y.ndim - 2, 0)])


def _vjp_inner(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    if x.ndim == 0 or y.ndim == 0:
        return d.g * y, d.g * x
    return _contract(d, x, y, [x.ndim - 1], [y.ndim - 1])


def _vjp_outer(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    of_x = d.g @ y.reshape((product(y.shape),))
    of_y = x.reshape((product(x.shape),)) @ d.g
    return of_x.reshape(x.shape), of_y.reshape(y.shape)


def _vjp_vdot(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    return (d.g * y).reshape(x.shape), (d.g * x).reshape(y.shape)


def _vjp_vecdot(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    g = d.g.reshape((*d.g.shape, 1))
    return g * y, g * x


def _infer_vecdot(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError("vecdot: an operand has no axes", instead="x * y")
    contracted(x.shape[-1], y.shape[-1], "vecdot", x, y)
    batch = broadcast_shapes([x.shape[:-1], y.shape[:-1]])
    return ArrayType(result_dtype(np.vecdot, [x, y], attrs), batch)


declare(
    Op(
        "vecdot",
        "contract",
        _infer_vecdot,
        "vecdot",
        records=("vecdot",),
        bind=bind_two,
        vjp=_vjp_vecdot,
        sample=lambda rng, dtype: [
            ([array(rng, dtype, 3, 4), array(rng, dtype, 4)], {}),
            ([array(rng, dtype, 2, 1, 4), array(rng, dtype, 3, 4)], {}),
        ],
        doc="dot products over the last axis, the first conjugated",
    )
)


def _infer_dot(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    dtype = result_dtype(np.dot, [x, y])
    if x.ndim == 0 or y.ndim == 0:
        return ArrayType(dtype, (*x.shape, *y.shape))
    at = y.ndim - 2 if y.ndim > 1 else 0
    contracted(x.shape[-1], y.shape[at], "dot", x, y)
    return ArrayType(dtype, (*x.shape[:-1], *y.shape[:at], *y.shape[at + 1 :]))


def _sample_dot(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    shapes = [((3, 4), (4, 5)), ((4,), (4,)), ((2, 3, 4), (5, 4, 2)), ((), (3,)), ((3, 4), (4,))]
    return [([array(rng, dtype, *a), array(rng, dtype, *b)], {}) for a, b in shapes]


declare(
    Op(
        "dot",
        "contract",
        _infer_dot,
        "dot",
        records=("dot", "ndarray.dot"),
        bind=bind_two,
        vjp=_vjp_dot,
        sample=_sample_dot,
        doc="np.dot",
    )
)


def _infer_inner(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    dtype = result_dtype(np.inner, [x, y])
    if x.ndim == 0 or y.ndim == 0:
        return ArrayType(dtype, (*x.shape, *y.shape))
    contracted(x.shape[-1], y.shape[-1], "inner", x, y)
    return ArrayType(dtype, (*x.shape[:-1], *y.shape[:-1]))


def _sample_inner(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    shapes = [((3, 4), (5, 4)), ((4,), (4,)), ((2, 3, 4), (5, 4)), ((), (3,))]
    return [([array(rng, dtype, *a), array(rng, dtype, *b)], {}) for a, b in shapes]


declare(
    Op(
        "inner",
        "contract",
        _infer_inner,
        "inner",
        records=("inner",),
        bind=bind_two,
        vjp=_vjp_inner,
        sample=_sample_inner,
        doc="np.inner",
    )
)


def _infer_outer(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    return ArrayType(result_dtype(np.outer, [x, y]), (x.size, y.size))


declare(
    Op(
        "outer",
        "contract",
        _infer_outer,
        "outer",
        records=("outer",),
        bind=bind_two,
        vjp=_vjp_outer,
        sample=lambda rng, dtype: [
            ([array(rng, dtype, 3), array(rng, dtype, 2, 2)], {}),
            ([array(rng, dtype), array(rng, dtype, 4)], {}),
        ],
        doc="every element with every other",
    )
)


def _infer_vdot(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    contracted(x.size, y.size, "vdot", x, y)
    return ArrayType(result_dtype(np.vdot, [x, y]), ())


declare(
    Op(
        "vdot",
        "contract",
        _infer_vdot,
        "vdot",
        records=("vdot",),
        bind=bind_two,
        vjp=_vjp_vdot,
        sample=lambda rng, dtype: [
            ([array(rng, dtype, 3), array(rng, dtype, 3)], {}),
            ([array(rng, dtype, 2, 3), array(rng, dtype, 3, 2)], {}),
        ],
        doc="the sum of products of all elements, the first conjugated",
    )
)


# ---- tensordot --------------------------------------------------------------------------------


def _infer_tensordot(types: Sequence[Type], attrs: Attrs) -> Type:
    x, y = (array_type(t) for t in types)
    first: tuple[int, ...]
    second: tuple[int, ...]
    first, second = attrs["axes"]
    for i, j in zip(first, second, strict=True):
        contracted(x.shape[i], y.shape[j], "tensordot", x, y)
    left = [size for axis, size in enumerate(x.shape) if axis not in first]
    right = [size for axis, size in enumerate(y.shape) if axis not in second]
    probes = [ArrayType(t.dtype, (1, 1)) for t in (x, y)]
    return ArrayType(result_dtype(np.dot, probes), (*left, *right))


def _bind_tensordot(a: Any, b: Any, axes: Any = 2) -> Bound:
    left, right = ndim_of(a), ndim_of(b)
    pair = items_of(axes)
    if pair is not None:
        first, second = (as_axes(one) for one in pair)
    else:
        count = as_int(axes)
        if not 0 <= count <= min(left, right):
            raise ShapeError(f"tensordot over {count} axes needs arrays of so many")
        first, second = tuple(range(left - count, left)), tuple(range(count))
    if len(first) != len(second):
        raise ShapeError("shape-mismatch for sum: as many axes of the one as of the other")
    found = (
        tuple(normalize_axis(axis, left) for axis in first),
        tuple(normalize_axis(axis, right) for axis in second),
    )
    return [a, b], {"axes": found}


def _vjp_tensordot(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    return _contract(d, x, y, *d.attrs["axes"])


def _sample_tensordot(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    return [
        _bind_tensordot(array(rng, dtype, 2, 3, 4), array(rng, dtype, 3, 4, 5)),
        _bind_tensordot(array(rng, dtype, 2, 3), array(rng, dtype, 4), 0),
        _bind_tensordot(array(rng, dtype, 2, 3, 4), array(rng, dtype, 4, 2), ((2, 0), (0, 1))),
        _bind_tensordot(array(rng, dtype, 2, 3), array(rng, dtype, 3, 2), (-1, 0)),
    ]


declare(
    Op(
        "tensordot",
        "contract",
        _infer_tensordot,
        "tensordot",
        records=("tensordot",),
        bind=_bind_tensordot,
        vjp=_vjp_tensordot,
        sample=_sample_tensordot,
        doc="np.tensordot",
    )
)


# ---- einsum -----------------------------------------------------------------------------------


def parse_subscripts(subscripts: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand's axes and of the result's; "0", "1"... stand for an ellipsis.

    Raises:
        ShapeError: the subscripts do not fit the operands.
    """
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum {subscripts!r} is for {len(terms)} operands, not {len(ranks)}")
    free = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, extra in zip(terms, free, strict=True):
        if extra < 0 or (extra > 0 and "..." not in term):
            raise ShapeError(f"einsum subscripts {term!r} do not fit the rank of their operand")
    widest = max((n for term, n in zip(terms, free, strict=True) if "..." in term), default=0)
    labels = [
        _spread(term, [str(i) for i in range(widest - extra, widest)])
        for term, extra in zip(terms, free, strict=True)
    ]
    every = [label for term in labels for label in term]
    if arrow:
        result = _spread(right, [str(i) for i in range(widest)])
    else:
        once = [label for label in sorted(set(every)) if label.isalpha()]
        result = [str(i) for i in range(widest)]
        result += [label for label in once if every.count(label) == 1]
    if len(set(result)) != len(result) or not set(result) <= set(every):
        raise ShapeError(f"einsum {subscripts!r}: the output names a label twice, or a new one")
    missing = [str(i) for i in range(widest) if str(i) not in result]
    if arrow and missing:
        raise ShapeError(f"einsum {subscripts!r}: the ellipsis of the operands is summed over")
    return labels, result


def _spread(term: str, ellipsis: Sequence[str]) -> list[str]:
    before, dots, after = term.partition("...")
    labels = [*before, *(ellipsis if dots else ()), *after]
    for label in labels:
        if not (label.isalpha() and label.isascii()) and label not in ellipsis:
            raise ShapeError(f"einsum: {label!r} is no subscript")
    return labels


def _infer_einsum(types: Sequence[Type], attrs: Attrs) -> Type:
    arrays = [array_type(t) for t in types]
    labels, result = parse_subscripts(attrs["subscripts"], [x.ndim for x in arrays])
    extents: dict[str, Size] = {}
    for x, names in zip(arrays, labels, strict=True):
        for name, size in zip(names, x.shape, strict=True):
            (extents[name],) = broadcast_shapes([(extents.get(name, 1),), (size,)])
    given = {"dtype": attrs["dtype"]} if "dtype" in attrs else {}
    probes = [ArrayType(x.dtype, ()) for x in arrays]
    return ArrayType(result_dtype(_einsum_of, probes, given), [extents[name] for name in result])


def _einsum_of(*operands: Any, **attrs: Any) -> Any:
    return np.einsum(",".join([""] * len(operands)) + "->", *operands, **attrs)


def _bind_einsum(*operands: Any, optimize: Any = False, dtype: Any = None, **options: Any) -> Bound:
    if options:
        raise UnsupportedError(f"einsum with {', '.join(options)} is not recorded")
    if not operands:
        raise ShapeError("einsum needs subscripts and operands")
    if isinstance(operands[0], str):
        subscripts, inputs = operands[0], list(operands[1:])
    else:
        subscripts, inputs = _from_sublists(operands)
    subscripts = subscripts.replace(" ", "")
    parse_subscripts(subscripts, [ndim_of(x) for x in inputs])
    if optimize is not False and optimize not in (True, "greedy", "optimal"):
        raise UnsupportedError("einsum with a path is not recorded", instead="optimize=True")
    return inputs, {"subscripts": subscripts} | optional(dtype=dtype_attr(dtype), optimize=optimize)


def _from_sublists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """`einsum(a, [0, 1], b, [1, 2], [0, 2])` as `"ab,bc->ac"`."""
    letters = string.ascii_uppercase + string.ascii_lowercase

    def term(sublist: Any) -> str:
        return "".join("..." if label is Ellipsis else letters[as_int(label)] for label in sublist)

    pairs = len(operands) // 2
    inputs = [operands[2 * index] for index in range(pairs)]
    subscripts = ",".join(term(operands[2 * index + 1]) for index in range(pairs))
    if len(operands) % 2:
        subscripts += "->" + term(operands[-1])
    return subscripts, inputs


def _einsum(xp: Any, *operands: Any, subscripts: str, **attrs: Any) -> Any:
    result = xp.einsum(subscripts, *operands, **attrs)
    # Of one operand, where nothing is summed, NumPy gives a view.
    return xp.array(result) if len(operands) == 1 and "," not in subscripts else result


def _vjp_einsum(d: Derivation, *operands: Term) -> tuple[Term, ...]:
    """Of each operand: an einsum of ḡ and the other operands, to the operand's own labels."""
    names, result = parse_subscripts(d.attrs["subscripts"], [x.ndim for x in operands])
    optimize = d.attrs.get("optimize", False)
    return tuple(
        _of_operand(d, at, operands, names, result, optimize) for at in range(len(operands))
    )


def _of_operand(
    d: Derivation,
    at: int,
    operands: Sequence[Term],
    names: Sequence[Sequence[str]],
    result: Sequence[str],
    optimize: Any,
) -> Term:
    """The cotangent of one operand of an einsum.

    A label that stands nowhere else is summed over: ones take its place.  Of a label that the
    operand has twice, the diagonal counts: so does that of the matrix of ones on it.
    """
    terms = [d.g, *operands[:at], *operands[at + 1 :]]
    labels = [list(result), *map(list, names[:at]), *map(list, names[at + 1 :])]
    target: list[str] = []
    for label, size in zip(names[at], operands[at].shape, strict=True):
        if label in target:
            target.append(f"{label} {len(target)}")
            terms.append(d.op("eye", N=size, dtype=d.g.dtype))
            labels.append([label, target[-1]])
            continue
        target.append(label)
        if not any(label in each for each in labels):
            terms.append(d.op("ones", shape=(size,), dtype=d.g.dtype))
            labels.append([label])
    every = dict.fromkeys(label for each in labels for label in each)
    letters = dict(zip(every, string.ascii_letters, strict=False))
    text = ",".join("".join(letters[label] for label in each) for each in labels)
    text += "->" + "".join(letters[label] for label in target)
    return d.op("einsum", *terms, subscripts=text, optimize=optimize)


def _sample_einsum(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    def make(*shape: int) -> Any:
        return array(rng, dtype, *shape)

    return [
        _bind_einsum("ij,jk->ik", make(2, 3), make(3, 4)),
        _bind_einsum("ij, jk", make(2, 3), make(3, 4)),
        _bind_einsum("ii", make(3, 3)),
        _bind_einsum("ii->i", make(3, 3)),
        _bind_einsum("...ij,...jk->...ik", make(5, 2, 3), make(2, 1, 3, 4)),
        _bind_einsum("ij->", make(2, 3)),
        _bind_einsum("i,j,k->kji", make(2), make(3), make(4)),
        _bind_einsum("b...->...b", make(2, 3, 4)),
        _bind_einsum("ij,ij->j", make(2, 3), make(1, 3)),
        _bind_einsum("iji,kl->jl", make(3, 2, 3), make(4, 2)),
        _bind_einsum("ij,jk,kl", make(2, 3), make(3, 4), make(4, 2), optimize=True),
        _bind_einsum(make(2, 3), [0, 1], make(3, 4), [1, 2], [0, 2]),
    ]


declare(
    Op(
        "einsum",
        "contract",
        _infer_einsum,
        _einsum,
        defaults={"optimize": False, "dtype": None},
        records=("einsum",),
        bind=_bind_einsum,
        vjp=_vjp_einsum,
        sample=_sample_einsum,
        doc="np.einsum",
    )
)


def is_float_product(node: Node) -> bool:
    """A plain `matmul` or `dot` of float32 or float64 arrays of one dtype: as BLAS has it."""
    types = [value.type for value in (*node.inputs, *node.outputs)]
    arrays = [type_ for type_ in types if isinstance(type_, ArrayType)]
    return (
        node.op.name in ("matmul", "dot")
        and not node.attrs
        and len(arrays) == len(types)
        and len({type_.dtype for type_ in arrays}) == 1
        and arrays[0].dtype.name in ("float32", "float64")
    )
