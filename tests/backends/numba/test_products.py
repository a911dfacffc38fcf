"""Products of matrices: every way to compute them, and where their results are written."""

from __future__ import annotations

from itertools import product

import numba
import numpy as np
import pytest

import minigraph as mg
from minigraph.backends.numba import intrinsics, products, segments

DATA = intrinsics.HELPERS["data"]
RANDOM = np.random.default_rng(3)
ROWS, INNER, COLUMNS = (1, 2, 3, 4, 5, 8, 9, 17), (1, 7, 16, 17, 130), (1, 3, 4, 15, 17, 48, 97)


def caller(helper):
    """The product as a function of arrays as they lie in memory."""

    @numba.njit
    def call(rows, inner, columns, a, b, out):
        helper(rows, inner, columns, DATA(a), DATA(b), DATA(out))

    return call


CALLS = {form: caller(products.HELPERS[f"product_{form}"]) for form in ("cc", "cf", "fc", "ff")}


def lying(array, form):
    return np.ascontiguousarray(array if form == "c" else array.T)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("form", CALLS)
def test_products_of_every_size_are_right_and_stay_in_their_place(form, dtype):
    for rows, inner, columns in product(ROWS, INNER, COLUMNS):
        a, b = (RANDOM.normal(size=s).astype(dtype) for s in ((rows, inner), (inner, columns)))
        memory = np.full(rows * columns + 128, 7, dtype)
        out = memory[64:-64].reshape(rows, columns)
        CALLS[form](rows, inner, columns, lying(a, form[0]), lying(b, form[1]), out)
        exact = a.astype(np.longdouble) @ b
        bound = np.abs(a).astype(np.longdouble) @ np.abs(b) * np.finfo(dtype).eps * (inner + 1)
        assert (np.abs(out - exact) <= bound).all(), (rows, inner, columns)
        assert (memory[:64] == 7).all() and (memory[-64:] == 7).all()


@pytest.mark.parametrize("form", CALLS)
def test_infinities_nan_and_what_is_larger_than_tiles(form, monkeypatch):
    size = 210
    assert size**3 > segments.TILED
    for rows in (5, size):
        a, b = RANDOM.normal(size=(rows, size)), RANDOM.normal(size=(size, size))
        a[1, 2], a[2, 3], b[4, 5] = np.nan, np.inf, -np.inf
        out = np.empty((rows, size))
        CALLS[form](rows, size, size, lying(a, form[0]), lying(b, form[1]), out)
        np.testing.assert_allclose(out, a @ b, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------------- parameters


def layouts():
    w, b = RANDOM.normal(size=(12, 20)).astype("f4"), RANDOM.normal(size=12).astype("f4")
    yield w, b
    yield np.asfortranarray(w), np.repeat(b, 2)[::2]
    yield np.repeat(w, 3, 1)[:, ::3], b[::-1].copy()[::-1]


def training(w, b, rate):
    def step(x, y):
        z = x @ w.T + b
        h = np.maximum(z, 0)
        g = (h - y) * (z > 0) / x.shape[0]
        w[...] -= rate * (g.T @ x)
        b[...] -= rate * g.sum(axis=0)
        rate[...] *= 0.9
        return ((h - y) ** 2).mean()

    return step


@pytest.mark.parametrize("backend", ["numba", "python"])
@pytest.mark.parametrize("case", range(3))
def test_parameters_are_updated_in_place(backend, case):
    x, y = RANDOM.normal(size=(9, 20)).astype("f4"), RANDOM.normal(size=(9, 12)).astype("f4")
    w, b = list(layouts())[case]
    rate = np.array(0.5, "f4")
    own = [array.copy() for array in (w, b, rate)]
    step, eager = mg.jit(training(w, b, rate), backend=backend), training(*own)
    for _ in range(5):
        np.testing.assert_allclose(step(x, y), eager(x, y), rtol=1e-5)
    for found, expected in zip((w, b, rate), own, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if case == 0:  # the rate is read after its new value was computed
        assert "w[...] = v" not in step.source()
        assert "b[...] = v" not in step.source()


def test_a_batch_of_any_size_updates_the_same_parameters():
    w, b = next(layouts())
    rate = np.array(0.5, "f4")
    own = [array.copy() for array in (w, b, rate)]
    step = mg.jit(training(w, b, rate), dynamic={"x": {0: "batch"}, "y": {0: "batch"}})
    eager = training(*own)
    for count in (9, 1, 33):
        x, y = (RANDOM.normal(size=(count, n)).astype("f4") for n in (20, 12))
        np.testing.assert_allclose(step(x, y), eager(x, y), rtol=1e-5)
        np.testing.assert_allclose(w, own[0], rtol=1e-5, atol=1e-6)
    assert len(step.cache_info()) == 1


def test_an_epilogue_of_what_no_product_can_read_as_it_lies_runs_all_the_same():
    def backward(y, w):
        return np.broadcast_to(y.sum(), (1, 2)) @ w * (1 - np.tanh(w[:1]) ** 2)

    y, w = np.float32([[1.0, 2.0]]), np.float32([[1.0, -2.0], [0.5, 3.0]])
    compiled = mg.jit(backward, backend="numba", strict=True)
    np.testing.assert_allclose(compiled(y, w), backward(y, w), rtol=1e-6)
