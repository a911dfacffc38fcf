"""Threads: when kernels take them, that results do not depend on them, callers at once, forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from comparing import describe

import minigraph as mg
from minigraph.backends import threads
from minigraph.backends.numba import runtime
from minigraph.backends.settings import Settings
from minigraph.errors import CompileWarning, OptionError

RANDOM = np.random.default_rng(5)
LARGE = RANDOM.normal(size=(600, 1000)).astype(np.float32)


@pytest.fixture(autouse=True)
def _limit_is_put_back(monkeypatch):
    monkeypatch.setattr(threads._threads, "limit", None)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def normed(x):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


def whole(x):
    return np.abs(x).sum(), (x * x).max(), np.exp(x).mean()


FORMS = [gelu, softmax, normed, whole]


# ---------------------------------------------------------------------------- when and how many


@pytest.mark.parametrize("function", FORMS)
def test_kernels_take_threads_from_some_work_on(function):
    small, large = mg.jit(function), mg.jit(function)
    small(LARGE[:20, :20].copy())
    large(LARGE)
    assert "in threads" not in small.explain()
    assert "in threads" in large.explain()
    assert "if t > 1:" in large.source("numba")


def test_of_named_sizes_the_work_is_asked_at_each_call():
    jitted = mg.jit(gelu, dynamic={"x": {0: "n"}})
    jitted(LARGE)
    assert "if t > 1 and n[" in jitted.source("numba")
    assert len(jitted.cache_info()) == 1
    for rows in (1, 600):
        np.testing.assert_allclose(jitted(LARGE[:rows]), gelu(LARGE[:rows]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", FORMS)
def test_results_do_not_depend_on_the_number_of_threads(function):
    alone, shared = mg.jit(function, num_threads=1), mg.jit(function, num_threads=2)
    assert describe(alone(LARGE)) == describe(shared(LARGE))
    mg.set_num_threads(1)
    unlimited = mg.jit(function)
    assert describe(alone(LARGE)) == describe(unlimited(LARGE))
    mg.set_num_threads(2)
    assert describe(alone(LARGE)) == describe(unlimited(LARGE))


def test_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(runtime, "get_num_threads", lambda: 8)
    free, three, many = (runtime.threads_of(Settings(threads=n)) for n in (None, 3, 100))
    assert (free(), three(), many()) == (8, 3, 8)
    mg.set_num_threads(2)
    assert (free(), three(), many()) == (2, 3, 8)
    mg.set_num_threads(50)
    assert (free(), three(), many()) == (8, 3, 8)


@pytest.mark.parametrize("count", [0, -1, True, 2.0, "2", None])
def test_wrong_numbers_of_threads(count):
    with pytest.raises(OptionError, match="threads"):
        mg.set_num_threads(count)
    if count is not None:
        with pytest.raises(OptionError, match="num_threads="):
            mg.jit(gelu, num_threads=count)


@pytest.mark.parametrize(("layer", "most"), [("tbb", 8), ("omp", 8), ("workqueue", 1)])
def test_only_layers_that_several_callers_may_enter_are_used(monkeypatch, layer, most):
    monkeypatch.setattr(runtime, "get_num_threads", lambda: 8)
    monkeypatch.setattr(numba, "threading_layer", lambda: layer)
    assert runtime.threads_of(Settings())() == most


def test_without_the_layer_that_the_user_asks_for_python_runs_the_program(monkeypatch):
    def get_num_threads() -> int:
        raise ValueError("No threading layer could be loaded.")

    monkeypatch.setattr(runtime, "get_num_threads", get_num_threads)
    with pytest.warns(CompileWarning, match="No threading layer"):
        assert np.array_equal(mg.jit(gelu)(LARGE), gelu(LARGE))


# ---------------------------------------------------------------------------- callers at once


def at_once(*calls: Callable[[], Any], times: int) -> None:
    """Each in a thread of its own, again and again; what one raises is raised here."""
    start = threading.Barrier(len(calls))
    failures: list[BaseException] = []

    def run(call: Callable[[], Any]) -> None:
        try:
            start.wait()
            for _ in range(times):
                call()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=(call,)) for call in calls]
    for each in running:
        each.start()
    for each in running:
        each.join()
    if failures:
        raise failures[0]


def same_again(jitted: Any, x: Any) -> Callable[[], None]:
    """A call that checks each result, byte by byte."""
    expected = describe(jitted(x))

    def call() -> None:
        assert describe(jitted(x)) == expected

    return call


def network(x):
    for weights in WEIGHTS:
        x = np.maximum(x @ weights + 1, 0)
    return softmax(x), (x @ x.T).sum(axis=0)


WEIGHTS = [RANDOM.normal(size=(24, 24)) / 5 for _ in range(3)]


def test_callers_at_once_do_not_share_memory():
    jitted = mg.jit(network)
    inputs = [RANDOM.normal(size=(40, 24)) for _ in range(4)]
    for x in inputs:
        for one, other in zip(jitted(x), network(x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10)
    assert "memory" in jitted.source()
    at_once(*(same_again(jitted, x) for x in inputs), times=300)


def test_callers_at_once_with_sizes_of_their_own():
    jitted = mg.jit(network, dynamic={"x": {0: "n"}})
    inputs = [RANDOM.normal(size=(rows, 24)) for rows in (1, 7, 90, 300)]
    at_once(*(same_again(jitted, x) for x in inputs), times=100)
    assert len(jitted.cache_info()) == 1


def test_functions_whose_kernels_run_in_threads_at_once():
    calls = [same_again(mg.jit(function), LARGE) for function in (gelu, softmax, normed)]
    at_once(*calls, calls[0], times=8)


def test_first_calls_at_once_compile_one_entry():
    jitted = mg.jit(lambda x: np.sqrt(np.abs(x)) * 3 + 2)
    x = LARGE[:50].copy()
    expected = jitted.function(x)

    def call() -> None:
        assert np.array_equal(jitted(x), expected)

    at_once(*[call] * 4, times=3)
    assert len(jitted.cache_info()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("layer", ["default", "workqueue"])
def test_forked_children_compute(layer, fresh_process, monkeypatch):
    monkeypatch.setenv("NUMBA_THREADING_LAYER", layer)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    assert fresh_process(FORKS).split() == ["right"] * 7


FORKS = """
import multiprocessing, os, threading, warnings
import numpy as np
import minigraph as mg

