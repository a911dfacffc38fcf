"""Lists that grow in loops of converted functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from script_programs import outcome

import minigraph as mg
from minigraph.errors import JoinError, LoopError

ROWS = np.arange(60.0).reshape(20, 3) / 8
LONG = np.arange(40.0) / 4
H = np.zeros(3)


def recurrent(x, h):
    outs = []
    for t in range(x.shape[0]):
        h = x[t] * 0.5 + h
        outs.append(h)
    return np.stack(outs), h


def by_rows(x, h):
    outs = []
    for row in x:
        before = h
        h = row - h * 0.5
        outs += [before, h]
    return np.stack(outs), h, len(outs), outs[-1], outs[:2]


def before_the_turn(x, h):
    outs = []
    for row in x:
        outs.append(h)
        h = h + row
    outs.append(h)
    return np.array(outs), [out.sum() for out in outs]


def two_lists(x, h):
    outs, sums = [h], []
    for at, row in enumerate(x):
        if row.sum() > 3:
            h = row * 2
            sums.append((at, h.sum()))
        else:
            h = row - h
            sums.append((-at, h.sum()))
        outs.append(h)
    total = np.float64(0)
    for at, number in sums:
        total += at * number
    return np.stack(outs), total, sums


def added_in_branches(x, h):
    outs = []
    for row in x:
        if row.sum() > 3:
            outs += [row, row * 2]
        else:
            outs += [h, -row]
    return np.stack(outs)


def triangle(x, h):
    outs = []
    for i in range(20):
        for j in range(17):
            outs.append(x[i] * j + h)
    return np.stack(outs), len(outs)


def comprehended(x, h):
    outs = [row * 2 for row in x]
    outs.extend([out + h for out in outs])
    return np.stack(outs)


def made_in_turns(x, h):
    tables = []
    for row in x:
        parts = []
        for at in range(3):
            parts.append(row[at] * 2)
        tables.append(np.array(parts) + h)
    return np.stack(tables)


def of_a_helper(x, h):
    def collect(items, outs, h):
        for item in items:
            h = h + item
            outs.append(h)
        return h

    outs = []
    h = collect(x, outs, h)
    h = collect(x[::-1], outs, h)
    return np.stack(outs), h


class Log:
    """What keeps a list."""

    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)


def of_an_object(x, h):
    log = Log()
    for row in x:
        log.add(row + h)
    return np.stack(log.items)


@pytest.mark.parametrize("backend", ["python", "interpret"])
@pytest.mark.parametrize(
    "function",
    [
        recurrent,
        by_rows,
        before_the_turn,
        two_lists,
        added_in_branches,
        triangle,
        comprehended,
        made_in_turns,
        of_a_helper,
        of_an_object,
    ],
)
def test_the_list_afterwards(function: Callable[..., Any], backend: str):
    scripted = mg.script(function, backend=backend)
    for scale in (1.0, -2.0):
        assert outcome(scripted, ROWS * scale, H) == outcome(function, ROWS * scale, H)
    assert len(scripted.cache_info()) == 1


def test_it_is_one_loop():
    scripted = mg.script(recurrent)
    scripted(ROWS, H)
    assert [n.op.name for n in scripted.graph.nodes if n.op.name != "const"] == ["scan"]
    triangles = mg.script(triangle)
    triangles(ROWS, H)
    found = [n.op.name for n in triangles.graph.nodes if n.op.name != "const"]
    assert found == ["scan", "reshape"]


def test_of_numbers():
    def squares(n: int, x: Any) -> Any:
        ints, floats = [], []
        for i in range(30):
            ints.append(i * n)
            floats.append(float(x[i]))
        return ints, floats, np.array(ints), sum(ints), max(floats), ints[3] % 2

    assert outcome(mg.script(squares), 7, LONG) == outcome(squares, 7, LONG)


def test_in_an_eager_record():
    def loss(x: Any, h: Any) -> Any:
        outs = []
        for t in range(x.shape[0]):
            h = x[t] * 0.5 + h
            outs.append(h)
        return (np.stack(outs) ** 2).sum()

    gradients: list[Any] = []
    for function in (loss, mg.script(loss)):
        x, h = mg.array(ROWS), mg.array(H)
        x.attach_grad()
        with mg.autograd.record():
            found = function(x, h)
        found.backward()
        gradients.append(x.grad.asnumpy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-12)


def test_in_a_program():
    text = """
