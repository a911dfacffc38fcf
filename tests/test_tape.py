"""The tape: what is recorded, computed once, compiled once, freed, and what its errors say."""

from __future__ import annotations

import copy
import gc
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from ops.test_calls import CALLS, evaluate, operands

import minigraph as mg
from minigraph import autograd, tape
from minigraph.errors import (
    FreedError,
    RecordedWriteError,
    RecordError,
    ShapeError,
    UnsupportedError,
)
from minigraph.memory import _WRITES, NUMBERS, WATCHES  # pyright: ignore[reportPrivateUsage]
from minigraph.tape import programs, recording

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def variable(data: Any, req: str = "write") -> Any:
    made = mg.array(data)
    made.attach_grad(req)
    return made


@contextmanager
def compilations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The backward graphs that are compiled inside this block."""
    found: list[Any] = []
    compiled = programs.Compiled

    def counted(graph: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(graph)
        return compiled(graph, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(programs, "Compiled", counted)
        patch.setattr(programs, "_programs", type(programs._programs)())
        yield found


def line_of(text: str) -> int:
    """The line of the calling test that has `text` in it as a comment."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    lines, start = inspect.getsourcelines(frame.f_back.f_code)
    return start + next(at for at, line in enumerate(lines) if f"# {text}" in line)


# ---------------------------------------------------------------------------- gradients


def floats(thing: Any) -> list[Any]:
    """The arrays of float64 in a result."""
    if isinstance(thing, list | tuple):
        return [found for item in thing for found in floats(item)]
    return [thing] if isinstance(thing, mg.Array) and thing.dtype == np.float64 else []


NO_RULE = ('"linear_ramp"', '"mean"', 'reflect_type="odd"', "np.linalg.svd(x)", "np.full(")
"""Parts of the calls that have no derivative rule, or where NumPy makes an ndarray."""


@pytest.mark.parametrize("line", [line for line in CALLS if not any(p in line for p in NO_RULE)])
def test_gradients_are_those_of_central_differences(line: str):
    values = {name: mg.array(value) for name, value in operands().items()}
    leaves = {name: value for name, value in values.items() if value.dtype == np.float64}
    for value in leaves.values():
        value.attach_grad()
    with autograd.record():
        results = floats(evaluate(line, values, np))
        weights = [np.random.default_rng(7).normal(size=each.shape) for each in results]
        total: Any = sum((each * w).sum() for each, w in zip(results, weights, strict=True))
    if not any(each.tracked_ is not None for each in results):
        return
    total.backward()

    def at(step: float, directions: dict[str, Any]) -> float:
        moved = operands()
        for name, direction in directions.items():
            moved[name] = moved[name] + step * direction
        found = floats(evaluate(line, {n: mg.array(v) for n, v in moved.items()}, np))
        return sum(float((each * w).sum()) for each, w in zip(found, weights, strict=True))

    rng = np.random.default_rng(5)
    directions = {name: rng.normal(size=value.shape) for name, value in leaves.items()}
    directions["q"] = directions["q"] + directions["q"].T  # it is symmetric
    slope = (at(1e-6, directions) - at(-1e-6, directions)) / 2e-6
    found = sum(float((leaves[name].grad * d).sum()) for name, d in directions.items())
    assert found == pytest.approx(slope, rel=1e-5, abs=1e-6, nan_ok=True)


def test_a_step_of_training():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 3)), rng.normal(size=(64, 1))
    w, b = variable(np.zeros((3, 1))), variable(np.zeros(1))
    losses = []
    for _ in range(20):
        with autograd.record():
            loss = ((mg.array(x) @ w + b - y) ** 2).mean()
        loss.backward()
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_python_decides_what_is_computed():
    x = variable([1.0, -2.0, 3.0])
    with autograd.record():
        total = mg.array(0.0)
        for item in x:
            while item > 2:
                item = item / 2
            total = total + (item * item if item > 0 else -item)
    total.backward()
    assert x.grad.tolist() == [2, -1, 1.5]


