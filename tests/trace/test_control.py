"""Control flow as functions: recorded, it does what the same calls do as plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import same_as_eager

import minigraph as mg
from minigraph.errors import SignatureError
from minigraph.ir import Graph, verify
from minigraph.trace.turns import WITHIN

X = np.arange(3.0)
LONG = np.arange(40.0)
ROWS = np.arange(60.0).reshape(20, 3)


def ops_of(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The ops at the top of the graph, without constants."""
    graph = mg.trace(function, *arguments)
    verify(graph)
    return [node.op.name for node in graph.nodes if node.op.name != "const"]


# ---- branches ---------------------------------------------------------------------------------


def branch(x: Any) -> Any:
    return mg.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)


def structures(x: Any) -> Any:
    def then(a: Any, b: Any) -> Any:
        return {"y": (a, 1), "z": [b * 2]}

    def otherwise(a: Any, b: Any) -> Any:
        return {"y": (b, 2), "z": [a - 1]}

    return mg.cond(x[0] > 1, then, otherwise, x, x + 1)


def numbers(n: int) -> Any:
    return mg.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)


def of_sizes_one(x: Any) -> Any:
    return mg.cond(x[:1], lambda: 1, lambda: 2), mg.cond(x[1], lambda: 1.5, lambda: 2.5)


def of_ints(n: int) -> Any:
    return mg.cond(n, lambda: True, lambda: False)


def nested(x: Any) -> Any:
    def inner() -> Any:
        return mg.cond(x[1] > 5, lambda: x + 10, lambda: x + 20)

    return mg.cond(x[0] > 0, inner, lambda: mg.cond(x[2] > 5, inner, lambda: -x))


def switched(n: int, x: Any) -> Any:
    return mg.switch(n, [lambda x: x * 2, lambda x: x + 1, lambda x: -x], x)


@pytest.mark.parametrize("function", [branch, structures, of_sizes_one, nested])
@pytest.mark.parametrize("x", [X, -X, X + 1, X * 9])
def test_branches(function: Callable[..., Any], x: Any):
    same_as_eager(function, x)


@pytest.mark.parametrize("n", [-1, 0, 1, 2, 7])
def test_branches_of_numbers(n: int):
    same_as_eager(numbers, n)
    same_as_eager(of_ints, n)
    same_as_eager(switched, n, X)


def one_of_many(n: int, x: Any, count: int) -> Any:
    return mg.switch(n, [lambda x, at=at: x + at for at in range(count)], x)


@pytest.mark.parametrize("n", [-5, 0, 1, 30, 59, 60, 1000])
def test_a_switch_of_many_branches(n: int):
    same_as_eager(lambda n, x: one_of_many(n, x, 60), n, X)
    assert one_of_many(n, 0, 3000) == max(n, 0)


def test_the_branches_of_a_switch_are_halved():
    def depth(graph: Graph) -> int:
        return max((1 + depth(g) for n in graph.nodes for _, g in n.regions), default=0)

    assert depth(mg.trace(lambda n, x: one_of_many(n[0], x, 60), np.array([3]), X)) == 6


def test_the_index_of_a_switch_is_an_int():
    with pytest.raises(SignatureError, match="float"):
        mg.switch(1.0, [abs, abs], 1)
    with pytest.raises(SignatureError, match="float"):
        mg.jit(lambda i, x: mg.switch(i, [np.sin, np.cos], x))(1.0, X)


def test_what_is_known_stays_python():
    assert ops_of(lambda x: mg.cond(True, lambda: x * 2, lambda: x), X) == ["multiply"]
    assert ops_of(lambda x: mg.cond(x.ndim == 1, lambda: x * 2, lambda: x), X) == ["multiply"]
    assert ops_of(branch, X) == ["sum", "greater", "if"]


def test_a_condition_has_one_element():
    with pytest.raises(ValueError, match="ambiguous"):
        mg.trace(lambda x: mg.cond(x > 0, lambda: 1, lambda: 2), X)


def test_eagerly_they_are_python():
    assert mg.cond(3, lambda a: a + 1, lambda a: a, 5) == 6
    assert mg.while_loop(lambda a: a < 10, lambda a: a * 2, 1) == 16
    assert mg.for_loop([1, 2, 3], lambda v, t: t + v, 0) == 6
    assert mg.for_loop(range(9), lambda v, t: t + v, 0, until=lambda t: t > 5) == 6
    assert mg.fori_loop(2, 5, lambda i, v: (v[0] + i, v[1]), (0, "a")) == (9, "a")
    assert mg.switch(9, [lambda: 1, lambda: 2]) == 2
    carry, ys = mg.scan(lambda c, x: (c + x, c), 0.0, np.arange(3.0))
    assert carry == 3.0 and ys.tolist() == [0, 0, 1]
    outs, states = mg.foreach(lambda x, s: (x * 2, [s[0] + x]), np.arange(3.0), [0.0])
    assert outs.tolist() == [0, 2, 4] and states == [3.0]


# ---- loops ------------------------------------------------------------------------------------


