"""`mg.script`: control flow that depends on data, compiled, does what eager Python does."""

# ruff: noqa: B007, B905, SIM103  # programs as people write them

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from script_programs import define, outcome

import minigraph as mg
from minigraph import nn
from minigraph.errors import OptionError, ScriptError, UnsupportedError

FLOATS = np.array([3.0, -1.0, 4.0, 1.5])


def early(x):
    if x.sum() > 0:
        return x * 2
    y = x - 1
    return y


def collatz(n):
    turns = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        turns += 1
    return turns


def newton(a):
    x = a
    for turn in range(100):
        following = 0.5 * (x + a / x)
        if abs(following - x) < 1e-12:
            break
        x = following
    else:
        return x, -1
    return x, turn


def find(table, limit):
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] > limit:
                return i * 10 + j, table[i, j] * 1.0
            if table[i, 0] < 0:
                break
    return -1, limit * 1.0


def odd_sum(limit):
    total = 0
    at = 0
    while True:
        at += 1
        if at % 2 == 0:
            continue
        total += at
        if total > limit:
            return total, at


told = define(
    """
def told(x):
    assert x > 0, f"x is {x:.2f}, and must be positive"
    print(f"x = {x:6.3f}", "is taken")
    if x > 5:
        raise ValueError(f"too large: {x}")
    return x * 2
""",
    "told",
)  # as text: pytest rewrites assertions


def chosen(a, b):
    return (a and b), (a or b), (not a), (a > 0 and b > 0), a < b < 5, 2 if a > b else 3


def chained(x, low):
    if low < x + 0 < 0.5:
        return x * 10
    return x * 1


def nested_ternary(x):
    return -x if x < 0 else x * 100 if x > 9 else x + 0


def top_bit(a, b):
    top = 2**63
    s = a ^ b
    if s >= top:
        s = s - top
    return s


def closures(x):
    def clip(v):
        if v > 2:
            return v
        return -v

    return [clip(v) for v in x], (lambda v: v if v > 0 else v * 10)(x[1])


def positive(v, *, scale=2.0):
    return v * scale if v > 0 else np.float64(0.0)


def calls_others(x):
    total = np.float64(0.0)
    for v in x:
        total += positive(v) + positive(-v, scale=3.0)
    return total


def clipped(x, low, high):
    out = np.zeros_like(x)
    for i, v in enumerate(x):
        if v < low:
            out[i] = low
        elif v > high:
            out[i] = high
        else:
            out[i] = v
    return out


def distance(a, b):
    m, n = len(a), len(b)
    table = np.zeros((m + 1, n + 1), np.int64)
    for i in range(m + 1):
        table[i, 0] = i
    for j in range(n + 1):
        table[0, j] = j
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table[m, n]


def pairs(x, y):
    best = x[0] * y[0]
    for a, b in zip(x, reversed(y)):
        if a * b > best:
            best = a * b
    return best


def walrus(n):
    while (n := n - 1) > 3:
        if n == 5:
            continue
        print(n)
    return n


def kept(x):
    try:
        y = 1 / x
    except ZeroDivisionError:
        y = 0.0
    if y > 0.5:
        return y
    return -y


def kinds(kind, x):
    match kind:
        case "relu" | "positive":
            if x > 0:
                return x
            return x * 0
        case None:
            x = -x
    return x


CALLS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (early, [(FLOATS,), (-FLOATS,)]),
    (collatz, [(27,), (1,), (6,)]),
    (newton, [(2.0,), (9.0,), (np.float64(5.0),)]),
    (find, [(np.array([[1.0, 2, 3], [-1, 9, 9], [4, 5, 6]]), np.float64(v)) for v in (2.5, 5, 8)]),
    (odd_sum, [(10,), (100,)]),
    (told, [(1.5,), (-1.0,), (7.0,), (np.float64(2.0),)]),
    (chosen, [(1, 2), (0, 2), (3, 0), (np.int64(3), np.int64(4))]),
    (chained, [(np.float64(0.25), 0), (np.float64(0.75), 0), (np.array([0.1, 0.2]), 0)]),
    (nested_ternary, [(np.int64(k),) for k in (-3, 10, 5)]),
    (top_bit, [(np.uint64(2**63 + 2**54 + 1), np.uint64(2)), (np.uint64(3), np.uint64(4))]),
    (closures, [(FLOATS,), (-FLOATS,)]),
    (calls_others, [(FLOATS,)]),
    (clipped, [(FLOATS, 0.0, 3.5), (np.linspace(-1, 1, 40), -0.5, 0.25)]),
    (distance, [(np.array([1, 2, 3, 4]), np.array([2, 3, 9]))]),
    (pairs, [(FLOATS, FLOATS[::-1].copy())]),
    (walrus, [(10,), (2,)]),
    (kept, [(1.0,), (4.0,)]),
    (kinds, [("relu", -1.0), ("positive", 2.0), (None, 3.0), ("other", 4.0)]),
]