def test_masks_select_and_store():
    x = variable([1.0, -2.0, 3.0])
    with autograd.record():
        y = x * 1
        y[x < 0] = 0
        total = (x[x > 0] ** 2).sum() + 3 * y.sum()
    total.backward()
    assert x.grad.tolist() == [5, 0, 9]
    with autograd.record(), pytest.raises(IndexError, match="boolean index did not match"):
        x[np.array([True, False])]


def test_operands_of_all_kinds():
    x = variable([1.0, 2.0])
    with autograd.record():
        total = (np.array([3.0, 4.0]) * x + np.float64(2) * x + 2 * x + x * mg.array([1, 2])).sum()
    total.backward()
    assert x.grad.tolist() == [8, 10]


def test_float32_stays_float32():
    x = variable(np.ones(3, np.float32))
    with autograd.record():
        y = (x * 2.5 + 1).sum()
    y.backward()
    assert y.dtype == np.float32 and x.grad.dtype == np.float32


def test_shared_parts_add_up():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        total = (y + y * y).sum()
    total.backward()
    assert x.grad.tolist() == [2 + 4, 4 + 32]


# ---------------------------------------------------------------------------- what is recorded


def test_only_what_carries_a_gradient_is_recorded():
    x, plain = variable([1.0, 2.0]), mg.array([1.0, 2.0])
    with autograd.record():
        assert (plain * 2).tracked_ is None
        assert (x * 2).tracked_ is not None
        assert (x > 1).tracked_ is None and x.argmax().tracked_ is None
        assert x.astype(int).tracked_ is None and x.detach().tracked_ is None
        with autograd.pause():
            assert (x * 2).tracked_ is None
    assert (x * 2).tracked_ is None
    x.attach_grad("null")
    with autograd.record():
        assert (x * 2).tracked_ is None


def test_detach_stops_the_gradient():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        total = (y.detach() * x).sum()
    total.backward()
    assert x.grad.tolist() == [1, 4]


def test_nothing_runs_twice(monkeypatch: pytest.MonkeyPatch):
    ran: list[str] = []
    evaluate_node = recording.evaluate_node

    def counted(node: Any, *args: Any) -> Any:
        ran.append(node.op.name)
        return evaluate_node(node, *args)

    monkeypatch.setattr(recording, "evaluate_node", counted)
    x, rng = variable([1.0, 2.0]), np.random.default_rng(0)
    with autograd.record():
        y = np.tanh(x).sum() + (x * rng.normal(size=2)).sum()
    state = rng.bit_generator.state
    assert ran.count("sum") == 2
    y.backward()
    assert ran.count("sum") == 2 and rng.bit_generator.state == state
    drawn = np.random.default_rng(0).normal(size=2)
    assert np.allclose(x.grad, 1 - np.tanh([1.0, 2.0]) ** 2 + drawn)


def test_an_array_recorded_in_another_scope_links_the_two():
    x = variable([3.0])
    with autograd.record():
        y = x * x
    with autograd.record():
        z = y * x
    z.backward()
    assert x.grad.tolist() == [27]


def test_a_scope_inside_a_scope():
    x = variable([3.0])
    with autograd.record():
        y = x * x
        with autograd.record(train_mode=False):
            z = y * 2
            assert not autograd.is_training()
        assert autograd.is_training()
    z.backward()
    assert x.grad.tolist() == [12]


def test_backward_inside_of_record():
    x = variable([3.0])
    with autograd.record():
        for _ in range(3):
            y = x * x
            y.backward()
            assert x.grad.tolist() == [6]
    assert autograd.is_recording() is False


# ---------------------------------------------------------------------------- compiled once


