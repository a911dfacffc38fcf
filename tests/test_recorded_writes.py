"""Functions that write: run by Python and compiled, recorded or not, differentiated by `mg.grad`.

Numbers, gradients and what the caller's arrays hold afterwards are the same, or there is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import (
    MinigraphError,
    RecordedWriteError,
    RecordError,
    ShapeError,
    StateError,
    WriteError,
)

BUFFER = mg.array([0.0, 0.0, 0.0])


def into_an_argument(x: Any, z: Any) -> Any:
    z[...] = x * 3
    return z.sum()


def into_an_argument_without_gradient(x: Any, z: Any) -> Any:
    z[...] = mg.stop_gradient(x * 3)
    return (z * x).sum()


def into_an_argument_paused(x: Any, z: Any) -> Any:
    y = x * 3
    with autograd.pause():
        z[...] = y
    return x.sum()


def into_a_view(x: Any, z: Any) -> Any:
    part = z[1:]
    part[...] = x[1:] * 2
    return (z * x).sum()


def numbers_before_the_use(x: Any, z: Any) -> Any:
    z[...] = 5.0
    return (x * z).sum()


def numbers_after_the_use(x: Any, z: Any) -> Any:
    y = (x * z).sum()
    z[...] = 5.0
    return y


def into_what_was_made(x: Any, z: Any) -> Any:
    y = x * 2
    y[0] = x[1] * 5
    y += x
    return (y * y).sum()


def into_a_view_of_what_was_made(x: Any, z: Any) -> Any:
    y = x * 2
    part = y[1:]
    part *= 3
    return (y * y).sum()


def through_what_has_no_gradient(x: Any, z: Any) -> Any:
    y = x * 2
    constant = mg.stop_gradient(y)
    constant[0] = 100.0
    return (y * y).sum()


def behind_what_has_no_gradient(x: Any, z: Any) -> Any:
    y = x * 2
    constant = mg.stop_gradient(y)
    y[0] = 100.0
    return (constant * x).sum()


def into_the_variable(x: Any, z: Any) -> Any:
    x[0] = 5.0
    return (x * x).sum()


def into_a_global(x: Any, z: Any) -> Any:
    BUFFER[...] = x * 2
    return (BUFFER * x).sum()


FUNCTIONS = [
    into_an_argument,
    into_an_argument_without_gradient,
    into_an_argument_paused,
    into_a_view,
    numbers_before_the_use,
    numbers_after_the_use,
    into_what_was_made,
    into_a_view_of_what_was_made,
    through_what_has_no_gradient,
    behind_what_has_no_gradient,
    into_the_variable,
    into_a_global,
]


class Written(nn.HybridBlock):
    """A function as a block."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, z: Any) -> Any:
        return self.function(x, z)


def hybridized(function: Callable[..., Any]) -> Any:
    return Written(function).hybridize()


def outcome(run: Callable[[Any, Any], Any], make: Callable[..., Any] = mg.array) -> Any:
    """What a run gives, and what the arrays hold then; or its error."""
    global BUFFER
    BUFFER = mg.array([0.0, 0.0, 0.0])
    x, z = make([1.0, 2.0, 3.0]), make([0.0, 1.0, 0.0])
    try:
        found = run(x, z)
    except MinigraphError as error:
        return error
    return [np.asarray(each).tolist() for each in (*found, x.copy(), z.copy(), BUFFER.copy())]


