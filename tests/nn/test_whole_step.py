"""A whole training step under `mg.jit`: the numbers of the Gluon way, and nothing stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import StaleGradientError
from minigraph.nn.schedules import Cosine

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01},
    "adagrad": {},
    "rmsprop": {"momentum": 0.5, "centered": True},
    "adam": {"learning_rate": Cosine(0.05, updates=8)},
    "adamw": {"clip_global_norm": 0.5},
}


class Task:
    """A small network with its data, always the same; `step` is the Gluon way."""

    def __init__(self, optimizer: Any = "sgd", **options: Any) -> None:
        rng = np.random.default_rng(0)
        self.net = nn.HybridSequential()
        self.net.add(nn.Dense(16, activation="relu", in_units=8), nn.Dense(4, in_units=16))
        self.net.initialize()
        for parameter in self.net.collect_params().values():
            parameter.set_data(rng.normal(scale=0.3, size=parameter.shape))
        self.loss_function = nn.SoftmaxCrossEntropyLoss()
        self.trainer = nn.Trainer(self.net.collect_params(), optimizer, options)
        self.x = mg.array(rng.normal(size=(12, 8)).astype(np.float32))
        self.y = mg.array(rng.integers(0, 4, 12))

    def step(self) -> Any:
        with autograd.record():
            loss = self.loss_function(self.net(self.x), self.y)
        loss.backward()
        self.trainer.step(len(self.x))
        return loss.mean()

    def compiled(self) -> Callable[[Any, Any], Any]:
        net, loss_function, trainer = self.net, self.loss_function, self.trainer

        @mg.jit
        def step(x, y):
            with autograd.record():
                loss = loss_function(net(x), y)
            loss.backward()
            trainer.step(len(x))
            return loss.mean()

        return step

    def values(self) -> list[Any]:
        return [parameter.data().asnumpy() for parameter in self.net.collect_params().values()]


def assert_same(task: Task, other: Task) -> None:
    for a, b in zip(task.values(), other.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS.items())
@pytest.mark.parametrize("hybridized", [False, True])
def test_it_gives_the_numbers_of_the_gluon_way(name: str, options: Any, hybridized: bool):
    whole, gluon = Task(name, **options), Task(name, **options)
    if hybridized:
        gluon.net.hybridize()
    step = whole.compiled()
    for _ in range(5):
        np.testing.assert_allclose(step(whole.x, whole.y), gluon.step(), rtol=1e-5)
        assert_same(whole, gluon)
    assert whole.trainer.updates == gluon.trainer.updates == 5
    assert whole.trainer.learning_rate == pytest.approx(gluon.trainer.learning_rate)
    assert len(step.cache_info()) == 1


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_hundred_steps_are_those_of_pytorch(name: str):
    torch = pytest.importorskip("torch")
    task = Task(name, learning_rate=0.05)
    task.net.cast("float64")
    x, y = torch.tensor(task.x.asnumpy(), dtype=torch.float64), torch.tensor(task.y.asnumpy())
    first, second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
    net = torch.nn.Sequential(first, torch.nn.ReLU(), second).double()
    for layer, ours in ((first, task.net[0]), (second, task.net[1])):
        layer.weight.data = torch.tensor(ours.weight.data().asnumpy())
        layer.bias.data = torch.tensor(ours.bias.data().asnumpy())
    optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.05)
    step = task.compiled()
    for _ in range(100):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        assert step(x.numpy(), task.y).item() == pytest.approx(loss.item(), rel=1e-9)
    assert loss.item() < 0.9
    for layer, ours in ((first, task.net[0]), (second, task.net[1])):
        np.testing.assert_allclose(ours.weight.data(), layer.weight.detach(), rtol=1e-8, atol=1e-8)


def test_a_new_rate_is_seen_without_retracing():
    task = Task("adam", learning_rate=0.1)
    step = task.compiled()
    step(task.x, task.y)
    before = task.values()
    task.trainer.set_learning_rate(0.0)
    step(task.x, task.y)
    for a, b in zip(task.values(), before, strict=True):
        assert np.array_equal(a, b)
    assert len(step.cache_info()) == 1


def test_the_two_ways_may_take_turns():
    task, other = Task("adam"), Task("adam")
    step = task.compiled()
    for turn in range(6):
        if turn % 2:
            task.step()
        else:
            step(task.x, task.y)
        other.step()
    assert_same(task, other)
    with pytest.raises(StaleGradientError):
        task.trainer.step(1)


def test_a_factor_of_a_parameter_is_guarded():
    task, other = Task(), Task()
    step = task.compiled()
    for factor in (1.0, 0.5):
        for each in (task, other):
            each.net[0].weight.lr_mult = factor
        step(task.x, task.y)
        other.step()
        assert_same(task, other)
    assert "lr_mult is 0.5, was 1.0" in step.cache_info().retraces[0]


def test_a_schedule_of_the_users_is_part_of_the_program():
    scale = {"rate": 0.5}

    def rate(count: Any) -> Any:
        return scale["rate"] / (count + 1)

    task, other = Task(learning_rate=rate), Task(learning_rate=rate)
    step = task.compiled()
    for turn in range(4):
        if turn == 2:
            scale["rate"] = 0.1  # retraced, and never stale
        step(task.x, task.y)
        other.step()
        assert_same(task, other)
    assert len(step.cache_info()) == 2


def test_an_optimizer_of_ones_own_is_part_of_the_program():
    from minigraph.nn.optimizers import Optimizer

    class Signs(Optimizer):
        def update(self, weight: Any, gradient: Any, state: Any, rate: Any, wd: float) -> None:
            weight -= np.float32(0.01) * np.sign(gradient)

    task, other = Task(Signs()), Task(Signs())
    step = task.compiled()
    for _ in range(2):
        step(task.x, task.y)
        other.step()
    assert_same(task, other)


def test_a_step_without_backward_is_an_error_while_tracing():
    task = Task()
    net, trainer = task.net, task.trainer

    @mg.jit
    def step(x):
        net(x)
        trainer.step(1)

    with pytest.raises(StaleGradientError, match="0.weight"):
        step(task.x)


def test_backward_and_update_may_be_compiled_each_on_its_own():
    task, other = Task(), Task()
    net, loss_function, trainer = task.net, task.loss_function, task.trainer

    @mg.jit
    def backward(x, y):
        with autograd.record():
            loss = loss_function(net(x), y)
        loss.backward()

    @mg.jit
    def update(batch_size):
        trainer.step(batch_size)

    for _ in range(3):
        backward(task.x, task.y)
        update(12)
        other.step()
        assert_same(task, other)
    assert len(update.cache_info()) == 1
    for step in (update, trainer.step):
        with pytest.raises(StaleGradientError):
            step(12)


def test_the_batch_size_may_be_an_argument():
    task, other = Task(), Task()
    net, loss_function, trainer = task.net, task.loss_function, task.trainer

    @mg.jit
    def step(x, y, batch_size):
        with autograd.record():
            loss = loss_function(net(x), y)
        loss.backward()
        trainer.step(batch_size)

    for batch_size in (12, 12, 12):
        step(task.x, task.y, batch_size)
        other.step()
    step(task.x, task.y, 24)
    assert len(step.cache_info()) == 1
    assert trainer.updates == 4