def test_steps_of_the_same_kind_are_compiled_once(monkeypatch: pytest.MonkeyPatch):
    x = variable(np.ones(3))
    with compilations(monkeypatch) as compiled:
        for step in range(10):
            with autograd.record():
                y = (x * float(step) + step).sum() / (step + 1)
            y.backward()
            assert x.grad.tolist() == pytest.approx([step / (step + 1)] * 3)
    assert len(compiled) == 1


def test_equal_numbers_make_no_other_program(monkeypatch: pytest.MonkeyPatch):
    x = variable(np.ones(3))
    with compilations(monkeypatch) as compiled:
        for a, b in ((2.0, 3.0), (2.0, 2.0), (0.0, -0.0)):
            with autograd.record():
                y = (x * a * b).sum()
            y.backward()
            assert x.grad.tolist() == [a * b] * 3
    assert len(compiled) == 1


def test_another_kind_of_step_is_another_program(monkeypatch: pytest.MonkeyPatch):
    x = variable(np.ones((2, 3)))
    with compilations(monkeypatch) as compiled:
        for axis in (0, 1, 0, 1):
            with autograd.record():
                y = (x.sum(axis=axis) ** 2).sum()
            y.backward()
            assert (x.grad == 2 * x.sum(axis=axis, keepdims=True)).all()
        for length in (2, 3, 2):
            with autograd.record():
                y = x[:, :length].sum()
            y.backward()
            assert x.grad.sum() == 2 * length
    assert len(compiled) == 4


def test_what_does_not_lie_in_order_has_its_own_program():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    x = variable(a)
    for other in (b, np.asfortranarray(b), np.repeat(b, 2, 1)[:, ::2]):
        with autograd.record():
            y = np.sin(x * mg.Array(other)).sum()
        y.backward()
        assert np.allclose(x.grad, np.cos(a * b) * b)


def test_programs_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "KEPT_PROGRAMS", 4)
    x = variable(np.ones(16))
    with compilations(monkeypatch):
        for length in range(1, 12):
            with autograd.record():
                y = x[:length].sum()
            y.backward()
        assert len(programs._programs) == 4


def test_a_long_chain():
    x = variable([1.0])
    with autograd.record():
        y = x * 1.0
        for _ in range(5000):
            y = y + 1.0
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [1] and y.tolist() == [5001]
    del y


# ---------------------------------------------------------------------------- memory


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is gone is gone at once, not when the garbage collector comes."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_backward_frees_what_was_recorded():
    x = variable(np.ones(1000))
    with autograd.record():
        y = np.exp(x)
        kept = weakref.ref(y.data_)
        total = y.sum()
    del y
    assert kept() is not None
    total.backward(retain_graph=True)
    assert kept() is not None
    total.backward()
    assert kept() is None and not WATCHES


@pytest.mark.usefixtures("no_collector")
def test_what_nobody_looks_at_any_more_is_freed():
    x = variable(np.ones(1000))
    with autograd.record():
        y = np.exp(x)
        kept = weakref.ref(y.data_)
        del y
        assert kept() is None
        total = np.exp(x).sum()
    del total
    assert not WATCHES


def test_steps_leave_nothing_behind():
    w = variable(np.ones((5, 4)))

    def step(number: int) -> None:
        with autograd.record():
            y = np.tanh(mg.array(np.ones((number % 3 + 1, 5))) @ w).reshape(-1) * float(number)
            y[:2] = 0
            y = np.where(y > 0, y, 0.1 * y).sum() + np.concatenate([y, y]).mean()
        y.backward()
        w[...] = w - 0.01 * w.grad

    for number in range(30):
        step(number)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(150):
        step(number)
    gc.collect()
    assert len(gc.get_objects()) - before < 100


def test_writes_are_not_noted_when_nothing_needs_to_know():
    gc.collect()
    before = next(NUMBERS)
    x = mg.array([1.0, 2.0])
    x[0] = 3
    x += 1
    assert next(NUMBERS) == before + 1 and not _WRITES


# --------------------------------------------------------------------------- freed, or not recorded


