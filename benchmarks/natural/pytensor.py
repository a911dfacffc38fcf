"""What a user of PyTensor writes for each workload that is no formula of `formulas.py`.

Functions of symbols return symbols.  Loops are `scan`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until

Symbol = Any
Updates = list[tuple[Any, Any]]

# ---- elements and rows -------------------------------------------------------------------------


def softmax(x: Symbol) -> Symbol:
    return pt.special.softmax(x, axis=1)


def normalized(x: Symbol) -> Symbol:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / pt.sqrt(pt.sqr(centred).mean(axis=-1, keepdims=True) + 1e-5)


def gelu(x: Symbol) -> Symbol:
    return 0.5 * x * (1 + pt.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def layer_norm(x: Symbol, residual: Symbol, *, scale: Symbol, shift: Symbol) -> Symbol:
    return gelu(normalized(x + residual) * scale + shift)


# ---- networks ----------------------------------------------------------------------------------


def mlp(
    x: Symbol, *, w1: Symbol, b1: Symbol, w2: Symbol, b2: Symbol, w3: Symbol, b3: Symbol
) -> Symbol:
    h = pt.maximum(pt.dot(x, w1) + b1, 0)
    h = pt.maximum(pt.dot(h, w2) + b2, 0)
    return pt.dot(h, w3) + b3


def lstm(x: Symbol, *, w_ih: Symbol, w_hh: Symbol, b_ih: Symbol, b_hh: Symbol) -> Symbol:
    """The inputs' part of all steps is one product before the loop."""
    hidden = w_hh.shape[1]

    def step(given: Symbol, h: Symbol, c: Symbol) -> tuple[Symbol, Symbol]:
        i, f, g, o = pt.split(given + pt.dot(h, w_hh.T), 4 * [hidden], axis=1)
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        return pt.sigmoid(o) * pt.tanh(c), c

    start = pt.zeros((x.shape[1], hidden), x.dtype)
    states, _ = pytensor.scan(
        step, [pt.dot(x, w_ih.T) + b_ih + b_hh], [start, start], return_updates=False
    )
    return states


def gru(x: Symbol, *, w_ih: Symbol, w_hh: Symbol, b_ih: Symbol, b_hh: Symbol) -> Symbol:
    """The inputs' part of all steps is one product before the loop."""
    hidden = w_hh.shape[1]

    def step(given: Symbol, h: Symbol) -> Symbol:
        given_r, given_z, given_n = pt.split(given, 3 * [hidden], axis=1)
        own_r, own_z, own_n = pt.split(pt.dot(h, w_hh.T) + b_hh, 3 * [hidden], axis=1)
        r, z = pt.sigmoid(given_r + own_r), pt.sigmoid(given_z + own_z)
        n = pt.tanh(given_n + r * own_n)
        return (1 - z) * n + z * h

    start = pt.zeros((x.shape[1], hidden), x.dtype)
    return pytensor.scan(step, [pt.dot(x, w_ih.T) + b_ih], [start], return_updates=False)