def called(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda x, z: (function(x, z),)


def recorded(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The gradient of a result and of what was written."""

    def run(x: Any, z: Any) -> Any:
        x.attach_grad()
        with autograd.record():
            y = function(x, z)
            loss = y + (z * z).sum() + (BUFFER * BUFFER).sum()
        loss.backward()
        return y.asnumpy(), loss.asnumpy(), x.grad.asnumpy()

    return run


def agree(one: Any, other: Any) -> bool:
    """Both give the same, or one is an error."""
    return isinstance(one, MinigraphError) or isinstance(other, MinigraphError) or one == other


def same_in_every_way(function: Callable[..., Any], observe: Callable[..., Any]) -> None:
    python = outcome(observe(function))
    for compiled in (mg.jit(function), hybridized(function)):
        for _ in range(2):
            found = outcome(observe(compiled))
            assert agree(found, python), (found, python)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_writes_are_those_of_python(function: Callable[..., Any]) -> None:
    same_in_every_way(function, called)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_recorded_writes_have_the_gradients_of_python(function: Callable[..., Any]) -> None:
    same_in_every_way(function, recorded)


@pytest.mark.parametrize("make", [np.array, mg.array])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_of_functions_that_write(function: Any, make: Callable[..., Any]) -> None:
    def run(x: Any, z: Any) -> Any:
        return (mg.grad(function)(x, z),)

    compiled = outcome(run, make)
    with mg.eager():
        python = outcome(run, make)
    assert agree(compiled, python), (compiled, python)


REFUSED = {
    into_an_argument: "compiled code stores values that carry a gradient into z",
    into_a_view: "compiled code stores values that carry a gradient into z",
    into_a_global: "compiled code stores values that carry a gradient into BUFFER",
    into_the_variable: "an array with a gradient attached is written while recording",
    through_what_has_no_gradient: "an array is written through another",
}


@pytest.mark.parametrize("compile_", [mg.jit, hybridized])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_which_recorded_writes_are_refused(function: Any, compile_: Callable[..., Any]) -> None:
    found = outcome(recorded(compile_(function)))
    if function in REFUSED:
        assert isinstance(found, RecordError | WriteError)
        assert REFUSED[function] in str(found)
        assert "test_recorded_writes.py" in str(found)
    else:
        assert not isinstance(found, MinigraphError), found


def test_a_recorded_array_is_not_written_by_compiled_code() -> None:
    @mg.jit
    def write(t: Any) -> Any:
        t[0] = t[1] * 5
        return t.sum()

    x = mg.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        t = x * 1
        with pytest.raises(RecordError, match="writes into t, which is recorded"):
            write(t)


@pytest.mark.parametrize("compile_", [mg.jit, hybridized])
def test_a_variable_is_not_replaced_and_used(compile_: Callable[..., Any]) -> None:
    def clip(x: Any, w: Any) -> Any:
        with autograd.pause():
            w[...] = np.clip(w, -2, 2)
        return (w * x).sum()

    def clip_after_use(x: Any, w: Any) -> Any:
        y = (w * x).sum()
        with autograd.pause():
            w[...] = np.clip(w, -2, 2)
        return y

    x, w = with_gradient(), with_gradient()
    with autograd.record(), pytest.raises(RecordError, match="and uses it then"):
        compile_(clip)(x, w)
    with autograd.record():
        y = compile_(clip_after_use)(x, w)
    y.backward()
    for found, expected in ((w, [1, 2, 2]), (w.grad, [1, 2, 3]), (x.grad, [1, 2, 3])):
        np.testing.assert_array_equal(found, expected)


def test_what_compiled_code_records_itself_ends_with_it() -> None:
    @mg.jit
    def record(x: Any, z: Any) -> Any:
        with autograd.record():
            z[...] = x * 3
            return x * 2

    x, z = with_gradient(), mg.array([0.0, 0.0, 0.0])
    y = record(x, z)
    for array in (y, z):
        with pytest.raises(RecordError, match="was not recorded"):
            array.backward()


def test_running_values_without_gradients_are_written() -> None:
    class Counter(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.seen = nn.Parameter("seen", (3,), "float64", init="zeros", grad_req="null")

        def forward(self, x: Any) -> Any:
            seen = self.seen.data()
            seen[...] = seen * 0.5 + mg.stop_gradient(x)
            return (x * seen).sum()

    found = []
    for hybrid in (False, True):
        net = Counter()
        net.initialize()
        net.hybridize(active=hybrid)
        x = mg.array([1.0, 2.0, 3.0])
        x.attach_grad()
        for _ in range(2):
            with autograd.record():
                y = net(x)
            if hybrid:  # Python needs what was there
                y.backward()
        found.append((net.seen.data().asnumpy(), y.asnumpy()))
    np.testing.assert_allclose(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1])
    np.testing.assert_allclose(x.grad, found[1][0])


def test_running_statistics_behind_a_checkpoint_are_written() -> None:
    class Normed(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm(in_channels=2)

        def forward(self, x: Any) -> Any:
            return mg.checkpoint(self.norm)(x * 2)

    net = Normed()
    net.initialize()
    net.hybridize()
    x = mg.array([[1.0, 2.0], [3.0, 5.0]], dtype="float32")
    x.attach_grad()
    with autograd.record():
        y = (net(x) ** 3).sum()
    y.backward()
    np.testing.assert_allclose(net.norm.running_mean.data(), [0.4, 0.7], rtol=1e-6)


# ---- gradients inside of a trace


def with_gradient() -> Any:
    x = mg.array([1.0, 2.0, 3.0])
    x.attach_grad()
    return x


def both(function: Callable[[Any], Any]) -> list[Any]:
    """What Python and compiled code give, or their errors."""
    found: list[Any] = []
    for run in (function, mg.jit(function)):
        with contextlib.suppress(MinigraphError):
            found.append(run(with_gradient()).asnumpy().tolist())
            continue
        found.append("error")
    return found


def error_of(function: Callable[[Any], Any]) -> MinigraphError:
    with pytest.raises(MinigraphError) as python:
        function(with_gradient())
    with pytest.raises(type(python.value)) as compiled:
        mg.jit(function)(with_gradient())
    assert str(compiled.value).partition("\n")[0] == str(python.value).partition("\n")[0]
    return compiled.value


def square(x: Any) -> Any:
    with autograd.record():
        return (x * x).sum()


def test_gradients_by_an_array_that_was_written() -> None:
    def needed(x: Any) -> Any:
        y = square(x)
        with autograd.pause():
            x[...] = 0.0
        return autograd.grad(y, x)

    def not_needed(x: Any) -> Any:
        with autograd.record():
            y = (x * 2).sum()
        x[...] = 0.0
        with autograd.record():
            y = y + (x * 3).sum()
        return autograd.grad(y, x)

    def stored(x: Any) -> Any:
        with autograd.record():
            y = (x * 2).sum()
        x[...] = 0.0
        with autograd.record():
            y = y + (x * 3).sum()
        y.backward()
        return x.grad

    assert isinstance(error_of(needed), RecordedWriteError)
    assert both(not_needed) == both(stored) == [[5.0, 5.0, 5.0]] * 2


def test_gradients_by_what_has_none() -> None:
    def constant(x: Any) -> Any:
        z = x.detach() * 1
        with autograd.record():
            y = (x * z).sum()
        return autograd.grad(y, z)

    def made_inside(x: Any) -> Any:
        z = mg.array([1.0, 1.0, 1.0])
        z.attach_grad()
        with autograd.record():
            y = (x * z).sum()
        y.backward()
        return z.grad

    def elsewhere(x: Any) -> Any:
        z = x * 2
        z.attach_grad()
        return autograd.grad(square(x), z)

    assert "no gradient attached" in str(error_of(constant))
    assert both(made_inside) == [[1.0, 2.0, 3.0], "error"]
    assert both(elsewhere) == [[0.0, 0.0, 0.0]] * 2
    with pytest.raises(StateError, match="known while tracing"):
        mg.jit(made_inside)(with_gradient())


def test_gradients_by_views() -> None:
    def view(x: Any) -> Any:
        with autograd.record():
            part = x[1:]
            y = (part * part).sum()
        return autograd.grad(y, part)

    assert both(view) == [[4.0, 6.0]] * 2


def test_head_gradients_have_the_shape_of_heads() -> None:
    def other_shape(x: Any) -> Any:
        with autograd.record():
            y = x * x
        y.backward(mg.array([1.0]))
        return x.grad

    def number(x: Any) -> Any:
        square(x).backward(2.0)
        return x.grad

    assert isinstance(error_of(other_shape), ShapeError)
    assert both(number) == [[4.0, 8.0, 12.0]] * 2


def test_variables_are_marked_before_the_call() -> None:
    def outside(x: Any) -> Any:
        autograd.mark_variables(x, x * 0)
        return x

    def own(x: Any) -> Any:
        y, gradient = x * 2, x * 0
        autograd.mark_variables(y, gradient)
        square(y).backward()
        return gradient

    with pytest.raises(StateError, match="from outside"):
        mg.jit(outside)(with_gradient())
    assert both(own) == [[4.0, 8.0, 12.0]] * 2


# ---- arrays without their gradient


def test_detached_arrays_look_into_the_same_memory() -> None:
    def followed(x: Any) -> Any:
        y = x * 2
        constant = y.detach()
        y[0] = 100.0
        return constant * 1

    def view(x: Any) -> Any:
        constant = x.detach()[1:]
        x[...] = 7.0
        return constant + x[1:]

    assert both(followed) == [[100.0, 4.0, 6.0]] * 2
    assert both(view) == [[14.0, 14.0]] * 2


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("view", [lambda x: x.detach(), lambda x: x.detach()[0:], lambda x: x])
def test_attached_gradients_begin_anew(view: Callable[[Any], Any], made: bool) -> None:
    def function(x: Any) -> Any:
        with autograd.record():
            y = view(x * 2 if made else x[0:])
            y.attach_grad()
            z = (y * y * x).sum()
        z.backward()
        return np.stack([x.grad, y.grad])

    python, compiled = both(function)
    assert compiled == python != "error"


def test_memory_with_a_gradient_of_its_own_is_not_written_by_another_name() -> None:
    def write(x: Any) -> Any:
        y = x.detach()
        y.attach_grad()
        x[...] = 1.0
        return y * 1

    with pytest.raises(WriteError, match="gradient of its own"):
        mg.jit(write)(with_gradient())


@pytest.mark.parametrize(
    "detach", [lambda x: x.detach(), mg.stop_gradient, lambda x: x.detach()[:2]]
)
def test_detached_arrays_are_not_written_in_a_trace(detach: Callable[[Any], Any]) -> None:
    def write(x: Any) -> Any:
        detach(x)[0] = 100.0
        return x * 1

    assert both(write) == [[100.0, 2.0, 3.0], "error"]
    with pytest.raises(WriteError, match="written through another"):
        mg.jit(write)(with_gradient())
