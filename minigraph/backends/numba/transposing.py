"""A matrix copied in the other order, in squares that are transposed in registers.

A loop that copies element after element reads or writes each of them in a cache line of its own.
Here a square of as many rows as a vector has lanes is read row by row, transposed by shuffles (in
as many steps as halving its side takes; Eklundh, IEEE Trans. Computers C-21, 1972), and written row
by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numba
from llvmlite import ir
from numba import extending, types

from .intrinsics import HELPERS as _INTRINSICS
from .tiles import VECTOR_BYTES, Vectors

_intrinsic: Any = extending.intrinsic  # callers do not give what its type calls the first argument
_load, _store = _INTRINSICS["load"], _INTRINSICS["store0"]
_moved, _itemsize = _INTRINSICS["moved"], _INTRINSICS["itemsize"]


@_intrinsic
def _square(typing_context: Any, from_step: Any, a: Any, to_step: Any, out: Any) -> Any:
    """`out[j, i] = a[i, j]` for as many rows and columns as a vector has lanes.

    The steps are those between rows.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from_step, a, to_step, out = arguments
        vectors, count = Vectors(context, builder, signature.args[1]), from_step.type
        order = [count(k) for k in range(vectors.lanes)]
        rows = [vectors.load(vectors.at(a, builder.mul(from_step, k))) for k in order]
        distance = vectors.lanes // 2
        while distance:
            rows = _swapped(builder, rows, distance)
            distance //= 2
        for row, k in zip(rows, order, strict=True):
            vectors.store(row, vectors.at(out, builder.mul(to_step, k)))
        return context.get_dummy_value()

    return types.void(from_step, a, to_step, out), generate


def _swapped(builder: Any, rows: list[Any], distance: int) -> list[Any]:
    """Of each square of twice that side, the two parts beside the diagonal change places."""
    lanes = len(rows)
    index = ir.VectorType(ir.IntType(32), lanes)
    upper = [k if not k & distance else lanes + k - distance for k in range(lanes)]
    lower = [k + distance if not k & distance else lanes + k for k in range(lanes)]
    found = list(rows)
    for first in (k for k in range(lanes) if not k & distance):
        pair = rows[first], rows[first + distance]
        for place, order in ((first, upper), (first + distance, lower)):
            found[place] = builder.shuffle_vector(*pair, ir.Constant(index, order))
    return found


@numba.njit(error_model="numpy")
def transpose(rows: Any, columns: Any, step: Any, a: Any, out: Any) -> None:
    """`out[i, j] = a[j, i]` for `out` of these sizes in C order; `step` is between rows of `a`."""
    lanes = VECTOR_BYTES // _itemsize(a)
    if rows < lanes or columns < lanes:
        for i in range(rows):
            for j in range(columns):
                _store(out, i * columns + j, _load(a, j * step + i))
        return
    i = 0
    while i < rows:  # squares that would go beyond the last row or column begin earlier
        i = min(i, rows - lanes)
        j = 0
        while j < columns:
            j = min(j, columns - lanes)
            _square(step, _moved(a, j * step + i), columns, _moved(out, i * columns + j))
            j += lanes
        i += lanes


HELPERS: Mapping[str, Callable[..., Any]] = MappingProxyType({"transpose": transpose})
