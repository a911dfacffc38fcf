"""Updates of parameters, compiled: written in place, and the numbers of eager NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minigraph.nn import Parameter, Trainer, optimizers

SHAPES = [(300, 40), (40,), ()]

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "wd": 0.01},
    "adagrad": {"clip_gradient": 0.5},
    "rmsprop": {"momentum": 0.5, "centered": True},
    "adam": {"clip_global_norm": 0.5},
    "adamw": {},
}


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS.items())
def test_a_trainer_gives_the_numbers_of_eager_numpy(name: str, options: dict[str, Any]):
    rng = np.random.default_rng(0)
    params = [Parameter(f"p{index}", shape) for index, shape in enumerate(SHAPES)]
    for parameter in params:
        parameter.initialize("zeros")
        parameter.set_data(rng.normal(size=parameter.shape))
    trainer = Trainer(params, name, options)

    optimizer = optimizers.create(name, options)
    weights = [parameter.data().asnumpy() for parameter in params]
    states = [optimizer.state(weight) for weight in weights]
    for _ in range(3):
        gradients = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
        for parameter, gradient in zip(params, gradients, strict=True):
            parameter.grad()[...] = gradient
            parameter.data().fresh_grad = True
        trainer.step(4)
        factors, rate = [(1.0, 1.0)] * len(SHAPES), np.array(optimizer.learning_rate)
        optimizer.update_all(weights, gradients, states, factors, rate, 0.25)
    assert trainer.compiled.backend == "numba"
    for parameter, weight in zip(params, weights, strict=True):
        np.testing.assert_allclose(parameter.data(), weight, rtol=1e-5, atol=1e-6)
