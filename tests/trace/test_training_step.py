"""A whole training step as one program equals the same step run by Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import MinigraphError, OptionError
from minigraph.ir import verify
from minigraph.nn import functional
from minigraph.ops import evaluate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 8)).astype(np.float32)
Y = RNG.integers(0, 4, 16)


def network(*, dropout: bool = False, norm: bool = False, hybrid: bool = False) -> Any:
    """A small network, with the same numbers at each call."""
    net = nn.HybridSequential()
    net.add(nn.Dense(12, activation="relu", in_units=8))
    if norm:
        net.add(nn.BatchNorm(in_channels=12))
    if dropout:
        net.add(nn.Dropout(0.5))
    net.add(nn.Dense(4, in_units=12))
    mg.random.seed(1)
    net.initialize()
    return net.hybridize() if hybrid else net


def step_of(net: Any, trainer: Any) -> Callable[..., Any]:
    loss_function = nn.SoftmaxCrossEntropyLoss()

    def step(x: Any, y: Any) -> Any:
        with autograd.record():
            loss = loss_function(net(x), y)
        loss.backward()
        trainer.step(len(X))
        return loss

    return step


def run(step: Callable[..., Any], count: int = 4, make: Callable[..., Any] = mg.array) -> Any:
    mg.random.seed(2)
    return np.array([np.asarray(step(make(X), make(Y))) for _ in range(count)])


def same(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    """The parameters of two networks and their gradients agree."""
    pairs = zip(one.collect_params().items(), other.collect_params().values(), strict=True)
    for (name, a), b in pairs:
        np.testing.assert_allclose(a.data(), b.data(), rtol=1e-4, atol=tolerance, err_msg=name)
        if a.grad_req != "null":
            np.testing.assert_allclose(a.grad(), b.grad(), rtol=1e-3, atol=tolerance)


OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1},
    "sgd with momentum": {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01},
    "adam": {"learning_rate": 0.01},
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("options", [{}, {"dropout": True}, {"norm": True}], ids=str)
def test_one_program_equals_python(name: str, options: dict[str, bool]) -> None:
    eager, whole, hybrid = network(**options), network(**options), network(**options, hybrid=True)
    steps = [
        step_of(net, nn.Trainer(net.collect_params(), name.split()[0], OPTIMIZERS[name]))
        for net in (eager, whole, hybrid)
    ]
    jitted = mg.jit(steps[1])
    expected = run(steps[0])
    np.testing.assert_allclose(run(jitted), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(steps[2]), expected, rtol=1e-4, atol=1e-5)
    assert expected[-1].mean() < expected[0].mean()
    same(eager, whole)
    same(eager, hybrid)
    assert len(jitted.cache_info()) == 1
    assert len(hybrid._engine.cache_info()) == 1


def test_ndarrays_go_in_as_well() -> None:
    eager, whole = network(), network()
    expected = run(step_of(eager, nn.Trainer(eager.collect_params(), "sgd")), make=np.asarray)
    jitted = mg.jit(step_of(whole, nn.Trainer(whole.collect_params(), "sgd")))
    np.testing.assert_allclose(run(jitted, make=np.asarray), expected, rtol=1e-5)
    same(eager, whole)
    assert type(jitted(X, Y)) is mg.Array  # as eagerly: it was recorded


def test_the_rate_is_no_part_of_the_program() -> None:
    eager, whole = network(), network()
    trainers = [nn.Trainer(net.collect_params(), "sgd") for net in (eager, whole)]
    steps = [step_of(eager, trainers[0]), mg.jit(step_of(whole, trainers[1]))]
    for rate in (0.1, 0.01):
        for step, trainer in zip(steps, trainers, strict=True):
            trainer.set_learning_rate(rate)
            run(step, 2)
    same(eager, whole)
    assert len(steps[1].cache_info()) == 1  # type: ignore[attr-defined]


def test_what_changes_is_seen() -> None:
    eager, whole = network(), network()
    steps = [
        step_of(net, nn.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}))
        for net in (eager, whole)
    ]
    jitted = mg.jit(steps[1])
    run(steps[0], 1)
    run(jitted, 1)
    for net in (eager, whole):
        net[0].weight.lr_mult = 0.0
        net.collect_params(".*bias").setattr("grad_req", "null")
    run(steps[0], 2)
    run(jitted, 2)
    same(eager, whole)
    assert len(jitted.cache_info()) == 2


def test_by_hand_with_arrays() -> None:
    weights = {"w": mg.array(RNG.normal(size=(8, 4))), "b": mg.array(np.zeros(4))}
    moments = {name: mg.array(np.zeros_like(w.data_)) for name, w in weights.items()}
    for w in weights.values():
        w.attach_grad()
    start = {name: w.asnumpy() for name, w in weights.items()}

    def step(x: Any, y: Any) -> Any:
        with autograd.record():
            scores = x @ weights["w"] + weights["b"]
            loss = functional.cross_entropy(scores, y).mean()
        loss.backward()
        for name, w in weights.items():
            moments[name] *= 0.9
            moments[name] += w.grad
            w -= 0.1 * moments[name]
        return loss

    expected = run(step)
    kept = {name: w.asnumpy() for name, w in weights.items()}
    for name, w in weights.items():
        w[...] = start[name]
        moments[name][...] = 0.0
    jitted = mg.jit(step)
    np.testing.assert_allclose(run(jitted), expected, rtol=1e-6)
    for name, w in weights.items():
        np.testing.assert_allclose(w, kept[name], rtol=1e-6)
    assert len(jitted.cache_info()) == 1


def test_two_losses_and_accumulation() -> None:
    eager, whole = network(), network()
    for net in (eager, whole):
        net.collect_params().setattr("grad_req", "add")

    def accumulate(net: Any) -> Callable[..., Any]:
        def step(x: Any, y: Any) -> Any:
            net.zero_grad()
            for part in (slice(0, 8), slice(8, 16)):
                with autograd.record():
                    first = functional.cross_entropy(net(x[part]), y[part]).sum()
                    second = (net(x[part]) ** 2).mean()
                autograd.backward([first, second])
            return first + second

        return step

    expected = run(accumulate(eager), 2)
    np.testing.assert_allclose(run(mg.jit(accumulate(whole)), 2), expected, rtol=1e-5)
    same(eager, whole)


def test_gradients_as_values() -> None:
    def penalty(x: Any) -> Any:
        x = x * 1
        x.attach_grad()
        with autograd.record():
            y = (x**3).sum()
            gradient = autograd.grad(y, x, create_graph=True)
            loss = (gradient**2).sum()
        loss.backward()
        return gradient, x.grad

    for one, other in zip(mg.jit(penalty)(mg.array(X)), penalty(mg.array(X)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_modes_inside_of_a_trace() -> None:
    net = network(dropout=True)

    @mg.jit
    def look(x: Any) -> Any:
        seen = [autograd.is_training(), autograd.is_recording()]
        with autograd.record():
            seen += [autograd.is_training(), autograd.is_recording()]
            with autograd.pause():
                seen += [autograd.is_training(), autograd.is_recording()]
            with autograd.predict_mode():
                seen += [autograd.is_training(), autograd.is_recording()]
        with autograd.train_mode():
            noisy = net(x)
        return seen, np.abs(noisy - net(x)).max()

    seen, difference = look(mg.array(X))
    assert seen == [False, False, True, True, False, False, False, True]
    assert difference > 0
    assert look(mg.array(X))[1] != difference


def test_gradients_know_that_they_are_used() -> None:
    net = network()
    trainer = nn.Trainer(net.collect_params(), "sgd")
    loss_function = nn.SoftmaxCrossEntropyLoss()

    @mg.jit
    def gradients(x: Any, y: Any) -> None:
        with autograd.record():
            loss = loss_function(net(x), y)
        loss.backward()

    with pytest.raises(UserWarning):
        trainer.step(1)
    gradients(mg.array(X), mg.array(Y))
    trainer.step(len(X))
    with pytest.raises(UserWarning):
        trainer.step(1)


def test_a_step_over_written_memory_runs_in_python() -> None:
    """An argument that is a parameter's own memory: what is written changes what is read."""
    w = mg.array(np.ones(3))
    w.attach_grad()

    @mg.jit
    def step(x: Any) -> Any:
        with autograd.record():
            loss = (w * x * 2).sum()
        loss.backward()
        w[...] = w - w.grad
        return x * 1

    np.testing.assert_array_equal(step(mg.array(np.ones(3))), np.ones(3))
    np.testing.assert_array_equal(w, -np.ones(3))
    found = step(w)
    assert step.cache_info().eager_calls == 1
    np.testing.assert_array_equal(found, w)


