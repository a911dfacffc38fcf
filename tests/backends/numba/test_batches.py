"""Products of batches of matrices, however their operands lie, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigraph as mg
from minigraph.backends.numba import segments

RANDOM = np.random.default_rng(5)
SIZES = st.sampled_from((0, 1, 1, 2, 3, 5, 9, 17))


def in_python(function, *arguments):
    """What runs in Python of a function that was compiled for these arguments."""
    compiled = mg.jit(function, backend="numba", strict=True)
    compiled(*arguments)
    return [line for line in compiled.explain().splitlines() if "in Python" in line]


def check(function, *arguments):
    found = mg.jit(function, backend="numba", strict=True)(*arguments)
    expected = mg.jit(function, backend="interpret")(*arguments)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    scale = 1e-4 if found.dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found, expected, rtol=scale, atol=scale)


def as_it_is(x):
    return x


def transposed(x):
    return x.swapaxes(-1, -2) if x.ndim > 1 else x


def backwards(x):
    return x[..., ::-1]


def every_second(x):
    return x[..., ::2, :] if x.ndim > 1 else x[::2]


def axes_turned(x):
    return x.transpose(tuple(range(1, x.ndim)) + (0,))


VIEWS = (as_it_is, as_it_is, transposed, transposed, backwards, every_second, axes_turned)


@st.composite
def products(draw):
    dtype = draw(st.sampled_from(("f4", "f8")))
    batch = draw(st.lists(SIZES, max_size=2))
    rows, inner, columns = draw(SIZES), draw(SIZES), draw(SIZES)
    left = [*batch, rows, inner] if draw(st.booleans()) else [rows, inner]
    right = [*batch, inner, columns] if draw(st.booleans()) else [inner, columns]
    for shape, matrix in ((left, 2), (right, 2)):
        for axis in range(len(shape) - matrix):
            if draw(st.integers(0, 3)) == 0:
                shape[axis] = 1
    if draw(st.integers(0, 5)) == 0:
        left = [inner]
    elif draw(st.integers(0, 5)) == 0:
        right = [inner]
    views = draw(st.sampled_from(VIEWS)), draw(st.sampled_from(VIEWS))
    arrays = []
    for shape, view in zip((left, right), views, strict=True):
        arrays.append(stored_for(view, shape, dtype))
    return arrays, views, draw(st.integers(0, 3))


def stored_for(view, shape, dtype):
    """An array that looks like `shape` through the view."""
    if view is transposed and len(shape) > 1:
        shape = [*shape[:-2], shape[-1], shape[-2]]
    elif view is every_second:
        shape = list(shape)
        axis = -2 if len(shape) > 1 else -1
        shape[axis] = max(0, 2 * shape[axis] - 1)
    elif view is axes_turned:
        shape = [shape[-1], *shape[:-1]]
    array = RANDOM.normal(size=shape).astype(dtype)
    if array.size and RANDOM.integers(4) == 0:
        array.flat[RANDOM.integers(array.size)] = np.nan
    return array


@settings(max_examples=8)
@given(products())
def test_products_of_batches_are_those_of_the_interpreter(case):
    check_product(case)


@pytest.mark.slow
@settings(max_examples=40)
@given(products())
def test_many_products_of_batches_are_those_of_the_interpreter(case):
    check_product(case)


def check_product(case):
    (a, b), (view_a, view_b), after = case

    def function(x, y):
        result = view_a(x) @ view_b(y)
        if after == 1:
            return np.maximum(result + 1, 0)
        return np.tanh(result) if after == 2 else result.sum() if after == 3 else result

    if after == 3 and np.isnan(a).any() | np.isnan(b).any():
        a, b = np.nan_to_num(a), np.nan_to_num(b)
    check(function, a, b)


def test_a_layer_on_sequences_is_one_product_with_its_epilogue():
    def layer(x, w, b):
        return np.maximum(x @ w.T + b, 0)

    x, w, b = (RANDOM.normal(size=s).astype("f4") for s in ((3, 5, 7), (4, 7), (4,)))
    check(layer, x, w, b)
    assert in_python(layer, x, w, b) == []
    compiled = mg.jit(layer, backend="numba")
    compiled(x, w, b)
    assert "form='epilogue'" in str(compiled.graph())


def attention(q, k, v):
    heads = (a.reshape(2, 7, 4, 8).transpose(0, 2, 1, 3) for a in (q, k, v))
    q, k, v = heads
    scores = q @ k.swapaxes(-1, -2) / 8**0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 7, 32)


def test_attention_runs_in_one_segment_with_the_layer_after_it():
    def block(q, k, v, w):
        return attention(q, k, v) @ w

    arrays = [RANDOM.normal(size=(2, 7, 32)).astype("f4") for _ in range(3)]
    w = RANDOM.normal(size=(32, 5)).astype("f4")
    check(block, *arrays, w)
    assert in_python(block, *arrays, w) == []


def test_what_a_segment_copied_into_shape_is_a_fresh_result_each_time():
    def turned(x):
        moved = np.tanh(x).transpose(1, 0, 2).reshape(6, 4)
        return moved, np.exp(moved)

    compiled = mg.jit(turned, backend="numba", strict=True, static_alloc=True)
    x = RANDOM.normal(size=(2, 3, 4))
    first, _ = compiled(x)
    kept = first.copy()
    compiled(x + 1)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_allclose(kept, turned(x)[0], rtol=1e-12)


@pytest.mark.parametrize("form", ["cc", "cf", "fc", "ff"])
def test_large_products_in_threads(form, monkeypatch):
    rows, inner, columns = 230, 210, 220
    assert rows * inner * columns > segments.TILED
    a, b = RANDOM.normal(size=(rows, inner)), RANDOM.normal(size=(inner, columns))
    monkeypatch.setattr(segments, "PARALLEL_WORK", 1)
    left, right = (view == "f" for view in form)

    def function(x, y):
        return (x.T if left else x) @ (y.T if right else y) + 1

    x, y = (np.ascontiguousarray(m.T if turned else m) for m, turned in ((a, left), (b, right)))
    check(function, x, y)


def test_batches_of_any_size():
    def function(x, y, w):
        return np.maximum(x @ y @ w, 0)

    w = RANDOM.normal(size=(3, 4))
    sizes = {"x": {0: "n"}, "y": {0: "n"}}
    compiled = mg.jit(function, backend="numba", strict=True, dynamic=sizes)
    for count in (3, 1, 8):
        x, y = RANDOM.normal(size=(count, 5, 2)), RANDOM.normal(size=(count, 2, 3))
        np.testing.assert_allclose(compiled(x, y, w), function(x, y, w), rtol=1e-10)
    assert len(compiled.cache_info()) == 1