@pytest.mark.parametrize("backend", ["interpret", "python"])
@pytest.mark.parametrize(("function", "calls"), CALLS, ids=[f.__name__ for f, _ in CALLS])
def test_as_eager(function: Callable[..., Any], calls: list[tuple[Any, ...]], backend: str):
    scripted = mg.script(function, backend=backend)
    for arguments in calls:
        assert outcome(scripted, *arguments) == outcome(function, *arguments)


def test_one_entry_for_both_ways():
    scripted = mg.script(early)
    scripted(FLOATS)
    scripted(-FLOATS)
    assert len(scripted.cache_info()) == 1
    counted = mg.script(collatz)
    assert [counted(n) for n in (1, 27, 97)] == [0, 111, 118]
    assert len(counted.cache_info()) == 1
    texts = mg.script(lambda n: print(f"{n + 1} of {n}"))
    assert [outcome(texts, n)[1] for n in (1, 2)] == ["2 of 1\n", "3 of 2\n"]
    assert len(texts.cache_info()) == 1


def test_methods_super_properties_and_static_methods():
    class Base:
        def __init__(self, limit: float) -> None:
            self.limit = limit
            self.total = np.zeros(1)

        @staticmethod
        def clip(v: Any) -> Any:
            return v if v < 2 else np.float64(2.0)

        @property
        def is_big(self) -> Any:
            if self.total[0] > 10:
                return True
            return False

        def add(self, xs: Any) -> Any:
            for x in xs:
                self.total[0] += self.clip(x)
            return self.is_big

    class Derived(Base):
        def add(self, xs: Any) -> Any:
            if xs[0] > self.limit:
                return super().add(xs)
            return super().add(xs * 2)

    scripted, eager = Derived(1.5), Derived(1.5)
    add = mg.script(scripted.add)
    for scale in (1.0, 0.1, 3.0):
        assert add(FLOATS * scale) == eager.add(FLOATS * scale)
        np.testing.assert_array_equal(scripted.total, eager.total)


def test_a_decorated_method():
    class Holder:
        factor = 3.0

        @mg.script
        def scaled(self, x: Any) -> Any:
            if x.sum() > 0:
                return x * self.factor
            return x

    assert Holder().scaled(FLOATS).tolist() == (FLOATS * 3).tolist()
    assert Holder().scaled(-FLOATS).tolist() == (-FLOATS).tolist()


class Gate(nn.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, in_units=4)

    def forward(self, x: Any) -> Any:
        y = self.dense(x)
        while y.sum() > 1:
            y = y * 0.5
        if y[0, 0] > 0:
            return y
        return -y

    @mg.export
    def halved(self, x: Any) -> Any:
        return x if x.sum() < 1 else x / 2


def test_blocks():
    net = Gate()
    net.initialize()
    scripted = mg.script(net)
    for scale in (1.0, -1.0, 30.0):
        x = np.full((2, 4), scale, np.float32)
        np.testing.assert_allclose(scripted(x), net(x), rtol=1e-6)
    assert len(scripted.cache_info()) == 1
    assert scripted.dense is net.dense
    assert "while" in str(scripted.graph)
    np.testing.assert_array_equal(scripted.halved(FLOATS), net.halved(FLOATS))


def test_inside_of_another_compiled_function():
    scripted = mg.script(early)

    @mg.jit
    def outer(x: Any) -> Any:
        return scripted(x) + 1

    for x in (FLOATS, -FLOATS):
        np.testing.assert_array_equal(outer(x), early(x) + 1)


def test_views():
    scripted = mg.script(collatz)
    assert scripted(6) == 8
    assert scripted.schema == "collatz(n: int) -> int"
    assert "while" in str(scripted.graph) and scripted.graph == scripted.inlined_graph
    assert "while" in str(scripted.graph_for(6))
    assert scripted.code == mg.to_code(collatz)
    assert repr(scripted) == "<scripted collatz, 1 entries>"


def test_partials_and_lambdas():
    scripted = mg.script(functools.partial(clipped, low=0.0, high=2.0))
    np.testing.assert_array_equal(scripted(FLOATS), clipped(FLOATS, 0.0, 2.0))
    assert mg.script(lambda x: x if x > 2 else -x)(1.0) == -1.0


def test_is_scripting():
    def function(x: Any) -> Any:
        return x * 2 if mg.is_scripting() else x

    assert function(1.0) == 1.0 and mg.script(function)(1.0) == 2.0 and mg.jit(function)(1.0) == 1.0


