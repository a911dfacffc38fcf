"""Classes in traced code: called they record, otherwise they are what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy import float32
from outcomes import outcome, unknown

import minigraph as mg
from minigraph.errors import ConcreteValueError
from minigraph.trace.called import with_calls_apart

Number = float
K = 3


class Meter:
    kind = float

    def read(self, x: Any) -> Any:
        return float(x) + int(x)

    def __float__(self) -> float:
        return 2.5


def plain(x: Any) -> Any:
    return float.fromhex("0x1p0"), isinstance(x, float), {float: 1}[type(x)], dict[str, int]


def called(flag: Any, x: Any) -> Any:
    (x,) = unknown(flag, x)

    def inner(float: Any) -> Any:
        return float(x)

    return (
        float(x),
        [int(v) for v in (x, 7.5)],
        (lambda y: float(y))(x),
        Number(x),
        float32(x),
        np.float32(x),
        np.int8(x),
        np.zeros(2, float).dtype,
        np.zeros(2, dtype=np.float32).dtype.type is np.float32,
        inner(lambda y: y * 2),
        Meter().read(x),
        Meter.kind is float,
        float(Meter()),
        float("1.5"),
        int("12", 8),
        float(*[x]),
        bool(x),
        bool([]),
        isinstance(x, (int, Number)),
        np.float64(x).dtype,
        type(x) is float,
    )


@pytest.mark.parametrize("decorate", [mg.jit, mg.script])
def test_calls_are_recorded_and_nothing_else_changes(decorate: Any) -> None:
    flag = np.ones(1)
    for x in (2.5, -7.0):
        assert outcome(decorate(called), flag, x) == outcome(called, flag, x)


def test_code_without_such_calls_is_the_same_object() -> None:
    assert with_calls_apart(plain.__code__, globals()) is plain.__code__
    renamed = with_calls_apart(called.__code__, globals())
    assert renamed.co_filename == called.__code__.co_filename
    assert list(renamed.co_positions()) == list(called.__code__.co_positions())


def test_a_name_that_means_something_else() -> None:
    names: dict[str, Any] = {"np": np}
    source = "def float(x): return x * 2\ndef f(x): return float(x[0]), float\n"
    exec(compile(source, "<names>", "exec", dont_inherit=True), names)
    assert mg.jit(lambda x: names["f"](x)[0])(np.ones(2)) == 2


def test_a_name_that_comes_to_mean_something_else() -> None:
    names: dict[str, Any] = {}
    exec(compile("def f(x): return int(x[0])\n", "<names>", "exec", dont_inherit=True), names)
    jitted = mg.jit(names["f"])
    assert jitted(np.array([2.5])) == 2
    names["int"] = lambda x: x * 3
    assert jitted(np.array([2.5])) == 7.5


def test_where_bytecode_cannot_tell_the_number_is_needed() -> None:
    def f(x: Any) -> Any:
        kind = float
        return kind(x[0])

    with pytest.raises(ConcreteValueError, match="float"):
        mg.jit(f)(np.ones(2))


def test_programs() -> None:
    source = """
import numpy as np
x = np.random.default_rng(0).random()
class A:
    k = float(x)
def f(y): return int(y * 100), np.float32(y)
print(float(x), np.float32(x), A.k, f(x), [bool(v) for v in (x, 0)])
def str(y): return "mine"
print(str(x))
"""
    graph = mg.trace_program(source)
    program = compile(source, "<program>", "exec", dont_inherit=True)
    _, expected = outcome(lambda: exec(program, {"__name__": "__main__"}))
    _, printed = outcome(lambda: mg.ops.evaluate(graph, []))
    assert printed == expected