def test_two_losses_of_one_network():
    x = variable([1.0, 2.0], "add")
    with autograd.record():
        shared = x * x
        first, second = shared.sum(), (3 * shared).sum()
    first.backward(retain_graph=True)
    second.backward()
    assert x.grad.tolist() == [8, 16]
    with pytest.raises(FreedError, match="retain_graph=True"):
        first.backward()


def test_losses_that_share_nothing_need_no_retain_graph():
    x = variable([1.0, 2.0], "add")
    with autograd.record():
        losses = [(x * k).sum() for k in (1.0, 2.0, 3.0)]
    for loss in losses:
        loss.backward()
    assert x.grad.tolist() == [6, 6]


def test_what_comes_from_an_earlier_step_is_freed():
    w, state = variable([2.0]), mg.array([1.0])
    for step in range(2):
        with autograd.record():
            state = state * w
            loss = state.sum()
        if not step:
            loss.backward()
    with pytest.raises(FreedError, match="detach"):
        loss.backward()
    assert state.tolist() == [4]


def test_backward_of_what_was_not_recorded():
    x = variable([1.0, 2.0])
    y = x * 2
    with pytest.raises(RecordError, match="was not recorded") as raised:
        y.backward()  # here
    assert "with autograd.record():" in str(raised.value)
    assert raised.value.where is not None and raised.value.where.line == line_of("here")
    with pytest.raises(RecordError, match="was not recorded"):
        x.backward()


def test_an_op_without_a_rule_names_the_line():
    x = variable(np.eye(2))
    with autograd.record():
        y = np.pad(x, 1, mode="mean")  # here
        total = y.sum()
    with pytest.raises(UnsupportedError, match="pad") as raised:
        total.backward()
    assert raised.value.where is not None and raised.value.where.line == line_of("here")


# ---------------------------------------------------------------------------- writes


def test_a_write_that_the_gradient_does_not_need_is_fine():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x + 1
        total = y.sum()
    y[:] = 7
    total.backward()
    assert x.grad.tolist() == [1, 1]


def test_a_write_into_what_the_gradient_needs_names_both_lines():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = np.exp(x)  # recorded
        total = y.sum()
    y[0] = 7  # written
    with pytest.raises(RecordedWriteError) as raised:
        total.backward()
    assert f"test_tape.py:{line_of('recorded')}," in str(raised.value)
    assert raised.value.where is not None and raised.value.where.line == line_of("written")


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 1),
        lambda x: x.__iadd__(1),
        lambda x: x.fill(1),
        lambda x: x[1:].sort(),
        lambda x: np.add(x, 1, out=x),
        lambda x: np.copyto(x, 3),
        lambda x: np.add.at(x, 0, 1),
        lambda x: mg.random.shuffle(x),
        lambda x: x.reshape(1, 2).T.__setitem__(0, 1),
        lambda x: setattr(x, "real", 3),
    ],
)
def test_every_way_to_write_is_seen(write: Callable[[Any], Any]):
    x = variable([1.0, 2.0])
    with autograd.record():
        total = (x * x).sum()
    write(x)
    with pytest.raises(RecordedWriteError):
        total.backward()


def test_a_write_elsewhere_in_the_same_memory_is_fine():
    data = mg.array(np.arange(6.0))
    x = variable([1.0, 2.0])
    with autograd.record():
        total = (x * data[:2]).sum()
    data[2:] = 9
    total.backward()
    assert x.grad.tolist() == [0, 1]


def test_a_write_before_recording_is_fine():
    x = variable([1.0, 2.0])
    with autograd.record():
        kept = (x * x).sum()
    x[0] = 5
    with autograd.record():
        total = (x * x).sum()
    total.backward()
    assert x.grad.tolist() == [10, 4]
    with pytest.raises(RecordedWriteError):
        kept.backward()


