"""Products of matrices and vectors: BLAS, and loops of our own for a single row.

BLAS has nothing to reuse in a row times a matrix: it reads each weight once, and its call costs as
much as a layer's arithmetic.  A loop that takes four rows of the matrix at a time is faster there.
Sums may be taken in any order and with fused multiplications, as BLAS does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
from numba import carray

from .intrinsics import HELPERS as _INTRINSICS

_load, _store, _load_back = (_INTRINSICS[name] for name in ("load", "store0", "load0"))
_add = _INTRINSICS["add_in_any_order"]


@numba.njit(error_model="numpy", fastmath={"contract"})
def _row_times_rows(inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out[j] = sum of a[k] * b[k, j]` for `b` in C order, four `k` at a time."""
    if columns < 16:
        for j in range(columns):
            total = _load(a, 0) * _load(b, j)
            for k in range(1, inner):
                total = _add(total, _load(a, k) * _load(b, k * columns + j))
            _store(out, j, total)
        return
    whole = inner // 4 * 4
    for j in range(columns):
        _store(out, j, _load(a, 0) * 0)
    for k in range(0, whole, 4):
        r0 = k * columns
        r1, r2, r3 = r0 + columns, r0 + 2 * columns, r0 + 3 * columns
        a0, a1, a2, a3 = _load(a, k), _load(a, k + 1), _load(a, k + 2), _load(a, k + 3)
        for j in range(columns):
            total = _load_back(out, j) + a0 * _load(b, r0 + j)
            total = total + a1 * _load(b, r1 + j) + a2 * _load(b, r2 + j) + a3 * _load(b, r3 + j)
            _store(out, j, total)
    for k in range(whole, inner):
        ak = _load(a, k)
        for j in range(columns):
            _store(out, j, _load_back(out, j) + ak * _load(b, k * columns + j))


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
def product_cc(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out = a @ b`, all in C order: `(rows, inner) @ (inner, columns)`."""
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
    np.dot(
        carray(a, (inner, rows)).T,
        carray(b, (inner, columns)),
        carray(out, (rows, columns)),
    )


@numba.njit(error_model="numpy")
def product_ff(rows: Any, inner: Any, columns: Any, a: Any, b: Any, out: Any) -> None:
    """`out = a @ b` where both are transposes of matrices in C order."""
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
