"""Products of matrices and vectors: BLAS, and loops of our own for those of moderate size.

BLAS has nothing to reuse in a row times a matrix: it reads each weight once, and its call costs as
much as a layer's arithmetic.  A loop that keeps the sums of many columns in registers is faster
there; products of some rows go in tiles.  Sums may be taken in any order and with fused
multiplications, as BLAS does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .intrinsics import HELPERS as _INTRINSICS
from .segments import ROW_BYTES, TILED
from .tiles import (
    HAS_WIDE,
    VECTOR_BYTES,
    in_all_lanes,
    keep_from_unrolling,
    multiply_in_tiles,
    multiply_rows,
)

_load, _store = _INTRINSICS["load"], _INTRINSICS["store0"]
_itemsize, _zero = _INTRINSICS["itemsize"], _INTRINSICS["zero"]
_numba: Any = numba  # its type does not say all that is in it
_carray = _numba.carray
_add = _INTRINSICS["add_in_any_order"]

MOST = 16 if HAS_WIDE else 8  # vectors of sums: half of the registers


def _panel(vectors: int) -> Any:
    """A function that computes so many vectors of a row times a matrix, from column `first` on."""

    @intrinsic
    def panel(
        typing_context: Any, inner: Any, columns: Any, first: Any, a: Any, b: Any, out: Any
    ) -> Any:
        """`out[j] = sum of a[k] * b[k, j]` for these columns `j`; `inner` is not 0."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            inner, columns, first, a, b, out = arguments
            element = context.get_value_type(signature.args[3].dtype)
            size_bytes = context.get_abi_sizeof(element)
            lanes = VECTOR_BYTES // size_bytes
            vector, count = ir.VectorType(element, lanes), inner.type

            def at(pointer: Any, number: int) -> Any:
                moved = builder.gep(pointer, [count(number * lanes)])
                return builder.bitcast(moved, vector.as_pointer())

            start, end = builder.gep(b, [first]), builder.gep(out, [first])
            before = builder.block
            loop = builder.append_basic_block("row")
            after = builder.append_basic_block("row.end")
            builder.branch(loop)
            builder.position_at_end(loop)
            k, row = builder.phi(count), builder.phi(b.type)
            totals = [builder.phi(vector) for _ in range(vectors)]
            starts = [(k, count(0)), (row, start), *((each, vector(None)) for each in totals)]
            for phi, value in starts:
                phi.add_incoming(value, before)
            factor = in_all_lanes(builder, builder.load(builder.gep(a, [k])), vector)
            sums: list[Any] = []
            for number, total in enumerate(totals):
                read = builder.load(at(row, number), align=size_bytes)
                scaled = builder.fmul(factor, read, flags=("contract",))
                sums.append(builder.fadd(scaled, total, flags=("contract",)))
                total.add_incoming(sums[-1], loop)
            following = builder.add(k, count(1))
            k.add_incoming(following, loop)
            row.add_incoming(builder.gep(row, [columns]), loop)
            branch = builder.cbranch(builder.icmp_signed("<", following, inner), loop, after)
            keep_from_unrolling(builder.module, branch)
            builder.position_at_end(after)
            for number, result in enumerate(sums):
                builder.store(result, at(end, number), align=size_bytes)
            return context.get_dummy_value()

        return types.void(inner, columns, first, a, b, out), generate

    return panel


_panel16, _panel8, _panel4, _panel2, _panel1 = (_panel(vectors) for vectors in (16, 8, 4, 2, 1))


