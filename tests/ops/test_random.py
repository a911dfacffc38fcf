"""Draws are those of the generator, and leave it where NumPy leaves it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.nodes import node_of, same, types_of

from minigraph import ops
from minigraph.errors import DtypeError, ShapeError, UnsupportedError
from minigraph.ir import FLOAT, GENERATOR, INT, ArrayType, dim, type_of
from minigraph.ops import DRAWS, DRAWS_IN_PLACE, OPS

V = np.array([0.5, 1.0, 2.0])
CALLS = """
rng.random()
rng.random(3)
rng.random((2, 3), dtype=np.float32)
rng.standard_normal(size=())
rng.standard_exponential(4, np.float32)
rng.standard_gamma(2.0, 3)
rng.normal()
rng.normal(1.0, 2.0, (2, 2))
rng.normal(loc=V)
rng.normal(size=3, scale=V)
rng.normal(np.float32(1))
rng.uniform(-1, 1, 5)
rng.uniform(high=V)
rng.exponential(V, size=(2, 3))
rng.laplace()
rng.logistic(1.0)
rng.gumbel(size=2)
rng.lognormal(sigma=2.0)
rng.rayleigh(size=2)
rng.gamma(2.0, V)
rng.beta(1.0, 2.0, size=3)
rng.chisquare(3)
rng.f(2, 3)
rng.pareto(2.0, 3)
rng.power(3.0)
rng.weibull(V)
rng.wald(1.0, 2.0)
rng.vonmises(0.0, 1.0, 2)
rng.triangular(0, 1, 3, 4)
rng.standard_cauchy(2)
rng.standard_t(3.0)
rng.poisson()
rng.poisson(V)
rng.binomial(10, 0.5, 4)
rng.binomial(3, 0.5)
rng.negative_binomial(3, 0.5, 2)
rng.geometric(0.5)
rng.hypergeometric(3, 4, 5, size=2)
rng.logseries(0.5)
rng.zipf(2.0, 3)
rng.integers(5)
rng.integers(2, 9, (2, 2))
rng.integers(5, size=3, dtype=np.int8)
rng.integers(0, 1, 4, endpoint=True)
rng.integers(np.array([2, 9]))
rng.choice(5)
rng.choice(5, 3)
rng.choice(5, (2, 2), replace=True)
rng.choice(V, 2, replace=False)
rng.choice(V, 4, p=[0.2, 0.3, 0.5])
rng.choice(np.ones((2, 3)), 4, axis=1)
rng.choice(V)
rng.permutation(6)
rng.permutation(V)
rng.permutation(np.arange(12).reshape(3, 4), axis=1)
rng.permuted(np.arange(12).reshape(3, 4), axis=0)
rng.permuted(V)
rng.multinomial(10, [0.2, 0.8])
rng.multinomial([3, 4], [0.2, 0.8], size=2)
rng.dirichlet(V)
rng.dirichlet(V, 3)
""".strip().splitlines()


class Recorded:
    """A generator whose draws go through bind, infer and the evaluator."""

    def __init__(self, generator: np.random.Generator, binds: Any) -> None:
        self.generator, self.binds = generator, binds

    def __getattr__(self, name: str) -> Any:
        def method(*args: Any, **kwargs: Any) -> Any:
            inputs, attrs = self.binds[name](self.generator, *args, **kwargs)
            inputs = [np.asarray(x) if isinstance(x, list) else x for x in inputs]
            node = node_of(OPS["draw"], types_of(inputs), attrs)
            assert node.is_effect
            (result,) = ops.evaluate_node(node, inputs)
            assert type_of(result) == node.output.type, node
            return result

        return method


@pytest.mark.parametrize("line", CALLS)
def test_a_draw_is_the_generators(line: str):
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    found = eval(line, {"rng": Recorded(ours, DRAWS), "np": np, "V": V})
    expected = eval(line, {"rng": theirs, "np": np, "V": V})
    assert same(found, expected)
    assert ours.bit_generator.state == theirs.bit_generator.state


def test_every_method_is_called():
    text = "\n".join(CALLS)
    assert not [name for name in DRAWS if f"rng.{name}(" not in text]
    assert all(hasattr(np.random.Generator, name) for name in (*DRAWS, *DRAWS_IN_PLACE))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_shuffle_gives_the_new_contents(axis: int):
    x = np.arange(12).reshape(3, 4)
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    found = Recorded(ours, DRAWS_IN_PLACE).shuffle(x, axis)
    assert x[0, 0] == 0 and x[2, 3] == 11
    theirs.shuffle(x, axis)
    assert same(found, x) and ours.bit_generator.state == theirs.bit_generator.state


def test_equal_calls_have_equal_attrs():
    rng = np.random.default_rng(0)
    assert DRAWS["normal"](rng)[1] == DRAWS["normal"](rng, 0.0, 1.0)[1] == {"method": "normal"}
    assert DRAWS["normal"](rng)[0] == [rng, 0.0, 1.0]
    assert DRAWS["integers"](rng, 5) == DRAWS["integers"](rng, 0, 5, dtype=int)
    assert DRAWS["random"](rng, 3)[1] == DRAWS["random"](rng, size=(3,), dtype="f8")[1]


def test_a_draw_may_have_a_named_size():
    inputs, attrs = DRAWS["normal"](np.random.default_rng(0), size=(dim("n"), 2))
    node = node_of(OPS["draw"], [GENERATOR, FLOAT, FLOAT], attrs)
    assert str(node.output.type) == "f64[n,2]"
    (found,) = ops.evaluate_node(node, inputs, sizes={"n": 3})
    assert found.shape == (3, 2)


def test_what_is_no_draw_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(UnsupportedError, match="normal is recorded, but not with these arguments"):
        DRAWS["normal"](rng, sigma=2)
    with pytest.raises(DtypeError, match="needs a random generator"):
        ops.infer(OPS["draw"], [FLOAT], {"method": "random"})
    with pytest.raises(DtypeError, match="no method 'bytes'"):
        ops.infer(OPS["draw"], [GENERATOR], {"method": "bytes"})
    with pytest.raises(ShapeError, match="does not hold"):
        parameters = [GENERATOR, ArrayType(np.dtype("f8"), (3,)), FLOAT]
        ops.infer(OPS["draw"], parameters, {"method": "normal", "size": (2,)})
    with pytest.raises(DtypeError):
        ops.infer(OPS["draw"], [GENERATOR], {"method": "random", "dtype": np.dtype("f2")})


def test_a_generator_is_made_from_a_seed():
    for seed in (3, np.int64(3), [1, 2], np.array([1, 2]), None):
        inputs, attrs = OPS["default_rng"].bind(seed)  # type: ignore[misc]
        node = node_of(OPS["default_rng"], types_of(inputs), attrs)
        assert node.output.type is GENERATOR and node.is_effect
        (found,) = ops.evaluate_node(node, inputs)
        if seed is not None:
            expected = np.random.default_rng(seed)
            assert found.bit_generator.state == expected.bit_generator.state
    with pytest.raises(UnsupportedError, match="a generator made from"):
        OPS["default_rng"].bind(np.random.SeedSequence(3))  # type: ignore[misc]
    assert INT is not FLOAT
