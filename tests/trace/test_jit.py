"""`jit` in all the places where Python has functions, and from several threads."""

from __future__ import annotations

import copy
import functools
import sys
import threading
from typing import Any

import numpy as np
import pytest
from comparing import describe, same_as_eager

import minigraph as mg
from minigraph.errors import OptionError, SignatureError, UnsupportedError

X = np.array([1.0, 2.0, 3.0])


def test_result_types_are_numpys() -> None:
    def f(x: Any, h: Any, n: Any) -> Any:
        return (
            x.sum(), x[0], x[0, ...], x.reshape(3, 1)[0], np.zeros(()),
            h + 1, n * 2, n / 3, x.dtype, x.shape, x.dtype.name, None, "s", np.float32(2) * h,
            np.where(x > 1, x, 0), np.array(2.0), np.asarray(h), [x.mean()], {"a": x.max()},
            x.astype(np.float32)[1], np.add(1, 2), x.ndim, x.size, len(x), n == 3, n > 5,
        )  # fmt: skip

    same_as_eager(f, X, np.float64(2.0), 3)
    same_as_eager(f, X.astype(np.int8), np.int16(2), 3.5)


def test_methods_lambdas_partials_and_nesting() -> None:
    class Net:
        def __init__(self, k: float) -> None:
            self.k = k

        @mg.jit
        def forward(self, x: Any) -> Any:
            return x * self.k

        @mg.jit(backend="interpret")
        def twice(self, x: Any) -> Any:
            return self.forward(self.forward(x))

    one, two = Net(2.0), Net(3.0)
    np.testing.assert_array_equal(one.forward(X), X * 2)
    np.testing.assert_array_equal(two.forward(X), X * 3)
    np.testing.assert_array_equal(one.twice(X), X * 4)
    ops = [node.op.name for node in Net.twice.graph("traced").nodes]
    assert ops.count("multiply") == 2  # both calls joined the trace
    one.k = 5.0
    np.testing.assert_array_equal(one.twice(X), X * 25)

    np.testing.assert_array_equal(mg.jit(lambda x: x + 1)(X), X + 1)
    power = functools.partial(lambda x, n, k: x**n * k, n=2)
    same_as_eager(power, X, k=3.0)
    np.testing.assert_array_equal(mg.jit(np.tanh)(X), np.tanh(X))

    inner = mg.jit(lambda x: x * 2)
    outer = mg.jit(lambda x: inner(x) + 1)
    np.testing.assert_array_equal(outer(X), X * 2 + 1)
    assert inner.cache_info().entries == []


def test_in_a_repl() -> None:
    namespace: dict[str, Any] = {"mg": mg, "np": np}
    exec("k = 2.0\n@mg.jit\ndef f(x):\n    y = np.ones(3) * k\n    return x + y\n", namespace)
    np.testing.assert_array_equal(namespace["f"](X), X + 2)
    exec("k = 3.0", namespace)
    np.testing.assert_array_equal(namespace["f"](X), X + 3)


def test_eager_switches_it_off() -> None:
    seen: list[Any] = []

    @mg.jit
    def f(x: Any) -> Any:
        seen.append(type(x))
        return x * 2

    with mg.eager():
        np.testing.assert_array_equal(f(X), X * 2)
    assert seen == [np.ndarray] and len(f.cache_info()) == 0


def test_freeze_makes_a_constant() -> None:
    table = mg.freeze([1.0, 2.0, 4.0])

    def f(x: Any) -> Any:
        if table.sum() > 5:
            return x * table[::-1]
        return x

    jitted = mg.jit(f)
    assert describe(jitted(X)) == describe(f(X))
    assert not jitted.graph().signature.captures
    assert [n.op.name for n in jitted.graph().nodes].count("const") == 1
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 3
    assert type(table * 2) is np.ndarray and type(table.sum()) is np.float64