def collatz(n: int) -> Any:
    def body(n: Any, count: Any) -> Any:
        return mg.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

    return mg.while_loop(lambda n, count: n != 1, body, (n, 0))


def newton(x: float) -> Any:
    return mg.while_loop(lambda r: abs(r * r - x) > 1e-12, lambda r: (r + x / r) / 2, x)


def bounded(n: int) -> Any:
    return mg.while_loop(lambda v: v < 1000, lambda v: v * 2, n, max_iter=5)


def big(n: int) -> Any:
    return mg.fori_loop(0, n, lambda i, v: v * 3, 1)


@pytest.mark.parametrize("n", [1, 2, 27, 97])
def test_while_loops(n: int):
    same_as_eager(collatz, n)
    same_as_eager(newton, float(n))
    same_as_eager(bounded, n)
    same_as_eager(big, n)
    assert ops_of(collatz, n) == ["while"]


def summed(xs: Any) -> Any:
    return mg.for_loop(xs, lambda x, total: total + x, 0)


def dotted(xs: Any, ys: Any) -> Any:
    def body(pair: Any, total: Any) -> Any:
        at, (x, y) = pair
        return total + at * x - y

    return mg.for_loop(enumerate(zip(xs, ys)), body, np.float64(0))  # noqa: B905


def backwards(xs: Any) -> Any:
    return mg.for_loop(reversed(xs), lambda x, t: t * 0.5 + x, np.float64(0))


def until(xs: Any, limit: float) -> Any:
    def body(x: Any, total: Any, stop: Any) -> Any:
        return total + x, total + x > limit

    state = (np.float64(0), np.False_)
    return mg.for_loop(xs, body, state, until=lambda total, stop: stop)


@pytest.mark.parametrize("xs", [LONG, LONG[::2], LONG[:5], LONG[:1], LONG.astype("f4")])
def test_for_loops(xs: Any):
    same_as_eager(summed, xs)
    same_as_eager(dotted, xs, LONG)
    same_as_eager(backwards, xs)
    for limit in (-1.0, 3.0, 1e9):
        same_as_eager(until, xs, limit)


def test_a_loop_over_nothing():
    same_as_eager(backwards, LONG[:0])
    same_as_eager(until, LONG[:0], 1.0)


def ranges(n: int) -> Any:
    def inner(k: Any, total: Any) -> Any:
        total = mg.for_loop(range(100, n, -k), lambda i, t: t + i, total)
        total = mg.for_loop(reversed(range(3, k, 4)), lambda i, t: t * 3 + i, total)
        return mg.for_loop(enumerate(range(k), 7), lambda p, t: t + p[0] * p[1], total)

    return mg.for_loop(range(1, 30), inner, 1)


@pytest.mark.parametrize("n", [0, 40, 200])
def test_ranges_of_what_is_not_known(n: int):
    same_as_eager(ranges, n)


def zero_step(n: int) -> Any:
    def inner(k: Any, total: Any) -> Any:
        return mg.for_loop(range(0, 9, 20 - k), lambda i, t: t + i, total)

    return mg.for_loop(range(n), inner, 0)


def test_a_step_of_zero_is_found_when_it_is_there():
    same_as_eager(zero_step, 20)
    same_as_eager(zero_step, 25)


def six_deep(n: int) -> Any:
    def level(depth: int, total: Any) -> Any:
        if depth == 0:
            return mg.cond(total % 3 == 0, lambda: total + 2, lambda: total + 1)
        return mg.fori_loop(0, n, lambda i, total: level(depth - 1, total + i), total)

    return level(6, 0)


def test_loops_in_loops():
    same_as_eager(six_deep, 2)
    assert len(str(mg.trace(six_deep, 2))) < 10_000


def test_the_graph_does_not_grow_with_the_number_of_turns():
    def loop(x: Any, count: int) -> Any:
        return mg.for_loop(range(count), lambda i, t: t + x * i, x)

    short, long = (mg.trace(lambda x: loop(x, count), X) for count in (20, 10_000_000))  # noqa: B023
    assert len(short.nodes) == len(long.nodes)


def test_short_loops_are_unrolled_and_lists_are_python():
    assert "scan" not in ops_of(summed, LONG[:16])
    assert "scan" in ops_of(summed, LONG[:17])
    assert "scan" not in ops_of(lambda x: mg.for_loop([x] * 20, lambda v, t: t + v, 0), X)
    assert "scan" not in ops_of(lambda x: mg.for_loop(mg.unroll(x), lambda v, t: t + v, 0), LONG)


def six_short(x: Any) -> Any:
    def level(depth: int, x: Any) -> Any:
        if depth == 0:
            return x * 3 % 1000003
        return mg.for_loop(range(6), lambda i, x: level(depth - 1, x) + i, x)

    return level(6, x)


def four_through_lists(x: Any) -> Any:
    items = [1, 5, 3, 7, 2, 9, 0, 4]

    def level(depth: int, x: Any, factor: int) -> Any:
        if depth == 0:
            return x + factor
        return mg.for_loop(range(8), lambda i, x: level(depth - 1, x, items[i] * factor), x)

    return level(4, x, 1)


