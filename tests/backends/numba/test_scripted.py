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
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_equal(text: str):
    function = define(text)
    scripted = mg.script(function, backend="numba")
    for a in (3, 5, 0):
        given = (a, np.array([1.5, 1.0, -0.5, 0.0]))
        wanted = copy.deepcopy(given)
        assert outcome(scripted, *given) == outcome(function, *wanted)
        np.testing.assert_array_equal(given[-1], wanted[-1])