def test_writes_of_recorded_values_are_recorded():
    x = variable([1.0, 2.0, 3.0])
    with autograd.record():
        rows = mg.array(np.zeros((2, 3)))
        rows[0] = x * 2
        rows[1, :2] = x[1:]
        rows *= 2
        rows += x
        out = mg.array(np.zeros(3))
        np.multiply(x, x, out=out)
        copy = mg.array(np.ones(3))
        np.copyto(copy, x)
        total = rows.sum() + out.sum() + copy.sum()
    total.backward()
    assert rows.tolist() == [[5, 10, 15], [5, 8, 3]]
    assert x.grad.tolist() == [4 + 2 + 2 + 1, 4 + 2 + 2 + 4 + 1, 4 + 2 + 2 + 6 + 1]


def test_a_recorded_write_casts_as_numpy_does():
    x = variable([1.5, 2.0])
    counts = mg.array([1, 2])
    with autograd.record():
        with pytest.raises(TypeError, match="same_kind"):
            counts += x
        with pytest.raises(ValueError, match="broadcast"):
            small = x * 1
            small += mg.array(np.ones((2, 2)))
        with pytest.raises(TypeError, match="cannot cast"):
            np.add(x, 1, out=counts)
    assert counts.tolist() == [1, 2]


def test_an_array_with_a_gradient_is_not_written_while_recording():
    x = variable([1.0, 2.0])
    with autograd.record():
        with pytest.raises(RecordError, match="written while recording"):
            x[0] = 3
        with pytest.raises(RecordError, match="written while recording"):
            x *= 3
        with autograd.pause():
            x[0] = 3
    assert x.tolist() == [3, 2]


def test_an_alias_of_recorded_memory_is_refused():
    x = variable([1.0, 2.0])
    with autograd.record():
        plain = mg.array(np.zeros((2, 2)))
        row, before = plain[0], plain[1]
        plain[0] = x * 2
        with pytest.raises(RecordError, match="another view"):
            row.sum()
        assert before.shape == (2,)
        y = x * 3
        view = y[:1]
        y[0] = x[1]
        with pytest.raises(RecordedWriteError, match="used again"):
            view * 2
    gc.collect()


# ---------------------------------------------------------------------------- how gradients land


def test_grad_req():
    x, y, z = variable([2.0]), variable([2.0], "add"), variable([2.0], "null")
    for _ in range(2):
        with autograd.record():
            total = (x * y * z).sum()
        total.backward()
    assert x.grad.tolist() == [4] and y.grad.tolist() == [8] and z.grad is None


def test_the_gradients_array_stays_the_same():
    x = variable([2.0])
    grad, data = x.grad, x.grad.data_
    assert not x.fresh_grad
    with autograd.record():
        y = x * x
    y.backward()
    assert x.grad is grad and grad.data_ is data and data.tolist() == [4] and x.fresh_grad
    x.fresh_grad = False
    assert not x.fresh_grad


def test_an_array_without_influence_gets_zeros():
    x, other = variable([2.5]), variable([1.0])
    other.grad[:] = 7
    with autograd.record():
        y = np.floor(x) + 0 * x
    y.backward()
    assert x.grad.tolist() == [0] and other.grad.tolist() == [7]


def test_head_gradients():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
    y.backward(mg.array([10.0, 1.0]), retain_graph=True)
    assert x.grad.tolist() == [20, 4]
    y.backward(np.array([1, 0]), retain_graph=True)
    assert x.grad.tolist() == [2, 0]
    with pytest.raises(ShapeError, match="shape"):
        y.backward(mg.array([1.0, 2.0, 3.0]))
    y.backward()
    assert x.grad.tolist() == [2, 4]


# --------------------------------------------------------------------------- exceptions and threads


