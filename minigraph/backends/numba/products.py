"""Products of matrices and vectors: BLAS, and loops of our own for a single row.

BLAS has nothing to reuse in a row times a matrix: it reads each weight once, and its call costs as
much as a layer's arithmetic.  A loop that keeps the sums of many columns in registers is faster
there.  Sums may be taken in any order and with fused multiplications, as BLAS does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from .intrinsics import HELPERS as _INTRINSICS

_load, _store = _INTRINSICS["load"], _INTRINSICS["store0"]
_add = _INTRINSICS["add_in_any_order"]
_moved = _INTRINSICS["moved"]

VECTOR_BYTES = 64  # of one accumulator; LLVM splits it where the machine has shorter vectors


@intrinsic
def itemsize(typing_context: Any, pointer: Any) -> Any:
    """The size of what a pointer points to, in bytes."""
    size = pointer.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, size)

    return types.intp(pointer), generate


@intrinsic
def like_zero(typing_context: Any, pointer: Any) -> Any:
    """The zero of what a pointer points to."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(signature.return_type, 0)

    return pointer.dtype(pointer), generate


def _accumulate(vectors: int) -> Any:
    """A function that multiplies a row by so many vectors' columns, which stay in registers."""

    @intrinsic
    def accumulate(
        typing_context: Any, inner: Any, stride: Any, row: Any, matrix: Any, out: Any
    ) -> Any:
        """`out[j] = sum of row[k] * matrix[k * stride + j]` for these columns `j`."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            inner, stride, row, matrix, out = arguments
            element = context.get_value_type(signature.args[2].dtype)
            size = context.get_abi_sizeof(element)
            lanes = VECTOR_BYTES // size
            vector = ir.VectorType(element, lanes)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

            def place(start: Any, number: int) -> Any:
                moved = builder.gep(start, [ir.Constant(ir.IntType(64), number * lanes)])
                return builder.bitcast(moved, vector.as_pointer())

            totals = [cgutils.alloca_once(builder, vector) for _ in range(vectors)]
            for total in totals:
                builder.store(ir.Constant(vector, None), total)
            with cgutils.for_range(builder, inner) as loop:
                factor = builder.load(builder.gep(row, [loop.index]))
                first = builder.insert_element(
                    ir.Constant(vector, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0)
                )
                factors = builder.shuffle_vector(first, first, everywhere)
                start = builder.gep(matrix, [builder.mul(loop.index, stride)])
                for number, total in enumerate(totals):
                    weights = builder.load(place(start, number), align=size)
                    scaled = builder.fmul(factors, weights, flags=("contract",))
                    added = builder.fadd(builder.load(total), scaled, flags=("contract",))
                    builder.store(added, total)
            for number, total in enumerate(totals):
                builder.store(builder.load(total), place(out, number), align=size)
            return context.get_dummy_value()

        return types.void(inner, stride, row, matrix, out), generate

    return accumulate


_sixteen, _eight, _four, _one = (_accumulate(vectors) for vectors in (16, 8, 4, 1))


@numba.njit(error_model="numpy", fastmath={"contract"})
def _row_times_rows(inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out[j] = sum of a[k] * b[k, j]` for `b` in C order: a block of columns at a time."""
    lanes = VECTOR_BYTES // itemsize(a)
    j = 0
    while j + 16 * lanes <= columns:
        _sixteen(inner, columns, a, _moved(b, j), _moved(out, j))
        j += 16 * lanes
    if j + 8 * lanes <= columns:
        _eight(inner, columns, a, _moved(b, j), _moved(out, j))
        j += 8 * lanes
    if j + 4 * lanes <= columns:
        _four(inner, columns, a, _moved(b, j), _moved(out, j))
        j += 4 * lanes
    while j + lanes <= columns:
        _one(inner, columns, a, _moved(b, j), _moved(out, j))
        j += lanes
    for rest in range(j, columns):
        total = _load(a, 0) * _load(b, rest)
        for k in range(1, inner):
            total = _add(total, _load(a, k) * _load(b, k * columns + rest))
        _store(out, rest, total)


@numba.njit(error_model="numpy", fastmath={"contract"})
def _row_times_columns(inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out[j] = sum of a[k] * b[j, k]`: the second operand is transposed."""
    for j in range(columns):
        start = j * inner
        total = _load(a, 0) * _load(b, start)
        for k in range(1, inner):
            total = _add(total, _load(a, k) * _load(b, start + k))
        _store(out, j, total)


@numba.njit(error_model="numpy")
def _is_empty(rows: Any, inner: Any, columns: Any, out: Any) -> bool:
    """Whether there is nothing to multiply; the sums of nothing are zeros."""
    if inner == 0:
        for place in range(rows * columns):
            _store(out, place, like_zero(out))
    return rows * inner * columns == 0


@numba.njit(error_model="numpy")
def product_cc(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out = a @ b`, all in C order: `(rows, inner) @ (inner, columns)`."""
    if _is_empty(rows, inner, columns, out):
        return
    if rows == 1:
        _row_times_rows(inner, columns, a, b, out)
    else:
        np.dot(
            carray(a, (rows, inner)),
            carray(b, (inner, columns)),
            carray(out, (rows, columns)),
        )


@numba.njit(error_model="numpy")
def product_cf(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out = a @ b` where `b` is the transpose of a matrix in C order."""
    if _is_empty(rows, inner, columns, out):
        return
    if rows == 1:
        _row_times_columns(inner, columns, a, b, out)
    else:
        np.dot(
            carray(a, (rows, inner)),
            carray(b, (columns, inner)).T,
            carray(out, (rows, columns)),
        )


@numba.njit(error_model="numpy")
def product_fc(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out = a @ b` where `a` is the transpose of a matrix in C order."""
    if _is_empty(rows, inner, columns, out):
        return
    np.dot(
        carray(a, (inner, rows)).T,
        carray(b, (inner, columns)),
        carray(out, (rows, columns)),
    )


@numba.njit(error_model="numpy")
def product_ff(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out = a @ b` where both are transposes of matrices in C order."""
    if _is_empty(rows, inner, columns, out):
        return
    np.dot(
        carray(a, (inner, rows)).T,
        carray(b, (columns, inner)).T,
        carray(out, (rows, columns)),
    )


HELPERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "product_cc": product_cc,
        "product_cf": product_cf,
        "product_fc": product_fc,
        "product_ff": product_ff,
    }
)
