"""The library's generator: one object, seeded in place, recorded in traces."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd
from minigraph.errors import RecordError


def test_a_seed_starts_the_numbers_anew():
    generator = mg.random.generator()
    mg.random.seed(3)
    first = mg.random.normal(size=4)
    mg.random.seed(3)
    assert mg.random.generator() is generator
    assert first.tolist() == mg.random.normal(size=4).tolist()
    assert first.tolist() == np.random.default_rng(3).normal(size=4).tolist()
    mg.random.seed()
    assert first.tolist() != mg.random.normal(size=4).tolist()


def test_draws_are_numpys_as_arrays():
    public = [
        name for name in vars(mg.random) if name in dir(np.random.Generator) and name[0] != "_"
    ]
    assert len(public) > 15
    probes: dict[str, tuple[Any, ...]] = {
        "beta": (1, 2),
        "binomial": (5, 0.5),
        "choice": ([1, 2, 3],),
        "gamma": (2,),
        "geometric": (0.5,),
        "integers": (9,),
        "multinomial": (4, [0.5, 0.5]),
        "permutation": (5,),
    }
    for name in public:
        if name == "shuffle":
            continue
        arguments = probes.get(name, ())
        size = {} if name == "permutation" else {"size": 3}
        mg.random.seed(1)
        found = getattr(mg.random, name)(*arguments, **size)
        expected = getattr(np.random.default_rng(1), name)(*arguments, **size)
        assert isinstance(found, mg.Array) and found.tolist() == expected.tolist(), name
        assert inspect.getdoc(getattr(mg.random, name))


def test_one_number():
    mg.random.seed(1)
    assert mg.random.normal() == np.random.default_rng(1).normal()
    assert mg.random.randint(3, 4) == 3


def test_arrays_as_parameters():
    mg.random.seed(1)
    found = mg.random.normal(mg.array([1.0, 100.0]), 0.1)
    assert found.tolist() == np.random.default_rng(1).normal([1.0, 100.0], 0.1).tolist()
    x = mg.array([1.0, 100.0])
    x.attach_grad()
    with autograd.record(), pytest.raises(RecordError, match="carries no gradient"):
        mg.random.normal(x, 0.1)


def test_shuffle_is_in_place():
    x, y = mg.array(np.arange(6).reshape(3, 2)), np.arange(6).reshape(3, 2)
    mg.random.seed(2)
    mg.random.shuffle(x)
    np.random.default_rng(2).shuffle(y)
    assert x.tolist() == y.tolist()
    mg.random.shuffle(x, axis=1)
    mg.random.shuffle(y)


def test_a_trace_records_the_draws():
    @mg.jit
    def noisy(x: Any) -> Any:
        return x + mg.random.normal(size=x.shape) + mg.random.generator().uniform()

    mg.random.seed(5)
    found = [noisy(np.zeros(3)) for _ in range(3)]
    mg.random.seed(5)
    rng = np.random.default_rng(5)
    for each in found:
        assert each.tolist() == (rng.normal(size=3) + rng.uniform()).tolist()
    assert len(noisy.cache_info()) == 1
    assert mg.random.generator().bit_generator.state != rng.bit_generator.state