def test_an_exception_leaves_a_clean_state():
    x = variable([1.0, 2.0])
    with pytest.raises(ZeroDivisionError), autograd.record():
        x * 2
        1 / 0  # noqa: B018
    assert not autograd.is_recording() and not autograd.is_training()
    with autograd.record():
        y = x * x
        with pytest.raises(ValueError, match="shape"):
            np.reshape(x, (3, 3))
        with pytest.raises(ValueError, match="broadcast"):
            x + np.ones(3)
        total = y.sum()
    total.backward()
    assert x.grad.tolist() == [2, 4]


def test_an_exception_in_backward_stores_nothing():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = np.exp(x)
        total = y.sum() + (x * x).sum()
    y[0] = 0
    with pytest.raises(RecordedWriteError):
        total.backward()
    assert x.grad.tolist() == [0, 0]


def test_threads_record_each_their_own():
    found: dict[int, Any] = {}
    ready = threading.Barrier(4)

    def work(number: int) -> None:
        x = variable([float(number)])
        ready.wait()
        for _ in range(20):
            assert not autograd.is_recording()
            with autograd.record():
                y = x
                for _ in range(3):
                    y = y * x
            y.backward()
        found[number] = x.grad.tolist()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    with autograd.record():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {number: [4.0 * number**3] for number in range(4)}


# ---------------------------------------------------------------------------- programs on the tape


def test_a_compiled_program_is_one_node():
    graph = mg.parse("""graph body(%x: f64[2], %k: float) {
      %e = exp %x : f64[2]
      %y = multiply %e, %k : f64[2]
      return (%y, %e)
    }""")
    back = mg.parse("""graph back(%x: f64[2], %k: float, %y: f64[2], %e: f64[2], %dy: f64[2]) {
      %a = multiply %dy, %k : f64[2]
      %dx = multiply %a, %e : f64[2]
      return %dx
    }""")
    program = tape.Called(graph, back, 1, [0])
    x = variable([0.5, 1.0])
    for k in (3.0, 4.0):
        with autograd.record():
            active = tape.tape_of_thread()
            values = mg.compile(graph).run(x.data_, k)
            (y,) = active.call(program, [x, k], values)
            total = (y * y).sum()
        total.backward()
        assert np.allclose(x.grad, 2 * k * k * np.exp(2 * np.array([0.5, 1.0])))
    assert isinstance(y, mg.Array)


# ---------------------------------------------------------------------------- functions called back


def test_what_a_recorded_function_does_to_other_arrays_is_recorded():
    x, w = variable(np.ones((2, 3))), variable([2.0, 3.0])

    def scaled(x: Any) -> Any:
        return (x.T * w * (w * w)).sum(axis=1)

    with autograd.record():
        y = tape.tape_of_thread().operate(scaled, (x,), {})
        total = y.sum()
    total.backward()
    assert y.tolist() == [35, 35, 35]
    assert x.grad.tolist() == [[8, 8, 8], [27, 27, 27]]
    assert w.grad.tolist() == [36, 81]


# ---------------------------------------------------------------------------- calls done again


def test_a_call_is_traced_once_for_each_kind_of_arguments(monkeypatch: pytest.MonkeyPatch):
    traced: list[Any] = []
    through_tracer = recording.EagerRecording._traced

    def counted(self: Any, function: Any, *args: Any) -> Any:
        traced.append(function)
        return through_tracer(self, function, *args)

    monkeypatch.setattr(recording.EagerRecording, "_traced", counted)
    monkeypatch.setattr(tape.recording_of_thread(), "_recipes", {})
    x, wide = variable(np.arange(6.0).reshape(2, 3)), variable(np.ones((2, 4)))
    with autograd.record():
        for low in (0.0, -0.0, 2.0, 2.0):
            assert np.array_equal(np.clip(x, low, None).data_, np.clip(x.data_, low, None))
        assert len(traced) == 3
        for _ in range(3):
            first, second = np.split(x, 2)
            q, r = np.linalg.qr(x)
            assert type(np.linalg.qr(x)).__name__ == "QRResult"
            assert np.array_equal((q @ r).data_, q.data_ @ r.data_) and first.shape == second.shape
        assert len(traced) == 5
        for array in (x, wide, x.T, x.T):  # the order in memory is not known to a recipe
            found = array.sum(axis=0)
            assert np.array_equal(found.data_, array.data_.sum(axis=0))
        assert len(traced) == 10
        total = np.concatenate([x, x, np.ones((1, 3))]).sum()
        total = total + np.concatenate([x, x * 2, np.zeros((1, 3))]).sum()
    total.backward()
    assert (x.grad == 5).all()