# ---- what else may stand in a step


def scores(ws: Any, x: Any) -> Any:
    return np.tanh(x @ ws[0] + ws[1]) @ ws[2]


def two_steps(ws: Any, x: Any) -> Any:
    for _ in range(2):
        with autograd.record():
            loss = (scores(ws, x) ** 2).mean()
        loss.backward()
        for w in ws:
            w -= 0.1 * w.grad
    return loss


def paused_and_clipped(ws: Any, x: Any) -> Any:
    with autograd.record():
        with autograd.pause():
            scale = x.sum(axis=0)
        h = scores(ws, x * scale)
        loss = (h**2).mean() + (h.detach() * h).sum()
    loss.backward()
    for w in ws:
        w.grad[...] = w.grad.clip(-1, 1)
        w[...] = w - 0.1 * w.grad
    return loss


def head_gradients(ws: Any, x: Any) -> Any:
    with autograd.record():
        first, second = scores(ws, x) ** 2, (x @ ws[0]).sum()
    first.backward(mg.array(np.full((16, 2), 0.5)), retain_graph=True)
    autograd.backward([first, second], [None, mg.array(2.0)])
    return first


def written_between(ws: Any, x: Any) -> Any:
    with autograd.record():
        first = (x @ ws[0]).sum()
    first.backward()
    ws[0][...] = 0
    with autograd.record():
        second = ((x @ ws[0]) ** 2).sum() + ws[1].sum()
    second.backward()
    return first + second