def test_ignored_and_unused_functions():
    @mg.ignore
    def table(size: int) -> Any:
        try:
            return np.arange(size)
        finally:
            pass

    def function(x: Any, size: int = 4) -> Any:
        return x + table(size)

    np.testing.assert_array_equal(mg.script(function)(FLOATS), function(FLOATS))

    def wrong(x: Any) -> Any:
        return table(x)

    with pytest.raises(mg.MinigraphError, match="marked with mg.ignore"):
        mg.script(wrong)(FLOATS)

    @mg.unused
    def never(x: Any) -> Any:
        return x

    def branch(x: Any) -> Any:
        if x > 3:
            return never(x)
        return x

    scripted = mg.script(branch)
    assert scripted(1.0) == 1.0
    with pytest.raises(RuntimeError, match="never is marked with mg.unused"):
        scripted(5.0)


def test_recursion():
    def halves(x: Any, depth: int) -> Any:
        if depth == 0:
            return x
        if x.sum() > 1:
            return halves(x / 2, depth - 1)
        return x

    scripted = mg.script(halves, static=("depth",))
    for scale in (0.1, 1.0, 5.0):
        np.testing.assert_array_equal(scripted(FLOATS * scale, 3), halves(FLOATS * scale, 3))

    def factorial(n: Any) -> Any:
        return 1 if n <= 1 else n * factorial(n - 1)

    with pytest.raises(mg.MinigraphError, match="factorial calls itself without end") as caught:
        mg.script(factorial)(5)
    assert caught.value.code == "MG034" and "factorial(n - 1)" in str(caught.value)


def test_recording_inside():
    def loss(x: Any) -> Any:
        with mg.autograd.record():
            y = x * x
            if y.sum() > 1:
                y = y * 3
            return y.sum()

    x = mg.array([1.0, 2.0])
    assert mg.script(loss)(x) == loss(x)


def test_a_name_that_is_assigned_on_one_way_of_three():
    def function(a: Any, b: Any) -> Any:
        if a > 3:
            b = 1
        elif b > 3:
            g = 5
        return g % b

    with pytest.raises(mg.MinigraphError, match="g is used, and not assigned on every way"):
        mg.script(function)(0, 5)


def test_options():
    with pytest.raises(mg.MinigraphError, match="backend"):
        mg.script(early, backends="python")
    with pytest.raises(mg.MinigraphError, match="a function or a block"):
        mg.script(3)
    assert mg.script(backend="interpret")(early)(FLOATS).tolist() == early(FLOATS).tolist()


PROGRAM = """
import minigraph as mg
import numpy as np

rng = np.random.default_rng(0)

@mg.script
def folded(x):
    turns = 0
    while x.sum() > 1:
        x = x / 2
        turns += 1
    print(f"{turns} turns")
    if turns > 2:
        return x, turns
    return -x, turns

def known(a, b):
    total = 0
    for i in range(b):
        total += i * a
    return total if total > 3 else -total

print(known(1, 4), known(5, 1))
x, turns = folded(np.abs(rng.normal(size=3)) + 2)
print(x.shape, turns)
print(x)
"""


def test_programs():
    graph = mg.trace_program(PROGRAM)
    assert "while" in str(graph) and "if" in str(graph)
    traced = outcome(mg.compile(graph, "python"))
    assert traced[1] == outcome(exec, PROGRAM, {})[1]
    assert mg.trace_program(PROGRAM) == graph


def _chain(branches: int, word: str) -> Callable[..., Any]:
    """A function of that many `elif`s, or early returns."""
    lines = ["def f(x):"]
    for at in range(branches):
        if word == "return":
            lines += [f"    if x == {at}:", f"        return x + {at}"]
        else:
            lines += [f"    {'elif' if at else 'if'} x == {at}:", f"        x = x + {at}"]
    return define("\n".join([*lines, "    return x"]))


@pytest.mark.parametrize("word", ["elif", "return"])
def test_long_chains(word: str):
    """Converting takes time in proportion to the text: each level twice would never end."""
    assert mg.to_code(_chain(100, word)).count("mg.cond") == 100


@pytest.mark.parametrize("word", ["elif", "return"])
def test_a_chain_is_no_recursion(word: str):
    scripted = mg.script(_chain(80, word))
    assert [scripted(x) for x in (3, 79, 80)] == [6, 158, 80]