def test_a_recipe_of_one_array_twice_is_none_of_two_arrays():
    x = variable([1.0, 2.0])
    with autograd.record():
        y, z = x * 1.0, x * 3.0
        same, other = np.stack([y, y]), np.stack([y, z])
        chosen = np.where([True, False], y, y), np.where([True, False], y, z)
        total = (other * [[1.0], [10.0]]).sum()
    assert np.array_equal(same.data_, [[1, 2], [1, 2]])
    assert np.array_equal(other.data_, [[1, 2], [3, 6]])
    assert np.array_equal(chosen[0].data_, [1, 2]) and np.array_equal(chosen[1].data_, [1, 6])
    total.backward()
    assert (x.grad == 31).all()


def test_gradients_of_gradients_by_what_they_start_from():
    x, head = variable([1.0, 2.0]), variable([3.0, 4.0])
    with autograd.record():
        found = autograd.grad(x**3, x, head, create_graph=True)  # 3 x^2 head
        total = (found**2).sum()
    total.backward()
    np.testing.assert_allclose(head.grad.data_, 18 * x.data_**4 * head.data_)


def test_an_array_with_a_gradient_that_was_written_through_a_view_is_not_used():
    x = variable([[1.0, 2.0], [3.0, 4.0]])
    with autograd.record():
        row = x[0]
        row[0] = row[1] * 2
        with pytest.raises(RecordError, match="through another view"):
            x * 2


def test_a_deep_copy_is_recorded():
    x = variable([1.0, 2.0])
    with autograd.record():
        total = (copy.deepcopy(x * 2) ** 2).sum()
    total.backward()
    assert np.array_equal(x.grad.data_, [8.0, 16.0])


def test_recipes_keep_no_arrays():
    x = variable(np.ones(1000))
    with autograd.record():
        for _ in range(2):
            plain = mg.array(np.ones(1000))
            kept = weakref.ref(plain.data_)
            np.where(plain > 0, plain, x).sum()
            del plain
            assert kept() is None


def test_complex_numbers_are_refused():
    x = variable([1.0, 2.0])
    with autograd.record():
        total = np.abs(x * 1j).sum() + x.sum()  # here
    with pytest.raises(UnsupportedError, match="complex") as raised:
        total.backward()
    assert raised.value.where is not None and raised.value.where.line == line_of("here")


def test_gradients_share_no_memory():
    x, y, z = variable([1.0, 2.0]), variable([3.0, 4.0]), variable([5.0, 6.0])
    head = mg.array([1.0, 1.0])
    with autograd.record():
        total = x + y + z.reshape(2, 1).reshape(2)
    total.backward(head)
    arrays = [head.data_, *(each.grad.data_ for each in (x, y, z))]
    for at, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[at + 1 :])


def test_a_gradient_that_somebody_holds_is_written_in_place():
    x = variable([1.0, 2.0])
    held, view = x.grad, np.asarray(x.grad)
    for factor in (3.0, 4.0):
        with autograd.record():
            total = (x * factor).sum()
        total.backward()
        assert x.grad is held and view.tolist() == [factor, factor] == x.grad.tolist()


