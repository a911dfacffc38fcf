"""Arguments of every layout and kind: right results in fresh arrays, and no copy without need."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import describe, fresh

import minigraph as mg
from minigraph.backends.numba import runtime
from minigraph.errors import DtypeError

RANDOM = np.random.default_rng(3)
MATRIX = RANDOM.normal(size=(6, 10))
WEIGHTS = RANDOM.normal(size=(10, 4))


def unaligned(x):
    memory = np.zeros(x.nbytes + 1, np.uint8)
    made = memory[1:].view(x.dtype).reshape(x.shape)
    made[...] = x
    assert not made.flags.aligned
    return made


def read_only(x):
    made = x.copy("K")
    made.flags.writeable = False
    return made


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every other": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "rows backwards": lambda x: x[::-1].copy()[::-1],
    "columns backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "both backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "one row stretched": lambda x: np.broadcast_to(x[:1], x.shape),
    "one element stretched": lambda x: np.broadcast_to(x[0, 0], x.shape),
    "part of a wider one": lambda x: np.pad(x, 3)[3:-3, 3:-3],
    "overlapping windows": lambda x: np.lib.stride_tricks.as_strided(x, x.shape, (16, 8)),
    "unaligned": unaligned,
    "read-only": read_only,
    "Fortran, read-only": lambda x: read_only(np.asfortranarray(x)),
}


def everything(x):
    y = np.sqrt(np.abs(x)) * 2 + 1
    return y, y.max(axis=0), (x > 0).sum(axis=1), x.min(), y[::-2, 1:], y.T


def sums(x, w):
    return (x * 2).sum(axis=1), x.mean(axis=0), (x + 1).sum(), np.maximum(x @ w, 0), x.T @ x


JITTED, SUMMED = mg.jit(everything), mg.jit(sums)


@pytest.fixture(autouse=True)
def _silent_numbers():
    with np.errstate(all="ignore"):
        yield


def check(jitted, *args, close=False):
    """A call gives what Python gives, leaves its arguments alone, and returns fresh memory."""
    expected = jitted.function(*fresh(args))
    before = describe(args)
    found = jitted(*args)
    assert describe(args) == before
    if close:
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    else:
        assert describe(found) == describe(expected)
    arrays = [item for item in np.atleast_1d(np.array(found, object)).flat]
    for array in arrays:
        assert not any(np.may_share_memory(array, argument) for argument in args)
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    x = LAYOUTS[layout](MATRIX)
    check(JITTED, x)
    check(SUMMED, x, WEIGHTS, close=True)
    check(SUMMED, MATRIX, LAYOUTS[layout](WEIGHTS), close=True)


def test_one_entry_serves_all_that_are_in_c_order_and_one_all_others():
    jitted = mg.jit(everything)
    for layout in LAYOUTS.values():
        jitted(layout(MATRIX))
    assert len(jitted.cache_info()) == 2


def line(x):
    return np.sqrt(np.abs(x)) * 2, (x + 1).max()


LINES: dict[str, Callable[[Any], Any]] = {
    "every other": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "stretched": lambda x: np.broadcast_to(x[:1], x.shape),
    "a column": lambda x: np.repeat(x[:, None], 3, axis=1)[:, 1],
    "unaligned": unaligned,
    "read-only": read_only,
}


def test_lines_of_any_stride_run_in_the_entry_of_a_contiguous_one():
    jitted = mg.jit(line)
    x = RANDOM.normal(size=50)
    check(jitted, x)
    for layout in LINES.values():
        check(jitted, layout(x))
    assert len(jitted.cache_info()) == 1


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 3)])
def test_arrays_of_no_elements(shape):
    def nothing(x):
        y = np.sqrt(x) + 1
        return y, y.sum(), y.sum(axis=0), y.sum(axis=-1), (y > 0).any(), y.prod(axis=0), y[::-1]

    check(mg.jit(nothing, strict=True), np.ones(shape))


@pytest.mark.parametrize(("rows", "inner", "columns"), [(0, 2, 2), (3, 0, 2), (2, 2, 0), (1, 0, 1)])
def test_products_of_no_elements(rows, inner, columns):
    def product(x, w):
        return x @ w, np.maximum(x @ w + 1, 0)

    check(mg.jit(product, strict=True), np.ones((rows, inner)), np.ones((inner, columns)))


@pytest.mark.parametrize(
    "x", [np.array(2.0), np.float64(2.0), np.array(-3.0, np.float32), np.float32(-3), np.int8(100)]
)
def test_arrays_without_axes_and_numpy_scalars(x):
    def scalars(x, y):
        return x * 2 + 1, np.abs(x), y + x, x + x, np.sqrt(np.abs(x)) * 1.5, y * (x > 0)

    check(mg.jit(scalars, strict=True), x, np.arange(5, dtype=np.float32))
    check(mg.jit(scalars, strict=True), x, x)


def test_the_byte_order_of_another_machine_is_refused():
    with pytest.raises(DtypeError, match="byte order") as caught:
        mg.jit(line)(np.arange(4.0).astype(">f8"))
    assert "newbyteorder" in caught.value.instead


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", ["matrix", "masked", "memmap", "own"])
def test_subclasses_of_arrays_are_refused(kind, tmp_path):
    class Own(np.ndarray):
        pass

    x = {
        "matrix": lambda: np.matrix(MATRIX),
        "masked": lambda: np.ma.array(MATRIX, mask=MATRIX > 0),
        "memmap": lambda: np.memmap(tmp_path / "data", shape=(6, 10), dtype=float, mode="w+"),
        "own": lambda: MATRIX.view(Own),
    }[kind]()
    with pytest.raises(DtypeError, match="only plain arrays"):
        JITTED(x)
    with pytest.raises(DtypeError, match="only plain arrays"):  # after a plain one, too
        JITTED(MATRIX) and JITTED(x)


def test_a_file_in_memory_runs_as_an_array(tmp_path):
    mapped = np.memmap(tmp_path / "data", shape=(6, 10), dtype=float, mode="w+")
    mapped[...] = MATRIX
    mapped.flush()
    check(JITTED, np.asarray(np.memmap(tmp_path / "data", shape=(6, 10), dtype=float, mode="r")))


# ---------------------------------------------------------------------------- copies


@pytest.fixture
def copies(monkeypatch):
    """The numbers of arrays that were copied, one for each call that copies."""
    made: list[int] = []
    dense = runtime.dense

    def counting(*arrays):
        copied = dense(*arrays)
        made.append(sum(a is not b for a, b in zip(arrays, copied, strict=True)))
        return copied

    monkeypatch.setattr(runtime, "dense", counting)
    return made


def test_read_only_arrays_are_not_copied(copies):
    jitted = mg.jit(lambda x, y: (np.sqrt(x) + y) @ y)
    x, y = np.ones((4, 4)), np.ones((4, 4))
    for one in (x, read_only(x)):
        for other in (y, read_only(y)):
            jitted(one, other)
    assert copies == []


def test_only_what_is_not_in_c_order_is_copied(copies):
    jitted = mg.jit(lambda x, y: np.sqrt(x) + y)
    x = np.ones((4, 4))
    jitted(np.asfortranarray(x), read_only(x))
    jitted(np.asfortranarray(x), x)
    assert copies == [1, 1]


@pytest.mark.parametrize("order", ["C", "F"])
def test_frozen_arrays_are_put_in_order_once(copies, order):
    frozen = mg.freeze(np.asarray(WEIGHTS, order=order))
    transposed = mg.freeze(WEIGHTS.T.copy()).T
    jitted = mg.jit(lambda x: np.maximum((x @ frozen) * 2 + (x @ transposed), 0))
    jitted(MATRIX)
    del copies[:]  # those of loading
    np.testing.assert_allclose(jitted(MATRIX), np.maximum(3 * (MATRIX @ WEIGHTS), 0))
    assert copies == []


def test_a_frozen_array_that_is_returned_is_a_copy():
    frozen = mg.freeze(np.asfortranarray(WEIGHTS))
    found = mg.jit(lambda x: (np.sqrt(np.abs(frozen)) * x, frozen))(2.0)[1]
    assert found.strides == frozen.strides
    found[...] = 0
    assert np.array_equal(frozen, WEIGHTS)


# ---------------------------------------------------------------------------- results


def test_results_are_never_written_again():
    def chain(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        y = e / e.sum(axis=1, keepdims=True)
        return y, y @ y.T, np.cumsum(y * 2, axis=1) + 1, y.sum()

    jitted = mg.jit(chain)
    kept = [jitted(MATRIX + shift) for shift in range(4)]
    for shift, found in enumerate(kept):
        for one, other in zip(found, chain(MATRIX + shift), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    arrays = [item for found in kept for item in found if isinstance(item, np.ndarray)]
    for number, array in enumerate(arrays):
        assert array.flags.writeable
        assert not any(np.may_share_memory(array, other) for other in arrays[:number])


@pytest.mark.parametrize("backend", ["numba", "python"])
def test_neither_arguments_nor_results_are_kept_alive(backend):
    jitted = mg.jit(lambda x, w: (np.sqrt(x @ w) * 2, np.cumsum(x, axis=0) + 1), backend=backend)
    for order in "CF":
        x, w = (np.ones((4, 4), order=order) for _ in range(2))
        held = [weakref.ref(array) for array in (x, w, *jitted(x, w), *jitted(x, w))]
        del x, w
        gc.collect()
        assert [array() for array in held] == [None] * 6


def test_arguments_that_are_returned_are_copies():
    def views(x):
        return x, x.T, x[1:], np.sqrt(np.abs(x)).T

    check(mg.jit(views), MATRIX)


def test_the_same_array_twice():
    jitted = mg.jit(lambda x, y: (x * 2 + y, x @ y.T, (x - y).sum()))
    x = MATRIX.copy()
    assert describe(jitted(x, x)[::2]) == describe(jitted.function(x, x)[::2])
    np.testing.assert_allclose(jitted(x, x)[1], x @ x.T)
    np.testing.assert_allclose(jitted(x, x[::-1])[1], x @ x[::-1].T)
    np.testing.assert_allclose(jitted(x[:4], x[2:])[1], x[:4] @ x[2:].T)


# ---------------------------------------------------------------------------- written arguments


def step(x, y):
    x[...] = np.sqrt(np.abs(x)) * 2 + y
    x[1:] += y[:-1]
    return x * 3, y + 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_written_arguments(layout):
    jitted = mg.jit(step)
    ours, theirs = (LAYOUTS[layout](MATRIX.copy()) for _ in range(2))
    if not ours.flags.writeable:
        with pytest.raises(ValueError, match="read-only"):
            jitted(ours, MATRIX)
        assert describe(ours) == describe(theirs)
        return
    for _ in range(2):
        assert describe(jitted(ours, MATRIX)) == describe(step(theirs, MATRIX))
        assert describe(ours) == describe(theirs)


def test_a_written_line_of_any_stride():
    jitted = mg.jit(step)
    y = RANDOM.normal(size=20)
    for make in (np.copy, LINES["every other"], LINES["backwards"], LINES["a column"]):
        ours, theirs = make(y), make(y)
        assert describe(jitted(ours, y)) == describe(step(theirs, y))
        assert describe(ours) == describe(theirs)
    assert len(jitted.cache_info()) == 1


@pytest.mark.parametrize(
    "pair",
    [
        lambda x: (x, x),
        lambda x: (x, x[::-1]),
        lambda x: (x[1:], x[:-1]),
        lambda x: (x[:-1], x[1:]),
        lambda x: (x[::2], x[1::2]),
    ],
)
def test_written_arguments_that_overlap(pair):
    jitted = mg.jit(step)
    memory = RANDOM.normal(size=20)
    jitted(memory.copy(), memory.copy())
    ours, theirs = memory.copy(), memory.copy()
    assert describe(jitted(*pair(ours))) == describe(step(*pair(theirs)))
    assert describe(ours) == describe(theirs)
