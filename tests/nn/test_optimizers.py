"""Optimisers against PyTorch's, eager against compiled, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import OptionError
from minigraph.nn import optimizers, schedules
from minigraph.nn.optimizers import SGD, Adam, AdamW, Optimizer

Options = dict[str, Any]

CASES: dict[str, tuple[str, Options, str, Options]] = {
    "sgd": ("sgd", {}, "SGD", {}),
    "decay": ("sgd", {"wd": 0.1}, "SGD", {"weight_decay": 0.1}),
    "momentum": ("sgd", {"momentum": 0.9}, "SGD", {"momentum": 0.9}),
    "nesterov": (
        "sgd",
        {"momentum": 0.9, "nesterov": True, "wd": 0.01},
        "SGD",
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ),
    "adagrad": ("adagrad", {"wd": 0.01}, "Adagrad", {"weight_decay": 0.01}),
    "rmsprop": ("rmsprop", {}, "RMSprop", {}),
    "rmsprop, centered": (
        "rmsprop",
        {"centered": True, "momentum": 0.5, "rho": 0.9, "wd": 0.01},
        "RMSprop",
        {"centered": True, "momentum": 0.5, "alpha": 0.9, "weight_decay": 0.01},
    ),
    "adam": ("adam", {}, "Adam", {}),
    "adam, decay": (
        "adam",
        {"wd": 0.1, "beta1": 0.8, "beta2": 0.99, "epsilon": 1e-6},
        "Adam",
        {"weight_decay": 0.1, "betas": (0.8, 0.99), "eps": 1e-6},
    ),
    "adamw": ("adamw", {}, "AdamW", {}),
    "adamw, no decay": ("adamw", {"wd": 0.0}, "AdamW", {"weight_decay": 0.0}),
}

SHAPES = [(5, 4), (4,), ()]


class Problem:
    """A least-squares problem whose gradient is known without any autograd."""

    def __init__(self, dtype: str) -> None:
        rng = np.random.default_rng(0)
        self.weights = [rng.normal(size=shape).astype(dtype) for shape in SHAPES]
        self.noise = [rng.normal(size=(100, *shape)).astype(dtype) for shape in SHAPES]

    def gradients(self, weights: list[Any], step: int) -> list[Any]:
        return [w * 0.5 + noise[step] for w, noise in zip(weights, self.noise, strict=True)]


def run(optimizer: Optimizer, problem: Problem, update: Any = None, steps: int = 100) -> list[Any]:
    weights = [weight.copy() for weight in problem.weights]
    states = [optimizer.state(weight) for weight in weights]
    rate = np.array(optimizer.learning_rate)
    for step in range(steps):
        gradients = [np.asarray(g) for g in problem.gradients(weights, step)]
        (update or optimizer.update_all)(
            weights, gradients, states, [(1.0, 1.0)] * len(weights), rate, 1.0
        )
    return weights


@pytest.mark.parametrize("rate", [0.01, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options", "theirs", "their_options"), CASES.values(), ids=CASES)
def test_a_hundred_steps_are_those_of_pytorch(
    name: str, options: Options, theirs: str, their_options: Options, dtype: str, rate: float
):
    torch = pytest.importorskip("torch")
    problem = Problem(dtype)
    ours = run(optimizers.create(name, {"learning_rate": rate, **options}), problem)
    tensors = [torch.tensor(weight, requires_grad=True) for weight in problem.weights]
    kind: Any = getattr(torch.optim, theirs)
    other = kind(tensors, lr=rate, **their_options)
    for step in range(100):
        gradients = problem.gradients([t.detach().numpy() for t in tensors], step)
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = torch.tensor(gradient)
        other.step()
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for weight, tensor in zip(ours, tensors, strict=True):
        assert weight.dtype == dtype
        np.testing.assert_allclose(weight, tensor.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "options"), [c[:2] for c in CASES.values()], ids=CASES)
@pytest.mark.parametrize("clip", [{}, {"clip_gradient": 0.5}, {"clip_global_norm": 0.7}])
def test_compiled_is_eager(name: str, options: Options, clip: Options):
    optimizer = optimizers.create(name, {**options, **clip})
    problem = Problem("float64")
    compiled = run(optimizer, problem, mg.jit(optimizer.update_all), steps=5)
    for a, b in zip(compiled, run(optimizer, problem, steps=5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def one_step(optimizer: Optimizer, gradient: list[float], scale: float = 1.0) -> Any:
    """What is taken from a weight of zeros."""
    weight = np.zeros(len(gradient))
    optimizer.update_all(
        [weight],
        [np.array(gradient)],
        [optimizer.state(weight)],
        [(1.0, 1.0)],
        np.array(optimizer.learning_rate),
        scale,
    )
    return -weight


def test_gradients_are_scaled_before_they_are_clipped():
    optimizer = SGD(learning_rate=1.0, clip_gradient=0.5)
    assert one_step(optimizer, [4.0, -8.0, 0.4], scale=0.25).tolist() == [0.5, -0.5, 0.1]


def test_all_gradients_together_are_brought_to_the_norm():
    optimizer = SGD(learning_rate=1.0, clip_global_norm=1.0)
    np.testing.assert_allclose(one_step(optimizer, [3.0, 4.0]), [0.6, 0.8], rtol=1e-6)
    assert one_step(optimizer, [0.3, 0.4]).tolist() == [0.3, 0.4]


def test_factors_of_one_parameter():
    weight = np.ones(1)
    SGD(wd=0.1).update_all([weight], [np.ones(1)], [{}], [(10.0, 2.0)], np.array(0.01), 1.0)
    assert weight[0] == pytest.approx(1 - 0.1 * (1 + 0.2))


def test_the_description_never_changes():
    optimizer = SGD(0.1)
    with pytest.raises(AttributeError):
        optimizer.momentum = 0.9  # type: ignore[misc]
    assert optimizer == SGD(0.1) != SGD(0.2)
    assert repr(AdamW(0.1)).startswith("AdamW(learning_rate=0.1, wd=0.01,")


@pytest.mark.parametrize("name", ["Adam", "ADAM", "adam"])
def test_names_are_read_in_any_case(name: str):
    assert optimizers.create(name, {"beta1": 0.5}) == Adam(beta1=0.5)


def test_gluons_word_for_a_schedule():
    schedule = schedules.Constant(0.1)
    assert optimizers.create("sgd", {"lr_scheduler": schedule}).schedule is schedule
    assert SGD(0.1).schedule is None
    with pytest.raises(OptionError, match="two learning rates"):
        optimizers.create("sgd", {"lr_scheduler": schedule, "learning_rate": 0.1})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("adma", {}, r"no optimizer 'adma'\n.*did you mean 'adam'\?"),
        (3, {}, "no optimizer 3"),
        ("sgd", {"momentun": 0.9}, r"no option of SGD 'momentun'\n.*did you mean 'momentum'\?"),
        ("sgd", {"beta1": 0.9}, "no option of SGD 'beta1'"),
        ("sgd", {"learning_rate": -0.1}, "SGD: learning_rate is -0.1"),
        ("sgd", {"learning_rate": float("nan")}, "learning_rate is nan"),
        ("sgd", {"learning_rate": "0.1"}, "learning_rate is '0.1'"),
        ("sgd", {"learning_rate": True}, "learning_rate is True"),
        ("sgd", {"wd": -1}, "wd is -1"),
        ("sgd", {"momentum": -0.9}, "momentum is -0.9"),
        ("sgd", {"nesterov": True}, "the momentum, which is 0"),
        ("sgd", {"clip_gradient": -1.0}, "clip_gradient is -1.0"),
        ("adam", {"beta1": 1.0}, r"beta1 is 1.0\n.*less than 1"),
        ("rmsprop", {"rho": 1.5}, "rho is 1.5"),
        ("adagrad", {"epsilon": -1e-3}, "epsilon is -0.001"),
        (SGD(0.1), {"momentum": 0.9}, r"beside an optimiser.*: momentum\n.*SGD\(momentum=\.\.\.\)"),
    ],
)
def test_wrong_use_is_told(name: Any, options: Options, message: str):
    with pytest.raises(OptionError, match=message):
        optimizers.create(name, options)