@numba.njit(error_model="numpy", fastmath={"contract"})
def _row_times_rows(inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out[j] = sum of a[k] * b[k, j]` for `b` in C order; `inner` is not 0.

    A step reads one row of a panel, by an instruction for each vector that goes on by a row each
    time, a pattern that prefetchers know.  Unrolled, or with several rows at a time, this loop is
    slower by half where the matrix lies in the second-level cache (measured).
    """
    lanes = VECTOR_BYTES // _itemsize(a)
    if columns < lanes:
        for column in range(columns):
            total = _load(a, 0) * _load(b, column)
            for k in range(1, inner):
                total = _add(total, _load(a, k) * _load(b, k * columns + column))
            _store(out, column, total)
        return
    first = 0
    while first < columns:  # a panel that would go beyond the last column begins earlier
        left = columns - first
        if left > 8 * lanes and columns >= 16 * lanes and MOST == 16:
            _panel16(inner, columns, min(first, columns - 16 * lanes), a, b, out)
            first += 16 * lanes
        elif left > 4 * lanes and columns >= 8 * lanes:
            _panel8(inner, columns, min(first, columns - 8 * lanes), a, b, out)
            first += 8 * lanes
        elif left > 2 * lanes and columns >= 4 * lanes:
            _panel4(inner, columns, min(first, columns - 4 * lanes), a, b, out)
            first += 4 * lanes
        elif left > lanes and columns >= 2 * lanes:
            _panel2(inner, columns, min(first, columns - 2 * lanes), a, b, out)
            first += 2 * lanes
        else:
            _panel1(inner, columns, min(first, columns - lanes), a, b, out)
            first += lanes


@numba.njit(error_model="numpy")
def _is_empty(rows: Any, inner: Any, columns: Any, out: Any) -> bool:
    """Whether there is nothing to multiply; the sums of nothing are zeros."""
    if inner == 0:
        for place in range(rows * columns):
            _store(out, place, _zero(out))
    return rows * inner * columns == 0


@numba.njit(error_model="numpy")
def _in_rows(pointer: Any, rows: Any, columns: Any) -> Any:
    """A matrix in C order."""
    return _carray(pointer, (rows, columns))


@numba.njit(error_model="numpy")
def _in_columns(pointer: Any, rows: Any, columns: Any) -> Any:
    """A matrix whose transpose is in C order."""
    return _carray(pointer, (columns, rows)).T


@numba.njit(error_model="numpy")
def _row_times_columns(inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out[j] = sum of a[k] * b[j, k]`: the second operand is transposed."""
    multiply_rows(1, inner, columns, inner, a, inner, b, out)


@numba.njit(error_model="numpy")
def _tiles_cc(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    multiply_in_tiles(rows, inner, columns, inner, 1, a, columns, b, out)


@numba.njit(error_model="numpy")
def _tiles_fc(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    multiply_in_tiles(rows, inner, columns, 1, rows, a, columns, b, out)


@numba.njit(error_model="numpy")
def _tiles_cf(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    multiply_rows(rows, inner, columns, inner, a, inner, b, out)


def _product(left: Any, right: Any, row: Any, tiles: Any) -> Any:
    """A function for `out = a @ b`, of `(rows, inner)` and `(inner, columns)`.

    `left` and `right` say how the operands lie; the result is in C order.  BLAS computes it, unless
    `row` or `tiles` are faster.
    """

    @numba.njit(error_model="numpy")
    def product(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
        if _is_empty(rows, inner, columns, out):
            return
        if rows == 1:
            if inner * columns * _itemsize(a) <= ROW_BYTES:
                row(inner, columns, a, b, out)
                return
        elif rows * inner * columns <= TILED:
            tiles(rows, inner, columns, a, b, out)
            return
        np.dot(left(a, rows, inner), right(b, inner, columns), _in_rows(out, rows, columns))

    return product


@numba.njit(error_model="numpy")
def _product_ff(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """The product of two transposed matrices, by BLAS."""
    if not _is_empty(rows, inner, columns, out):
        result = _in_rows(out, rows, columns)
        np.dot(_in_columns(a, rows, inner), _in_columns(b, inner, columns), result)


HELPERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "product_cc": _product(_in_rows, _in_rows, _row_times_rows, _tiles_cc),
        "product_cf": _product(_in_rows, _in_columns, _row_times_columns, _tiles_cf),
        "product_fc": _product(_in_columns, _in_rows, _row_times_rows, _tiles_fc),
        "product_ff": _product_ff,
        "in_tiles": multiply_in_tiles,
        "rows_times_rows": multiply_rows,
    }
)
"""By how the operands lie: in C order, or as the transpose of what is."""
