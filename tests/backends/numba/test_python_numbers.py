"""Compiled loops over Python's numbers: Python's functions on them, with Python's own errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from outcomes import outcome

import minigraph as mg
from minigraph.errors import CompileWarning

pytest.importorskip("numba")


def extremes(x: Any) -> Any:
    least, most, total, count = float(x[0]), 0.0, 0.0, 0
    for v in x:
        least = min(least, float(v))
        most = max(most, float(v), -0.0)
        count = min(max(count + int(float(v) > 1), 0), 3)
        total += max(float(v), total) - min(total, 0.5)
    return least, most, total, count


def functions(x: Any) -> Any:
    total, k = 0.0, 1
    for v in x:
        total += math.sqrt(abs(float(v))) + math.sin(total) * math.exp(-abs(total))
        k = k * 3 + round(total) + math.floor(float(v)) // 2 - math.gcd(k, 12) + int(total)
        total = total % 7.5 + (k % 11) / 3
    return total, k


def roots(x: Any) -> Any:
    total = 1.0
    for v in x:
        total += math.sqrt(float(v))
    return total


def to_ints(x: Any) -> Any:
    total = 0
    for v in x:
        total += int(float(v))
    return total


def powers(x: Any) -> Any:
    total, i = 1, 0
    for _ in x:
        total = total + 2**i * 3 - i**3
        i += 1
    return total, i


CASES = {
    "extremes": (extremes, [np.linspace(-2, 3, 40), np.array([math.nan, 1.0, -1.0] * 7)]),
    "zeros": (extremes, [np.array([0.0, -0.0] * 9), np.array([-0.0, 0.0, math.inf] * 6)]),
    "functions": (functions, [np.linspace(-5, 5, 30), np.linspace(0, 1e6, 50)]),
    "domain": (roots, [np.linspace(3, -1, 30), np.arange(20.0)]),
    "not a number": (to_ints, [np.array([1.5, math.nan] * 9), np.array([1.0, math.inf] * 9)]),
    "powers": (powers, [np.zeros(20), np.zeros(100)]),
}


@pytest.mark.parametrize("name", CASES)
def test_as_python_computes(name: str) -> None:
    function, arguments = CASES[name]
    scripted: Callable[..., Any] = mg.script(function, backend="numba")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompileWarning)
        for x in arguments:
            assert outcome(scripted, x) == outcome(function, x)
