"""Calls as people write them: what is recorded gives what NumPy gives, bit for bit.

Each line is one call; `np` is NumPy itself and then the recording one.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from ops.nodes import same
from ops.recording import NUMPY, Box, unboxed

from minigraph.ops import RECORDED, add_rows
from minigraph.trace.composites import COMPOSITES

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CALLS = """
np.sum(x)
np.sum(x, 1)
np.sum(x, axis=(0, -1), keepdims=True)
np.sum(x, axis=())
np.sum(n, dtype=np.float32)
np.sum(x, axis=0, where=x > 0, initial=3)
np.sum(b)
np.sum(s)
np.sum([1, 2, 3])
np.sum(3)
x.sum()
x.sum(0)
x.sum(axis=-1, keepdims=True)
np.prod(n, 0)
x.prod()
np.mean(n)
np.mean(h)
np.mean(x, 0, keepdims=True)
np.mean(x, where=x > 0)
x.mean(axis=1)
np.max(x)
np.amax(x, 0)
np.max(n, axis=1, initial=2)
np.max(n, axis=1, initial=2, where=n > 0)
x.max()
np.min(x, (0, 1))
np.amin(x, 1)
x.min(0)
np.ptp(x, 0)
np.var(x)
np.var(x, 0, ddof=1)
np.var(x, correction=1)
x.var(1)
np.std(x, axis=1, keepdims=True)
x.std()
np.any(x > 1, 0)
(x > 1).any()
np.all(x > -9)
(x > 1).all(1)
np.argmax(x)
np.argmax(x, 0)
np.argmax(v, keepdims=True)
x.argmax(axis=-1)
np.argmin(x, 1)
x.argmin()
np.nanargmax(x, 0)
np.nanargmin(x)
np.count_nonzero(n)
np.count_nonzero(n, 0)
np.count_nonzero(n, keepdims=True)
np.median(x)
np.median(x, axis=(0, 1), keepdims=True)
np.nanmedian(x, 0)
np.nansum(x, 0)
np.nanprod(x)
np.nanmax(x, 1)
np.nanmin(x)
np.nanmean(x, 0)
np.nanvar(x)
np.nanstd(x, 1)
np.average(x)
np.average(x, 0)
np.average(x, weights=np.ones((3, 4)))
np.average(x, 1, weights=[1, 2, 3, 4], keepdims=True)
np.quantile(x, 0.3)
np.quantile(x, [0.3, 0.5], 0)
np.percentile(x, 30, axis=1, keepdims=True)
np.nanquantile(x, 0.5, method="lower")
np.nanpercentile(x, 50)
np.linalg.norm(x)
np.linalg.norm(x, axis=0)
np.linalg.norm(x, 1, 0, True)
np.linalg.norm(x, np.inf)
np.linalg.norm(x, 2)
np.linalg.norm(x, "nuc")
np.linalg.norm(v, 0)
np.linalg.vector_norm(x)
np.linalg.vector_norm(x, axis=1, ord=1)
np.linalg.vector_norm(x, keepdims=True)
np.linalg.matrix_norm(t, keepdims=True)
np.cumsum(x)
np.cumsum(n, 1)
np.cumsum(b)
x.cumsum(0)
np.cumprod(x, -1)
n.cumprod(axis=0, dtype=np.float64)
np.nancumsum(x)
np.nancumprod(x, 0)
np.maximum.accumulate(x, 1)
np.minimum.accumulate(x)
np.cumulative_sum(v, include_initial=True)
np.cumulative_prod(x, axis=1)
np.transpose(t)
np.transpose(t, (1, 0, 2))
t.transpose()
t.transpose(1, 0, 2)
t.transpose((2, 0, 1))
t.transpose(None)
t.T
t.mT
np.permute_dims(t, (0, 2, 1))
np.swapaxes(t, 0, -1)
t.swapaxes(1, 2)
np.moveaxis(t, 0, -1)
np.moveaxis(t, (0, 1), (-1, 0))
np.rollaxis(t, 2)
np.rollaxis(t, 0, 3)
np.matrix_transpose(t)
np.linalg.matrix_transpose(t)
np.reshape(x, (4, 3))
np.reshape(x, -1)
np.reshape(t, (2, -1))
x.reshape(2, 6)
x.reshape((2, -1))
x.reshape(-1)
x.reshape([4, 3])
x.reshape(4, 3, order="F")
x.reshape(2, -1, order="F")
np.ravel(x)
np.ravel(x, "F")
x.ravel()
x.flatten()
x.flatten("F")
np.expand_dims(x, 0)
np.expand_dims(x, (0, -1))
np.squeeze(x[None])
np.squeeze(x[None, :, None], 0)
x[None].squeeze(axis=(0,))
np.broadcast_to(v, (2, 4))
np.broadcast_to(s, (2,))
np.diagonal(x)
np.diagonal(t, 1, 0, 2)
x.diagonal(-1)
np.real(c)
np.real(x)
c.real
c.imag
np.imag(c)
np.imag(x)
x.astype(np.float32)
x.astype("i4")
np.astype(n, np.complex64)
x.copy()
np.copy(v)
np.flip(x)
np.flip(x, 0)
np.flip(t, (0, -1))
np.fliplr(x)
np.flipud(x)
np.rot90(x)
np.rot90(x, 2)
np.rot90(x, 3)
np.rot90(t, -1, (1, 2))
np.rot90(x, 4)
np.atleast_1d(s)
np.atleast_1d(x, 3)
np.atleast_2d(v)
np.atleast_2d(s, t)
np.atleast_3d(v)
np.atleast_3d(x, s, t)
np.concatenate([x, x])
np.concatenate((x, n), 1)
np.concatenate([x, v], None)
np.concatenate([x, x], axis=-1, dtype=np.float32)
np.concat([v, n[0]])
np.concatenate(t)
np.stack([v, v])
np.stack((x, n), -1)
np.stack([v, v], axis=1)
np.stack(x)
np.vstack([v, x])
np.hstack([v, v])
np.hstack([x, x])
np.dstack([v, v])
np.dstack([x, x])
np.column_stack([v, v])
np.column_stack([x.T, v])
np.append(x, v)
np.append(x, x, 1)
np.split(x, 3)
np.split(x, 2, axis=1)
np.split(v, [1, 3])
np.array_split(v, 3)
np.array_split(x, [1], 1)
np.array_split(v, 7)
np.hsplit(x, 2)
np.hsplit(v, 2)
np.vsplit(x, 3)
np.dsplit(t, [1])
np.unstack(x)
np.unstack(t, axis=-1)
np.pad(x, 1)
np.pad(x, (1, 2), "edge")
np.pad(x, ((1, 0), (0, 2)), mode="reflect")
np.pad(x, ((1,), (2,)), constant_values=7)
np.pad(x, 1, constant_values=((1, 2), (3, 4)))
np.pad(v, 2, "wrap")
np.pad(v, 2, "linear_ramp", end_values=1.5)
np.pad(v, 2, "mean", stat_length=2)
np.pad(v, 2, "symmetric", reflect_type="odd")
np.tile(x, 2)
np.tile(v, (2, 1))
np.tile(x, [2])
np.repeat(x, 2)
np.repeat(x, 2, axis=0)
np.repeat(v, [1, 0, 2, 1])
x.repeat(3, 1)
np.repeat(s, 2, axis=0)
np.take(s, 0, axis=-1)
np.argmax(s, axis=0)
np.max(s, axis=-1)
s.sum(axis=0)
np.roll(x, 1)
np.roll(x, (1, -1), (0, 1))
np.roll(x, 2, axis=1)
np.roll(x, 2, (0, 1))
x[0]
x[-1, 2]
x[1:, ::2]
x[..., None]
x[::-1, -2::-1]
t[1, ..., 0]
x[i]
x[i, j]
x[:, i]
t[i, :, j]
t[:, i, j]
t[i, 0]
t[0, :, i]
t[i, None, j]
t[..., i]
x[[0, 2]]
x[[0, 2], 1:]
x[np.array([True, False, True])]
x[np.array([[0, 1], [2, 0]])]
x[i[0], j]
np.take(x, i)
np.take(x, i, 0)
np.take(x, [[0, 1]], axis=-1)
np.take(x, 99, mode="clip")
x.take(i, axis=1, mode="wrap")
np.take_along_axis(x, np.argsort(x, 1), 1)
np.take_along_axis(x, i, None)
np.take_along_axis(x, np.argmax(x, 0, keepdims=True), axis=0)
np.choose(i + 1, [v[:3], v[1:], 2.0, 1])
np.choose(i + 5, [v[:3], v[1:]], mode="wrap")
j.choose([v[0], v[1], v[2], v[3]])
np.searchsorted(np.sort(v), x)
np.searchsorted(v, 0.5, side="right", sorter=np.argsort(v))
np.sort(v).searchsorted(x)
np.digitize(x, [-1.0, 0.0, 1.0])
np.digitize(x, np.array([1.0, 0.0]), right=True)
np.diagflat(v)
np.diagflat(x, 1)
np.diag(v, -1)
np.diag(x)
np.diag(x, 1)
np.tril(x)
np.triu(x, 1)
np.triu(t, -1)
np.tril(v)
np.where(x > 0, x, 0)
np.where(b, n, 2.5)
np.where(b, 1, 2)
np.clip(x, 0, 1)
np.clip(n, -3, 2)
np.clip(x, None, v)
np.clip(x, v, None)
np.clip(x, a_min=0.5, a_max=1)
x.clip(0)
x.clip(max=1)
n.clip(0, 3)
np.round(x)
np.round(x, 1)
np.around(x, decimals=2)
np.round(n, -1)
x.round(1)
np.select([x > 1, x > 0], [x, n], 7)
np.select([x > 1, n > 0], [1, v])
np.select([b], [1])
np.isclose(x, x + 1e-9)
np.isclose(n, 2, rtol=0.5)
np.isclose(x, [np.nan, 1, 2, 3], equal_nan=True)
np.isclose(1, x)
np.allclose(x, x)
np.allclose(x, n, atol=1)
np.array_equal(x, x)
np.array_equal(x, v)
np.array_equal(x, x * np.nan, equal_nan=True)
np.array_equiv(x, x[None])
np.nan_to_num(x / 0)
np.nan_to_num(h / 0, nan=1, posinf=5)
np.nan_to_num(n)
np.isposinf(x / 0)
np.isneginf(x / 0)
np.isreal(c)
np.isreal(x)
np.iscomplex(c)
np.iscomplex(x)
np.angle(c)
np.angle(x, deg=True)
np.isin(n, [1, 2])
np.isin(n, i, invert=True)
np.sinc(x)
np.diff(x)
np.diff(x, 2, 0)
np.diff(v, prepend=0, append=v[:2])
np.diff(b)
np.trapezoid(x)
np.trapezoid(x, dx=0.5, axis=0)
np.trapezoid(x, [0, 1, 3, 4])
np.trapezoid(x, x * 2, axis=0)
np.cross(x[:, :3], x[:, 1:])
np.cross(x, x[::-1], axis=0)
np.kron(x, n)
np.kron(v, x)
np.kron(x, 2)
np.trace(x)
np.trace(t, 1, 0, 2)
np.trace(n, dtype=np.float32)
x.trace()
np.linalg.trace(t)
np.linalg.diagonal(t, offset=1)
np.matmul(x, x.T)
x @ v
v @ v
np.vecdot(x, v)
np.dot(x, x.T)
x.dot(v)
np.dot(2, x)
np.inner(x, v)
np.outer(v, x)
np.vdot(c, c)
np.vdot(x, x)
np.tensordot(x, x.T, 1)
np.tensordot(x, t, ([0], [0]))
np.tensordot(v, v, 0)
np.tensordot(x, n, axes=2)
np.einsum("ij,kj->ik", x, x)
np.einsum("ij", x)
np.einsum("ji", x)
np.einsum("i,i", v, v)
np.einsum("...i,i->...", t[..., 0], v)
np.einsum(x, [0, 1], v, [1], [0])
np.einsum("ij,jk,kl->il", x, x.T, x, optimize=True)
np.einsum("ij,j->i", n, n[0], dtype=np.float32)
np.linalg.matmul(x, x.T)
np.linalg.outer(v, v)
np.linalg.tensordot(x, x.T, axes=1)
np.linalg.cross(x[:, :3], x[:, 1:])
np.linalg.inv(q)
np.linalg.det(q)
np.linalg.slogdet(q)
np.linalg.solve(q, v[:3])
np.linalg.solve(q, x)
np.linalg.cholesky(q)
np.linalg.eigh(q)
np.linalg.eigh(q, "U")
np.linalg.eigvalsh(q)
np.linalg.qr(x)
np.linalg.qr(x, mode="r")
np.linalg.svd(x)
np.linalg.svd(x, full_matrices=False)
np.linalg.svd(x, compute_uv=False)
np.linalg.pinv(x)
np.linalg.matrix_power(q, 3)
np.zeros(3)
np.zeros((2, 3), np.int32)
np.ones((2,), dtype="f4")
np.full((2, 3), 7)
np.full((2, 3), v[:3], np.float32)
np.full(2, s)
np.zeros_like(x)
np.ones_like(n)
np.ones_like(x, dtype=bool, shape=(2,))
np.full_like(n, 2.7)
np.full_like(x, 1)
np.zeros_like(3)
np.arange(5)
np.arange(1, 7, 2)
np.arange(0.0, 1.0, 0.25)
np.arange(3, dtype=np.float32)
np.arange(5, 0, -1)
np.arange(np.int16(3))
np.arange(np.float32(3))
np.linspace(0, 1, 5)
np.linspace(v, 2.0, num=3, axis=1)
np.linspace(0, 1, 4, endpoint=False, dtype=np.float32)
np.logspace(0, 2, 3)
np.logspace(0, 2, 3, base=2)
np.geomspace(1, 16, 5)
np.eye(3)
np.eye(3, 4, 1, np.int8)
np.identity(2)
np.identity(2, bool)
np.tri(3)
np.tri(3, 4, -1, int)
np.meshgrid(v, v[:2])
np.meshgrid(v, v[:2], indexing="ij", sparse=True)
np.meshgrid(v)
np.indices((2, 3))
np.indices((2, 3), sparse=True)
np.broadcast_arrays(x, v, 1)
np.sort(x)
np.sort(x, axis=0)
np.sort(x, None, kind="stable")
np.argsort(x)
np.argsort(n, 0, "stable")
x.argsort(axis=None)
np.partition(v, 2)
np.argpartition(v, (0, 2))
v.argpartition(1)
np.lexsort((v, v))
np.lexsort(x)
np.interp(x, [0.0, 1.0], [3.0, 4.0])
np.interp(0.5, v[:2] * 0 + [0, 1], v[:2], left=0)
np.convolve(v, v)
np.convolve(v, v[:2], "same")
np.correlate(v, v[:2])
np.correlate(v, v[:2], mode="full")
np.add(x, n)
np.power(n, 2)
np.fix(x)
np.maximum(x, 0)
np.conj(c)
c.conj()
c.conjugate()
""".strip().splitlines()

WRITES = """
np.put_along_axis(x, np.argmax(x, 1, keepdims=True), 9, 1)
np.put_along_axis(x, np.argsort(x, 0)[:1], v, axis=0)
np.fill_diagonal(x, 5)
np.fill_diagonal(q, 2.5)
np.putmask(x, x > 0, 1)
np.putmask(x, x > 0, n)
x.sort(0)
v.partition(2)
x.__setitem__(slice(1, 3), 4)
x.__setitem__(i, v)
x.__setitem__((slice(None), i), 1.5)
x.__setitem__(x > 0, 0)
x.__setitem__((..., -1), i)
np.nan_to_num(x, copy=False, nan=2.0)
""".strip().splitlines()


def operands() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3, 4))
    return {
        "x": x,
        "n": rng.integers(-9, 9, (3, 4)).astype(np.int8),
        "h": rng.normal(size=(3, 4)).astype(np.float16),
        "b": rng.integers(0, 2, (3, 4)).astype(bool),
        "c": x + 1j * rng.normal(size=(3, 4)),
        "v": rng.normal(size=4),
        "s": np.array(2.5),
        "t": rng.normal(size=(3, 4, 5)),
        "i": np.array([0, -1, 2]),
        "j": np.array([1, 3, 0]),
        "q": x @ x.T + 4 * np.eye(3),
    }


def boxes(values: dict[str, Any]) -> dict[str, Any]:
    return {name: Box(value) for name, value in values.items()}


def evaluate(line: str, names: dict[str, Any], module: Any) -> Any:
    with np.errstate(all="ignore"):
        return eval(line, {"np": module}, names)


@pytest.mark.parametrize("line", CALLS)
def test_a_call_gives_what_numpy_gives(line: str):
    try:
        expected = evaluate(line, operands(), np)
    except AttributeError as error:
        pytest.skip(f"not in NumPy {np.__version__}: {error}")
    found = evaluate(line, boxes(operands()), Recording())
    found = tuple(map(unboxed, found)) if isinstance(found, tuple | list) else unboxed(found)
    assert same(found, expected), (found, expected)


class Recording:
    """The recording namespace, with NumPy's constants and dtypes."""

    def __getattr__(self, name: str) -> Any:
        thing = getattr(np, name, None)
        if isinstance(thing, type | float) or name == "array":
            return thing
        if isinstance(thing, np.ufunc):
            return Ufunc(name)
        return getattr(NUMPY, name)