@pytest.mark.slow
def test_deep_short_loops_are_those_of_python():
    same_as_eager(six_short, 5)
    same_as_eager(four_through_lists, 5)  # which only Python can read


def test_short_loops_in_short_loops_are_unrolled_up_to_a_number_of_turns():
    assert len(mg.trace(six_short, 5).nodes) < 6 * WITHIN
    two = mg.trace(lambda x: mg.for_loop(range(16), lambda i, x: x * summed(LONG[:16]) + i, x), 5.0)
    assert all(node.op.name != "scan" for node in two.nodes)


def a_list_until(x: Any) -> Any:
    items = [x[0], x[1], x[2], 4.0]
    return mg.for_loop(items, lambda v, t: t + v, np.float64(0), until=lambda t: t > 2)


def test_a_list_that_data_breaks_off():
    same_as_eager(a_list_until, X)
    same_as_eager(a_list_until, -X)


# ---- scans ------------------------------------------------------------------------------------


def recurrent(xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h @ w + x)
        return h, (h * 2, 1)

    return mg.scan(step, np.zeros(3), xs)


def in_reverse(xs: Any) -> Any:
    return mg.scan(lambda c, x: (c * 0.5 + x["a"], c), np.float64(1), {"a": xs}, reverse=True)


def counted(x: Any) -> Any:
    return mg.scan(lambda c, _: (c + x, c[0]), x, length=7)


def gluon(xs: Any) -> Any:
    outs, states = mg.foreach(
        lambda x, states: (x + states[0], [states[0] + x, states[1] + 1]), xs, [np.float64(0), 0]
    )
    return outs, states[0], states[1]


def test_scans():
    same_as_eager(recurrent, ROWS, np.eye(3))
    same_as_eager(in_reverse, LONG)
    same_as_eager(counted, X)
    same_as_eager(gluon, LONG)


def test_named_sizes():
    def f(x: Any) -> Any:
        total = mg.for_loop(x, lambda v, t: t + v, np.float64(0))
        count = mg.while_loop(lambda i: i < x.shape[0], lambda i: i + 1, 0)
        return total, count, mg.scan(lambda c, v: (c + v, c), np.float64(0), x)

    g = mg.jit(f, dynamic={"x": {0: "n"}})
    for n in (5, 100, 1):
        np.testing.assert_equal(g(np.arange(float(n))), f(np.arange(float(n))))
    assert len(g.cache_info()) == 1


def test_numbers_that_are_drawn():
    def f(rng: Any, n: int) -> Any:
        def body(i: Any, total: Any) -> Any:
            drawn = mg.cond(total > 0, lambda: rng.normal(), lambda: rng.random())
            return total * 0.5 + drawn - 0.5

        return mg.for_loop(range(n), body, np.float64(1))

    drawn = [g(np.random.default_rng(1), 30) for g in (f, mg.jit(f))]
    assert drawn[0] == drawn[1]


def test_a_program(capsys: pytest.CaptureFixture[str]):
    source = """
import numpy as np
import minigraph as mg
x = np.array([1.0, 2.0])
n = 3
hits = [0, 0]
total = 0
def then():
    hits[0] = 1
    return x * n
def body(i):
    global total
    total = total + i
print(mg.cond(x.sum() > 1, then, lambda: x), hits)
mg.for_loop(range(30), body)
print(total)
print(mg.while_loop(lambda a, b: a < 100, lambda a, b: (a + b, a), (n, 1)))
"""
    graph = mg.trace_program(source)
    verify(graph)
    assert capsys.readouterr().out == ""
    mg.compile(graph)()
    assert capsys.readouterr().out == "[3. 6.] [1, 0]\n435\n(123, 76)\n"


MATRICES = [np.full(3, float(at)) for at in range(300)]


@pytest.mark.parametrize("turns", [20, 40])
def test_a_known_loop_that_cannot_be_recorded_stays_python(turns: int):
    def indexes(x: Any) -> Any:
        return mg.for_loop(range(turns), lambda i, total: total + MATRICES[i] * x, np.zeros(3))

    def keys(x: Any) -> Any:
        held: dict[int, Any] = {}
        mg.for_loop(range(turns), lambda i: held.update({i: x * i}))
        return held[3] + len(held)

    def pops(x: Any) -> Any:
        stack = list(range(turns))
        return mg.while_loop(lambda total: bool(stack), lambda total: total + stack.pop() * x, 0.0)

    for function in (indexes, keys, pops):
        x = np.arange(3.0)
        np.testing.assert_array_equal(mg.jit(function)(x), function(x))


def test_a_long_loop_that_cannot_be_recorded_offers_python():
    def function(x: Any) -> Any:
        return mg.for_loop(range(300), lambda i, total: total + MATRICES[i] * x, np.zeros(3))

    with pytest.raises(mg.MinigraphError, match=r"keep the loop in Python: .*mg.unroll"):
        mg.jit(function)(np.arange(3.0))
