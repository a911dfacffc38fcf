"""Scripted programs through Numba, against eager Python."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from script_programs import define, outcome

import minigraph as mg

PROGRAMS = {
    "a number that a kernel gives is stored": """
        def f(a, xs):
            if a > 3:
                xs[2] = xs.max()
            return xs
    """,
    "an inner loop whose second array nobody needs": """
        def f(a, xs):
            for i in range(a):
                p, q = xs, xs * 2
                for j in range(a):
                    p, q = q * 0.5, p + 1
                xs = p
            return xs
    """,
}


def test_a_gradient_through_exchanged_arrays():
    function = define("""
        def f(x, n):
            a, b = x, x * 2
            for i in range(n):
                if a.sum() > b.sum():
                    a, b = b, a * 0.9
                else:
                    b = b * 0.7
            return (a * b).sum()
    """)
    x = np.array([0.5, -1.0, 2.0])
    found, expected = (
        mg.grad(mg.script(function, backend=backend))(x, 5) for backend in ("numba", "interpret")
    )
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_equal(text: str):
    function = define(text)
    scripted = mg.script(function, backend="numba")
    for a in (3, 5, 0):
        given = (a, np.array([1.5, 1.0, -0.5, 0.0]))
        wanted = copy.deepcopy(given)
        assert outcome(scripted, *given) == outcome(function, *wanted)
        np.testing.assert_array_equal(given[-1], wanted[-1])


def test_two_arrays_that_a_loop_in_a_branch_carries_lie_apart():
    def program(c, a, b):
        if c > 1:
            b[1] = a.max()
        else:
            for _ in range(20):
                a[:2] += b[1:3]
                b[-1] = a.sum()
            b[0], a[-1] = a[-1], b[0]

    for c in (0.5, 1.5):
        given = [np.arange(20.0), np.arange(100.0, 120.0)]
        expected = [each.copy() for each in given]
        program(c, *expected)
        mg.script(program, backend="numba", strict=True)(c, *given)
        np.testing.assert_array_equal(given, expected)


def test_arrays_that_loops_within_a_loop_exchange_lie_apart():
    def program(a, b):
        for i in range(19):
            if a[-1] > a[0]:
                b[:] = b * b[i] * 0.25
                a[:] = a * b[0] * 0.25
            for k in range(19):
                a[k + 1], b[k + 1] = b[k + 1], a[k + 1]

    given = [np.linspace(0.5, 1.5, 20), np.linspace(2.0, 1.0, 20)]
    expected = [each.copy() for each in given]
    program(*expected)
    mg.script(program, backend="numba", strict=True)(*given)
    np.testing.assert_array_equal(given, expected)


def test_neighbours_that_are_exchanged_are_sorted():
    def program(a):
        exchanged = False
        for j in range(len(a) - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                exchanged = True
        return a, exchanged

    given = np.random.default_rng(0).random(40)
    expected = given.copy()
    assert mg.script(program, backend="numba")(given)[1] is program(expected)[1] is True
    np.testing.assert_array_equal(given, expected)


def test_what_a_turn_writes_the_next_one_reads():
    def program(a, b):
        for _ in range(19):
            b[:] = a * b[-1] * 0.25

    given = [np.linspace(0.5, 1.5, 20), np.linspace(2.0, 1.0, 20)]
    expected = [each.copy() for each in given]
    program(*expected)
    mg.script(program, backend="numba", strict=True)(*given)
    np.testing.assert_array_equal(given, expected)


def test_an_element_is_read_before_it_is_written_over():
    def program(x):
        row = x * 2
        corner = row[0]
        row[0] = 7.0
        if x[1] > 0:
            corner += 1
        return row, corner

    x = np.array([1.0, 2.0, 3.0])
    row, corner = mg.script(program, backend="numba")(x)
    np.testing.assert_array_equal(row, [7.0, 4.0, 6.0])
    assert corner == 3.0
