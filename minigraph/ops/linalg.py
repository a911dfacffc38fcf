"""Linear algebra, called whole: functions of the matrices in the last two axes, and norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import ShapeError, UnsupportedError
from minigraph.ir import ArrayType, Dim, Op, Shape, Size, Type, decide_at_least, decide_equal

from .bind import Bound, as_int, as_number, bind_one, bind_two, ndim_of, one_of, optional
from .contract import contracted
from .derivation import Derivation, Term
from .reduce import shares
from .registry import declare
from .rules import (
    array_type,
    broadcast_shapes,
    items_of,
    normalize_axis,
    reduced_shape,
    result_dtype,
    result_dtypes,
)
from .samples import Sample, array

Attrs = Mapping[str, Any]


def _square(t: Type, name: str) -> ArrayType:
    x = array_type(t)
    if x.ndim < 2 or not decide_equal(x.shape[-1], x.shape[-2]):
        raise ShapeError(f"{name}: last 2 dimensions of the array must be square, not {x}")
    return x


def _same(x: ArrayType) -> list[Shape]:
    return [x.shape]


def _matrix_function(
    name: str,
    vjp: Callable[[Derivation, Term], Term | None],
    shapes: Callable[[ArrayType], list[Shape]] = _same,
    *,
    raises: bool = True,
) -> None:
    """Declare a function of square matrices in the last two axes."""
    function = getattr(np.linalg, name)

    def infer(types: Sequence[Type], attrs: Attrs) -> Type | tuple[Type, ...]:
        x = _square(types[0], name)
        dtypes = result_dtypes(function, [ArrayType(x.dtype, (1, 1))], attrs)
        found = tuple(map(ArrayType, dtypes, shapes(x)))
        return found[0] if len(found) == 1 else found

    def sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
        x = array(rng, dtype, 2, 3, 3)
        definite = (x @ np.conj(np.swapaxes(x, -1, -2)) + 3 * np.eye(3, dtype=dtype)).astype(dtype)
        return [([definite], {}), ([definite[0]], {})]

    def bind(a: Any, /) -> Bound:
        return [a], {}

    declare(
        Op(
            name,
            "library",
            infer,
            f"linalg.{name}",
            raises=raises,
            records=(f"linalg.{name}",),
            bind=bind,
            vjp=vjp,
            sample=sample,
            doc=f"np.linalg.{name}",
        )
    )


def _as_matrix(numbers: Term) -> Term:
    """One number for each matrix."""
    return numbers.reshape((*numbers.shape, 1, 1))


def _vjp_det(d: Derivation, x: Term) -> Term:
    """det(x)·x⁻ᵀ: of a singular matrix there is none, though there is a determinant."""
    (inverse,) = d.ops("inv", x, checked=False)
    return _as_matrix(d.g * d.out) * inverse.mT


def _vjp_slogdet(d: Derivation, x: Term) -> Term | None:
    logarithm = d.cotangents[1]
    if logarithm is None:
        return None
    (inverse,) = d.ops("inv", x, checked=False)
    return _as_matrix(logarithm) * inverse.mT


_matrix_function("inv", lambda d, x: -(d.out.mT @ d.g @ d.out.mT))
_matrix_function("det", _vjp_det, lambda x: [x.shape[:-2]], raises=False)
_matrix_function("slogdet", _vjp_slogdet, lambda x: [x.shape[:-2], x.shape[:-2]], raises=False)
# eig and eigvals are not declared: whether their result is complex depends on the data.


def _hermitian(
    name: str,
    letter: str,
    shapes: Callable[[ArrayType], list[Shape]],
    vjp: Callable[[Derivation, Term], Term],
) -> None:
    """Declare a function of Hermitian matrices, of which one triangle is read.

    The cotangent is symmetric: as if both triangles were read.
    """
    function = getattr(np.linalg, name)

    def infer(types: Sequence[Type], attrs: Attrs) -> Type | tuple[Type, ...]:
        x = _square(types[0], name)
        found = tuple(
            map(ArrayType, result_dtypes(function, [ArrayType(x.dtype, (1, 1))], {}), shapes(x))
        )
        return found[0] if len(found) == 1 else found

    def bind(a: Any, /, UPLO: str = "L") -> Bound:  # noqa: N803  NumPy's name
        which = one_of(str(UPLO).upper(), ("L", "U"), "UPLO=")
        return [a], {} if which == "L" else {"UPLO": which}

    def bind_cholesky(a: Any, /, *, upper: bool = False) -> Bound:
        return [a], optional(upper=bool(upper))

    def sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
        x = array(rng, dtype, 2, 3, 3)
        definite = (x @ np.conj(np.swapaxes(x, -1, -2)) + 3 * np.eye(3, dtype=dtype)).astype(dtype)
        flipped = bind_cholesky(definite[0], upper=True) if letter == "upper" else None
        return [([definite], {}), flipped or bind(definite[0], "U")]

    declare(
        Op(
            name,
            "library",
            infer,
            f"linalg.{name}",
            raises=True,
            defaults={"upper": False} if letter == "upper" else {"UPLO": "L"},
            records=(f"linalg.{name}",),
            bind=bind_cholesky if letter == "upper" else bind,
            vjp=vjp,
            sample=sample,
            doc=f"np.linalg.{name}",
        )
    )


def _triangle(d: Derivation, x: Term, k: int = 0) -> Term:
    """The elements on and below a diagonal, zeros above."""
    return d.where(d.op("tri", N=x.shape[-1], k=k, dtype=np.dtype(bool)), x, 0)


def _symmetric(x: Term) -> Term:
    return (x + x.mT) / 2


def _vjp_cholesky(d: Derivation, x: Term) -> Term:
    """L⁻ᵀ·Φ(LᵀL̄)·L⁻¹, where Φ takes the lower triangle and half of the diagonal."""
    upper = d.attrs.get("upper", False)
    factor, g = (d.out.mT, d.g.mT) if upper else (d.out, d.g)
    product_ = factor.mT @ _triangle(d, g)
    half = (_triangle(d, product_) + _triangle(d, product_, -1)) / 2
    left = d.op("solve", factor.mT, half)  # L⁻ᵀ·Φ
    return _symmetric(d.op("solve", factor.mT, left.mT).mT)


def _vjp_eigh(d: Derivation, x: Term) -> Term:
    """V·(diag(w̄) + F∘(VᵀV̄))·Vᵀ with F_ij = 1 / (w_j - w_i), 0 where two are equal."""
    of_values, of_vectors = d.cotangents
    values, vectors = d.outputs
    middle = d.zeros(x.type)
    if of_vectors is not None:
        middle = _reciprocal_gaps(d, values) * (vectors.mT @ of_vectors)
    if of_values is not None:
        middle = middle + _diagonal(d, of_values)
    return _symmetric(vectors @ middle @ vectors.mT)


def _vjp_eigvalsh(d: Derivation, x: Term) -> Term:
    _, vectors = d.ops("eigh", x, **d.attrs)
    return _symmetric((vectors * d.g.reshape((*d.g.shape[:-1], 1, d.g.shape[-1]))) @ vectors.mT)


def _diagonal(d: Derivation, x: Term) -> Term:
    """Matrices with the last axis on their diagonals."""
    return x.reshape((*x.shape, 1)) * d.op("eye", N=x.shape[-1], dtype=x.dtype)


def _reciprocal_gaps(d: Derivation, values: Term) -> Term:
    """1 / (v_j - v_i), and 0 where two are equal."""
    row, column = (*values.shape[:-1], 1, values.shape[-1]), (*values.shape, 1)
    gaps = values.reshape(row) - values.reshape(column)
    equal = gaps == 0
    return d.where(equal, 0, 1 / d.where(equal, 1, gaps))


_hermitian("cholesky", "upper", _same, _vjp_cholesky)
_hermitian("eigh", "UPLO", lambda x: [x.shape[:-1], x.shape], _vjp_eigh)
_hermitian("eigvalsh", "UPLO", lambda x: [x.shape[:-1]], _vjp_eigvalsh)


def _infer_solve(types: Sequence[Type], attrs: Attrs) -> Type:
    a, b = _square(types[0], "solve"), array_type(types[1])
    vector = b.ndim == 1
    probes = [ArrayType(a.dtype, (1, 1)), ArrayType(b.dtype, (1,) if vector else (1, 1))]
    dtype = result_dtype(np.linalg.solve, probes)
    if b.ndim == 0:
        raise ShapeError("solve: the right side has no axes")
    contracted(a.shape[-1], b.shape[-1 if vector else -2], "solve", a, b)
    if vector:
        return ArrayType(dtype, a.shape[:-1])
    batch = broadcast_shapes([a.shape[:-2], b.shape[:-2]])
    return ArrayType(dtype, (*batch, *b.shape[-2:]))


def _vjp_solve(d: Derivation, a: Term, b: Term) -> tuple[Term, Term]:
    """b̄ = a⁻ᵀ·ḡ and ā = -b̄·xᵀ."""
    vector = b.ndim == 1
    g, out = (t.reshape((*t.shape, 1)) if vector else t for t in (d.g, d.out))
    of_b = d.op("solve", a.mT, g)
    return -(of_b @ out.mT), of_b.reshape(of_b.shape[:-1]) if vector else of_b


def _sample_solve(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    a = (array(rng, dtype, 2, 3, 3) + 9 * np.eye(3, dtype=dtype)).astype(dtype)
    return [
        ([a[0], array(rng, dtype, 3)], {}),
        ([a, array(rng, dtype, 3, 4)], {}),
        ([a, array(rng, dtype, 3)], {}),
    ]


declare(
    Op(
        "solve",
        "library",
        _infer_solve,
        "linalg.solve",
        raises=True,
        records=("linalg.solve",),
        bind=bind_two,
        vjp=_vjp_solve,
        sample=_sample_solve,
        doc="np.linalg.solve",
    )
)


def _smaller(x: ArrayType) -> Size:
    rows, columns = x.shape[-2:]
    if isinstance(rows, Dim) or isinstance(columns, Dim):
        if decide_equal(rows, columns):
            return rows
        raise ShapeError("a decomposition needs sizes that are known while tracing")
    return min(rows, columns)


def _matrix(t: Type, name: str) -> ArrayType:
    x = array_type(t)
    if x.ndim < 2:
        raise ShapeError(f"{name}: an array of at least two axes is needed, not {x}")
    return x


def _infer_qr(types: Sequence[Type], attrs: Attrs) -> Type | tuple[Type, ...]:
    x = _matrix(types[0], "qr")
    mode, small = attrs.get("mode", "reduced"), _smaller(x)
    *batch, rows, columns = x.shape
    shapes = {
        "reduced": [(rows, small), (small, columns)],
        "complete": [(rows, rows), (rows, columns)],
        "r": [(small, columns)],
    }[mode]
    dtypes = result_dtypes(np.linalg.qr, [ArrayType(x.dtype, (1, 1))], attrs)
    found = tuple(
        ArrayType(dtype, (*batch, *shape)) for dtype, shape in zip(dtypes, shapes, strict=True)
    )
    return found[0] if len(found) == 1 else found


def _vjp_qr(d: Derivation, x: Term) -> Term:
    """(Q̄ + Q·mirror(R·R̄ᵀ - Q̄ᵀ·Q))·R⁻ᵀ; of columns that are more than the rows, Q·R̄."""
    rows, columns = x.shape[-2:]
    mode, tall = d.attrs.get("mode", "reduced"), decide_at_least(rows, columns)
    if mode == "complete" and tall and rows != columns:
        raise d.unsupported("qr with mode='complete'", 'mode="reduced"')
    q, r = d.outputs if mode != "r" else d.ops("qr", x)
    of_q, of_r = d.cotangents if mode != "r" else (None, d.g)
    of_q = d.zeros(q.type) if of_q is None else of_q
    of_r = d.zeros(r.type) if of_r is None else of_r
    if tall:
        return _of_qr(d, q, r, of_q, of_r)
    first, rest = (..., slice(None, rows)), (..., slice(rows, None))
    of_q = of_q + x[rest] @ of_r[rest].mT
    of_first = _of_qr(d, q, r[first], of_q, of_r[first])
    return d.op("concatenate", of_first, q @ of_r[rest], axis=x.ndim - 1)


def _of_qr(d: Derivation, q: Term, r: Term, of_q: Term, of_r: Term) -> Term:
    """The cotangent of Q·R with a square R."""
    inner = r @ _triangle(d, of_r.mT) - of_q.mT @ q
    mirrored = _triangle(d, inner) + _triangle(d, inner, -1).mT
    return d.op("solve", r, (of_q + q @ mirrored).mT).mT


def _bind_qr(a: Any, mode: str = "reduced") -> Bound:
    one_of(mode, ("reduced", "complete", "r"), "mode=")
    return [a], {} if mode == "reduced" else {"mode": mode}


declare(
    Op(
        "qr",
        "library",
        _infer_qr,
        "linalg.qr",
        raises=True,
        defaults={"mode": "reduced"},
        records=("linalg.qr",),
        bind=_bind_qr,
        vjp=_vjp_qr,
        sample=lambda rng, dtype: [
            _bind_qr(array(rng, dtype, 4, 3)),
            _bind_qr(array(rng, dtype, 2, 3, 4)),
            _bind_qr(array(rng, dtype, 4, 3), "complete"),
            _bind_qr(array(rng, dtype, 4, 3), "r"),
        ],
        doc="np.linalg.qr",
    )
)


def _infer_svd(types: Sequence[Type], attrs: Attrs) -> Type | tuple[Type, ...]:
    x = _matrix(types[0], "svd")
    small = _smaller(x)
    *batch, rows, columns = x.shape
    full = attrs.get("full_matrices", True)
    shapes = [
        (*batch, rows, rows if full else small),
        (*batch, small),
        (*batch, columns if full else small, columns),
    ]
    if not attrs.get("compute_uv", True):
        shapes = shapes[1:2]
    dtypes = result_dtypes(np.linalg.svd, [ArrayType(x.dtype, (1, 1))], attrs)
    found = tuple(map(ArrayType, dtypes, shapes))
    return found[0] if len(found) == 1 else found


def _vjp_svd(d: Derivation, x: Term) -> Term:
    """U·(s̄ + E∘(UᵀŪ)·s + s·E∘(VᵀV̄))·Vᵀ, and what leads out of the spaces of U and V.

    E∘A is (A - Aᵀ)_ij / (s_j² - s_i²), 0 where two singular values are equal.
    """
    if not d.attrs.get("compute_uv", True):
        u, _, v = d.ops("svd", x, full_matrices=False)
        return (u * d.g.reshape((*d.g.shape[:-1], 1, d.g.shape[-1]))) @ v
    of_u, of_s, of_v = d.cotangents
    u, s, v = d.outputs
    if u.shape[-1] != v.shape[-2]:
        if of_u is not None or of_v is not None:
            raise d.unsupported("svd with full_matrices=True", "full_matrices=False")
        u, s, v = d.ops("svd", x, full_matrices=False)
    row, column = s.reshape((*s.shape[:-1], 1, s.shape[-1])), s.reshape((*s.shape, 1))
    middle = d.zeros(s.type).reshape(row.shape) if of_s is None else _diagonal(d, of_s)
    gaps = _reciprocal_gaps(d, s * s)
    outside = d.zeros(x.type)
    if of_u is not None:
        inner = u.mT @ of_u
        middle = middle + (inner - inner.mT) * gaps * row
        outside = outside + ((of_u - u @ inner) / row) @ v
    if of_v is not None:
        inner = v @ of_v.mT
        middle = middle + column * ((inner - inner.mT) * gaps)
        outside = outside + (u / row) @ (of_v - inner.mT @ v)
    return u @ middle @ v + outside


def _bind_svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Bound:
    if hermitian:
        raise UnsupportedError("svd with hermitian=True is not recorded", instead="np.linalg.eigh")
    attrs = {} if full_matrices else {"full_matrices": False}
    return [a], attrs if compute_uv else {"compute_uv": False}


declare(
    Op(
        "svd",
        "library",
        _infer_svd,
        "linalg.svd",
        raises=True,
        defaults={"full_matrices": True, "compute_uv": True},
        records=("linalg.svd",),
        bind=_bind_svd,
        vjp=_vjp_svd,
        sample=lambda rng, dtype: [
            _bind_svd(array(rng, dtype, 4, 3)),
            _bind_svd(array(rng, dtype, 2, 3, 4), full_matrices=False),
            _bind_svd(array(rng, dtype, 4, 3), compute_uv=False),
        ],
        doc="np.linalg.svd",
    )
)


def _vjp_pinv(d: Derivation, x: Term) -> Term:
    """Of p = x⁺: -pᵀ·ḡ·pᵀ, and what changes the spaces of its rows and columns."""
    p, g = d.out, d.g.mT
    right, left = g @ p @ p.mT, p.mT @ p @ g
    return right - x @ p @ right + left - left @ p @ x - (p @ g @ p).mT


def _infer_pinv(types: Sequence[Type], attrs: Attrs) -> Type:
    x = _matrix(types[0], "pinv")
    *batch, rows, columns = x.shape
    dtype = result_dtype(np.linalg.pinv, [ArrayType(x.dtype, (1, 1))])
    return ArrayType(dtype, (*batch, columns, rows))


declare(
    Op(
        "pinv",
        "library",
        _infer_pinv,
        "linalg.pinv",
        raises=True,
        records=("linalg.pinv",),
        bind=bind_one,
        vjp=_vjp_pinv,
        sample=lambda rng, dtype: [([array(rng, dtype, 4, 3)], {})],
        doc="np.linalg.pinv",
    )
)


def _vjp_matrix_power(d: Derivation, x: Term) -> Term | None:
    """The sum of (xᵀ)ⁱ·ḡ·(xᵀ)ⁿ⁻¹⁻ⁱ; of a negative power, that of the inverse."""
    n: int = d.attrs["n"]
    if n == 0:
        return None
    base = (d.op("inv", x) if n < 0 else x).mT
    found, powers = d.g, base
    for _ in range(abs(n) - 1):
        found, powers = found @ base + powers @ d.g, powers @ base
    return found if n > 0 else -(base @ found @ base)


def _infer_power(types: Sequence[Type], attrs: Attrs) -> Type:
    x = _square(types[0], "matrix_power")
    return ArrayType(
        result_dtype(np.linalg.matrix_power, [ArrayType(x.dtype, (1, 1))], {"n": attrs["n"]}),
        x.shape,
    )


def _matrix_power(xp: Any, x: Any, n: int) -> Any:
    return xp.array(x) if n == 1 else xp.linalg.matrix_power(x, n)  # NumPy gives x itself


def _bind_power(a: Any, n: Any) -> Bound:
    return [a], {"n": as_int(n)}


declare(
    Op(
        "matrix_power",
        "library",
        _infer_power,
        _matrix_power,
        raises=lambda node: node.attrs["n"] < 0,
        records=("linalg.matrix_power",),
        bind=_bind_power,
        vjp=_vjp_matrix_power,
        sample=lambda rng, dtype: [
            _bind_power(array(rng, dtype, 3, 3), 3),
            _bind_power(array(rng, dtype, 2, 3, 3), 0),
            _bind_power(array(rng, dtype, 2, 3, 3), 1),
            _bind_power(np.eye(3, dtype=dtype) + np.eye(3, dtype=dtype), -1),
        ],
        doc="np.linalg.matrix_power",
    )
)


# ---- norm -------------------------------------------------------------------------------------


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
        return shares(d, size == out, g, axes) * sign
    return g * sign * (size / length) ** (ord_ - 1)


def _vjp_matrix_norm(d: Derivation, x: Term, g: Term, out: Term, axes: Sequence[int]) -> Term:
    """Of sums over one axis the extreme one; or of singular values the extreme ones, or the sum."""
    ord_: Any = d.attrs["ord"]
    if ord_ not in (2, -2, "nuc"):
        rows, columns = axes if abs(ord_) == 1 else reversed(axes)
        sums = d.op("sum", d.op("absolute", x), axis=(rows,), keepdims=True)
        return shares(d, sums == out, g, [columns]) * d.op("sign", x)
    order = [axis for axis in range(x.ndim) if axis not in axes] + list(axes)
    u, values, v = d.ops("svd", x.transpose(order), full_matrices=False)
    matrices, last = u.ndim - 2, values.ndim - 1
    share = g.transpose(order).reshape((*u.shape[:matrices], 1))
    if ord_ != "nuc":
        hits = values == d.op("max" if ord_ == 2 else "min", values, axis=(last,), keepdims=True)
        share = shares(d, hits, share, [last])
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
