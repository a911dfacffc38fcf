"""Eager arrays in jitted functions: what goes in as one comes out as one, and gradients flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd
from minigraph.errors import (
    FreedError,
    RecordedWriteError,
    RecordError,
    StateError,
    TracerLeakError,
)

WEIGHT = mg.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
X = np.array([[1.0, -2.0], [0.5, 3.0]])


def equal(found: Any, expected: Any) -> None:
    assert type(found) is type(expected), (type(found), type(expected))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def f(x: Any) -> Any:
    return {"y": np.tanh(x) * 2, "sum": x.sum(), "count": len(x)}


@pytest.mark.parametrize("make", [np.asarray, mg.array])
def test_results_are_what_was_given(make: Any) -> None:
    jitted = mg.jit(f)
    for _ in range(2):
        found, expected = jitted(make(X)), f(make(X))
        assert found["count"] == 2
        for name in ("y", "sum"):
            equal(found[name], expected[name])
    assert len(jitted.cache_info()) == 1


def test_each_class_has_an_entry() -> None:
    jitted = mg.jit(lambda x: x + 1)
    equal(jitted(X), X + 1)
    equal(jitted(mg.array(X)), mg.array(X) + 1)
    equal(jitted(X), X + 1)
    assert jitted.cache_info().retraces == ["x is Array, was ndarray float64(2, 2)"]


def test_structures_of_arrays() -> None:
    jitted = mg.jit(lambda p, n: [p["w"] * n, (p["b"][0],)])
    given = {"w": mg.array(X), "b": (X[0], 3)}
    found = jitted(given, 2.0)
    equal(found[0], mg.array(X) * 2.0)
    assert type(found[1][0]) is mg.Array  # one array among the arguments makes all results arrays


def test_memory_is_not_copied_on_the_way_in() -> None:
    def add(x: Any, y: Any) -> None:
        x += y
        x[0] = 7.0

    data = X.copy()
    array = mg.array(data)
    memory = array.data_
    jitted = mg.jit(add)
    for _ in range(2):
        jitted(array, 1.0)
    add(mg.array(data), 1.0)
    assert array.data_ is memory
    expected = X + 2.0
    expected[0] = 7.0
    np.testing.assert_array_equal(memory, expected)


def test_captured_arrays_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = mg.jit(lambda x: x @ WEIGHT)
    equal(jitted(mg.array(X)), mg.array(X) @ WEIGHT)
    equal(jitted(X), X @ WEIGHT)  # as eagerly: an eager array took part
    entries = len(jitted.cache_info())
    WEIGHT[0] = 9.0
    equal(jitted(mg.array(X)), mg.array(X) @ WEIGHT)
    assert len(jitted.cache_info()) == entries
    monkeypatch.setitem(globals(), "WEIGHT", mg.array(np.ones((2, 3))))
    equal(jitted(mg.array(X)), mg.array(X) @ WEIGHT)
    assert len(jitted.cache_info()) == entries  # of the same type, so bound anew
    monkeypatch.setitem(globals(), "WEIGHT", mg.array(np.ones((2, 4))))
    equal(jitted(mg.array(X)), mg.array(X) @ WEIGHT)
    assert "WEIGHT" in jitted.cache_info().retraces[-1]


def test_inside_they_are_arrays() -> None:
    seen: list[Any] = []

    def look(x: Any) -> Any:
        y = x.sum()
        return (
            isinstance(x, mg.Array),
            isinstance(y, mg.Array),
            isinstance(x, np.ndarray),
            type(x) is mg.Array,
            y.shape,
            hasattr(x, "asnumpy"),
        )

    del seen
    assert mg.jit(look)(mg.array(X)) == look(mg.array(X))
    plain = mg.jit(lambda x: (isinstance(x, mg.Array), hasattr(x, "asnumpy")))
    assert plain(X) == (False, False)


def test_numbers_cannot_be_taken_out() -> None:
    with pytest.raises(TracerLeakError, match=r"\.asnumpy\(\) takes the numbers out"):
        mg.jit(lambda x: x.asnumpy())(mg.array(X))


def test_dynamic_axes() -> None:
    jitted = mg.jit(lambda x: x * 2, dynamic={"x": {0: "n"}})
    for count in (1, 2, 3):
        x = mg.array(np.ones((count, 2)))
        equal(jitted(x), x * 2)
    assert len(jitted.cache_info()) == 1


# ---- gradients of calls


def gradients(function: Any, *arrays: Any) -> list[Any]:
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        loss = (function(*arrays) ** 2).sum()
    loss.backward()
    return [array.grad.asnumpy() for array in arrays]


def two(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0.0) * np.tanh(x).sum()


def test_a_call_is_one_node_on_the_tape() -> None:
    jitted = mg.jit(two)
    for _ in range(2):
        found = gradients(jitted, mg.array(X), mg.array(X))
        expected = gradients(two, mg.array(X), mg.array(X))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert len(jitted.cache_info()) == 1
    text = str(jitted.graph("joint"))
    assert text.count("matmul") >= 3 and "maximum" in text
    assert [stage.name for stage in jitted.joint.stages][0] == "traced"


def test_entries_for_what_carries_a_gradient() -> None:
    jitted = mg.jit(two)
    x, w = mg.array(X), mg.array(X)
    jitted(x, w)
    w.attach_grad()
    with autograd.record():
        (jitted(x, w)).sum().backward()
        assert type(jitted(x, w.detach())) is mg.Array
    assert x.grad is None
    expected = gradients(lambda w: two(mg.array(X), w), mg.array(X))
    with autograd.record():
        loss = (jitted(x, w) ** 2).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), expected[0], rtol=1e-12)
    assert jitted.cache_info().retraces[0] == "no longer: the mode is not recording"
    assert "gradient" in jitted.cache_info().retraces[1]


def test_results_of_calls_go_on() -> None:
    jitted = mg.jit(lambda x: np.sin(x) * x)

    def twice(f: Any) -> Any:
        return lambda x: f(f(x) + x).mean()

    found = gradients(twice(jitted), mg.array(X))
    expected = gradients(twice(jitted.function), mg.array(X))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)


def test_captured_arrays_have_gradients() -> None:
    w = mg.array(X)
    w.attach_grad()
    jitted = mg.jit(lambda x: x @ w)
    with autograd.record():
        loss = jitted(X).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), np.tile(X.sum(0)[:, None], 2))


def test_pause_and_detach_stop_gradients() -> None:
    def stopped(x: Any) -> Any:
        with autograd.pause():
            scale = x.sum()
        return x * scale * x.detach()

    found = gradients(mg.jit(stopped), mg.array(X))
    expected = gradients(stopped, mg.array(X))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)


def test_the_mode_is_guarded_where_it_is_read() -> None:
    jitted = mg.jit(lambda x: x * 2 if autograd.is_training() else x)
    equal(jitted(X), X)
    with autograd.train_mode():
        equal(jitted(X), X * 2)
    equal(jitted(X), X)
    assert len(jitted.cache_info()) == 2
    assert "training mode is off" in jitted.cache_info().retraces[0]


def test_a_compiled_write_into_what_is_recorded_is_known() -> None:
    fill = mg.jit(lambda x: x.__setitem__(..., 0.0))
    x = mg.array(X)
    x.attach_grad()
    with autograd.record():
        loss = (x * x).sum()
    fill(x)
    with pytest.raises(RecordedWriteError):
        loss.backward()


# ---- gradients inside


def test_backward_inside_of_a_trace() -> None:
    w = mg.array(X)
    w.attach_grad()

    def step(x: Any) -> Any:
        with autograd.record():
            loss = ((x @ w) ** 2).mean()
        loss.backward()
        w[...] = w - 0.1 * w.grad
        return loss

    jitted = mg.jit(step)
    found = [float(jitted(mg.array(X))) for _ in range(3)]
    compiled, gradient = w.asnumpy(), w.grad.asnumpy()
    w[...] = X
    expected = [float(step(mg.array(X))) for _ in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(compiled, w.asnumpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient, w.grad.asnumpy(), rtol=1e-12)
    assert len(jitted.cache_info()) == 1


@pytest.mark.parametrize("request_", ["write", "add"])
def test_gradients_are_stored_as_asked(request_: str) -> None:
    w = mg.array(X)
    w.attach_grad(request_)

    def double(x: Any) -> None:
        with autograd.record():
            loss = (x * w).sum()
        loss.backward()
        with autograd.record():
            loss = (x * w * w).sum()
        loss.backward()

    mg.jit(double)(mg.array(X))
    found = w.grad.asnumpy()
    assert w.fresh_grad
    w.attach_grad(request_)
    double(mg.array(X))
    np.testing.assert_array_equal(found, w.grad.asnumpy())


def test_gradients_of_the_trace_s_own_arrays() -> None:
    def own(x: Any) -> Any:
        y = x * 2
        y.attach_grad()
        with autograd.record():
            loss = (y**3).sum()
        loss.backward()
        return y.grad

    equal(mg.jit(own)(mg.array(X)), own(mg.array(X)))


def test_what_gradients_need_is_kept_before_it_is_written() -> None:
    """A print in between makes the write happen at once; the gradient is that of what was."""
    w = mg.array(X)
    w.attach_grad()

    def step(x: Any) -> Any:
        with autograd.record():
            loss = (x * w * w).sum()
        loss.backward()
        gradient = w.grad * 1
        w[...] = 0.0
        print("written")
        return gradient + w

    found = mg.jit(step)(mg.array(X))
    w[...] = X
    equal(found, step(mg.array(X)))


def test_what_becomes_of_gradients_is_guarded() -> None:
    w = mg.array(X)
    w.attach_grad()

    @mg.jit
    def step(x: Any) -> None:
        with autograd.record():
            loss = (x * w).sum()
        loss.backward()

    for request in ("write", "add"):
        w.attach_grad(request)
        step(mg.array(X))
        step(mg.array(X))
        np.testing.assert_array_equal(w.grad, X * (1 if request == "write" else 2))
    w.attach_grad("null")
    with pytest.raises(RecordError, match=r"x\.attach_grad\(\)"):
        step(mg.array(X))  # as eagerly: nothing carries a gradient


def test_a_record_is_used_once() -> None:
    w = mg.array(X)
    w.attach_grad()

    def twice(x: Any, retain: bool) -> None:
        with autograd.record():
            y = x * w
            first, second = y.sum(), (y * y).sum()
        first.backward(retain_graph=retain)
        second.backward()

    mg.jit(twice)(mg.array(X), True)
    np.testing.assert_array_equal(w.grad, 2 * X * X * X)
    for run in (twice, mg.jit(twice)):
        with pytest.raises(FreedError):
            run(mg.array(X), False)


def test_mistakes_are_told() -> None:
    w = mg.array(X)
    w.attach_grad()
    with pytest.raises(RecordError, match="not recorded"):
        mg.jit(lambda x: (x * w).sum().backward())(mg.array(X))

    def attach(x: Any) -> None:
        x.attach_grad()

    with pytest.raises(StateError, match="from outside"):
        mg.jit(attach)(mg.array(X))


# ---- arrays that are made inside


MADE_INSIDE = {
    "added to a number": lambda s: s + mg.array([1.0, 2.0]),
    "and exchanged": lambda s: mg.array([1.0, 2.0]) + s,
    "summed": lambda s: s + mg.array([1.0, 2.0]).sum(),
    "a power": lambda s: s ** mg.array([1.0, 2.0]),
    "compared": lambda s: (s < mg.array([1.0, 2.0]), mg.array([1.0, 2.0]) == s),
    "divmod": lambda s: divmod(mg.array([1.0, 2.0]), s),
    "with a list": lambda s: [s, 1.0] + mg.array([1.0, 2.0]) * [s, 2.0],
    "with what is traced": lambda s: (np.ones(2) * s) / mg.array([1.0, 2.0]),
}


@pytest.mark.parametrize("function", MADE_INSIDE.values(), ids=MADE_INSIDE.keys())
def test_arrays_made_inside_go_with_numbers_that_are_arguments(function: Any) -> None:
    found, expected = mg.jit(function)(1.5), function(1.5)
    assert type(found) is type(expected)
    pairs = zip(found, expected, strict=True) if type(found) is tuple else [(found, expected)]
    for one, other in pairs:
        assert type(one) is type(other) is mg.Array
        np.testing.assert_array_equal(one, other)


def test_traces_of_eager_arrays() -> None:
    captured = mg.array(X)
    for function in (lambda x: x * captured, lambda x: x * mg.array(X)):
        for x in (X, captured):
            assert "multiply" in str(mg.trace(function, x))
