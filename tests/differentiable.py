"""Random programs in NumPy that are smooth nearly everywhere, and whose numbers stay small."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

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