def views_and_writes(ws: Any, x: Any) -> Any:
    with autograd.record():
        h = x @ ws[0]
        h[0] = 1.0
        h += ws[1]
        turned = h.T.reshape(3, 16)
        loss = (h[:, 1:].max(axis=1) * turned[0]).sum() + np.where(h > 0, h, 0.1 * h).mean()
    loss.backward()
    return loss


def written_while_recorded(ws: Any, x: Any) -> Any:
    with autograd.record():
        loss = (ws[0] * 2).sum()
        ws[0][...] = 0.0
    loss.backward()
    return loss


def written_before_backward(ws: Any, x: Any) -> Any:
    with autograd.record():
        loss = (ws[0].T ** 2).sum() + ws[1].sum()
    ws[0][...] = 0.0
    loss.backward()
    return loss


def written_but_not_needed(ws: Any, x: Any) -> Any:
    with autograd.record():
        loss = (x @ ws[0]).sum()
    ws[0][...] = 0.0
    loss.backward()
    return loss


def used_twice(ws: Any, x: Any) -> Any:
    with autograd.record():
        loss = (ws[0] ** 2).sum()
    loss.backward()
    loss.backward()
    return loss


def of_nothing(ws: Any, x: Any) -> Any:
    with autograd.record():
        loss = (x * 2).sum()
    loss.backward()
    return loss


