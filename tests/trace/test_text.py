"""Text with values in it: what is printed and what errors say is what Python prints and says."""

# ruff: noqa: UP031, UP032  the other ways to put a text together are tested, too

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from outcomes import outcome, unknown

import minigraph as mg
from minigraph import errors
from minigraph.ir import parse_graph
from minigraph.ops import OPS

P = namedtuple("P", "x y")
X = np.array([[1.5, -2.25], [3.0, np.inf]], np.float32)
N = np.array([3, -200])


def printed(x: Any, n: Any) -> None:
    k, s, b = unknown(x[0], 7, 2.5, True)
    print("k", k, s, b, x[0, 0], n[0], x[0, 0] > 1, x, n)
    print("text " + str(k), repr(s), str(x[0, 0]), repr(x[0, 0]), repr(n), str(b) + "!", sep=";")
    print(format(s, ".3f"), format(k, "05d"), format(x[0, 0], ">9.2e"), format(b), end="|\n")
    print([k, s], (b,), (), (k, [s, (n[0], x[0])]), {"k": k, 1: [s]}, {}, [[], [b]])
    print(P(k, s), [P(1, (x[1, 1],))], [np.asarray(s)], {k.real.__class__: s})
    print([x[0, 0].item(), x[:1], x.sum()], "{}'\"\n\\", f"{3:>4}", [1, "a'", None])


def in_a_script(x: Any, n: Any) -> None:
    i, total = 0, 0.0
    while i < 3:
        total = total + float(x[0, 0]) * i
        print(f"{i:>3}: {total:.3f} {total!r:>8} {x[0]!s} {n[0]!r} {{}} {'a' if i else 'b'}")
        print(
            "%d of %s, %5.1f%%, %r" % (i, total, total, x[0, 1]),
            "%s" % n,
            "{0:>5}|{1}|{0!r}".format(i, x[0]),
        )
        print(", ".join(str(v) for v in (i, total, x[1, 0])), "a" + f"{i}" + str(i), [f"{i}", i])
        i += 1


def fails(x: Any, n: Any) -> Any:
    for i in range(2):
        assert n[i] > 0, f"n[{i}] is {n[i]} and {x[0]}"
    return n


def raises(x: Any, n: Any) -> Any:
    if n[1] < 0:
        raise ValueError("%d is negative" % n[1], n[1])
    return n


def raises_without_text(x: Any, n: Any) -> Any:
    if n[1] < 0:
        raise KeyError(n[1])
    return n


@pytest.mark.parametrize("backend", ["python", "interpret"])
def test_what_is_printed(backend: str) -> None:
    expected = outcome(printed, X, N)
    assert outcome(mg.jit(printed, backend=backend), X, N) == expected
    assert outcome(mg.script(printed, backend=backend), X, N) == expected


@pytest.mark.parametrize("function", [in_a_script, fails, raises, raises_without_text])
@pytest.mark.parametrize("backend", ["python", "interpret"])
def test_in_a_script(function: Callable[..., Any], backend: str) -> None:
    expected = outcome(function, X, N)
    found = outcome(mg.script(function, backend=backend), X, N)
    assert found == expected


def test_what_an_error_is_made_with() -> None:
    with pytest.raises(ValueError) as caught:
        mg.script(raises)(X, N)
    assert caught.value.args == ("-200 is negative", -200)
    assert type(caught.value.args[1]) is np.int64


def test_the_text_form_and_the_program() -> None:
    graph = mg.trace(printed, X, N)
    assert parse_graph(str(graph), OPS, graph.constants) == graph

    def f(x: Any) -> None:
        print("a" + str(x[0]), [x[1]])

    jitted = mg.jit(f)
    jitted(np.ones(2))
    assert """print(f'a{v1!s}', f'[{v3[()]!r}]')""" in jitted.source()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: print(format(x[0], "d")),
        lambda x: print(format(x, ".3f")),
        lambda x: print(format([x], ">9")),
        lambda x: print("%d %d" % x[0]),
    ],
)
def test_a_format_that_things_do_not_have(function: Callable[[Any], Any]) -> None:
    with pytest.raises((ValueError, TypeError)) as eager:
        function(np.ones(2))
    with pytest.raises(eager.type) as found:
        mg.script(function)(np.ones(2))
    assert str(found.value) == str(eager.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: print(1, sep=str(x[0])),
        lambda x: {str(x[0]): 1},
        lambda x: np.ones(2) if str(x[0]) else 0,
        lambda x: str(x[0]).upper(),
        lambda x: list(str(x[0])),
        lambda x: print({1, x[0]}),
    ],
)
def test_what_else_is_done_with_it_is_an_error(function: Callable[[Any], Any]) -> None:
    with pytest.raises((errors.UnsupportedError, errors.ConcreteValueError)):
        mg.jit(function)(np.ones(2))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: print("%r" % ([x],)),
        lambda x: print("%s and %d" % ((x, 1), x)),
        lambda x: print("%s" % {"a": [x]}),
        lambda x: print("%s" % [x, (x,)]),
    ],
)
def test_containers_by_percent(
    function: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    function(3)
    eager = capsys.readouterr().out
    mg.script(lambda x: function(x) if x > 2 else None)(3)
    assert capsys.readouterr().out == eager
