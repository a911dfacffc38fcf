"""Initializers: their distributions, names, and repeatability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import nn
from minigraph.errors import OptionError, ShapeError
from minigraph.nn import initializers as init

SHAPE = (200, 300)


def drawn(initializer: Any, shape: tuple[int, ...] = SHAPE, dtype: str = "float32") -> Any:
    parameter = nn.Parameter("weight", shape, dtype, initializer)
    parameter.initialize()
    return parameter.data().asnumpy()


@pytest.mark.parametrize("name", init.INITIALIZERS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_by_name(name: str, dtype: str):
    mg.random.seed(0)
    found = drawn(name, (4, 6), dtype)
    assert found.dtype == dtype and found.shape == (4, 6) and np.isfinite(found).all()
    mg.random.seed(0)
    assert (drawn(name.upper(), (4, 6), dtype) == found).all()
    assert drawn(init.INITIALIZERS[name]().__class__, (4, 6)) is not None


def test_numbers():
    assert (drawn("zeros") == 0).all() and (drawn(init.One()) == 1).all()
    assert (drawn(init.Constant(2.5)) == 2.5).all()
    table = np.arange(6.0).reshape(2, 3)
    assert (drawn(init.Constant(table), (2, 3)) == table).all()


@pytest.mark.parametrize(
    ("initializer", "deviation", "limit"),
    [
        (None, 0.07 / math.sqrt(3), 0.07),
        (init.Uniform(0.5), 0.5 / math.sqrt(3), 0.5),
        (init.Normal(0.3), 0.3, math.inf),
        (init.TruncNorm(stdev=0.3), 0.3 * 0.8796, 0.6),
        (init.Xavier(), math.sqrt(1 / 250), math.sqrt(3 / 250)),
        (init.Xavier("gaussian", "in", 2.0), math.sqrt(2 / 300), math.inf),
        (init.Xavier("uniform", "out", 3), math.sqrt(1 / 200), math.sqrt(3 / 200)),
        (init.MSRAPrelu(), math.sqrt(2 / (1 + 0.25**2) / 250), math.inf),
        (init.He(), math.sqrt(2 / 300), math.inf),
    ],
    ids=str,
)
def test_distributions(initializer: Any, deviation: float, limit: float):
    mg.random.seed(7)
    found = drawn(initializer)
    assert abs(found.mean()) < 4 * deviation / math.sqrt(found.size)
    assert abs(found.std() / deviation - 1) < 0.02
    assert abs(found).max() <= limit * (1 + 1e-6)
    if limit < math.inf:
        assert abs(found).max() > 0.99 * limit


def test_fans_of_kernels():
    mg.random.seed(7)
    found = drawn(init.Xavier("gaussian", "in", 1.0), (64, 16, 3, 5))
    assert abs(found.std() * math.sqrt(16 * 15) - 1) < 0.02


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (4, 2, 3), (6, 6)])
def test_orthogonal(shape: tuple[int, ...]):
    matrix = drawn(init.Orthogonal(2.0), shape, "float64").reshape(shape[0], -1)
    rows, columns = matrix.shape
    product = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_repeatable():
    def network() -> Any:
        net = nn.HybridSequential(nn.Dense(4, in_units=3), nn.Dense(2, in_units=4))
        net.initialize(init.Xavier())
        return [p.data().asnumpy() for p in net.collect_params().values()]

    mg.random.seed(5)
    first = network()
    second = network()
    mg.random.seed(5)
    third = network()
    assert all((a == b).all() for a, b in zip(first, third, strict=True))
    assert (first[0] != second[0]).any() and (first[1] == 0).all()


class Odd(init.Initializer):
    """As the textbook writes one."""

    def _init_weight(self, name: str, data: Any) -> None:
        data[:] = np.arange(data.size).reshape(data.shape)
        data *= np.abs(data) % 2 == 1


def test_own_initializers():
    assert drawn(Odd(), (2, 3)).tolist() == [[0, 1, 0], [3, 0, 5]]
    assert drawn(Odd, (2, 3)).tolist() == [[0, 1, 0], [3, 0, 5]]

    def fives(name: str, array: Any) -> None:
        assert name == "weight"
        array[...] = 5

    assert (drawn(fives) == 5).all()


def test_wrong_use():
    with pytest.raises(OptionError, match="did you mean 'xavier'"):
        init.initializer_of("xaver")
    with pytest.raises(OptionError, match="no initializer"):
        init.initializer_of(3)
    with pytest.raises(OptionError, match="rnd_type"):
        init.Xavier("normal")
    with pytest.raises(OptionError, match="factor_type"):
        init.Xavier(factor_type="fan_in")
    for initializer in ("xavier", "he", "orthogonal"):
        with pytest.raises(ShapeError, match="at least two axes"):
            drawn(initializer, (3,))
    with pytest.raises(NotImplementedError, match="overrides neither"):
        drawn(init.Initializer(), (3,))
