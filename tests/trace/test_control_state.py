"""Branches and loops that change what is around: memory, containers, variables; and that raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import same_as_eager

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import FreedError

X = np.arange(3.0)
LONG = np.arange(40.0)
ROWS = np.arange(60.0).reshape(20, 3)


# ---- memory -----------------------------------------------------------------------------------


def branch_writes(x: Any) -> Any:
    def then() -> None:
        x[0] = 5

    mg.cond(x.sum() > 2, then, lambda: None)
    return x * 2


def loop_writes(x: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        x[i % 3] += total
        return total + 1

    return mg.for_loop(range(100), body, 0) + x.sum()


def view_and_base(x: Any) -> Any:
    rest = x[1:]

    def body(i: Any) -> None:
        rest[0] += 1
        x[0] += rest[0]

    mg.for_loop(range(50), body)
    return x * 1, rest * 1


def printing(x: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        print("at", i, total, x)
        x[0] = total
        return total + x[1]

    return mg.for_loop(range(20), body, np.float64(1))


def rows(m: Any) -> Any:
    def body(row: Any) -> None:
        row[0] += 1
        row *= 2

    mg.for_loop(m, body)
    return m.sum()


def rows_in_reverse(m: Any) -> Any:
    def step(count: Any, row: Any) -> Any:
        row[0] = count
        return count + 1, row[1]

    return mg.scan(step, 0, m, reverse=True)


def rows_of_what_is_written(m: Any) -> Any:
    def body(pair: Any, total: Any) -> Any:
        at, row = pair
        m[19 - at] = row * 0.5
        return total + row[0]

    return mg.for_loop(enumerate(m), body, np.float64(0))


def a_test_that_writes(x: Any) -> Any:
    def test(i: Any) -> Any:
        x[0] += 1
        return x[0] < 5

    return mg.while_loop(test, lambda i: i + 1, 0)


def written_then_exchanged(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y[0] = i
        return y * 2

    return mg.for_loop(range(30), body, x * 1)


def written_and_sometimes_exchanged(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y[i % 3] += i
        return mg.cond(y.sum() > 100, lambda: y / 2, lambda: y)

    return mg.for_loop(range(30), body, x * 1)


def changing_places(x: Any) -> Any:
    return mg.for_loop(range(101), lambda i, a, b: (b, a), (x * 1, x * 2))


@pytest.mark.parametrize(
    "function",
    [
        branch_writes,
        loop_writes,
        view_and_base,
        printing,
        a_test_that_writes,
        written_then_exchanged,
        written_and_sometimes_exchanged,
        changing_places,
    ],
)
@pytest.mark.parametrize("x", [X, -X])
def test_memory(function: Callable[..., Any], x: Any):
    same_as_eager(function, x)


@pytest.mark.parametrize("function", [rows, rows_in_reverse, rows_of_what_is_written])
@pytest.mark.parametrize("m", [ROWS, ROWS.copy(order="F")])
def test_memory_of_rows(function: Callable[..., Any], m: Any):
    same_as_eager(function, m)


# ---- what Python holds ------------------------------------------------------------------------


class Tally:
    def __init__(self) -> None:
        self.count = 0
        self.last: Any = None


def variables(x: Any) -> Any:
    count = 0
    pair = [0.0, x[0]]
    named = {"low": x[0], "high": x[0]}

    def body(v: Any) -> None:
        nonlocal count
        count += 1
        pair[1] = pair[1] + v
        named["high"] = named["low"] + v

    mg.for_loop(x, body)
    return count, pair, named


def objects(x: Any) -> Any:
    tally = Tally()
    tally.last = x[0]

    def body(v: Any) -> None:
        tally.count += 1
        tally.last = tally.last + v

    mg.for_loop(x, body)
    return tally.count, tally.last


def both_append(x: Any) -> Any:
    found: list[Any] = []
    mg.cond(x[0] > 0, lambda: found.append(x[0]), lambda: found.append(x[1]))
    return found


def one_exchanges(x: Any) -> Any:
    found = [x, 1]

    def then() -> None:
        found[0] = x * 2

    mg.cond(x[1] > 0, then, lambda: None)
    return found


@pytest.mark.parametrize("function", [variables, objects, both_append, one_exchanges])
@pytest.mark.parametrize("x", [LONG, -LONG, LONG[:4] + 1])
def test_what_python_holds(function: Callable[..., Any], x: Any):
    same_as_eager(function, x)


# ---- exceptions -------------------------------------------------------------------------------


def fail(error: Exception) -> Any:
    raise error


def raises(x: Any) -> Any:
    return mg.cond(x.sum() < 0, lambda: fail(ValueError("negative")), lambda: x * 2)


def raises_in_a_loop(x: Any) -> Any:
    def body(v: Any) -> Any:
        x[0] += 1
        mg.cond(v > 3, lambda: fail(KeyError("k")), lambda: None)
        return v + x[0]

    return mg.while_loop(lambda v: v < 10, body, x[1])


def both_raise(x: Any) -> Any:
    mg.cond(x[0] > 0, lambda: fail(ValueError("a")), lambda: fail(KeyError("b")))
    return x


def raises_in_every_turn(x: Any) -> Any:
    return mg.while_loop(lambda v: v < 1, lambda v: fail(RuntimeError("turn")), x[1])


@pytest.mark.parametrize("function", [raises, raises_in_a_loop, both_raise, raises_in_every_turn])
@pytest.mark.parametrize("x", [X, -X, X + 1, X + 9])
def test_exceptions(function: Callable[..., Any], x: Any):
    same_as_eager(function, x)


# ---- gradients --------------------------------------------------------------------------------


def recorded_inside(w: Any, xs: Any, ts: Any) -> Any:
    def body(pair: Any, total: Any) -> Any:
        x, t = pair
        with autograd.record():
            loss = ((w * x).sum() - t) ** 2
        loss.backward()
        with autograd.pause():
            w[:] = w - 0.1 * w.grad
        return total + loss

    return mg.for_loop(zip(xs, ts), body, mg.array(0.0))  # noqa: B905


def test_training_in_a_loop():
    xs = np.random.default_rng(0).normal(size=(40, 2))
    found = []
    for step in (recorded_inside, mg.jit(recorded_inside)):
        w = mg.array([0.5, -0.5])
        w.attach_grad()
        total = step(w, mg.array(xs), mg.array(xs @ [1.0, 2.0]))
        found.append([*w.asnumpy(), total.asnumpy()])
    np.testing.assert_allclose(*found)


def recorded_around(x: Any) -> Any:
    with autograd.record():

        def step(carry: Any, v: Any) -> Any:
            with autograd.pause():
                constant = carry * 1
            return carry * v + constant, None

        last, _ = mg.scan(step, x[0] * 1, x)
        y = mg.cond(last > 0, lambda: last * 2, lambda: last * 3)
    y.backward()
    return y


def test_backward_through_what_is_recorded():
    found = []
    for step in (recorded_around, mg.jit(recorded_around)):
        x = mg.array([1.0, 2.0, 3.0])
        x.attach_grad()
        y = step(x)
        found.append([*x.grad.asnumpy(), y.asnumpy()])
    np.testing.assert_allclose(*found)


def recorded_in_turns(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        with autograd.record():
            y = y * x
        return y

    y = mg.for_loop(range(20), body, x * 1)
    y.backward()
    return y


def both_go_back(x: Any) -> Any:
    with autograd.record():
        y = (x * x).sum()

    def back(scale: int) -> Any:
        y.backward()
        return y * scale

    return mg.cond(y > 3, lambda: back(1), lambda: back(2))


def written_and_printed(x: Any) -> Any:
    with autograd.record():
        y, _ = mg.scan(lambda carry, v: (carry * v, None), x[0] * 1, x)
    y.backward()

    def body(i: Any) -> None:
        x[:] = x - 0.1 * x.grad
        print(x)

    mg.for_loop(range(20), body)
    return y


@pytest.mark.parametrize("step", [recorded_in_turns, both_go_back, written_and_printed])
def test_records(step: Callable[..., Any], capsys: pytest.CaptureFixture[str]):
    found = []
    for function in (step, mg.jit(step)):
        x = mg.array([1.0, 1.2, 1.3])
        x.attach_grad()
        y = function(x)
        numbers = np.concatenate([x.grad.asnumpy(), x.asnumpy(), y.asnumpy().ravel()])
        found.append((numbers, capsys.readouterr().out))
    (eager, said), (compiled, printed) = found
    np.testing.assert_allclose(compiled, eager, rtol=1e-13)
    assert printed == said


def goes_back_in_every_turn(x: Any) -> Any:
    with autograd.record():
        y = (x * x).sum()
    mg.for_loop(range(20), lambda i: y.backward())


def test_a_record_is_used_once():
    for function in (goes_back_in_every_turn, mg.jit(goes_back_in_every_turn)):
        x = mg.array([1.0, 2.0])
        x.attach_grad()
        with pytest.raises(FreedError):
            function(x)


class Branching(nn.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(3, in_units=3)
        self.second = nn.Dense(3, in_units=3)

    def forward(self, x: Any) -> Any:
        y = mg.cond(x.sum() > 0, lambda: self.first(x), lambda: self.second(x))
        return mg.while_loop(lambda y: (y * y).sum() < 10, lambda y: self.first(y) + y + 1, y)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_block_with_branches(sign: int):
    net = Branching()
    net.initialize()
    x = mg.array(np.array([[1.0, 2.0, 3.0]], "f4") * sign)
    found = []
    for hybrid in (False, True):
        if hybrid:
            net.hybridize()
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        gradients = [p.grad().asnumpy().copy() for p in net.collect_params().values()]
        found.append([loss.asnumpy(), *gradients])
    for eager, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5)


class Counter:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self) -> int:
        self.asked += 1
        return self.asked


def counts_itself(x: Any) -> Any:
    held = {"n": 0}

    def test(state: Any) -> Any:
        held["n"] += 1
        return held["n"] < x[0]

    mg.while_loop(test, lambda state: state, 0)
    return x + held["n"]


def methods_count(x: Any) -> Any:
    counter = Counter()
    mg.while_loop(lambda state: counter.ask() < x[0], lambda state: state, 0)
    return x + counter.asked


@pytest.mark.parametrize("function", [counts_itself, methods_count])
def test_a_test_is_asked_once(function: Callable[..., Any]):
    for first in (1.0, 3.0, 30.0):
        x = np.array([first, 2.0])
        np.testing.assert_array_equal(mg.jit(function)(x), function(x))