def test_print_is_an_effect(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, n: Any) -> Any:
        print("start", x.shape[0], n)
        y = x * 2
        print(y, y.sum(), sep=" | ", end="!\n")
        return y

    same_as_eager(f, X, 3)
    jitted = mg.jit(f)
    jitted(X, 1)
    jitted(X, 2)
    text = capsys.readouterr().out.splitlines()
    assert text == ["start 3 1", "[2. 4. 6.] | 12.0!", "start 3 2", "[2. 4. 6.] | 12.0!"]
    assert len(jitted.cache_info()) == 1


def test_standard_streams_and_files(tmp_path: Any) -> None:
    with open(tmp_path / "log", "w") as log:

        def f(x: Any, out: Any = sys.stderr) -> Any:
            print("to stderr", file=out)
            return x

        def g(x: Any) -> Any:
            log.write("x")
            return x

        same_as_eager(f, X)
        with pytest.raises(UnsupportedError, match="file"):
            mg.jit(g)(X)


def test_random_draws_are_fresh_and_eager() -> None:
    rng, reference = np.random.default_rng(7), np.random.default_rng(7)

    def draw(generator: Any, x: Any) -> Any:
        a = generator.random(3)
        b = generator.normal(x, 2.0)
        return x + a - b, generator.integers(0, 10, size=2), generator.normal()

    jitted = mg.jit(lambda x: draw(rng, x))
    for _ in range(3):
        assert describe(jitted(X)) == describe(draw(reference, X))
    assert len(jitted.cache_info()) == 1
    as_argument, other = mg.jit(draw), np.random.default_rng(7)
    reference = np.random.default_rng(7)
    for _ in range(2):
        assert describe(as_argument(other, X)) == describe(draw(reference, X))