class Ufunc:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(NUMPY, self.name)(*args, **kwargs)

    def __getattr__(self, method: str) -> Any:
        return getattr(NUMPY, f"{self.name}.{method}")


@pytest.mark.parametrize("line", WRITES)
def test_a_write_leaves_what_numpy_leaves(line: str):
    expected, found = operands(), boxes(operands())
    evaluate(line, expected, np)
    evaluate(line, found, Recording())
    for name, value in expected.items():
        assert same(found[name].value, value), name


def test_inputs_are_left_alone():
    for line in CALLS:
        values = operands()
        before = copy.deepcopy(values)
        try:
            evaluate(line, boxes(values), Recording())
        except AttributeError:
            continue
        assert all(same(values[name], before[name]) for name in values), line


def test_every_recorded_name_is_called():
    """A name without a call here is not known to be bound as NumPy binds it."""
    text = "\n".join([*CALLS, *WRITES])
    called = lambda name: f"np.{name}(" in text  # noqa: E731
    missing = []
    for name in (*RECORDED, *COMPOSITES):
        if name.startswith("ndarray."):
            method = name.removeprefix("ndarray.")
            if f".{method}(" not in text and f".{method}\n" not in text:
                missing.append(name)
        elif not called(name) and not isinstance(getattr(np, name, None), np.ufunc):
            missing.append(name)
    checked_elsewhere = {"random.default_rng", "add.at", "ndarray.__pow__", "empty", "empty_like"}
    older = {"row_stack", "trapz"}
    newer = {name for name in missing if not name.startswith("ndarray.") and absent(name)}
    assert set(missing) - checked_elsewhere - older - newer == set()


def absent(name: str) -> bool:
    thing: Any = np
    for part in name.split("."):
        thing = getattr(thing, part, None)
    return thing is None


@pytest.mark.parametrize(
    "places", [[0, 2, 2, -1], [[1], [1]], -2, np.array([3, 3], "u1"), np.empty(0, "i8")]
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_rows_are_added_as_numpy_adds_them(places: Any, dtype: str):
    places = np.asarray(places)
    rng = np.random.default_rng(0)
    base = rng.uniform(-9, 9, (4, 2, 300)).astype(dtype)
    shape = (*places.shape, 2, 300)
    values = [rng.uniform(-9, 9, shape).astype(dtype), base[0, 0], np.ones(300, "i1"), base.sum()]
    for value in values:
        for start in (base, base.transpose(0, 2, 1).copy().transpose(0, 2, 1)):
            found, expected = start.copy("K"), start.copy("K")
            add_rows(found, places, value)
            np.add.at(expected, places, value)
            np.testing.assert_array_equal(found, expected)


def test_rows_outside_raise_as_in_numpy():
    for places in ([4], [-5], [0, 9]):
        with pytest.raises(IndexError, match="out of bounds"):
            add_rows(np.zeros((4, 600)), np.array(places), np.ones(600))