def test_a_compiled_program_with_named_sizes(monkeypatch: pytest.MonkeyPatch):
    def mean(w: Any, x: Any) -> Any:
        return (np.tanh(x @ w) ** 2).mean()

    compiled = mg.jit(mean, dynamic={"x": {0: "n"}})
    w = variable(np.ones((3, 2)))
    with compilations(monkeypatch) as found:
        for size in (4, 6, 4, 6):
            x = mg.array(np.random.default_rng(size).normal(size=(size, 3)))
            gradients = []
            for function in (mean, compiled):
                with autograd.record():
                    loss = function(w, x) * 2
                loss.backward()
                gradients.append(w.grad.asnumpy())
            assert np.allclose(*gradients, rtol=1e-12)
    assert len(compiled.cache_info()) == 1 and len(found) == 4


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: np.add.at(x, 0, v),
        lambda x, v: np.put(x, 0, v),
        lambda x, v: np.fill_diagonal(x.reshape(1, 2), v),
        lambda x, v: np.nan_to_num(x, copy=False),
        lambda x, v: np.copyto(x, v, where=True),
        lambda x, v: np.add(x, v, out=x, where=np.array([True, False])),
        lambda x, v: x.put([0], v),
        lambda x, v: x.sort(),
        lambda x, v: x.setfield(v, np.float64),
    ],
)
def test_a_write_that_is_not_recorded_says_so(write: Callable[[Any, Any], Any]):
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 1
        with pytest.raises(UnsupportedError, match="this way of writing"):
            write(y, x[0])
        assert y.tolist() == [1, 2]
        plain, number = mg.array([1.0, np.nan]), mg.array(5.0)
        write(plain, number)
        assert (y * 2).tolist() == [2, 4]


def test_elements_one_after_the_other_are_not_recorded():
    x, plain = variable([1.0, 2.0]), mg.array([3.0, 4.0])
    plain.flat[0] = 5
    plain.flat = [6, *plain.flat][:2]
    assert plain.tolist() == [6, 5]
    with autograd.record():
        assert list(plain.flat) == [6, 5]
        with pytest.raises(RecordError, match="flat"):
            list((x * 2).flat)
        with pytest.raises(RecordError, match="flat"):
            plain.flat = x
        with pytest.raises(RecordError, match="turned into an ndarray"):
            plain.flat[:] = x
        y = x * plain
    with pytest.raises(ValueError, match="read-only"):
        y.flat[0] = 1
    y.backward()
    assert x.grad.tolist() == [6, 5]


@pytest.mark.parametrize("compiled", [True, False])
def test_an_ndarray_may_change_after_it_was_recorded(compiled: bool):
    function = mg.jit(lambda x, w: x * w) if compiled else lambda x, w: x * w
    x, w = variable([1.0, 2.0]), np.array([3.0, 4.0])
    with autograd.record():
        y = function(x, w)
    w[...] = 100
    y.backward()
    assert x.grad.tolist() == [3, 4]
    if not compiled:
        with mg.eager():
            _, pullback = mg.vjp(lambda x: x * w, np.ones(2))
            w[...] = 5
            assert pullback(np.ones(2))[0].tolist() == [100, 100]


def test_out_by_position_is_written():
    x, out = variable(np.eye(2)), mg.array(np.zeros((2, 2)))
    assert np.dot(out, out, out) is out and out.dot(out, out) is out
    with autograd.record():
        assert np.dot(x, x, out) is out and out.tolist() == [[1, 0], [0, 1]]
        total = out.sum()
        assert x.clip(0, 5, out) is out
        row = mg.array(np.zeros(2))
        assert np.sum(x, 0, None, row) is row and row.tolist() == [1, 1]
        total = total + out.sum() + row.sum()
    total.backward()
    assert x.grad.tolist() == [[4, 4], [4, 4]]


def test_copyto_of_recorded_arrays():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        np.copyto(y, x * x)
        total = y.sum()
        with pytest.raises(TypeError, match="cannot cast"):
            np.copyto(mg.array([1, 2]), x)
    total.backward()
    assert x.grad.tolist() == [2, 4]
