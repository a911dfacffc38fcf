"""`mg.compile`: a graph takes what it was traced for, and refuses anything else."""

from __future__ import annotations

import gc
import linecache

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import SignatureError

TWICE = """
graph f(%y: f64[2*n]) {
  %0 = negative %y : f64[2*n]
  return %0
}
"""


def test_named_dimensions_are_solved_for():
    compiled = mg.compile(mg.parse(TWICE))
    assert compiled(np.ones(4)).tolist() == [-1.0] * 4
    with pytest.raises(SignatureError, match=r"2\*n is needed here, not 3"):
        compiled(np.ones(3))
    with pytest.raises(SignatureError, match="at least 1"):
        compiled(np.ones(0))


def test_arrays_that_are_written_share_nothing():
    def f(x, y):
        x += y
        y *= 2
        return x + y

    compiled = mg.compile(mg.trace(f, np.ones(3), np.ones(3)))
    assert compiled(np.ones(3), np.ones(3)).tolist() == f(np.ones(3), np.ones(3)).tolist()
    same = np.ones(3)
    for second in (same, same[::-1]):
        with pytest.raises(SignatureError, match="shares memory"):
            compiled(same, second)
    assert same.tolist() == [1.0] * 3


def test_the_source_of_an_entry_goes_with_it():
    def guards() -> int:
        gc.collect()
        return sum(name.startswith("<minigraph guard of f") for name in linecache.cache)

    def f(x):
        return x + 1

    before = guards()
    jitted = mg.jit(f)
    jitted(np.ones(3))
    assert guards() == before + 1
    del jitted
    assert guards() == before
