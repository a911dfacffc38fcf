"""Small differences that fusion must not make: signs of zero, ints of any size, mixed dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import describe

import minigraph as mg


def same(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    jitted = mg.jit(function, backend="numba", strict=True, **options)
    assert describe(jitted(*arguments)) == describe(function(*arguments))
    return jitted


def test_clip_to_filled_arrays_keeps_their_zeros() -> None:
    """NumPy returns another zero where a bound is an array than where it is a number."""
    x = np.array([-0.0] * 35)
    same(lambda x: np.clip(x, np.zeros(35), np.ones(35)), x)
    same(lambda x: np.clip(x, 0.0, 1.0), x)


@pytest.mark.parametrize("n", [2**70, -(2**70), 2**63, 1])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8])
def test_python_ints_of_any_size_are_compared(n: int, dtype: type) -> None:
    same(lambda x, n: (x < n, n == x), np.arange(3, dtype=dtype), n)


def test_products_of_two_dtypes() -> None:
    x, w, b = np.ones((2, 4)), np.full((4, 4), 0.5, np.float32), np.arange(4.0)
    same(lambda x, w, b: np.maximum(x @ w + b, 0), x, w, b)


def test_kernels_of_one_text_and_two_dtypes() -> None:
    x = np.arange(24.0).reshape(4, 6)[:, ::2]

    def f(x, y):
        return x.reshape(-1)[::2].sum(), y.ravel()[3]

    same(f, x, x.astype(np.float32)[:, ::-1])


def test_exact_powers_are_fused_with_libm() -> None:
    x = np.array([-0.0, 3.0, np.inf, np.nan])
    jitted = same(lambda x: x**2 + 1.0, x, math="libm")
    assert [node.op.name for node in jitted.graph().nodes] == ["kernel"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("take", [lambda x: x, lambda x: x[:, ::-1], lambda x: x[:, 1::3]])
def test_sums_are_as_exact_as_numpys(dtype: type, take: Callable[..., Any]) -> None:
    """Against the exact sum: at most four times NumPy's error and 4 ULP."""
    x = np.random.default_rng(5).random((3, 100_003)).astype(dtype)

    def f(x):
        return take(x).sum(axis=1), take(x).mean(), take(x.T).sum(axis=0)

    jitted = mg.jit(f, backend="numba", strict=True)
    wide = [np.asarray(each) for each in f(x.astype(np.longdouble))]
    for found, numpys, exact in zip(jitted(x), f(x), wide, strict=True):
        ulp = np.spacing(np.abs(exact).astype(dtype))
        error, least = np.abs(found - exact) / ulp, np.abs(numpys - exact) / ulp
        assert (error <= 4 * least + 4).all(), (error, least)