warnings.simplefilter("ignore", DeprecationWarning)  # of forks while there are threads

def f(x, w):
    return np.tanh(x) * 2 + 1, (x * x).sum(axis=0), np.maximum(x[:50] @ w, 0)

def g(x, w):
    return np.exp(-x).max(axis=0), x + 1

def right(function):
    x = np.linspace(-2, 2, 600_000).reshape(600, 1000)
    w = np.ones((1000, 30))
    found, expected = mg.jit(function)(x, w), function(x, w)
    close = all(np.allclose(a, b, rtol=1e-10) for a, b in zip(found, expected))
    return "right" if close else "wrong"

def tell(function):
    print(right(function), flush=True)

jitted = mg.jit(f)
tell(f)
for function in (f, g):  # one that ran in threads before, and a new one
    child = os.fork()
    if child == 0:
        tell(function)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.map(right, [f, g]), flush=True)
found = []
callers = [threading.Thread(target=lambda: found.append(right(f))) for _ in range(2)]
for each in callers:
    each.start()
for each in callers:
    each.join()
print(*found)
"""


def test_blas_keeps_its_own_number_of_threads():
    control = pytest.importorskip("threadpoolctl")
    jitted = mg.jit(lambda x, w: np.tanh(x @ w) * 2)
    x, w = LARGE.astype(float), np.ones((1000, 1000))

    def counts() -> dict[str, int]:
        pools = control.threadpool_info()
        return {pool["filepath"]: pool["num_threads"] for pool in pools}

    jitted(x, w)
    before = counts()
    jitted(x, w)
    assert counts() == before
    with control.threadpool_limits(1):
        limited = counts()
        jitted(x, w)
        mg.jit(gelu)(LARGE)
        assert counts() == limited
    assert counts() == before
