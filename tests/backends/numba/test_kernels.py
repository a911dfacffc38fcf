"""Each form of kernel, and its limits: one after the other, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import outcome

import minigraph as mg

RANDOM = np.random.default_rng(11)
ROW = RANDOM.normal(size=7).astype(np.float32)
MATRIX = RANDOM.normal(size=(6, 7)).astype(np.float32)
CUBE = RANDOM.normal(size=(3, 4, 5))
LARGE = RANDOM.normal(size=3 * 65536 + 17)
INTS = RANDOM.integers(-100, 100, size=(6, 7))
EDGES = np.array([[0.0, -0.0, np.nan, np.inf], [-np.inf, 1e308, 5e-324, -1.0]])


def compiled(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return mg.jit(function, backend="numba", strict=True, **options).lower(*arguments)


def forms(function: Callable[..., Any], *arguments: Any, **options: Any) -> list[str]:
    """The form of each kernel, and the names of other nodes that compute something."""
    graph = compiled(function, *arguments, **options).graph()
    return [
        node.attrs["form"] if node.op.name == "kernel" else node.op.name
        for node in graph.nodes
        if not node.op.view and node.op.name != "const"
    ]


def same_bits(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    jitted = mg.jit(function, backend="numba", strict=True, math="libm", **options)
    expected = outcome(function, arguments, {})
    assert outcome(jitted, arguments, {}) == expected
    assert outcome(jitted, arguments, {}) == expected


def close(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """As exact as NumPy: sums are added in another order, so those near zero differ more."""
    jitted = mg.jit(function, backend="numba", strict=True, **options)
    with np.errstate(all="ignore"):
        found, expected = jitted(*arguments), function(*arguments)
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    floats = [np.abs(x[np.isfinite(x)]) for x in map(np.asarray, arguments) if x.dtype.kind == "f"]
    scale = max([1.0, *(float(x.max() * np.sqrt(x.size)) for x in floats if x.size)])
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        epsilon = np.finfo(other.dtype).eps if other.dtype.kind == "f" else 0
        np.testing.assert_allclose(one, other, rtol=20 * epsilon, atol=scale * epsilon)


def texts(function: Callable[..., Any], *arguments: Any, **options: Any) -> list[str]:
    """All text that is compiled."""
    segments = compiled(function, *arguments, **options).program.segments.values()
    return [text for s in segments for text in (s.text, *(f.text for f in s.functions.values()))]


# ---- map


def broadcast(x, y):
    return x[:, None] * y + x[:, None], y[None] - y.max(), np.where(y > 0, x[:, None], 2.5)


def slices(x):
    return x[1:, :-1] - x[:-1, 1:], x[::-1, ::2] * 2, x[2] + x[:, :1], x[..., None] + x[:, None, :]


def stencil(x):
    inside = x[1:-1, 1:-1]
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return inside + 0.1 * (around - 4 * inside)


def transposes(x, y):
    return x.T * 2, x.T + y, np.sqrt(np.abs(y.T - x)), (x + 1).T * y, np.swapaxes(x, 0, 1)[::-1] / y


def test_map_with_stretched_operands() -> None:
    same_bits(broadcast, ROW[:6], MATRIX)
    assert set(forms(broadcast, ROW[:6], MATRIX)) == {"map", "rows"}


def test_map_of_slices() -> None:
    same_bits(slices, MATRIX)
    same_bits(stencil, MATRIX)
    assert forms(stencil, MATRIX) == ["map"]


def test_map_of_transposes() -> None:
    same_bits(transposes, MATRIX, np.ascontiguousarray(MATRIX.T))
    same_bits(lambda x: (np.transpose(x, (2, 0, 1)) + 1, np.transpose(x, (1, 0, 2)) * 2), CUBE)


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (1, 1), (1, 5), (5, 1), (2, 0, 3)])
def test_extents_of_zero_and_one(shape: tuple[int, ...]) -> None:
    x = RANDOM.normal(size=shape)
    same_bits(lambda x: (x * 2 + 1, x.T - 1, x > 0, x[..., None] + x[..., None, :]), x)
    close(lambda x: (x.sum(), x.sum(axis=0), x.sum(axis=-1, keepdims=True) * x, (x > 0).any()), x)


def test_many_outputs_of_several_dtypes() -> None:
    def many(x, n):
        found = [x * k for k in range(1, 14)] + [x > k for k in range(3)]
        return *found, n + 1, n.astype(np.int8), n > 5, n / 3, (n % 7).astype(np.uint16)

    same_bits(many, MATRIX, INTS)


@pytest.mark.slow
def test_more_buffers_than_are_told_apart() -> None:
    def many(x):
        return *(x * k for k in range(40)), x.max(axis=0), *((x + k).min(axis=0) for k in range(9))

    same_bits(many, MATRIX)
    close(lambda x: tuple((x * k).sum() for k in range(1, 40)), MATRIX)


def test_columns_of_many_reductions_fit_on_small_stacks() -> None:
    """A thread may have 512 KB."""

    def tops(x):
        return sum((x * k).max(axis=0) for k in range(1, 48))

    x = RANDOM.normal(size=(3, 1500))
    (kernel, *_) = texts(tops, x)[1:]
    sizes = [int(size) for size in re.findall(r"stack\(float64, (\d+)\)", kernel)]
    assert len(sizes) >= 40 and 8 * sum(sizes) <= 256 * 1024
    same_bits(tops, x)


@pytest.mark.slow
def test_a_kernel_of_the_most_nodes_and_more() -> None:
    def chain(length):
        def run(x):
            for k in range(length):
                x = x * 1.5 - k if k % 2 else np.abs(x) + 0.25
            return x

        return run

    for length in (133, 134, 300):
        same_bits(chain(length), ROW)
    assert len(forms(chain(300), ROW)) > 1


def test_bools_are_bytes_in_memory() -> None:
    def logic(x, b):
        both = (x > 0) & b
        return both, ~both, both.any(axis=1), both.all(axis=0), both.sum(axis=0), both * x, b.max()

    same_bits(logic, MATRIX, INTS > 10)
    odd = np.array([[2, 254, 1], [128, 2, 4]], np.uint8)
    same_bits(lambda x: (x.all(axis=0), x.all(axis=1), x.any(), x.all(), x.astype(bool)), odd)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_ints_wrap_around(dtype: str) -> None:
    limits = np.iinfo(dtype)
    numbers = [limits.max, limits.min, limits.max - 1, limits.max // 2 + 1, 0, 1, 7]
    x = np.array(numbers, dtype)

    def wrap(x):
        y = x * x
        return x + x, x - 3, y, -x, y < 0, x + x == 0, x + 1 > x, x**3, np.square(x) // 3

    same_bits(wrap, x)
    same_bits(lambda x: (x.sum(), x.prod(), np.sum(x * x), x.sum(dtype=x.dtype)), x)
    same_bits(lambda x: (x.sum(axis=0), x.prod(axis=0)), np.stack([x, x[::-1]]))


def test_numbers_of_python() -> None:
    def mixed(x, n, scale, flag, count):
        return (
            x * scale + count,
            n * count,
            np.where(flag, x, scale),
            n > scale,
            n + flag,
            scale * n,
        )

    same_bits(mixed, MATRIX, INTS, 0.5, True, 3)
    same_bits(mixed, EDGES, INTS[:2, :4], -0.0, False, -(2**31))


# ---- reductions


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def layer_norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5), mean


def standardised(x):
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-3)


def mixed_levels(x):
    top = x.max(axis=0)
    shifted = np.exp(x - top)
    total = shifted.sum(axis=0)
    return top, shifted, total, shifted / total, (shifted / total > 0.5).any(axis=0)


@pytest.mark.parametrize(
    ("function", "form"),
    [
        (softmax, "rows"),
        (log_softmax, "rows"),
        (layer_norm, "rows"),
        (standardised, "columns"),
        (mixed_levels, "columns"),
    ],
)
@pytest.mark.parametrize("shape", [(1, 1), (6, 7), (7, 1), (1, 1030), (9, 1025), (2050, 3)])
def test_several_levels(function: Callable[..., Any], form: str, shape: tuple[int, int]) -> None:
    x = RANDOM.normal(size=shape)
    close(function, x)
    assert set(forms(function, x)) <= {form, "map"}


@pytest.mark.parametrize(
    ("axis", "keepdims"),
    [
        (0, True),
        (1, False),
        (2, True),
        ((0, 1), True),
        ((1, 2), False),
        ((0, 2), True),
        (None, True),
    ],
)
def test_reduced_axes(axis: Any, keepdims: bool) -> None:
    def reduce(x):
        options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
        y = x * 2
        return y.sum(**options), x.max(**options), (y > 1).any(**options), x.mean(**options) + 1

    close(reduce, CUBE)
    close(reduce, CUBE.astype(np.float32))
    same_bits(
        lambda x: (x.sum(axis=axis, keepdims=keepdims), x.min(axis=axis)), INTS.reshape(2, 3, 7)
    )


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("size", [0, 1, 4097, 65536, 3 * 65536 + 17])
def test_reductions_of_everything(size: int, dtype: str) -> None:
    x = (np.abs(LARGE[:size]) * 10).astype(dtype)

    def reduce(x):
        total = x.sum()
        return (
            total,
            total * 2,
            (x * 2).mean(),
            (x > 9).any(),
            (x >= 0).all(),
            x.sum() + (x / 2).sum(),
        )

    if size:
        close(reduce, x)
        same_bits(lambda x: (x.max(), x.min(), (x + 1).max() * 2), x)
    else:
        close(lambda x: (x.sum(), (x > 9).any(), (x >= 0).all(), x.prod()), x)


@pytest.mark.parametrize("shape", [(300, 700), (3, 70000), (70000, 3), (5, 1, 40001)])
def test_reductions_of_everything_over_several_axes(shape: tuple[int, ...]) -> None:
    x = RANDOM.normal(size=shape)
    close(lambda x: (x.sum(), (x[..., ::2] + 1).sum(), x.max(), x[::-1].T.min()), x)


def test_sums_keep_infinities_and_nan() -> None:
    def reduce(x):
        return x.sum(axis=0), x.sum(axis=1), x.sum(), x.mean(axis=0), x.max(axis=0), x.min(axis=1)

    for x in (EDGES, np.abs(EDGES), np.array([[np.inf, np.inf], [1e308, 1e308]])):
        close(reduce, x)
    close(reduce, EDGES.astype(np.float32))


def test_reductions_of_views() -> None:
    def reduce(x):
        return (
            x[1:, ::2].sum(axis=0),
            x.T[::-1].sum(axis=1),
            x[:, None, :].max(axis=1) + 1,
            x[2].mean(),
        )

    close(reduce, MATRIX)
    close(lambda x: (np.broadcast_to(x, (4, 7)).sum(axis=0), x[None].sum(axis=0) + x), ROW)


@pytest.mark.parametrize("axis", [0, 1, (0, 1), (0, 2), 2])
def test_sums_along_what_lies_side_by_side_in_memory(axis: Any) -> None:
    x = RANDOM.random(size=(3, 2, 20001)).astype(np.float32)

    def reduce(x):
        y = x.T
        total = y.sum(axis=axis)
        return (
            total,
            (y - 0.5).mean(axis=axis),
            y.max(axis=axis) + total,
            x[..., ::3].sum(axis=axis),
        )

    close(reduce, x)
    close(lambda x: x.sum(axis=0, keepdims=True) * 2, x.reshape(-1, 1, 1))


# ---- products


def test_products_with_epilogues() -> None:
    def layer(x, w, b):
        return np.maximum(x @ w + b, 0)

    def layers(x, w, b):
        h = np.tanh(layer(x, w, b))
        return h @ w.T, h.sum(axis=1), (h @ w.T)[0] * 2, x @ w

    weights, bias = RANDOM.normal(size=(7, 4)).astype(np.float32), ROW[:4]
    for rows in (1, 6):
        close(layer, MATRIX[:rows], weights, bias)
        close(layers, MATRIX[:rows], weights, bias)
    close(layer, ROW, weights, bias)
    close(lambda x, w: (x @ w) * 2 > 1, MATRIX, weights)
    assert forms(layer, MATRIX, weights, bias) == ["epilogue"]


# ---- names, text


def test_what_is_written_over_is_read_by_the_same_index() -> None:
    """Else LLVM cannot tell that no element is needed after it is stored, and does one by one."""
    weights = RANDOM.normal(size=(7, 4)).astype(np.float32)
    text = texts(lambda x, w, b: x @ w + b, MATRIX, weights, ROW[:4])[-1]
    loaded = re.search(r"load0\((v\d), (\w+) \+ j", text)
    stored = re.search(r"store0\((v\d), (\w+) \+ j", text)
    assert loaded and stored and loaded[1] == stored[1]
    first, second = (re.search(rf"{found[2]} = (.+)", text) for found in (loaded, stored))
    assert first and second and first[1] == second[1]


def test_named_dimensions() -> None:
    def network(x, w):
        h = np.maximum(x @ w, 0)
        return (
            softmax(h),
            x.sum(axis=0),
            x.mean(),
            x[1:] - x[:-1],
            x.T * 2,
            standardised(x),
            x.max(),
        )

    jitted = mg.jit(network, backend="numba", strict=True, dynamic={"x": {0: "batch"}})
    weights = RANDOM.normal(size=(7, 4))
    for rows in (2, 5, 1000, 3):
        x = RANDOM.normal(size=(rows, 7))
        for found, expected in zip(jitted(x, weights), network(x, weights), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert len(jitted.cache_info()) == 1


@pytest.mark.parametrize(
    "function", [softmax, layer_norm, standardised, stencil, mixed_levels, lambda x: x.sum() * 2]
)
def test_another_shape_is_the_same_text(function: Callable[..., Any]) -> None:
    first = texts(function, np.ones((50, 60)))
    assert first == texts(function, np.ones((70, 40)))
    shared = texts(function, np.ones((3000, 2000)))  # by threads
    assert shared == texts(function, np.ones((2000, 3001)))
    assert shared[1:] == first[1:]