def test_a_break_takes_no_item_more():
    def rest(x: Any) -> Any:
        items, seen = iter([1, 2, 3, 4]), []
        for item in items:
            seen.append(item)
            if item == 2:
                break
        return x + next(items), seen

    assert mg.script(rest)(1.0) == rest(1.0) == (4.0, [1, 2])

    def data(x: Any) -> Any:
        items = iter([1, 2, 3, 4])
        for item in items:
            if item > x:
                break
        return next(items)

    with pytest.raises(mg.MinigraphError, match="items this loop takes out of an iterator"):
        mg.script(data)(1.0)

    def numbered(x: Any) -> Any:
        total = 0.0
        for at, item in enumerate([1, 2, 3, 4]):
            if item > x:
                break
            total += at * x
        return total

    for x in (0.5, 2.0, 9.0):
        assert mg.script(numbered)(x) == numbered(x)


def powers_up_to(x: Any, n: Any, *, start: float = 1.0) -> Any:
    found = np.float64(start)
    for _ in range(int(n)):
        found = found * 2 if found < x.sum() else found + 1
    return found


def halved(x: Any) -> Any:
    """Also called without script, before it is called by what is scripted."""
    return x / 2 if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("around", [mg.jit, mg.script])
def test_script_within_traced_code(around: Any):
    limit = np.full((), 3.0)

    def function(x: Any) -> Any:
        x = halved(x)
        inner = mg.script(lambda z: z if z.sum() > limit else halved(-z))
        first = mg.script(powers_up_to)(x, 5, start=0.5)
        return first + powers_up_to(x, 3), mg.script(mg.script(inner))(x)

    for x in (np.arange(6.0), np.zeros(2) - 1):
        found, expected = around(function)(x), function(x)
        assert found[0] == expected[0] and type(found[0]) is type(expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_derivatives_of_what_is_scripted_within_traced_code():
    def total(x: Any, n: Any) -> Any:
        found = np.ones_like(x)
        for _ in range(n):
            found = found * x
        return found.sum()

    def slope(z: Any) -> Any:
        return mg.grad(mg.script(total))(z, 5).sum()

    x = np.arange(3.0)
    np.testing.assert_allclose(mg.grad(slope)(x), 20 * x**3)


def test_what_is_refused_is_refused_in_traced_code_too():
    def refused(x: Any) -> Any:
        for item in (yield x):
            x = x + item
        return x

    with pytest.raises(mg.MinigraphError, match="MG034"):
        mg.jit(lambda x: mg.script(refused)(x))(np.ones(2))


def test_true_and_false_are_compared_by_what_they_are():
    def matched(x: Any) -> Any:
        match x > 0:
            case True:
                return x * 2
            case False:
                return x - 1
            case _:
                return x

    def compared(x: Any, y: Any) -> Any:
        one = 1 if (x > 0) is True else 2
        return one, (x > y) is not False, x is True, 5 if x is False else 6

    def singletons(x: Any, y: Any) -> Any:
        match y:
            case None:
                return x + 1
            case True:
                return x + 2
            case 1:
                return x + 3
        return x + 4

    for x in (3, -3, 2.5, 1):
        assert mg.script(matched)(x) == matched(x)
        assert mg.script(compared)(x, 1) == compared(x, 1)
        for y in (None, True, False, 1, 2):
            assert mg.script(singletons)(x, y) == singletons(x, y)


# ---- limits --------------------------------------------------------------------------------------


def ladder(rungs: int, *, early: bool) -> Callable[..., Any]:
    """So many tests, one after the other: early returns, or one chain of `elif`s."""
    if early:
        tests = "".join(f"    if x > {rungs - i}: return x * {i}\n" for i in range(rungs))
        return define(f"def f(x):\n{tests}    return x\n")
    tests = "".join(f"    elif x > {rungs - i}: x = x * {i}\n" for i in range(1, rungs))
    return define(f"def f(x):\n    if x > {rungs}: x = 0 * x\n{tests}    return x\n")


@pytest.mark.parametrize("early", [True, False])
def test_eighty_branches_in_a_row_and_no_more(early: bool):
    function = ladder(80, early=early)
    scripted = mg.script(function)
    for x in (100.0, 60.5, 0.5):
        assert scripted(x) == function(x)
    with pytest.raises(UnsupportedError, match="nested more than 80 deep") as caught:
        mg.script(ladder(90, early=early))(60.5)
    assert caught.value.where is not None and caught.value.where.line == 82
    with pytest.raises(ScriptError, match="nested too deep"):
        mg.script(ladder(1000, early=early))


@pytest.mark.parametrize("function", [np.tanh, np.sum, len, abs, "".join])
def test_what_is_no_python_has_no_code(function: Any):
    with pytest.raises(OptionError, match="no code to convert"):
        mg.to_code(function)


@pytest.mark.parametrize("function", [np.tanh, np.sum])
def test_numpys_functions_are_as_they_are(function: Any):
    np.testing.assert_array_equal(mg.script(function)(FLOATS), function(FLOATS))
