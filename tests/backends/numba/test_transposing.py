"""Matrices are copied in the other order, square by square; no size is too small or uneven."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import minigraph as mg
from minigraph.backends.numba.runtime import _HELPERS
from minigraph.backends.numba.transposing import transpose

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
            memory = np.full(rows * columns + 128, np.nan, dtype)
            out = memory[64 : 64 + rows * columns].reshape(rows, columns)
            transposed(source, rows, rows + more, out)
            np.testing.assert_array_equal(out, source[:, :rows].T)
            assert np.isnan(memory[:64]).all() and np.isnan(memory[64 + rows * columns :]).all()


@pytest.mark.skipif(not hasattr(mmap, "PROT_READ"), reason="this system has no guard pages")
def test_nothing_is_read_beyond_the_source():
    """It ends where a page ends, and the next one cannot be read."""
    page = mmap.PAGESIZE
    code = f"""
import ctypes, mmap, sys
import numpy as np
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_transposing import transposed
memory = mmap.mmap(-1, {4 * page})
whole = np.frombuffer(memory, np.float32)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + {3 * page}), {page}, 0) == 0
for columns, rows in ((16, 16), (17, 33), (7, 40), (31, 18)):
    end = {3 * page} // 4
    source = whole[end - columns * rows : end].reshape(columns, rows)
    out = np.empty((rows, columns), np.float32)
    transposed(source, rows, rows, out)
print("read")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "read\n", (done.returncode, done.stderr)


WINDOWS = {
    "a part": lambda w: w[3:, 5:].T,
    "backwards": lambda w: w[::-1].T,
    "each second row": lambda w: w[::2].T,
    "one row again and again": lambda w: np.broadcast_to(w[0], w.shape).T,
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
def test_windows_of_a_matrix_are_operands(window: str, static: bool, threads: int):
    """Whole numbers, so that the order of sums does not matter."""
    rng = np.random.default_rng(0)
    w = rng.integers(-9, 9, size=(90, 100)).astype("float32")
    view = WINDOWS[window]
    x = rng.integers(-9, 9, size=(200, len(view(w)))).astype("float32")
    f = mg.jit(lambda x, w: x @ view(w), backend="numba", static_shape=static, num_threads=threads)
    np.testing.assert_array_equal(f(x, w), x @ view(w))
    assert "transpose(" in f.source("numba")


def test_one_program_for_all_sizes():
    rng = np.random.default_rng(0)
    sizes = {"x": mg.Spec((200, "k"), "float32"), "w": mg.Spec(("n", "k"), "float32")}
    f = mg.jit(lambda x, w: x @ w.T, backend="numba", dynamic=sizes)
    for n, k in ((16, 16), (15, 40), (1, 3), (33, 17), (90, 16)):
        x, w = (rng.integers(-9, 9, size=size).astype("float32") for size in ((200, k), (n, k)))
        np.testing.assert_array_equal(f(x, w), x @ w.T)
    assert "transpose(" in f.source("numba") and len(f.cache_info()) == 1


def test_what_is_too_large_for_tiles_is_left_to_blas():
    x, w = np.ones((64, 1024), np.float32), np.ones((1100, 1024), np.float32)
    f = mg.jit(lambda x, w: x @ w.T, backend="numba")
    np.testing.assert_array_equal(f(x, w), np.full((64, 1100), 1024, np.float32))
    assert "product_cf(" in f.source("numba")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_transposed_second_operand_of_many_rows_is_copied(dtype: str):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-9, 9, size=(rows, 260)).astype(dtype) for rows in (300, 270))
    f = mg.jit(lambda x, w: np.maximum(x @ w.T, 0), backend="numba")
    np.testing.assert_array_equal(f(x, w), np.maximum(x @ w.T, 0))
    assert "transpose(" in f.source("numba")
