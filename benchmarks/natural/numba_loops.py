"""Loops over numbers in Numba; threads share them where no turn waits for the one before."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .. import formulas

levenshtein = njit(formulas.levenshtein)
sieve = njit(formulas.sieve)


@njit
def steps_to_one(n: int) -> int:
    steps = 0
    while n != 1:
        n = n >> 1 if n & 1 == 0 else 3 * n + 1
        steps += 1
    return steps


@njit(parallel=True)
def collatz(limit: int) -> int:
    steps = 0
    for start in prange(1, limit):
        steps += steps_to_one(start)
    return steps


newton_of = njit(formulas.newton_of)


@njit(parallel=True)
def newton(count: int) -> float:
    sums = np.empty(count)
    for k in prange(count):
        sums[k] = newton_of(k)
    return sums.sum()
