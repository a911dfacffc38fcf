"""Loops over numbers in plain Python, on ints and lists; the others stand in `formulas.py`."""

from __future__ import annotations

from collections.abc import Sequence

from ..formulas import collatz, newton

__all__ = ["collatz", "levenshtein", "newton", "sieve"]


def levenshtein(a: Sequence[int], b: Sequence[int]) -> int:
    """How many edits lead from one sequence to the other; one row of the table at a time."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, right in enumerate(b):
            above = row[j + 1]
            best = corner if left == right else corner + 1
            row[j + 1] = min(best, above + 1, row[j] + 1)
            corner = above
    return row[-1]


def sieve(limit: int) -> int:
    """How many primes there are below `limit`."""
    prime = [True] * limit
    prime[0] = prime[1] = False
    i = 2
    while i * i < limit:
        if prime[i]:
            for j in range(i * i, limit, i):
                prime[j] = False
        i += 1
    return sum(prime)
