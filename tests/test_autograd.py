"""The functions of `mg.autograd`: modes, several heads, gradients as values."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd
from minigraph.errors import FreedError, OptionError, RecordError, SignatureError


def variable(data: Any, req: str = "write") -> Any:
    made = mg.array(data)
    made.attach_grad(req)
    return made


def modes() -> tuple[bool, bool]:
    return autograd.is_recording(), autograd.is_training()


# ---------------------------------------------------------------------------- modes


def test_modes():
    assert modes() == (False, False)
    with autograd.record():
        assert modes() == (True, True)
        with autograd.pause():
            assert modes() == (False, False)
            with autograd.record(train_mode=False):
                assert modes() == (True, False)
            with autograd.train_mode():
                assert modes() == (False, True)
        with autograd.pause(train_mode=True):
            assert modes() == (False, True)
        with autograd.predict_mode():
            assert modes() == (True, False)
        assert modes() == (True, True)
    assert modes() == (False, False)
    with autograd.train_mode():
        assert modes() == (False, True)
    assert "recording, training" in repr(autograd.Mode(True, True))


def test_a_mode_ends_with_an_exception():
    with pytest.raises(KeyError), autograd.record():
        raise KeyError
    assert modes() == (False, False)


def test_a_mode_decorates_a_function():
    @autograd.record()
    def inside() -> tuple[bool, bool]:
        return modes()

    assert inside() == inside() == (True, True) and modes() == (False, False)


def test_each_thread_has_its_own_mode():
    found: list[Any] = []
    with autograd.record():
        thread = threading.Thread(target=lambda: found.append(modes()))
        thread.start()
        thread.join()
    assert found == [(False, False)]


def test_each_task_has_its_own_mode():
    async def work(recording: bool) -> tuple[bool, bool]:
        if not recording:
            await asyncio.sleep(0)
            return modes()
        with autograd.record():
            await asyncio.sleep(0)
            return modes()

    async def main() -> Any:
        return await asyncio.gather(work(True), work(False), work(True))

    assert list(asyncio.run(main())) == [(True, True), (False, False), (True, True)]


def test_a_task_in_another_thread_records_on_the_same_scope():
    x = variable([2.0])

    async def main() -> Any:
        with autograd.record():
            return await asyncio.gather(*[asyncio.to_thread(lambda: x * x) for _ in range(4)])

    for y in asyncio.run(main()):
        y.backward()
        assert x.grad.tolist() == [4]


# ---------------------------------------------------------------------------- backward


def test_several_heads_at_once():
    x = variable([1.0, 2.0])
    with autograd.record():
        shared = x * x
        first, second = shared.sum(), (shared * 2).sum()
    autograd.backward([first, second, first])
    assert x.grad.tolist() == [8, 16]


def test_several_heads_with_gradients():
    x = variable([1.0, 2.0])
    with autograd.record():
        a, b = x * x, x * 3
    autograd.backward([a, b], [mg.array([1.0, 10.0]), None], retain_graph=True)
    assert x.grad.tolist() == [5, 43]
    with pytest.raises(SignatureError, match="2 arrays and 1 gradients"):
        autograd.backward([a, b], [None])
    autograd.backward(a)
    assert x.grad.tolist() == [2, 4]


def test_a_head_that_another_depends_on():
    x = variable([3.0])
    with autograd.record():
        y = x * x
        z = y * y
    autograd.backward([y, z])
    assert x.grad.tolist() == [6 + 4 * 27]


def test_marked_variables():
    x, grad = mg.array([1.0, 2.0]), mg.array(np.zeros(2))
    autograd.mark_variables(x, grad)
    with autograd.record():
        y = x * x
    y.backward()
    assert grad.tolist() == [2, 4] and x.grad is grad
    autograd.mark_variables([x, x], [grad, grad], ["add", "write"])
    assert x.grad_req == "write"
    with pytest.raises(OptionError, match="cannot be stored"):
        autograd.mark_variables(x, mg.array([1.0]))
    with pytest.raises(OptionError, match="1 arrays, 2 gradients"):
        autograd.mark_variables([x], [grad, grad])


# ---------------------------------------------------------------------------- gradients as values


def test_gradients_as_values():
    x, y = variable([1.0, 2.0]), variable([3.0, 4.0])
    with autograd.record():
        z = x * x
        total = (z * y).sum()
    dx, dy, dz = autograd.grad(total, [x, y, z], retain_graph=True)
    assert dx.tolist() == [6, 16] and dy.tolist() == [1, 4] and dz.tolist() == [3, 4]
    assert x.grad.tolist() == [0, 0]
    dx[:] = 0
    assert autograd.grad(total, x).tolist() == [6, 16]
    with pytest.raises(FreedError):
        autograd.grad(total, x)


def test_a_gradient_as_value_is_memory_of_its_own():
    x = variable([1.0, 2.0])
    head = mg.array([5.0, 6.0])
    with autograd.record():
        y = x * 1.0
        z = y + 0
    (dy,) = autograd.grad(z, [y], head)
    dy[:] = 0
    assert head.tolist() == [5, 6]


def test_a_variable_without_influence_has_gradient_zero():
    x, y = variable([1.0, 2.0]), variable([1.0])
    with autograd.record():
        z = x * x
    assert autograd.grad(z, y).tolist() == [0]
    with pytest.raises(RecordError, match="no gradient attached"):
        with autograd.record():
            z = x * x
        autograd.grad(z, mg.array([1.0]))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_higher_order(order: int):
    x = variable(np.array([0.5, -1.5, 2.0]))
    with autograd.record():
        y = np.sin(x) * x
        for _ in range(order):
            y = autograd.grad(y, x, create_graph=True)
    known = {
        1: lambda x: np.sin(x) + x * np.cos(x),
        2: lambda x: 2 * np.cos(x) - x * np.sin(x),
        3: lambda x: -3 * np.sin(x) - x * np.cos(x),
        4: lambda x: -4 * np.cos(x) + x * np.sin(x),
    }
    assert np.allclose(y, known[order](x.asnumpy()))
    y.backward()
    assert np.allclose(x.grad, known[order + 1](x.asnumpy()))


def test_a_penalty_on_the_gradient():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 3)), variable(rng.normal(size=(3, 2)))

    def penalty(w: Any) -> Any:
        inputs = variable(x)
        with autograd.record():
            out = np.tanh(inputs @ w).sum()
            slope = autograd.grad(out, inputs, create_graph=True)
            return (slope * slope).sum()

    loss = penalty(w)
    loss.backward()
    step = np.zeros((3, 2))
    step[1, 1] = 1e-6
    up, down = (float(penalty(mg.array(w.asnumpy() + sign * step))) for sign in (1, -1))
    assert float(w.grad[1, 1]) == pytest.approx((up - down) / 2e-6, rel=1e-6)


def test_gradients_without_a_graph_are_plain_arrays():
    x = variable([2.0])
    with autograd.record():
        dx = autograd.grad(x * x, x)
    with pytest.raises(RecordError, match="was not recorded"):
        dx.backward()
