"""What a good Numba programmer writes for each workload by hand.

Loops over rows or blocks are shared among threads where that pays, inner loops are written so that
LLVM vectorises them.  The data are finite, so `fastmath` may reorder sums and forget about NaN.
Numba from PyPI calls exp of the C library once per element; `exp32` and `exp64` are vectorised.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange

f32, i32, i64 = np.float32, np.int32, np.int64
fast = njit(fastmath=True, error_model="numpy")
exact = njit(fastmath={"contract"}, error_model="numpy")
shared = njit(fastmath=True, error_model="numpy", parallel=True)

LANES = 64  # elements that are computed side by side, in registers and the first cache

# ---- functions that vectorise ------------------------------------------------------------------


@exact
def exp32(x: Any) -> Any:
    """By 2**k times a polynomial of what is left; to 1e-7."""
    x = min(max(x, f32(-87.0)), f32(88.0))
    k = np.floor(x * f32(1.44269504) + f32(0.5))
    r = x - k * f32(0.693145752) - k * f32(1.42860677e-6)
    p = f32(1 / 120) + r * f32(1 / 720)
    p = f32(1 / 6) + r * (f32(1 / 24) + r * p)
    p = f32(1) + r * (f32(1) + r * (f32(0.5) + r * p))
    return p * i32((i32(k) + 127) << 23).view(f32)


@exact
def exp64(x: Any) -> Any:
    """The same, to 1e-15."""
    x = min(max(x, -708.0), 709.0)
    k = np.floor(x * 1.4426950408889634 + 0.5)
    r = x - k * 0.693147180369123816490 - k * 1.90821492927058770002e-10
    p = 1 / 479001600 + r * (1 / 6227020800)
    p = 1 / 3628800 + r * (1 / 39916800 + r * p)
    p = 1 / 40320 + r * (1 / 362880 + r * p)
    p = 1 / 720 + r * (1 / 5040 + r * p)
    p = 1 / 24 + r * (1 / 120 + r * p)
    p = 1 + r * (1 + r * (0.5 + r * (1 / 6 + r * p)))
    return p * i64((i64(k) + 1023) << 52).view(np.float64)


@exact
def sigmoid(x: Any) -> Any:
    return f32(1) / (f32(1) + exp32(-x))


@exact
def tanh(x: Any) -> Any:
    return f32(2) * sigmoid(f32(2) * x) - f32(1)


@exact
def gelu(x: Any) -> Any:
    """By tanh: (1 + tanh(u)) / 2 is sigmoid(2 u)."""
    return x * sigmoid(f32(1.5957691216) * (x + f32(0.044715) * x * x * x))


# ---- elements and rows -------------------------------------------------------------------------


@njit
def fancy_func(a: Any, b: Any, c: Any, d: Any) -> Any:
    return (a + b) + (c + d)


@fast
def fancy_func_small(a: Any, b: Any, c: Any, d: Any) -> Any:
    out = np.empty_like(a)
    for i in range(a.size):
        out[i] = (a[i] + b[i]) + (c[i] + d[i])
    return out


@shared
def fancy_func_large(a: Any, b: Any, c: Any, d: Any) -> Any:
    out = np.empty_like(a)
    for i in prange(a.size):
        out[i] = (a[i] + b[i]) + (c[i] + d[i])
    return out


@fast
def chain_small(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = gelu(x[i])
    return out


@shared
def chain_large(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.size):
        out[i] = gelu(x[i])
    return out


@fast
def largest_of(x: Any) -> Any:
    """In lanes, since LLVM does not vectorise a maximum of floats by itself."""
    lanes = np.full(LANES, -np.inf, np.float32)
    whole = x.size // LANES * LANES
    for first in range(0, whole, LANES):
        for lane in range(LANES):
            each = x[first + lane]
            lanes[lane] = each if each > lanes[lane] else lanes[lane]
    largest = lanes[0]
    for each in lanes:
        largest = max(largest, each)
    for j in range(whole, x.size):
        largest = max(largest, x[j])
    return largest


@fast
def softmax_row(x: Any, out: Any) -> None:
    largest = largest_of(x)
    total = f32(0)
    for j in range(x.size):
        e = exp32(x[j] - largest)
        out[j] = e
        total += e
    factor = f32(1) / total
    for j in range(x.size):
        out[j] *= factor


@shared
def softmax(x: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        softmax_row(x[i], out[i])
    return out


@fast
def normalize_row(out: Any, scale: Any, shift: Any) -> None:
    """In place."""
    n = f32(out.size)
    total = f32(0)
    for j in range(out.size):
        total += out[j]
    mean = total / n
    squares = f32(0)
    for j in range(out.size):
        squares += (out[j] - mean) * (out[j] - mean)
    factor = f32(1) / np.sqrt(squares / n + f32(1e-5))
    for j in range(out.size):
        out[j] = (out[j] - mean) * factor * scale[j] + shift[j]


@shared
def layer_norm(x: Any, residual: Any, scale: Any, shift: Any) -> Any:
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        row = out[i]
        for j in range(row.size):
            row[j] = x[i, j] + residual[i, j]
        normalize_row(row, scale, shift)
        for j in range(row.size):
            row[j] = gelu(row[j])
    return out


# ---- reductions --------------------------------------------------------------------------------


@shared
def sum_rows(x: Any) -> Any:
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        total = f32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total
    return out


@shared
def max_rows(x: Any) -> Any:
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        out[i] = largest_of(x[i])
    return out


@shared
def var_rows(x: Any) -> Any:
    """The second reading of a row is from the cache."""
    n = f32(x.shape[1])
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        total = f32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / n
        squares = f32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        out[i] = squares / n
    return out


BLOCK = 64  # rows that one thread adds up at a time


@shared
def sum_columns(x: Any) -> Any:
    blocks = (x.shape[0] + BLOCK - 1) // BLOCK
    totals = np.empty((blocks, x.shape[1]), x.dtype)
    for block in prange(blocks):
        total = totals[block]
        total[:] = f32(0)
        last = min((block + 1) * BLOCK, x.shape[0])
        whole = last // 4 * 4  # four rows at a time: the total is loaded and stored less often
        for i in range(block * BLOCK, whole, 4):
            for j in range(x.shape[1]):
                total[j] += (x[i, j] + x[i + 1, j]) + (x[i + 2, j] + x[i + 3, j])
        for i in range(whole, last):
            for j in range(x.shape[1]):
                total[j] += x[i, j]
    for block in range(1, blocks):
        for j in range(x.shape[1]):
            totals[0, j] += totals[block, j]
    return totals[0].copy()


@shared
def max_columns(x: Any) -> Any:
    blocks = (x.shape[0] + BLOCK - 1) // BLOCK
    found = np.empty((blocks, x.shape[1]), x.dtype)
    for block in prange(blocks):
        largest = found[block]
        largest[:] = x[block * BLOCK]
        for i in range(block * BLOCK, min((block + 1) * BLOCK, x.shape[0])):
            for j in range(x.shape[1]):
                largest[j] = max(largest[j], x[i, j])
    for block in range(1, blocks):
        for j in range(x.shape[1]):
            found[0, j] = max(found[0, j], found[block, j])
    return found[0].copy()


@shared
def var_columns(x: Any) -> Any:
    """In one reading: sums of the distances to the first row, and of their squares."""
    rows, columns = x.shape
    blocks = (rows + BLOCK - 1) // BLOCK
    totals = np.empty((blocks, 2, columns), x.dtype)
    for block in prange(blocks):
        total, squares = totals[block, 0], totals[block, 1]
        total[:] = f32(0)
        squares[:] = f32(0)
        for i in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
            for j in range(columns):
                away = x[i, j] - x[0, j]
                total[j] += away
                squares[j] += away * away
    out = np.empty(columns, x.dtype)
    for j in range(columns):
        total = squares = f32(0)
        for block in range(blocks):
            total += totals[block, 0, j]
            squares += totals[block, 1, j]
        mean = total / f32(rows)
        out[j] = squares / f32(rows) - mean * mean
    return out


# ---- programs on arrays ------------------------------------------------------------------------


@fast
def normal_cdf(x: Any) -> Any:
    k = 1 / (1 + 0.2316419 * abs(x))
    series = 0.319381530 + k * (
        -0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))
    )
    tail = exp64(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)) * series * k
    return tail if x < 0 else 1 - tail


@shared
def black_scholes(spot: Any, strike: Any, years: Any) -> Any:
    rate, volatility = 0.02, 0.3
    out = np.empty_like(spot)
    for i in prange(spot.size):
        deviation = volatility * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + 0.5 * volatility**2) * years[i]) / deviation
        discounted = strike[i] * exp64(-rate * years[i])
        out[i] = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - deviation)
    return out


@fast
def one_step(a: Any, b: Any, r: Any, s: Any, found: Any) -> Any:
    a2, b2 = a * a, b * b
    found += 1.0 if a2 + b2 <= 4.0 else 0.0
    return a2 - b2 + r, 2 * a * b + s, found


@shared
def mandelbrot(real: Any, imaginary: Any, steps: int) -> Any:
    flat_real, flat_imaginary = real.ravel(), imaginary.ravel()
    out = np.zeros(flat_real.size)
    for block in prange((out.size + LANES - 1) // LANES):
        first, last = block * LANES, min((block + 1) * LANES, out.size)
        r, s, found = flat_real[first:last], flat_imaginary[first:last], out[first:last]
        a, b = r.copy(), s.copy()
        for _ in range(steps // 5):  # five steps at a time stay in registers
            for j in range(a.size):
                c, d, n = one_step(a[j], b[j], r[j], s[j], found[j])
                c, d, n = one_step(c, d, r[j], s[j], n)
                c, d, n = one_step(c, d, r[j], s[j], n)
                c, d, n = one_step(c, d, r[j], s[j], n)
                a[j], b[j], found[j] = one_step(c, d, r[j], s[j], n)
        for _ in range(steps % 5):
            for j in range(a.size):
                a[j], b[j], found[j] = one_step(a[j], b[j], r[j], s[j], found[j])
    return out.reshape(real.shape)


@shared
def heat(u: Any) -> Any:
    out = np.empty((u.shape[0] - 2, u.shape[1] - 2), u.dtype)
    for i in prange(out.shape[0]):
        above, here, below, row = u[i], u[i + 1], u[i + 2], out[i]
        for j in range(row.size):
            around = below[j + 1] + above[j + 1] + here[j + 2] + here[j]
            row[j] = here[j + 1] + f32(0.1) * (around - f32(4) * here[j + 1])
    return out


@shared
def pairwise(x: Any, y: Any) -> Any:
    columns = np.ascontiguousarray(y.T)
    out = np.empty((x.shape[0], y.shape[0]))
    for i in prange(x.shape[0]):
        row = out[i]
        a, b, c = x[i, 0], x[i, 1], x[i, 2]
        for j in range(row.size):
            d, e, f = a - columns[0, j], b - columns[1, j], c - columns[2, j]
            row[j] = math.sqrt(d * d + e * e + f * f)
    return out