def test_dynamic_keeps_one_entry_for_all_sizes() -> None:
    @mg.jit(dynamic={"x": {0: "n"}})
    def f(x: Any) -> Any:
        y = x.reshape(x.shape[0] * 2, 2)
        return y.sum(axis=0) / x.shape[0], np.zeros((x.shape[0], 1)), x[: x.shape[0] // 2]

    def eager(x: Any) -> Any:
        y = x.reshape(x.shape[0] * 2, 2)
        return y.sum(axis=0) / x.shape[0], np.zeros((x.shape[0], 1)), x[: x.shape[0] // 2]

    for size in (3, 5, 1, 8):
        x = np.arange(size * 4.0).reshape(size, 4)
        assert describe(f(x)) == describe(eager(x))
    assert len(f.cache_info()) == 1

    @mg.jit(dynamic={"x": {0: "n"}})
    def g(x: Any) -> Any:
        return x[1:] - x[:-1], np.diff(x, axis=0), x.max(axis=0) if x.shape[0] > 0 else x.sum(0)

    for size in (4, 2, 1, 7, 0):  # no extent at all is a signature of its own
        x = np.arange(size * 2.0).reshape(size, 2) ** 2
        expected = (np.diff(x, axis=0),) * 2 + (x.max(axis=0) if size else x.sum(0),)
        assert describe(g(x)) == describe(expected)
    assert len(g.cache_info()) == 2
    f(np.ones((2, 4), np.float32))
    assert len(f.cache_info()) == 2
    assert "n" in str(f.graph("traced"))


def test_a_compiled_graph_checks_its_arguments() -> None:
    graph = mg.trace(lambda x, y: x + y["k"], mg.Spec(("n", 2), "float32"), {"k": 1.0})
    run = mg.compile(graph)
    got = run(np.ones((3, 2), np.float32), {"k": 2.0})
    np.testing.assert_array_equal(got, np.full((3, 2), 3.0, np.float32))
    np.testing.assert_array_equal(run(x=np.ones((1, 2), np.float32), y={"k": 0.5}), [[1.5, 1.5]])
    for bad in (
        (np.ones((3, 2)), {"k": 2.0}),
        (np.ones((3, 3), np.float32), {"k": 2.0}),
        (np.ones((3, 2), np.float32), {"j": 2.0}),
        (np.ones((3, 2), np.float32), {"k": 2}),
        (np.ones((3, 2), np.float32),),
        (1, 2, 3),
    ):
        with pytest.raises(SignatureError):
            run(*bad)


def test_a_new_size_is_a_new_entry() -> None:
    jitted = mg.jit(lambda x: x * 2)
    for size in (1, 2, 3, 2):
        jitted(np.ones(size))
    info = jitted.cache_info()
    assert len(info) == 3
    assert "(2,)" in info.retraces[0] and "(1,)" in info.retraces[0]


def test_views_of_a_compilation() -> None:
    @mg.jit
    def f(x: Any) -> Any:
        a = np.exp(x)
        b = np.exp(x) + 1
        dead = a * 3
        del dead
        return a * b

    with pytest.raises(OptionError, match="not been compiled"):
        f.graph()
    text = str(f.lower(X))
    assert "exp" in text and "traced" in text and "cse" in text
    f(X)
    assert [stage.name for stage in f.stages][0] == "traced"
    assert len(f.graph("traced").nodes) > len(f.graph("optimized").nodes)
    assert f.graph("cse") is not f.graph("traced")
    with pytest.raises(OptionError, match="cse"):
        f.graph("csee")
    assert "def f(x)" in f.source() and "np.exp" in f.source()
    with pytest.raises(OptionError):
        f.source("numba")
    assert "merged" in f.explain() or "cse" in f.explain()
    report = f.memory_report(np.ones(100_000))
    assert report.lower_bound <= report.planned <= report.naive
    assert "measured: what one more call allocates" in str(report)
    assert "what one more call" not in str(f.memory_report())
    assert f.plan is f.lower(X).plan


def test_measured_peak_agrees_with_the_plan() -> None:
    @mg.jit
    def f(x: Any) -> Any:
        a = np.exp(x)
        b = a * 2
        c = b + x
        return c * c

    x = np.ones(200_000)
    report = f.memory_report() if f.cache_info().entries else f.lower(x) and f.memory_report(x)
    assert report.measured is not None
    assert report.planned <= report.measured <= report.planned * 1.1
    assert report.measured < report.naive


def test_eight_threads_make_the_first_call_at_once() -> None:
    @mg.jit
    def f(x: Any, k: Any) -> Any:
        y = x * k
        return y + x.sum(), y.dtype.name

    barrier, results = threading.Barrier(8), [False] * 8

    def work(index: int) -> None:
        dtype = (np.float32, np.float64)[index % 2]
        x = np.full(100 + index % 4, index, dtype)
        barrier.wait()
        good = True
        for _ in range(20):
            out, name = f(x, dtype(2))
            good &= name == np.dtype(dtype).name and out.shape == x.shape
            good &= bool(np.all(out == 2 * index + index * len(x)))
        results[index] = good

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results)
    assert len(f.cache_info()) == 4


def test_tracing_state_belongs_to_the_thread() -> None:
    inside, done = threading.Event(), threading.Event()
    other: list[Any] = []

    def f(x: Any) -> Any:
        inside.set()
        done.wait(10)
        return x * 2

    def work() -> None:
        inside.wait(10)
        other.append(np.ones(3) * 2)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    mg.trace(f, X)
    thread.join()
    assert type(other[0]) is np.ndarray


def test_many_signatures_are_bounded() -> None:
    jitted = mg.jit(lambda x: x + 1, backend="interpret", passes=())
    for size in range(70):
        jitted(np.ones(size))
    assert "dropped" in str(jitted.cache_info())
    np.testing.assert_array_equal(jitted(np.ones(0)), np.ones(0))


def test_a_long_chain_needs_no_recursion() -> None:
    def f(x: Any) -> Any:
        y = x
        for i in range(5000):
            y = y + 1.0 if i % 2 else y * 1.0
        return y

    np.testing.assert_array_equal(mg.jit(f)(np.zeros(2)), np.full(2, 2500.0))


@mg.jit
def doubled(x: Any) -> Any:
    return x * 2


def test_jitted_functions_are_copied_and_pickled_by_name() -> None:
    assert copy.deepcopy({"f": doubled})["f"] is doubled
    assert doubled.__reduce__() == "doubled"  # as a function's, which is found by its name
