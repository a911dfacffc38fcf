"""Gradients of functions with recorded branches and loops: against differences and eager calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differentiable import looping
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minigraph as mg
from minigraph import autograd
from minigraph.errors import UnsupportedError
from minigraph.ir import Graph, walk
from minigraph.testing import check_grad

X = np.random.default_rng(0).normal(size=3)
XS = np.random.default_rng(1).normal(size=(5, 3))


def recorded(function: Any, *args: Any) -> list[Any]:
    """The gradients by all arrays among the arguments, from the tape."""
    given = [mg.array(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    arrays = [arg for arg in given if isinstance(arg, mg.Array)]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        y = function(*given)
    y.backward()
    return [array.grad.asnumpy() for array in arrays]


def agree(function: Any, *args: Any) -> None:
    """`grad`, the tape of a compiled call and that of Python give the same gradients."""
    wrt = tuple(at for at, arg in enumerate(args) if isinstance(arg, np.ndarray))
    expected = recorded(function, *args)
    for found in (mg.grad(function, wrt)(*args), recorded(mg.jit(function), *args)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-10, 1e-12)


def loops(graph: Graph) -> list[str]:
    return [n.op.name for n in walk(graph) if n.op.name in ("if", "scan", "while")]


# ---- each of them


def branch(x: Any, t: Any) -> Any:
    return mg.cond(t > 0, lambda: np.exp(x) * x, lambda: np.tanh(x)).sum()


@pytest.mark.parametrize("t", [1.0, -1.0])
def test_a_branch(t: float):
    check_grad(lambda x, t: branch(x, t[0]), X, np.array([t]))
    agree(branch, X, np.array(t))
    compiled = mg.grad(branch)
    compiled(X, np.array(t))
    assert loops(compiled.graph("traced")) == ["if", "if"]


def turns(x: Any, n: Any) -> Any:
    return mg.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, np.sin(y) * x), (0, x))[1].sum()


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_while(n: int):
    agree(turns, X, n)
    compiled = mg.grad(turns)
    compiled(X, n)
    assert "while" in loops(compiled.graph("traced"))


def test_a_while_of_floats():
    def power(a: float, n: int) -> float:
        return mg.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * a + 0.5), (0, 1.0))[1]

    found = mg.grad(power)(0.9, 5)
    assert type(found) is float
    np.testing.assert_allclose(found, (power(0.9 + 1e-6, 5) - power(0.9 - 1e-6, 5)) / 2e-6)


def test_the_same_loop_with_a_limit():
    def limited(x: Any, n: Any) -> Any:
        return mg.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, np.sin(y) * x), (0, x), max_iter=6
        )[1].sum()

    for n in (0, 3, 9):
        agree(limited, X, n)
    np.testing.assert_allclose(mg.grad(limited)(X, 4), mg.grad(turns)(X, 4))


def recurrent(xs: Any, w: Any, h: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h @ w + x)
        return h, h * h

    h, ys = mg.scan(step, h, xs)
    return ys.sum() + h.sum()


def test_a_scan():
    inputs = XS, np.random.default_rng(2).normal(size=(3, 3)), X
    check_grad(recurrent, *inputs)
    agree(recurrent, *inputs)
    compiled = mg.grad(recurrent, 1)
    compiled(*inputs)
    assert loops(compiled.graph()) == ["scan", "scan"]


def test_rows_by_a_counter():
    def total(x: Any, n: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            return i + 1, s + x[i] * x[i - 1]

        return mg.while_loop(lambda i, s: i < n, body, (1, np.zeros(3)))[1].sum()

    found = mg.grad(total)(XS, 4)
    expected = np.zeros_like(XS)
    expected[1:4] += XS[:3]
    expected[:3] += XS[1:4]
    np.testing.assert_allclose(found, expected)


# ---- within each other


def test_loops_and_branches_in_loops():
    def nested(xs: Any, n: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = mg.cond(h.sum() > 0, lambda: np.sin(h) * x, lambda: np.cos(h) + x)
            h = mg.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, h * 1.1 + x), (0, h))[1]
            return h, h

        h, ys = mg.scan(step, xs[0], xs)
        return (ys * ys).sum()

    agree(nested, XS, 2)
    check_grad(lambda xs: mg.grad(nested)(xs, 2).sum(), XS)


def test_a_loop_as_often_as_another_one_has_turned():
    def triangle(x: Any, n: Any) -> Any:
        def outer(i: Any, h: Any) -> Any:
            inner = mg.while_loop(lambda j, h: j < i, lambda j, h: (j + 1, np.sin(h) * x), (0, h))
            return i + 1, inner[1] + h

        return mg.while_loop(lambda i, h: i < n, outer, (0, x))[1].sum()

    agree(triangle, X, 4)


# ---- second derivatives, and other ways to ask


def test_second_derivatives():
    check_grad(lambda x: mg.grad(branch)(x, np.float64(1)).sum(), X)
    check_grad(lambda x: mg.grad(turns)(x, 3).sum(), X)
    w = np.random.default_rng(2).normal(size=(3, 3))
    check_grad(lambda w: (mg.grad(recurrent, 1)(XS, w, X) ** 2).sum(), w)


def test_second_derivatives_on_the_tape():
    def twice(function: Any) -> Any:
        x = mg.array(XS)
        x.attach_grad()
        with autograd.record():
            (first,) = autograd.grad(function(x), [x], create_graph=True)
            y = (first * first).sum()
        y.backward()
        return x.grad.asnumpy()

    def f(xs: Any) -> Any:
        return recurrent(xs, np.eye(3) / 2, xs[0])

    np.testing.assert_allclose(twice(mg.jit(f)), twice(f), 1e-10)


def test_tangents():
    inputs = XS, np.eye(3) / 2, X
    value, tangent = mg.jvp(recurrent, inputs, (None, np.ones((3, 3)), None))
    np.testing.assert_allclose(value, recurrent(*inputs))
    np.testing.assert_allclose(tangent, mg.grad(recurrent, 1)(*inputs).sum())
    _, tangent = mg.jvp(lambda x: turns(x, 3), (X,), (np.ones(3),))
    np.testing.assert_allclose(tangent, mg.grad(turns)(X, 3).sum())


def test_a_pullback_is_used_twice():
    _, pull = mg.vjp(recurrent, XS, np.eye(3) / 2, X)
    for one, two in zip(pull(1.0), pull(2.0), strict=True):
        np.testing.assert_allclose(2 * one, two)

    @mg.jit
    def both(xs: Any) -> Any:
        _, pull = mg.vjp(lambda xs: recurrent(xs, np.eye(3) / 2, X), xs)
        return pull(1.0)[0], pull(2.0)[0]

    one, two = both(XS)
    np.testing.assert_allclose(2 * one, two)


def test_backward_in_compiled_code():
    arrays = [mg.array(each) for each in (XS, np.eye(3) / 2, X)]
    for each in arrays:
        each.attach_grad()

    @mg.jit
    def whole() -> Any:
        with autograd.record():
            y = recurrent(*arrays)
        y.backward()
        return y

    whole()
    expected = recorded(recurrent, XS, np.eye(3) / 2, X)
    for array, other in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array.grad.asnumpy(), other, 1e-10)


# ---- what is not differentiated, and what is not done twice


def test_what_is_paused_in_a_loop_is_a_constant():
    def paused(x: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            with autograd.pause():
                k = np.exp(h)
            return np.sin(h) * k, None

        return mg.scan(step, x, length=20)[0].sum()

    def stopped(x: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            return np.sin(h) * mg.stop_gradient(np.exp(h)), None

        return mg.scan(step, x, length=20)[0].sum()

    expected = recorded(paused, X)[0]
    np.testing.assert_allclose(recorded(mg.jit(paused), X)[0], expected)
    np.testing.assert_allclose(recorded(mg.jit(stopped), X)[0], expected)
    np.testing.assert_allclose(mg.grad(stopped)(X), expected)


def test_what_is_paused_in_a_branch_is_a_constant():
    def paused(x: Any, t: Any) -> Any:
        def then() -> Any:
            with autograd.pause():
                k = np.exp(x)
            return k * x

        return mg.cond(t > 0, then, lambda: x).sum()

    found = recorded(mg.jit(paused), X, np.array(1.0))[0]
    np.testing.assert_allclose(found, np.exp(X))


def test_what_is_paused_in_a_checkpoint_is_a_constant():
    def paused(x: Any) -> Any:
        with autograd.pause():
            k = np.exp(x)
        return k * x

    found = recorded(mg.jit(lambda x: mg.checkpoint(paused)(x).sum()), X)[0]
    np.testing.assert_allclose(found, np.exp(X))


def dropping(x: Any, rng: Any) -> Any:
    def step(h: Any, _: Any) -> Any:
        return np.where(rng.random(3) > 0.3, np.sin(h) * x, h), None

    return (mg.scan(step, x, length=6)[0] ** 2).sum()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_nothing_is_drawn_twice(checkpoint: bool):
    function = dropping
    if checkpoint:

        def function(x: Any, rng: Any) -> Any:
            return mg.checkpoint(lambda x: dropping(x, rng))(x)

    def new() -> Any:
        return np.random.default_rng(5)

    expected = recorded(lambda x: dropping(x, new()), X)[0]
    rng, other = new(), new()
    dropping(X, other)
    np.testing.assert_allclose(mg.grad(function)(X, rng), expected)
    assert rng.bit_generator.state == other.bit_generator.state
    np.testing.assert_allclose(recorded(lambda x: mg.jit(function)(x, new()), X)[0], expected)


def test_a_loop_without_a_limit_does_not_draw_again():
    def noisy(most: int | None) -> Any:
        def function(x: Any, n: Any, rng: Any) -> Any:
            return mg.while_loop(
                lambda i, h: i < n, lambda i, h: (i + 1, h * rng.random(3)), (0, x), max_iter=most
            )[1].sum()

        return function

    found = mg.grad(noisy(8))(X, 4, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(found, np.prod([rng.random(3) for _ in range(4)], axis=0))
    with pytest.raises(UnsupportedError, match="max_iter") as error:
        mg.grad(noisy(None))(X, 4, np.random.default_rng(0))
    assert "test_grad_loops.py" in str(error.value)


def test_a_loop_prints_once(capsys: pytest.CaptureFixture[str]):
    def printing(x: Any, n: Any) -> Any:
        def body(i: Any, h: Any) -> Any:
            print("turn", i)
            return i + 1, np.sin(h)

        return mg.while_loop(lambda i, h: i < n, body, (0, x))[1].sum()

    mg.grad(printing)(X, 2)
    assert capsys.readouterr().out == "turn 0\nturn 1\n"


def test_what_a_loop_raises_is_raised():
    def picking(x: Any, n: Any) -> Any:
        def body(i: Any, h: Any) -> Any:
            return i + 1, h * x[i]

        return mg.while_loop(lambda i, h: i < n, body, (0, np.float64(1)))[1]

    np.testing.assert_allclose(mg.grad(picking)(X, 3), X[[1, 0, 0]] * X[[2, 2, 1]])
    with pytest.raises(IndexError):
        mg.grad(picking)(X, 4)


def test_bools_and_ints_are_carried_along():
    def alternating(x: Any, n: Any) -> Any:
        def body(i: Any, on: Any, at: Any, h: Any) -> Any:
            return i + 1, ~on, (at + 2) % 3, np.where(on, np.sin(h), h * x[at])

        return mg.while_loop(lambda i, on, at, h: i < n, body, (0, np.bool_(True), np.int64(0), x))[
            3
        ].sum()

    agree(alternating, X, 5)


def test_rows_of_a_table_are_looked_up():
    def embedded(table: Any, rows: Any) -> Any:
        return mg.scan(lambda h, row: (np.tanh(h + table[row]), None), np.zeros(3), rows)[0].sum()

    rows = np.array([1, 2, 1, 0] * 5)
    found = mg.grad(embedded)(XS, rows)
    np.testing.assert_allclose(found, recorded(lambda table: embedded(table, rows), XS)[0])


def test_a_state_that_is_written_in_a_loop():
    w, state = mg.array(X), mg.array(np.zeros(3))
    w.attach_grad()

    @mg.jit
    def last(xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            state[:] = mg.stop_gradient(h)
            return h * w + x, None

        return mg.scan(step, xs[0], xs)[0].sum()

    with autograd.record():
        y = last(mg.array(XS))
    y.backward()
    h, slope = XS[0], np.zeros(3)
    for x in XS:
        before, h, slope = h, h * X + x, slope * X + h
    np.testing.assert_allclose(w.grad.asnumpy(), slope)
    np.testing.assert_allclose(state.asnumpy(), before)


def test_what_has_no_derivative_in_a_loop_is_told_with_its_line():
    def periodic(h: Any, _: Any) -> Any:
        return np.interp(h, [0.0, 1.0], [1.0, 2.0], period=3.0), None

    with pytest.raises(UnsupportedError, match="interp") as error:
        mg.grad(lambda x: mg.scan(periodic, x, length=20)[0].sum())(X)
    assert "np.interp(h" in str(error.value)
    with pytest.raises(UnsupportedError, match="complex"):
        mg.grad(lambda x: abs(mg.scan(lambda h, _: (h * 1j, None), x + 0j, length=20)[0]).sum())(X)


# ---- LSTM


def lstm(xs: Any, wx: Any, wh: Any, b: Any) -> Any:
    size = wh.shape[0]

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def step(state: Any, inner: Any) -> Any:
        h, c = state
        gates = inner + h @ wh
        i, f, g, o = (gates[:, at * size : (at + 1) * size] for at in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h, c), h

    start = np.zeros((xs.shape[1], size))
    (h, c), hs = mg.scan(step, (start, start), xs @ wx + b)
    return (hs * hs).sum() + (h * c).sum()


def lstm_inputs() -> list[Any]:
    rng = np.random.default_rng(4)
    return [rng.normal(size=shape) for shape in ((20, 2, 3), (3, 16), (4, 16), (16,))]


def test_an_lstm():
    agree(lstm, *lstm_inputs())
    check_grad(lstm, *lstm_inputs())


def test_the_turn_back_of_an_lstm_is_one_loop_and_one_product():
    compiled = mg.grad(lstm, (0, 1, 2, 3))
    compiled(*lstm_inputs())
    graph = compiled.graph()
    forward, backward = (node for node in graph.nodes if node.op.name == "scan")
    names = [node.op.name for node in backward.attrs["body"].nodes]
    assert names.count("matmul") == 1 and names.count("concatenate") == 1
    assert not {"update", "zeros", "exp", "tanh"} & set(names)
    assert backward.attrs["carried"] == 2  # no sum of weights
    assert len(forward.outputs) <= 2 + 1 + 6


def test_an_lstm_as_torch_has_it():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    xs, wx, wh, b = lstm_inputs()
    tensors = [torch.tensor(each, requires_grad=True) for each in (xs, wx, wh, b)]
    layer = torch.nn.LSTM(3, 4, dtype=torch.float64)
    weights = {
        "weight_ih_l0": tensors[1].T,
        "weight_hh_l0": tensors[2].T,
        "bias_ih_l0": tensors[3],
        "bias_hh_l0": torch.zeros(16, dtype=torch.float64),
    }
    hs, (h, c) = torch.func.functional_call(layer, weights, (tensors[0],))
    ((hs * hs).sum() + (h * c).sum()).backward()
    found = mg.grad(lstm, (0, 1, 2, 3))(xs, wx, wh, b)
    for gradient, tensor in zip(found, tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), 1e-10)


# ---- random ones


random_loops = given(seed=st.integers(0, 2**32), length=st.integers(2, 4), turns=st.integers(0, 4))


@random_loops
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
def test_random_loops_have_the_gradients_of_python(seed: int, length: int, turns: int):
    check_random(seed, length, turns)


@pytest.mark.slow
@random_loops
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_many_random_loops_have_the_gradients_of_python(seed: int, length: int, turns: int):
    check_random(seed, length, turns)


def check_random(seed: int, length: int, turns: int):
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=shape) for shape in ((2, 3), (length, 2, 3), (3, 3))]
    function = looping(seed)

    def loss(x: Any, rows: Any, w: Any, turns: Any) -> Any:
        return (function(x, rows, w, turns) ** 2).sum()

    compiled = mg.jit(loss, backend="interpret")
    expected = recorded(loss, *inputs, turns)
    for found in (mg.grad(compiled, (0, 1, 2))(*inputs, turns), recorded(compiled, *inputs, turns)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-7, 1e-9)
