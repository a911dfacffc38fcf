"""Random programs in NumPy that are smooth nearly everywhere, and whose numbers stay small."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import minigraph as mg

Program = Callable[..., Any]
Step = Callable[..., Any]

SHAPES: list[tuple[int, ...]] = [(), (3,), (2, 3), (2, 1), (3, 3), (2, 3, 3)]

UNARY: list[Step] = [
    lambda m, x: m.sin(x),
    lambda m, x: m.tanh(x),
    lambda m, x: m.square(x),
    lambda m, x: -x,
    lambda m, x: abs(x),
    lambda m, x: m.exp(-x * x),
    lambda m, x: m.log1p(x * x),
    lambda m, x: m.sqrt(1.0 + x * x),
    lambda m, x: x**3 / 4,
    lambda m, x: m.where(x > 0.1, x, 0.2 * x),
    lambda m, x: m.maximum(x, 0.3),
    lambda m, x: x.astype("float64") * 0.5,
]
BINARY: list[Step] = [
    lambda m, x, y: x + y,
    lambda m, x, y: x - 0.5 * y,
    lambda m, x, y: m.tanh(x) * y,
    lambda m, x, y: x / (1.5 + y * y),
    lambda m, x, y: m.where(x > y, x, y * x),
    lambda m, x, y: m.maximum(x, y),
    lambda m, x, y: m.hypot(x, 1.0 + y * y),
]
SHAPED: list[Step] = [
    lambda m, x: x.sum(axis=-1),
    lambda m, x: x.mean(axis=0, keepdims=True),
    lambda m, x: x.max(axis=-1, keepdims=True),
    lambda m, x: x.T,
    lambda m, x: x.reshape(-1),
    lambda m, x: x[..., ::-1],
    lambda m, x: x[1:],
    lambda m, x: x[..., None] + m.ones(2),
    lambda m, x: m.concatenate([x, 2 * x], axis=-1)[..., : x.shape[-1]],
    lambda m, x: m.cumsum(x, axis=-1) / 3,
    lambda m, x: m.broadcast_to(x, (2, *x.shape)).sum(axis=0) / 2,
]


def program(seed: int, steps: int, m: Any = np) -> Program:
    """A function of arrays, with functions of the module `m`; what does not fit is left out."""
    source = random.Random(seed)
    plan = [(source.random(), source.random(), source.random()) for _ in range(steps)]

    def run(*arguments: Any) -> Any:
        pool = list(arguments)
        for kind, which, other in plan:
            x, y = pool[int(other * len(pool))], pool[-1]
            if kind < 0.35:
                pool.append(UNARY[int(which * len(UNARY))](m, x))
            elif kind < 0.65:
                if fits(x, y):
                    pool.append(BINARY[int(which * len(BINARY))](m, x, y))
            elif kind < 0.75:
                if x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[0]:
                    pool.append(m.tanh(x @ y))
            elif x.ndim and x.shape[0] > 1 and x.ndim < 4:
                pool.append(SHAPED[int(which * len(SHAPED))](m, x))
        return sum(m.sum(m.tanh(each)) for each in pool[-3:])

    return run


def fits(x: Any, y: Any) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(x.shape[::-1], y.shape[::-1], strict=False))


@st.composite
def cases(draw: st.DrawFn, most: int = 12) -> tuple[int, int, list[np.ndarray[Any, Any]]]:
    """(seed, steps) of a program, and where to run it."""
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    arguments = [
        rng.normal(size=SHAPES[rng.integers(len(SHAPES))]) for _ in range(draw(st.integers(1, 3)))
    ]
    return seed, draw(st.integers(1, most)), arguments


# ---- loops and branches

SAME: list[Step] = [
    lambda x, y: np.sin(x) * y,
    lambda x, y: np.tanh(x + y),
    lambda x, y: x / (1.5 + y * y),
    lambda x, y: np.exp(-x * x) + 0.3 * y,
    lambda x, y: np.where(x > y, 0.5 * x, x * y),
    lambda x, y: np.concatenate([y[:, 1:], np.cos(x[:, :1])], axis=1),
    lambda x, y: x - x.mean(axis=0),
    lambda x, y: y,
]
"""Of arrays of one shape, which they keep."""


def looping(seed: int) -> Program:
    """A function of (x: f64[2,3], rows: f64[n,2,3], w: f64[3,3], turns: int) that loops."""
    return _block(random.Random(seed), depth=2)


def _block(source: random.Random, depth: int) -> Program:
    """Three steps, of which some are loops or branches."""
    steps = [_step(source, depth) for _ in range(3)]

    def run(x: Any, rows: Any, w: Any, turns: Any) -> Any:
        before = x
        for step in steps:
            x, before = step(x, before, rows, w, turns), x
        return x

    return run


def _step(source: random.Random, depth: int) -> Step:
    kind = source.choice(["plain", "plain", "product", "branch", "while", "scan"][: 3 + 3 * depth])
    if kind == "plain":
        chosen = source.choice(SAME)
        return lambda x, y, rows, w, turns: chosen(x, y)
    if kind == "product":
        return lambda x, y, rows, w, turns: np.tanh(x @ w + y)
    return {"branch": _branch, "while": _while, "scan": _scan}[kind](source, depth - 1)


def _branch(source: random.Random, depth: int) -> Step:
    then, otherwise = _block(source, depth), _block(source, depth)

    def run(x: Any, y: Any, rows: Any, w: Any, turns: Any) -> Any:
        return mg.cond(
            (x + y).sum() > 0.1,
            lambda: then(x, rows, w, turns),
            lambda: otherwise(y, rows, w, turns) + 0.1,
        )

    return run


def _while(source: random.Random, depth: int) -> Step:
    body, limit = _block(source, depth), source.choice([None, None, 2, 6])
    swaps = source.random() < 0.3

    def run(x: Any, y: Any, rows: Any, w: Any, turns: Any) -> Any:
        def turn(i: Any, x: Any, y: Any) -> Any:
            new = body(x, rows, w, i) * 0.7 + rows[i % 2] * y
            return (i + 1, y, new) if swaps else (i + 1, new, y)

        start = (0, x, y)
        return mg.while_loop(lambda i, x, y: i < turns, turn, start, max_iter=limit)[1]

    return run


def _scan(source: random.Random, depth: int) -> Step:
    body, reverse = _block(source, depth), source.random() < 0.4
    stacks = source.choice(["new", "old", "row", "square"])

    def run(x: Any, y: Any, rows: Any, w: Any, turns: Any) -> Any:
        def turn(x: Any, row: Any) -> Any:
            new = np.tanh(body(x, rows, w, turns) + row * y)
            return new, {"new": new, "old": x, "row": row * w[0], "square": new * new}[stacks]

        last, stacked = mg.scan(turn, x, rows, reverse=reverse)
        return last + (stacked * rows).sum(axis=0) * 0.2

    return run
