"""Loops over numbers as a user of NumPy writes them: all numbers at once, or a row, or a slice."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def collatz(limit: int) -> int:
    """How many steps all numbers below `limit` together take to 1."""
    n, steps = np.arange(2, limit), 0
    while n.size:
        n = np.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += n.size
        n = n[n != 1]
    return steps


def newton(count: int) -> Any:
    """Points at given distances from three others, until all have converged."""
    goal = 2.0 + 0.0001 * np.arange(count)
    p = 9.0 + goal * goal + 1.0
    q = 1.0 + goal * goal + 4.0
    r = 4.0 + (goal - 5.0) * (goal - 5.0) + 1.0
    x, y, z = np.full(count, 2.0), np.full(count, 1.0), np.full(count, 3.0)
    error = np.ones(count)
    while (error > 1e-20).any():
        a, b, c, d = x - 4.0, z - 1.0, x - 1.0, y - 5.0
        f = 0.5 * (x * x + y * y + z * z - p)
        g = 0.5 * (a * a + y * y + b * b - q)
        h = 0.5 * (c * c + d * d + z * z - r)
        m1, m2, m3 = y * z - b * d, b * c - a * z, a * d - y * c
        n1, n2, n3 = z * d - y * z, x * z - z * c, y * c - x * d
        o1, o2, o3 = y * b - z * y, z * a - x * b, x * y - y * a
        scale = 1.0 / (x * m1 + y * m2 + z * m3)
        u = (m1 * f + n1 * g + o1 * h) * scale
        v = (m2 * f + n2 * g + o2 * h) * scale
        w = (m3 * f + n3 * g + o3 * h) * scale
        x, y, z = x - u, y - v, z - w
        error = (u * u + v * v + w * w) / (p + q)
    return (x + y + z).sum()


def levenshtein(a: Array, b: Array) -> Any:
    """How many edits lead from one sequence to the other; one row of the table at a time.

    An insertion costs one for each place: a running minimum of what is left without the places.
    """
    places = np.arange(len(b) + 1)
    row = places
    for i, letter in enumerate(a, 1):
        best = np.minimum(row[:-1] + (b != letter), row[1:] + 1)
        row = np.minimum.accumulate(np.concatenate(([i], best)) - places) + places
    return row[-1]


def sieve(limit: int) -> Any:
    """How many primes there are below `limit`; multiples are struck out as a slice."""
    prime = np.ones(limit, np.bool_)
    prime[:2] = False
    i = 2
    while i * i < limit:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return np.count_nonzero(prime)
