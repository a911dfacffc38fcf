"""Writes: the caller sees what NumPy would have done, through every alias and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import same_as_eager

import minigraph as mg
from minigraph.errors import DtypeError, ShapeError, WriteError

A = np.arange(12.0).reshape(3, 4)


def item(x: Any) -> Any:
    x[1, 2] = 7
    return x.sum()


def in_place(x: Any) -> Any:
    x += 1
    x *= 2
    return x


def through_a_view(x: Any) -> Any:
    y = x[1]
    y[::2] = -1
    z = x.T
    z[0] += 10
    return y, z


def through_a_view_of_a_view(x: Any) -> Any:
    v = x[1:, ::2].T[::-1]
    v[0, 0] = 100
    w = v[1]
    w[:] = w * 2
    return v, w, x


def base_after_view(x: Any) -> Any:
    v = x[:, 0]
    x[...] = 3
    v2 = v * 2
    x[0, 0] = 9
    return v, v2


def copies_stay(x: Any) -> Any:
    a = x.copy()
    b = x + 0
    c = x[[0, 1]]
    d = np.array(x)
    e = x.flatten()
    x[:] = 0
    return a, b, c, d, e


def reshaped(x: Any) -> Any:
    y = x.reshape(-1)
    y[5] = 50
    r = x.ravel()
    r[0] = 60
    s = np.expand_dims(x, 0)
    s[0, 1] = 4
    return y, x


def out_argument(x: Any) -> Any:
    t = np.empty(x.shape)
    np.add(x, 1, out=t)
    np.multiply(t, 2, out=x)
    np.exp(t, out=t)
    return t


def where_and_out(x: Any) -> Any:
    t = np.zeros(x.shape)
    np.sqrt(x, out=t, where=x > 3)
    return t


def mask(x: Any) -> Any:
    x[x > 5] = 0
    x[~(x > 2)] -= 1
    return x


def integer_arrays(x: Any) -> Any:
    x[[0, 2], [1, 3]] = [10, 20]
    x[[0, 0]] += 1
    np.add.at(x, ([1, 1], 0), 5)
    return x


def swap(x: Any) -> Any:
    t = x[0].copy()
    x[0] = x[1]
    x[1] = t
    x[0], x[2] = x[2], x[0].copy()


def own_view(x: Any) -> Any:
    s = x[:3, :3]
    s -= s.T
    x[0] += x[0, ::-1]


def write_then_print(x: Any) -> Any:
    print(x[0, 0])
    x[0, 0] = 5
    print(x[0, 0], x.sum())
    return x[0]


def fill_sort_copyto(x: Any) -> Any:
    y = np.empty(4)
    y.fill(2)
    np.copyto(x[0], y[::-1])
    x[1].sort()
    np.copyto(x[2], 8, where=x[2] > 9)
    return y


def loop(x: Any) -> Any:
    for i in range(3):
        x[i] = x[i - 1] * 2
        for j in range(2):
            x[i, j] -= i + j
    return x


def parts(x: Any) -> Any:
    a, b = np.split(x, 2, axis=1)
    a += 1
    for row in x:
        row[0] = 3
    return b


def local_only(x: Any) -> Any:
    y = x * 1.0
    y[0] = 0
    return y


@pytest.mark.parametrize(
    "function",
    [
        item, in_place, through_a_view, through_a_view_of_a_view, base_after_view, copies_stay,
        reshaped, out_argument, where_and_out, mask, integer_arrays, swap, own_view,
        write_then_print, fill_sort_copyto, loop, parts, local_only,
    ],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_as_eagerly(function: Any) -> None:
    same_as_eager(function, A.copy())
    same_as_eager(function, A.astype(np.float32))


LAYOUTS = {
    "fortran": np.asfortranarray(A),
    "transposed": np.arange(12.0).reshape(4, 3).T,
    "strided": np.arange(48.0).reshape(6, 8)[::2, ::2],
    "reversed": A[::-1, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "function", [item, in_place, through_a_view, base_after_view, copies_stay, mask, loop]
)
def test_as_eagerly_in_every_memory_layout(function: Any, layout: str) -> None:
    expected, got = LAYOUTS[layout].copy(order="K"), LAYOUTS[layout].copy(order="K")
    first, second = function(expected), mg.jit(function)(got)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_equal(second, first)


def test_whether_reshape_is_a_view_joins_the_key() -> None:
    def f(x: Any) -> Any:
        y = x.reshape(-1)
        y[0] = 99
        return x[0, 0]

    jitted = mg.jit(f)
    for make in (np.array, np.asfortranarray, np.array):
        x = make(A)
        assert jitted(x) == f(make(A))
        assert x[0, 0] == (0.0 if make is np.asfortranarray else 99.0)
    assert len(jitted.cache_info()) == 2
    assert "not in C order" in jitted.cache_info().retraces[0]


def test_an_unknown_layout_is_an_error_not_a_guess() -> None:
    def f(x: Any) -> Any:
        y = (x * 2).reshape(-1)
        y[0] = 1
        return y

    same_as_eager(f, A)
    with pytest.raises(WriteError, match="layout"):
        mg.jit(f)(np.asfortranarray(A))


def test_writes_that_numpy_refuses() -> None:
    def read_only(x: Any) -> Any:
        x[0] = 1

    frozen = A.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        mg.jit(read_only)(frozen)

    def broadcast(x: Any) -> Any:
        np.broadcast_to(x, (2, 3, 4))[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        mg.jit(broadcast)(A.copy())

    def cast(x: Any) -> Any:
        x += 0.5

    with pytest.raises(DtypeError, match="int64"):
        mg.jit(cast)(np.arange(3))

    def grow(x: Any, y: Any) -> Any:
        x += y

    with pytest.raises(ShapeError):
        mg.jit(grow)(np.ones(3), np.ones((2, 3)))


def test_overlapping_arguments_run_eagerly_and_are_counted() -> None:
    def f(x: Any, y: Any) -> Any:
        x -= 1
        return x * y

    jitted = mg.jit(f)
    base = np.arange(1.0, 7.0)
    np.testing.assert_array_equal(jitted(base[:3], base[3:]), [0.0, 5.0, 12.0])
    assert jitted.cache_info().eager_calls == 0
    base = np.arange(1.0, 7.0)
    np.testing.assert_array_equal(jitted(base[:3], base[1:4]), [0.0, 2.0, 8.0])
    same = np.full(3, 3.0)
    np.testing.assert_array_equal(jitted(same, same), [4.0, 4.0, 4.0])
    assert jitted.cache_info().eager_calls == 2 and len(jitted.cache_info()) == 1


def test_outputs_are_fresh_arrays() -> None:
    def f(x: Any) -> Any:
        return x, x[0], x.T, np.zeros(2)

    jitted = mg.jit(f)
    x = A.copy()
    first, second = jitted(x), jitted(x)
    for index, one in enumerate(first):
        assert not np.shares_memory(one, x)
        assert not np.shares_memory(one, second[index])
        assert one.flags.writeable
        for other in first[index + 1 :]:
            assert not np.shares_memory(one, other)
    first[3][0] = 5
    assert jitted(x)[3][0] == 0


def test_an_array_reached_by_name_is_read_and_written_by_reference() -> None:
    state = np.zeros(3)

    def f(x: Any) -> Any:
        state[...] = state + x
        return state * 2

    jitted = mg.jit(f)
    for expected in (2.0, 4.0):
        np.testing.assert_array_equal(jitted(np.ones(3)), np.full(3, expected))
    state[:] = 10
    np.testing.assert_array_equal(jitted(np.ones(3)), np.full(3, 22.0))
    np.testing.assert_array_equal(state, np.full(3, 11.0))
    assert len(jitted.cache_info()) == 1


def test_a_write_stays_in_order_with_what_raises() -> None:
    def f(x: Any, i: Any) -> Any:
        x[0] = 5
        y = np.take(x, i)
        x[1] = 6
        return y

    same_as_eager(f, np.zeros(3), np.array([7]))
    same_as_eager(f, np.zeros(3), np.array([2]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_last_bits_and_order_of_results_in_every_layout(layout: str) -> None:
    def f(x: Any, y: Any) -> Any:
        a = np.exp(x)
        b = a * y
        return b, b.sum(), (b + 1).mean(axis=0), b.T

    rng = np.random.default_rng(0)
    y = rng.normal(size=(3, 4))
    x = LAYOUTS[layout]
    jitted = mg.jit(f)
    for _ in range(2):
        for got, want in zip(jitted(x, y), f(x, y), strict=True):
            np.testing.assert_array_equal(got, want)
    assert jitted(x, y)[0].strides == f(x, y)[0].strides
    assert len(jitted.cache_info()) == 1
    jitted(np.ascontiguousarray(x), y)
    assert len(jitted.cache_info()) == 2
    compiled = mg.compile(mg.trace(f, np.zeros((3, 4)), np.zeros((3, 4))))
    for got, want in zip(compiled(x, y), f(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_result_that_may_be_a_view_is_not_written() -> None:
    def through(x: Any) -> Any:
        np.einsum("ij->ji", x)[0, 1] = 9
        return x

    def behind(x: Any) -> Any:
        y = np.einsum("ii->i", x)
        x[0, 0] = 9
        return y

    for function in (through, behind):
        with pytest.raises(WriteError, match="einsum"):
            mg.jit(function)(np.zeros((2, 2)))
    same_as_eager(lambda x: np.einsum("ij->ji", x), A)