def encoder(x: Symbol, *, heads: int, **p: Symbol) -> Symbol:
    batch, length, units = x.shape

    def linear(name: str, h: Symbol) -> Symbol:
        return h @ p[f"{name}_weight"].T + p[f"{name}_bias"]

    def split(name: str) -> Symbol:
        found = linear(name, x).reshape((batch, length, heads, units // heads))
        return found.transpose(0, 2, 1, 3)

    query, key, value = split("query"), split("key"), split("value")
    size = pt.sqrt(pt.cast(units // heads, x.dtype))
    shares = pt.special.softmax(query @ key.transpose(0, 1, 3, 2) / size, axis=-1)
    mixed = (shares @ value).transpose(0, 2, 1, 3).reshape((batch, length, units))
    h = normalized(x + linear("output", mixed)) * p["norm1_scale"] + p["norm1_shift"]
    inner = linear("last", pt.maximum(linear("hidden", h), 0))
    return normalized(h + inner) * p["norm2_scale"] + p["norm2_shift"]


# ---- training ----------------------------------------------------------------------------------


def mlp_training(
    x: Symbol, labels: Symbol, *, optimizer: str, rate: float, **parameters: Symbol
) -> tuple[Symbol, Updates]:
    """The loss, and what becomes of the parameters."""
    logarithms = pt.special.log_softmax(mlp(x, **parameters), axis=1)
    loss = -logarithms[pt.arange(x.shape[0]), labels].mean()
    values = list(parameters.values())
    gradients = pt.grad(loss, values)
    return loss, {"sgd": sgd, "adam": adam}[optimizer](values, gradients, rate)


def sgd(values: Sequence[Symbol], gradients: Sequence[Symbol], rate: float) -> Updates:
    return [(v, v - rate * g) for v, g in zip(values, gradients, strict=True)]


def adam(values: Sequence[Symbol], gradients: Sequence[Symbol], rate: float) -> Updates:
    steps = pytensor.shared(np.float32(0))
    step = steps + 1
    found: Updates = [(steps, step)]
    for value, gradient in zip(values, gradients, strict=True):
        first = pytensor.shared(np.zeros_like(value.get_value()))
        second = pytensor.shared(np.zeros_like(value.get_value()))
        m = 0.9 * first + 0.1 * gradient
        v = 0.999 * second + 0.001 * pt.sqr(gradient)
        mean = m / (1 - 0.9**step)
        variance = v / (1 - 0.999**step)
        moved = value - rate * mean / (pt.sqrt(variance) + 1e-8)
        found += [(first, m), (second, v), (value, moved)]
    return found


def loss_and_gradients(found: Symbol, reduction: str, parameters: Mapping[str, Symbol]) -> Any:
    loss = getattr(pt, reduction)(pt.sqr(found))
    return [loss, *pt.grad(loss, list(parameters.values()))]


# ---- loops over numbers ------------------------------------------------------------------------


def collatz(limit: Symbol) -> Symbol:
    """How many steps all numbers below `limit` together take to 1."""

    def step(n: Symbol, taken: Symbol) -> Any:
        is_done = pt.eq(n, 1)
        following = pt.switch(pt.eq(n % 2, 0), n // 2, 3 * n + 1)
        return (following, taken + 1 - is_done), until(is_done)

    def count(start: Symbol, total: Symbol) -> Symbol:
        zero = pt.constant(0, dtype="int64")
        _, taken = pytensor.scan(
            step, outputs_info=[start, zero], n_steps=10_000, return_updates=False
        )
        return total + taken[-1]

    totals = pytensor.scan(
        count, [pt.arange(1, limit)], [pt.constant(0, dtype="int64")], return_updates=False
    )
    return totals[-1]


def newton(count: Symbol) -> Symbol:
    """Points at given distances from three others; each to convergence."""
    others = pt.constant(np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [1.0, 5.0, 0.0]]))
    start = pt.constant(np.array([2.0, 1.0, 3.0]))

    def step(point: Symbol, squares: Symbol) -> Any:
        away = point - others
        change = pt.linalg.solve(away, 0.5 * (pt.sqr(away).sum(axis=1) - squares))
        error = pt.dot(change, change) / (squares[0] + squares[1])
        return point - change, until(error <= 1e-20)

    def add(k: Symbol, total: Symbol) -> Symbol:
        goal = 2.0 + 0.0001 * k
        squares = pt.stack(
            [9.0 + goal * goal + 1.0, 1.0 + goal * goal + 4.0, 4.0 + pt.sqr(goal - 5.0) + 1.0]
        )
        points = pytensor.scan(
            step, None, [start], non_sequences=[squares], n_steps=100, return_updates=False
        )
        return total + points[-1].sum()

    totals = pytensor.scan(
        add, [pt.arange(count)], [pt.constant(0.0, dtype="float64")], return_updates=False
    )
    return totals[-1]
