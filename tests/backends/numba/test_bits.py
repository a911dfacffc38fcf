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


@pytest.mark.parametrize("shape", [(2, 3), (2, 8), (2, 9), (3, 1), (70, 3), (3, 5000), (5000, 3)])
def test_sums_of_negative_zeros_are_zero(shape: tuple[int, ...]) -> None:
    def f(x):
        return x.sum(axis=1), x.mean(axis=0), x.sum(), x.prod(axis=1)

    same(f, np.full(shape, -0.0))


@pytest.mark.parametrize("shape", [(1, 0, 0), (3, 0), (0, 3)])
def test_extremes_of_no_elements(shape: tuple[int, ...]) -> None:
    """An empty result of them is none where NumPy raises."""
    for axis in range(len(shape)):

        def f(x, axis=axis):
            return x.min(axis=axis)

        try:
            f(np.zeros(shape))
        except ValueError:
            with pytest.raises(ValueError):
                mg.jit(f, backend="numba", strict=True)(np.zeros(shape))
        else:
            same(f, np.zeros(shape))


def test_the_deviation_of_a_python_number() -> None:
    same(lambda x: (np.std(x), np.var(x)), 3)


@pytest.mark.parametrize("axis", [0, 1])
def test_products_of_float32_are_as_exact_as_numpys(axis: int) -> None:
    x = np.full((4096, 4096), 1.0001, np.float32)[:: 1 if axis == 0 else 1024]
    x = x[:, ::1024] if axis == 0 else x
    found = mg.jit(lambda x: (x * 1).prod(axis=axis), backend="numba", strict=True)(x)
    np.testing.assert_allclose(found, x.astype(np.float64).prod(axis=axis), rtol=1e-6)


def test_what_numpy_made_anew_is_written_in_place() -> None:
    def f(x):
        return np.concatenate([x, x]) + 1, np.cumsum(x, axis=1) * 2, np.concatenate([x, x])

    jitted = same(f, np.arange(12.0).reshape(3, 4))
    assert jitted.source().count("np.empty") == 1  # one of them is returned as well


@pytest.mark.parametrize("shape", [(200, 130), (64, 64), (3, 129), (2, 70, 131)])
def test_transposes_are_read_in_tiles(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    jitted = same(lambda x, y: x.swapaxes(-1, -2) * 2 + y, x, x.swapaxes(-1, -2).copy())
    assert "for b in range(0, " in jitted.source("numba")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_a_dtype_are_numpys(dtype: type) -> None:
    x, w, b = (
        np.arange(n, dtype=np.float32).reshape(s) for n, s in ((6, (2, 3)), (12, (3, 4)), (4, 4))
    )
    same(lambda x, w, b: np.maximum(np.matmul(x, w, dtype=dtype) + b, 0), x, w, b)
