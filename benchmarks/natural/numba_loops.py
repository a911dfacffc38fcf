"""Loops over numbers in Numba: as they stand, and with threads where no turn needs another."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .. import formulas

levenshtein = njit(formulas.levenshtein)
sieve = njit(formulas.sieve)
newton_of = njit(formulas.newton_of)


@njit
def newton_in_order(count: int) -> float:
    total = 0.0
    for k in range(count):
        total += newton_of(k)
    return total


AS_WRITTEN = {
    "collatz": njit(formulas.collatz),
    "newton": newton_in_order,
    "levenshtein": levenshtein,
    "sieve": sieve,
}
"""The loops of Python, compiled."""


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


@njit(parallel=True)
def newton(count: int) -> float:
    sums = np.empty(count)
    for k in prange(count):
        sums[k] = newton_of(k)
    return sums.sum()