import minigraph as mg
import numpy as np
outs = []
def body(v, h):
    outs.append(h + v)
    return h * 0.5 + v
h = mg.for_loop(np.arange(40.0), body, np.float64(0))
print(np.stack(outs).sum(), len(outs), outs[3])
"""
    graph = mg.trace_program(text)
    found = [node.op.name for node in graph.nodes if node.op.name != "const"]
    assert found == ["arange", "scan", "sum", "slice", "print"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    run = mg.compile(graph, backend="python")
    assert outcome(run)[1] == outcome(lambda: exec(text, namespace))[1]


def test_a_new_list_in_each_turn():
    def function(x: Any) -> Any:
        outs = []
        for row in x:
            outs = [*outs, row * 2]
        return outs

    with pytest.raises(LoopError, match=r"instead: outs\.append\(\.\.\.\); or write into an array"):
        mg.script(function)(ROWS)


def test_a_length_with_a_name():
    with pytest.raises(LoopError, match=r"mg\.scan stack what each turn gives"):
        mg.script(recurrent, dynamic={"x": {0: "time"}})(ROWS, H)


# ---- what is refused --------------------------------------------------------------------------


def test_another_name_for_append():
    def function(x: Any) -> Any:
        outs: list[Any] = []
        add = outs.append
        for row in x:
            add(row * 2)
        return np.stack(outs)

    np.testing.assert_array_equal(mg.script(function)(ROWS), function(ROWS))
    with pytest.raises(LoopError, match="at the beginning of a turn|at its end"):
        mg.script(function)(np.ones((300, 3)))


def test_in_some_turns_only():
    def function(x: Any) -> Any:
        outs = []
        for v in x:
            if v > 3:
                outs.append(v)
        return len(outs)

    with pytest.raises(JoinError) as caught:
        mg.script(function)(LONG)
    text = str(caught.value)
    assert "outs holds different things after the two branches" in text
    assert "out[i] = y" in text and "mg.unroll(items)" in text


def test_a_total_that_begins_as_an_int():
    def function(x: Any) -> Any:
        total = 0
        for v in x:
            if v > 3:
                total += v
        return total

    def fixed(x: Any) -> Any:
        total = np.float64(0)
        for v in x:
            if v > 3:
                total += v
        return total

    first = function.__code__.co_firstlineno
    with pytest.raises(JoinError) as caught:
        mg.script(function)(LONG)
    text = str(caught.value)
    assert "total is np.float64 after one branch and int after the other" in text
    assert f"test_growing_lists.py:{first + 4}  total += v" in text
    assert f"test_growing_lists.py:{first + 1}  total = 0" in text
    assert "instead: total = np.float64(0.0)\n" in text
    assert outcome(mg.script(fixed), LONG) == outcome(fixed, LONG)


def test_conditions_of_several_kinds():
    def function(x: Any, n: int, flag: bool, y: float) -> Any:
        count = i = 0
        done = x[0] > 100
        while not done and i < n:
            if flag and x[i] > 3:
                count += 1
            if x[i] and i > 3 or flag and not n:
                count += 10
            if (i % 2 or x[i] > 5) and y:
                count += 100
            if not (flag and i and x[i]):
                count += 1000
            done = x[i] > 8
            i += 1
        return count, i

    scripted = mg.script(function)
    for arguments in ((30, True, 1.5), (30, False, 0.0), (0, True, 2.0), (7, True, 0.0)):
        assert outcome(scripted, LONG, *arguments) == outcome(function, LONG, *arguments)


def test_the_most_turns_as_an_argument():
    def function(x: Any, most: Any) -> Any:
        return mg.while_loop(lambda v: v < 1000, lambda v: v * 2, x, max_iter=most)

    for compiled in (mg.script(function), mg.jit(function)):
        for most in (5, 30, 0, True):
            assert outcome(compiled, 3.0, most) == outcome(function, 3.0, most)
    with pytest.raises(mg.MinigraphError, match="a Python int as the argument"):
        mg.script(function)(3.0, np.int64(5))
