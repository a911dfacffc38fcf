"""What a user writes: each workload in ordinary NumPy, the same source for all who can run it.

For a family of arrays there is a function from a namespace (`numpy`, `jax.numpy`), the parameters
and the options of a case to the user's function; `formula` calls it.  Loops over numbers are the
user's functions themselves.  Arrays that belong to a function are free variables in it, as they
are where the textbook trains a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .workloads import Case

Function = Callable[..., Any]


def formula(case: Case, xp: Any, parameters: Any = None) -> Function:
    """The user's function of a case's arguments; `parameters` as arrays of the namespace."""
    found = globals()[case.workload.family]
    if case.workload.kind == "loop":
        return found
    return found(xp, **(case.parameters if parameters is None else parameters), **case.options)


# ---- elements and rows -------------------------------------------------------------------------


def fancy_func(xp: Any) -> Function:
    def add(a: Any, b: Any) -> Any:
        return a + b

    def fancy_func(a: Any, b: Any, c: Any, d: Any) -> Any:
        e = add(a, b)
        f = add(c, d)
        g = add(e, f)
        return g

    return fancy_func


def chain(xp: Any) -> Function:
    factor = math.sqrt(2 / math.pi)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + xp.tanh(factor * (x + 0.044715 * x * x * x)))

    return gelu


def softmax(xp: Any) -> Function:
    def softmax(x: Any) -> Any:
        e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)

    return softmax


def layer_norm(xp: Any, scale: Any, shift: Any) -> Function:
    gelu = chain(xp)

    def layer_norm(x: Any, residual: Any) -> Any:
        h = x + residual
        h = (h - h.mean(axis=1, keepdims=True)) / xp.sqrt(h.var(axis=1, keepdims=True) + 1e-5)
        return gelu(h * scale + shift)

    return layer_norm


def reduction(xp: Any, method: str, axis: int) -> Function:
    def reduction(x: Any) -> Any:
        return getattr(x, method)(axis=axis)

    return reduction


# ---- networks ----------------------------------------------------------------------------------


def mlp(xp: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Function:
    def mlp(x: Any) -> Any:
        h = xp.maximum(x @ w1 + b1, 0)
        h = xp.maximum(h @ w2 + b2, 0)
        return h @ w3 + b3

    return mlp


def lstm(xp: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Function:
    def sigmoid(x: Any) -> Any:
        return 1 / (1 + xp.exp(-x))

    def lstm(x: Any) -> Any:
        h = c = xp.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
        states = []
        for step in x:
            gates = step @ w_ih.T + b_ih + h @ w_hh.T + b_hh
            i, f, g, o = xp.split(gates, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
            h = sigmoid(o) * xp.tanh(c)
            states.append(h)
        return xp.stack(states)

    return lstm


def gru(xp: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Function:
    def sigmoid(x: Any) -> Any:
        return 1 / (1 + xp.exp(-x))

    def gru(x: Any) -> Any:
        h = xp.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
        states = []
        for step in x:
            given_r, given_z, given_n = xp.split(step @ w_ih.T + b_ih, 3, axis=1)
            own_r, own_z, own_n = xp.split(h @ w_hh.T + b_hh, 3, axis=1)
            r = sigmoid(given_r + own_r)
            z = sigmoid(given_z + own_z)
            n = xp.tanh(given_n + r * own_n)
            h = (1 - z) * n + z * h
            states.append(h)
        return xp.stack(states)

    return gru


def encoder(xp: Any, heads: int, **p: Any) -> Function:
    def normalized(x: Any, name: str) -> Any:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / xp.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        return x * p[f"{name}_scale"] + p[f"{name}_shift"]

    def dense(x: Any, name: str) -> Any:
        return x @ p[f"{name}_weight"].T + p[f"{name}_bias"]

    def split(x: Any) -> Any:
        batch, length, units = x.shape
        return x.reshape(batch, length, heads, units // heads).transpose(0, 2, 1, 3)

    def attention(x: Any) -> Any:
        query, key, value = (split(dense(x, name)) for name in ("query", "key", "value"))
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(query.shape[-1])
        e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        mixed = e / xp.sum(e, axis=-1, keepdims=True) @ value
        return dense(mixed.transpose(0, 2, 1, 3).reshape(x.shape), "output")

    def encoder(x: Any) -> Any:
        h = normalized(x + attention(x), "norm1")
        inner = xp.maximum(dense(h, "hidden"), 0)
        return normalized(h + dense(inner, "last"), "norm2")

    return encoder


def mlp_training(xp: Any, optimizer: str, rate: float, **given: Any) -> Function:
    """From scratch: the derivatives are written by hand, and the parameters in place."""
    p = {name: value.copy() for name, value in given.items()}
    means = {name: xp.zeros_like(value) for name, value in p.items()}
    squares = {name: xp.zeros_like(value) for name, value in p.items()}
    steps = 0

    def loss_and_gradients(x: Any, labels: Any) -> Any:
        h1 = xp.maximum(x @ p["w1"] + p["b1"], 0)
        h2 = xp.maximum(h1 @ p["w2"] + p["b2"], 0)
        scores = h2 @ p["w3"] + p["b3"]
        scores -= scores.max(axis=1, keepdims=True)
        rows = xp.arange(len(x))
        sums = xp.exp(scores).sum(axis=1, keepdims=True)
        loss = (xp.log(sums[:, 0]) - scores[rows, labels]).mean()
        d3 = xp.exp(scores) / sums
        d3[rows, labels] -= 1
        d3 /= len(x)
        d2 = (d3 @ p["w3"].T) * (h2 > 0)
        d1 = (d2 @ p["w2"].T) * (h1 > 0)
        return loss, {
            "w1": x.T @ d1, "b1": d1.sum(axis=0),
            "w2": h1.T @ d2, "b2": d2.sum(axis=0),
            "w3": h2.T @ d3, "b3": d3.sum(axis=0),
        }  # fmt: skip

    def sgd(name: str, gradient: Any) -> None:
        p[name] -= rate * gradient

    def adam(name: str, gradient: Any) -> None:
        means[name] += 0.1 * (gradient - means[name])
        squares[name] += 0.001 * (gradient * gradient - squares[name])
        corrected = rate * math.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
        epsilon = 1e-8 * math.sqrt(1 - 0.999**steps)
        p[name] -= corrected * means[name] / (xp.sqrt(squares[name]) + epsilon)

    update = {"sgd": sgd, "adam": adam}[optimizer]

    def step(x: Any, labels: Any) -> Any:
        nonlocal steps
        steps += 1
        loss, gradients = loss_and_gradients(x, labels)
        for name, gradient in gradients.items():
            update(name, gradient)
        return loss

    return step


# ---- programs on arrays ------------------------------------------------------------------------


def black_scholes(xp: Any) -> Function:
    rate, volatility = 0.02, 0.3

    def normal_cdf(x: Any) -> Any:
        k = 1 / (1 + 0.2316419 * xp.abs(x))
        series = 1.330274429
        for term in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
            series = series * k + term
        tail = xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)) * series * k
        return xp.where(x < 0, tail, 1 - tail)

    def black_scholes(spot: Any, strike: Any, years: Any) -> Any:
        deviation = volatility * xp.sqrt(years)
        d1 = (xp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
        d2 = d1 - deviation
        discounted = strike * xp.exp(-rate * years)
        return spot * normal_cdf(d1) - discounted * normal_cdf(d2)

    return black_scholes


def mandelbrot(xp: Any, steps: int) -> Function:
    def mandelbrot(real: Any, imaginary: Any) -> Any:
        a, b = real, imaginary
        inside = xp.zeros_like(real)
        for _ in range(steps):
            a2, b2 = a * a, b * b
            inside = inside + (a2 + b2 <= 4)
            a, b = a2 - b2 + real, 2 * a * b + imaginary
        return inside

    return mandelbrot


def heat(xp: Any) -> Function:
    def heat(u: Any) -> Any:
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u[1:-1, 1:-1] + 0.1 * (around - 4 * u[1:-1, 1:-1])

    return heat


def pairwise(xp: Any) -> Function:
    def pairwise(x: Any, y: Any) -> Any:
        return xp.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1))

    return pairwise


# ---- loops over numbers ------------------------------------------------------------------------


def collatz(limit: int) -> int:
    """How many steps all numbers below `limit` together take to 1."""
    steps = 0
    for start in range(1, limit):
        n = start
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
    return steps


def newton_of(k: int) -> float:
    """The sum of the coordinates of one point, from its distances to three others."""
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
    return x + y + z


def newton(count: int) -> float:
    """Points at given distances from three others; each to convergence."""
    total = 0.0
    for k in range(count):
        total += newton_of(k)
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