STEPS = [
    two_steps,
    paused_and_clipped,
    head_gradients,
    written_between,
    views_and_writes,
    written_while_recorded,
    written_before_backward,
    written_but_not_needed,
    used_twice,
    of_nothing,
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_numbers_and_mistakes_are_those_of_python(step: Callable[..., Any]) -> None:
    found: list[Any] = []
    for compile_ in (lambda function: function, mg.jit):
        rng = np.random.default_rng(1)
        ws = [mg.array(rng.normal(size=shape)) for shape in ((8, 3), (3,), (3, 2))]
        for w in ws:
            w.attach_grad()
        run_step = compile_(lambda x, ws=ws: step(ws, x))
        try:
            losses = [np.asarray(run_step(mg.array(X.astype(float)))) for _ in range(2)]
        except MinigraphError as error:
            assert error.where is not None
            found.append((type(error), error.where.line))
            continue
        grads = [w.grad.asnumpy() for w in ws if w.grad is not None]
        found.append([*losses, *(w.asnumpy() for w in ws), *grads, [w.fresh_grad for w in ws]])
    if isinstance(found[0], tuple):
        assert found[1] == found[0]
        return
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_gradients_are_constants_unless_their_graph_is_asked_for():
    def found(step: Any) -> list[Any]:
        x, head = mg.array([1.0, 2.0]), mg.array([3.0, 4.0])
        x.attach_grad()
        head.attach_grad()
        step(x, head)
        return [x.grad.tolist(), head.grad.tolist()]

    def as_new_array(x: Any, head: Any) -> None:
        with autograd.record():
            loss = (x**2).sum()
            again = (autograd.grad(loss, x, retain_graph=True) * x).sum() + loss
        again.backward()

    def as_stored(x: Any, head: Any) -> None:
        with autograd.record():
            (x**2).sum().backward()
            again = (x.grad * x).sum()
        again.backward()

    def as_given(x: Any, head: Any) -> None:
        with autograd.record():
            again = (autograd.grad(x * 1.0, x, head) * head).sum()
        again.backward()

    expected = ([[4, 8], [0, 0]], [[2, 4], [0, 0]], [[0, 0], [3, 4]])
    for step, gradients in zip((as_new_array, as_stored, as_given), expected, strict=True):
        assert found(step) == found(mg.jit(step)) == gradients


# ---- the joint graph on demand


def test_the_joint_graph_of_a_step_that_writes_its_parameters():
    net = network()
    step = mg.jit(step_of(net, nn.Trainer(net.collect_params(), "adam")))
    run(step)
    joint = step.graph("joint")
    verify(joint)
    assert any(node.op.name == "write" for node in joint.nodes)


def test_its_gradients_are_those_of_the_numbers_before_the_writes():
    @mg.jit
    def halve(w: Any, x: Any) -> Any:
        y = (w @ x).sum()
        w[...] = w / 2
        return y

    w, x = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    halve(w.copy(), x)
    joint = halve.graph("joint")
    verify(joint)
    value, by_w, by_x = evaluate(joint, [w.copy(), x, np.float64(1)])
    assert value == (w @ x).sum()
    assert np.array_equal(by_w, np.ones((2, 4)) @ x.T)
    assert np.array_equal(by_x, w.T @ np.ones((2, 4)))


def test_it_is_among_the_stages():
    function = mg.jit(np.sin)
    function(X)
    with pytest.raises(OptionError, match="no stage 'joinnt'") as caught:
        function.graph("joinnt")
    assert caught.value.instead.startswith("did you mean 'joint'?")


def test_what_has_no_gradient_has_no_joint_graph():
    function = mg.jit(lambda x: x > 0)
    function(X)
    with pytest.raises(OptionError, match="returns no floating-point number, so it has no grad"):
        function.graph("joint")
    function = mg.jit(lambda n: n / 2)
    function(Y)
    with pytest.raises(OptionError, match="reads no floating-point number, so it has no grad"):
        function.graph("joint")
