"""`mg.fork` and `mg.wait`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.backends.threads import run_together
from minigraph.errors import OptionError

X = np.linspace(-1.0, 1.0, 7)


@pytest.fixture
def two_threads() -> Any:
    before = mg.get_num_threads()
    mg.set_num_threads(2)
    yield
    mg.set_num_threads(before)


def both(x: Any) -> Any:
    left = mg.fork(np.sort, -x)
    right = np.sort(x)
    return mg.wait(left) + right


@pytest.mark.usefixtures("two_threads")
def test_the_result_is_what_the_function_returns() -> None:
    np.testing.assert_array_equal(both(X), np.sort(-X) + np.sort(X))


def test_it_is_recorded_as_a_call() -> None:
    compiled = mg.jit(both)
    np.testing.assert_array_equal(compiled(X), both(X))
    assert [node.op.name for node in mg.trace(both, X).nodes].count("sort") == 2


@pytest.mark.usefixtures("two_threads")
def test_it_runs_while_the_caller_goes_on() -> None:
    met = threading.Barrier(2, timeout=60)
    future = mg.fork(met.wait)
    met.wait()
    assert mg.wait(future) in (0, 1)


@pytest.mark.usefixtures("two_threads")
def test_an_error_is_raised_by_wait_with_both_places() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("no")

    future = mg.fork(fails, X)
    for _ in range(2):
        with pytest.raises(ValueError, match="no") as caught:
            mg.wait(future)
        assert [note for note in caught.value.__notes__ if "test_forking.py" in note]
        assert len(caught.value.__notes__) == 1
        assert "fails" in [entry.name for entry in caught.traceback]


@pytest.mark.usefixtures("two_threads")
def test_futures_may_wait_for_each_other() -> None:
    def tree(depth: int) -> int:
        if not depth:
            return 1
        left, right = mg.fork(tree, depth - 1), mg.fork(tree, depth - 1)
        return sum(mg.wait([left, right]))

    assert tree(7) == 128
    chain = mg.fork(lambda: 0)
    for _ in range(50):
        chain = mg.fork(lambda before=chain: mg.wait(before) + 1)
    assert mg.wait(chain) == 50


def test_what_is_recorded_for_backward_stays_on_this_thread() -> None:
    x = mg.array(X)
    x.attach_grad()
    with mg.autograd.record():
        y = mg.wait(mg.fork(lambda: (x * x).sum()))
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * X)


def test_wrong_use_is_told() -> None:
    with pytest.raises(OptionError, match="takes a function, not a ndarray"):
        mg.fork(X)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="takes what mg.fork returned, not a float"):
        mg.wait(1.0)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_parts_give_their_results_in_order(threads: int) -> None:
    before = mg.get_num_threads()
    mg.set_num_threads(threads)
    try:
        assert run_together([lambda at=at: at * at for at in range(7)]) == [
            at * at for at in range(7)
        ]
        assert run_together([lambda: run_together([lambda: 1, lambda: 2])] * 3) == [[1, 2]] * 3
    finally:
        mg.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_an_error_waits_for_the_other_parts() -> None:
    done: list[int] = []

    def slow() -> None:
        threading.Event().wait(0.05)
        done.append(1)

    with pytest.raises(ZeroDivisionError):
        run_together([lambda: 1 // 0, slow])
    assert done == [1]
