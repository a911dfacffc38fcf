"""Functions that stay Python: called when the program runs, in order with what else it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import nn
from minigraph.ir import parse_graph, verify, walk
from minigraph.ops import OPS
from minigraph.passes import optimize

VECTOR = mg.Spec((3,), "float64")
FLOATS = np.array([1.0, 2.0, 3.0])
BACKENDS = ("interpret", "python", "numba")

told: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_told():
    told.clear()


@mg.ignore(returns=None)
def tell(*things: Any, **named: Any) -> None:
    told.append((*things, *named.items()))


@mg.ignore(returns=lambda x, *rest, **named: mg.Spec(x.shape, x.dtype))
def smooth(x: Any, weight: float = 0.5) -> Any:
    told.append(float(x[0]))
    return weight * x + (1 - weight) * x.mean()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_function_is_called_each_time_and_in_order(
    backend: str, capsys: pytest.CaptureFixture[str]
):
    @mg.ignore(returns=int)
    def shout(n: int) -> int:
        print("calling", n)
        return n + 1

    def function(x: Any, n: int) -> Any:
        print("before", n)
        m = shout(n)
        print("between", m)
        shout(n)  # its result is not read, and the call is the same
        return x * shout(n) + m

    compiled = mg.jit(function, backend=backend)
    for n in (1, 2, 1):
        expected, found = function(FLOATS, n), None
        text = capsys.readouterr().out
        found = compiled(FLOATS, n)
        np.testing.assert_array_equal(found, expected)
        assert capsys.readouterr().out == text and text.count("calling") == 3
    assert len(compiled.cache_info()) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_structures_of_arguments_and_results(backend: str):
    @mg.ignore(returns=(int, {"sum": mg.Spec((), "float64"), "rest": [VECTOR, None]}))
    def statistics(x: Any, how: Any, *, scale: Any) -> Any:
        assert how == ("mean", [None, 2]) and type(scale) is float
        return len(x), {"sum": x.sum(), "rest": [x * scale, None]}

    def function(x: Any, scale: float) -> Any:
        count, found = statistics(x + 1, ("mean", [None, 2]), scale=scale)
        return found["rest"][0] + found["sum"] * count, found["rest"][1], count

    for scale in (2.0, 3.0):
        found = mg.jit(function, backend=backend)(FLOATS, scale)
        np.testing.assert_array_equal(found[0], function(FLOATS, scale)[0])
        assert found[1:] == (None, 3) and type(found[2]) is int


@pytest.mark.parametrize("backend", BACKENDS)
def test_branches_and_loops(backend: str):
    def function(x: Any, n: int) -> Any:
        total = x * 0.0
        for turn in range(n):
            if turn % 2 == 0:
                total = total + smooth(x * turn)
                tell(turn, sum=total.sum())
            elif turn == 3:
                tell("three", [x])
        return total

    scripted = mg.script(function, backend=backend)
    for n in (0, 1, 7, 40):
        told.clear()
        expected, said = function(FLOATS, n), repr(told)
        told.clear()
        np.testing.assert_array_equal(scripted(FLOATS, n), expected)
        assert repr(told) == said
    assert len(scripted.cache_info()) == 1
    assert "while" in [node.op.name for node in walk(scripted.graph)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_named_sizes(backend: str):
    @mg.ignore(returns=mg.Spec(("n", 2), "float64"))
    def pairs(x: Any) -> Any:
        return np.stack([x, x], axis=1)

    compiled = mg.jit(lambda x: pairs(x) * 2, dynamic={"x": {0: "n"}}, backend=backend)
    for size in (1, 3):
        assert compiled(np.ones(size)).shape == (size, 2)
    assert len(compiled.cache_info()) == 1
    with pytest.raises(mg.MinigraphError, match="n is not the extent of any input"):
        mg.jit(pairs)(FLOATS)


def test_the_text_and_the_generated_program():
    compiled = mg.jit(lambda x, n: smooth(x * n, 0.25) + n, backend="python")
    compiled(FLOATS, 2)
    graph = compiled.lower(FLOATS, 2).graph()
    verify(graph)
    assert parse_graph(str(graph), OPS, graph.constants) == graph
    assert "python_call %smooth, %2 {args=(%, 0.25), returns=<f64[3]>} : f64[3]" in str(graph)
    assert "= returned(smooth(v2, 0.25))" in compiled.source("python")


def test_passes_keep_calls():
    def function(x: Any) -> Any:
        tell(x)
        tell(x)
        for _ in range(20):
            smooth(x)
        return x

    graph = mg.script(function).lower(FLOATS).graph()
    kept = [node.op.name for node in walk(optimize(graph).graph)]
    assert kept.count("python_call") == 3 and kept.count("scan") + kept.count("while") == 1


def test_what_comes_back_is_checked():
    @mg.ignore(returns=VECTOR)
    def short(x: Any) -> Any:
        return x[:2]

    with pytest.raises(mg.MinigraphError, match=r"short returned f64\[2\].* says f64\[3\]") as e:
        mg.jit(lambda x: short(x) + 1)(FLOATS)
    assert "test_ignored.py" in e.value.__notes__[0] and "short(x) + 1" in e.value.__notes__[0]

    for result, said, shown, what in (
        (1, float, "int", "float"),
        (True, int, "bool", "int"),
        (np.float64(1), float, r"f64\[\]", "float"),
        ([1.0], (float,), r"\[float\]", r"\(float,\)"),
        ({"a": 1}, {"b": int}, "{'a': int}", "{'b': int}"),
        ((1, 2), (int,), r"\(int, int\)", r"\(int,\)"),
        (None, int, "None", "int"),
        (1, None, "int", "None"),
        ("a", int, "a str", "int"),
        (np.float32(1), mg.Spec((), "float64"), r"f32\[\]", r"f64\[\]"),
        (np.ma.array([1.0, 2.0, 3.0]), VECTOR, "a MaskedArray", r"f64\[3\]"),
    ):

        def give(x: Any, result: Any = result) -> Any:
            return result

        marked = mg.ignore(give, returns=said)

        def call(x: Any, marked: Any = marked) -> Any:
            marked(x)
            return x

        for backend in BACKENDS:
            with pytest.raises(mg.MinigraphError, match=f"returned {shown}.*says {what}"):
                mg.jit(call, backend=backend)(FLOATS)


def test_numbers_without_bound_do_not_call_it_again():
    def function(n: int, m: int) -> int:
        tell(n)
        total = n
        for _ in range(m):
            total = total * n
        tell(total)
        return total

    scripted = mg.script(function, backend="numba")
    for n, m in ((3, 30), (10, 100), (3, 2)):
        told.clear()
        assert scripted(n, m) == n ** (m + 1) and told == [(n,), (n ** (m + 1),)]


def test_results_that_cannot_be_described():
    for returns in ("float", 3, [object()], np.float64):
        with pytest.raises(mg.MinigraphError, match="returns= cannot be"):
            mg.ignore(returns=returns)(len)


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_of_the_program_are_its_own(backend: str):
    kept: list[Any] = []
    table = np.zeros(3)

    @mg.ignore(returns=VECTOR)
    def keep(x: Any) -> Any:
        kept.append(x)
        return table

    def function(x: Any) -> Any:
        y = x * 2
        found = keep(y)
        y += 1
        found += y
        return found

    compiled = mg.jit(function, backend=backend)
    for scale in (1, 2):
        np.testing.assert_array_equal(compiled(FLOATS * scale), FLOATS * scale * 2 + 1)
        np.testing.assert_array_equal(kept[-1], FLOATS * scale * 2)
    assert not table.any()

    @mg.ignore(returns=None)
    def change(x: Any) -> None:
        x[0] = 5

    with pytest.raises(ValueError, match="read-only"):
        mg.jit(lambda x: change(x), backend=backend)(FLOATS)


def test_what_the_function_raises_comes_out():
    @mg.ignore(returns=float)
    def fail(x: Any) -> float:
        raise KeyError("nothing here")

    with pytest.raises(KeyError, match="nothing here"):
        mg.jit(lambda x: fail(x) + x)(FLOATS)

    def caught(x: Any) -> Any:
        try:
            return fail(x)
        except KeyError:
            return 0.0

    with pytest.raises(mg.MinigraphError, match="the handler around it is not recorded"):
        mg.jit(caught)(FLOATS)


def test_arguments_that_are_no_data():
    with pytest.raises(mg.MinigraphError, match="a set is no argument of such a call"):
        mg.jit(lambda x: tell(x, {1, 2}))(FLOATS)


def test_another_function_of_the_name_is_found():
    def make(scale: float) -> Any:
        return mg.ignore(lambda x: x * scale, returns=VECTOR)

    holder = {"f": make(2.0)}
    compiled = mg.jit(lambda x: holder["f"](x) + 1)
    np.testing.assert_array_equal(compiled(FLOATS), FLOATS * 2 + 1)
    holder["f"] = make(3.0)
    np.testing.assert_array_equal(compiled(FLOATS), FLOATS * 3 + 1)


def test_writes_are_seen_by_the_function():
    def function(x: Any) -> Any:
        x[0] = 7.0
        tell(x)
        x[0] = 8.0
        return smooth(x)

    x = FLOATS.copy()
    mg.jit(function)(x)
    np.testing.assert_array_equal(told[0][0], [7.0, 2.0, 3.0])
    assert told[1] == 8.0 and x[0] == 8.0


class Meter:
    def __init__(self) -> None:
        self.seen: list[float] = []

    @mg.ignore(returns=float)
    def measure(self, x: Any) -> float:
        self.seen.append(float(x.sum()))
        return self.seen[-1]

    def run(self, x: Any) -> Any:
        return x + self.measure(x)


def test_methods():
    first, second = Meter(), Meter()
    compiled = mg.jit(lambda meter, x: meter.run(x))
    for meter, scale in ((first, 1.0), (second, 2.0), (first, 3.0)):
        np.testing.assert_array_equal(compiled(meter, FLOATS * scale), FLOATS * scale + 6 * scale)
    assert first.seen == [6.0, 18.0] and second.seen == [12.0]


def test_gradients():
    loss = mg.grad(lambda x: (smooth(x) * x).sum())
    with pytest.raises(mg.MinigraphError, match="no derivative through a Python function") as found:
        loss(FLOATS)
    assert found.value.code == "MG005" and "smooth(x) * x" in str(found.value)

    def aside(x: Any) -> Any:
        tell(x * 2)
        return (x * x).sum()

    np.testing.assert_array_equal(mg.grad(aside)(FLOATS), 2 * FLOATS)
    assert len(told) == 1

    def constant(x: Any, w: Any) -> Any:
        return (smooth(w) * x).sum()

    np.testing.assert_array_equal(
        mg.grad(constant)(FLOATS, FLOATS), 0.5 * FLOATS + 0.5 * FLOATS.mean()
    )


def test_eager_arrays():
    def function(x: Any) -> Any:
        return smooth(x * 2) + 1

    found = mg.jit(function)(mg.array(FLOATS))
    assert type(found) is type(mg.array(FLOATS))
    np.testing.assert_array_equal(found.asnumpy(), function(FLOATS))

    @mg.ignore(returns=VECTOR)
    def kind(x: Any) -> Any:
        told.append(type(x))
        return x

    mg.jit(lambda x: kind(x) + 1)(mg.array(FLOATS))
    mg.jit(lambda x: kind(x) + 1)(FLOATS)
    assert told[-2:] == [type(mg.array(FLOATS)), np.ndarray]


class Net(nn.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, in_units=3)

    @mg.ignore(returns=None)
    def watch(self, x: Any) -> None:
        told.append(x.shape)

    def forward(self, x: Any) -> Any:
        y = self.dense(x)
        tell(y)
        self.watch(y)
        return y


def test_blocks(tmp_path: Path):
    net = Net()
    net.initialize()
    x = mg.array(FLOATS[None])
    expected = net(x).asnumpy()
    net.hybridize()
    for _ in range(2):
        told.clear()
        with mg.autograd.record():
            loss = (net(x) * net(x)).sum()
        loss.backward()
        assert len(told) == 4 and told[1] == (1, 3)
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-15)
    with pytest.raises(mg.MinigraphError, match="calls a Python function") as caught:
        net.export(tmp_path / "net")
    assert caught.value.code == "MG028" and "tell(y)" in str(caught.value)


def test_programs():
    text = "import minigraph as mg\n@mg.ignore(returns=int)\ndef f(n):\n    return n\nprint(f(3))\n"
    with pytest.raises(mg.MinigraphError, match="graph of a whole program does not hold"):
        mg.trace_program(text)


def test_without_returns_the_numbers_have_to_be_known():
    @mg.ignore
    def plain(x: Any) -> Any:
        return x

    with pytest.raises(mg.MinigraphError, match=r"mg.ignore\(returns=...\)"):
        mg.jit(lambda x: plain(x))(FLOATS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_unused_functions_raise_where_they_are_reached(backend: str):
    @mg.unused
    def never(x: Any) -> Any:
        return x

    def function(x: Any, n: int) -> Any:
        total = 0.0
        for turn in range(n):
            if turn > 20:
                never(x)
            total = total + x
        return total

    scripted = mg.script(function, backend=backend)
    assert scripted(1.5, 20) == 30.0
    with pytest.raises(RuntimeError, match="never is marked with mg.unused"):
        scripted(1.5, 30)
