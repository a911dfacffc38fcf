"""Loops of scalar work: as Python, `numba.njit`, TorchScript, and `mg.script` of the same source.

TorchScript has no loops over elements that are not boxed as tensors or lists, so it gets lists of
ints, which it runs fastest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import minigraph as mg

from .comparing import Disagreement, Row, in_turns
from .peers import Call

# ---- the programs ------------------------------------------------------------------------------


def collatz(limit: int) -> int:
    """How many steps all numbers below `limit` together take to 1."""
    steps = 0
    for start in range(1, limit):
        n = start
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
    return steps


def newton(count: int) -> float:
    """Points at given distances from three others; each to convergence."""
    total = 0.0
    for k in range(count):
        goal = 2.0 + 0.0001 * k
        p = 9.0 + goal * goal + 1.0
        q = 1.0 + goal * goal + 4.0
        r = 4.0 + (goal - 5.0) * (goal - 5.0) + 1.0
        x = 2.0
        y = 1.0
        z = 3.0
        error = 1.0
        while error > 1e-20:
            a = x - 4.0
            b = z - 1.0
            c = x - 1.0
            d = y - 5.0
            f = 0.5 * (x * x + y * y + z * z - p)
            g = 0.5 * (a * a + y * y + b * b - q)
            h = 0.5 * (c * c + d * d + z * z - r)
            m1 = y * z - b * d
            m2 = b * c - a * z
            m3 = a * d - y * c
            n1 = z * d - y * z
            n2 = x * z - z * c
            n3 = y * c - x * d
            o1 = y * b - z * y
            o2 = z * a - x * b
            o3 = x * y - y * a
            scale = 1.0 / (x * m1 + y * m2 + z * m3)
            u = (m1 * f + n1 * g + o1 * h) * scale
            v = (m2 * f + n2 * g + o2 * h) * scale
            w = (m3 * f + n3 * g + o3 * h) * scale
            x = x - u
            y = y - v
            z = z - w
            error = (u * u + v * v + w * w) / (p + q)
        total += x + y + z
    return total


def levenshtein(a: Any, b: Any) -> Any:
    """How many edits lead from one sequence to the other; one row of the table at a time."""
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            best = min(row[j], row[j + 1]) + 1
            if a[i] != b[j]:
                corner += 1
            best = min(best, corner)
            corner = row[j + 1]
            row[j + 1] = best
    return row[len(b)]


def sieve(limit: int) -> Any:
    """How many primes there are below `limit`."""
    prime = np.ones(limit, np.bool_)
    prime[:2] = False
    i = 2
    while i * i < limit:
        if prime[i]:
            for j in range(i * i, limit, i):
                prime[j] = False
        i += 1
    return prime.sum()


def levenshtein_lists(a: list[int], b: list[int]) -> int:
    """The same on lists, as TorchScript takes it."""
    row = [j for j in range(len(b) + 1)]
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            best = min(row[j], row[j + 1]) + 1
            if a[i] != b[j]:
                corner += 1
            best = min(best, corner)
            corner = row[j + 1]
            row[j + 1] = best
    return row[len(b)]


def sieve_lists(limit: int) -> int:
    """The same on a list, as TorchScript takes it."""
    prime = [True for _ in range(limit)]
    prime[0] = False
    prime[1] = False
    i = 2
    while i * i < limit:
        if prime[i]:
            for j in range(i * i, limit, i):
                prime[j] = False
        i += 1
    found = 0
    for each in prime:
        if each:
            found += 1
    return found


class Program(NamedTuple):
    """A program, its arguments, and the same for TorchScript."""

    title: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    on_lists: Callable[..., Any]
    lists: tuple[Any, ...]


def _programs() -> dict[str, Program]:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 300), rng.integers(0, 4, 300)
    lists = (a.tolist(), b.tolist())
    return {
        "collatz": Program("Collatz lengths below 5 000", collatz, (5000,), collatz, (5000,)),
        "newton": Program("Newton, 5 000 points from distances", newton, (5000,), newton, (5000,)),
        "levenshtein": Program(
            "Levenshtein, 300 by 300", levenshtein, (a, b), levenshtein_lists, lists
        ),
        "sieve": Program("sieve below 200 000", sieve, (200000,), sieve_lists, (200000,)),
    }


# ---- measured ----------------------------------------------------------------------------------

BARS = {"Python": 0.02, "numba.njit": 1.25, "TorchScript": 0.05}


def loops(*, backend: str = "auto", rounds: int = 9, sample_s: float = 0.002) -> list[Row]:
    """Loops over numbers: at least 50 times Python's speed, and near that of `numba.njit`."""
    rows: list[Row] = []
    for program in _programs().values():
        rows += _rows(program, backend, rounds, sample_s)
    return rows


def _rows(program: Program, backend: str, rounds: int, sample_s: float) -> list[Row]:
    title, function, arguments, on_lists, lists = program
    makers: Mapping[str, Callable[[], Callable[[], Any]]] = {
        "minigraph": lambda: functools.partial(mg.script(function, backend=backend), *arguments),
        "Python": lambda: functools.partial(function, *arguments),
        "numba.njit": lambda: functools.partial(_njit(function), *arguments),
        "TorchScript": lambda: functools.partial(_torch_script(on_lists), *lists),
    }
    calls: dict[str, Call] = {}
    for name, make in makers.items():
        try:
            calls[name] = Call(make())
        except ImportError:
            continue
    wanted = float(function(*arguments))
    for name, call in calls.items():
        if not np.isclose(float(call.run()), wanted, rtol=1e-12):
            raise Disagreement(f"{title}: {name} gives {call.run()}, and Python {wanted}")
    found = in_turns(calls, rounds, rest_s=0.01, sample_s=sample_s, samples=2)
    return [
        Row(title, name, found[name], found["minigraph"], at_most)
        for name, at_most in BARS.items()
        if name in found
    ]


def _njit(function: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    return numba.njit(function)


def _torch_script(function: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    return torch.jit.script(function)
