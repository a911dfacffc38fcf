"""Matrices are copied in the other order, square by square; no size is too small or uneven."""

from __future__ import annotations

import numpy as np
import pytest

numba = pytest.importorskip("numba", reason="Numba is not installed")

import minigraph as mg  # noqa: E402
from minigraph.backends.numba.runtime import _HELPERS  # noqa: E402
from minigraph.backends.numba.transposing import transpose  # noqa: E402

SIDES = (0, 1, 7, 8, 15, 16, 17, 33, 64, 100)
data = _HELPERS["data"]


@numba.njit
def transposed(a, rows, step, out):
    transpose(rows, out.shape[1], step, data(a), data(out))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("more", [0, 3])
def test_each_element_is_at_its_place_and_nothing_else_is_written(dtype: str, more: int):
    """Also where rows of the source are farther apart than they are long."""
    rng = np.random.default_rng(0)
    for rows in SIDES:
        for columns in SIDES:
            source = rng.normal(size=(columns, rows + more)).astype(dtype)
            memory = np.full(rows * columns + 64, np.nan, dtype)
            out = memory[: rows * columns].reshape(rows, columns)
            transposed(source, rows, rows + more, out)
            np.testing.assert_array_equal(out, source[:, :rows].T)
            assert np.isnan(memory[rows * columns :]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_transposed_second_operand_of_many_rows_is_copied(dtype: str):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(300, 260)).astype(dtype), rng.normal(size=(270, 260)).astype(dtype)
    f = mg.jit(lambda x, w: np.maximum(x @ w.T, 0), backend="numba")
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(f(x, w), np.maximum(x @ w.T, 0), rtol=tolerance, atol=tolerance)
    assert "transpose(" in f.source("numba")
