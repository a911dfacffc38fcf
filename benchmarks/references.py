"""What is right: every workload in plain NumPy, in float64, from the mathematics.

Nothing here is timed, and no framework has a part in it.  Arguments and parameters come in float64,
whatever the frameworks compute in.  Derivatives are written out by hand for the network that is
trained; for the others they come by complex steps (Squire and Trapp, 1998), exact to rounding: the
imaginary part of f(p + i h v) / h is the derivative of f along v.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Parameters = Mapping[str, Array]
STEP = 1e-100  # of complex steps; nothing is subtracted, so it cannot be too small

# ---- elements and rows -------------------------------------------------------------------------


def fancy_func(a: Any, b: Any, c: Any, d: Any) -> tuple[Any]:
    return ((a + b) + (c + d),)


def gelu(x: Array) -> Array:
    """By tanh; also of complex numbers."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def chain(x: Array) -> tuple[Array]:
    return (gelu(x),)


def softmax_rows(x: Array) -> Array:
    """Over the last axis; also of complex numbers."""
    e = np.exp(x - x.real.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax(x: Array) -> tuple[Array]:
    return (softmax_rows(x),)


def normalized(x: Array, epsilon: float = 1e-5) -> Array:
    """Over the last axis, with the variance that divides by n; also of complex numbers."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + epsilon)


def layer_norm(x: Array, residual: Array, *, scale: Array, shift: Array) -> tuple[Array]:
    return (gelu(normalized(x + residual) * scale + shift),)


# ---- networks ----------------------------------------------------------------------------------


def relu(x: Array) -> Array:
    """Also of complex numbers, by the sign of the real part."""
    return x * (x.real > 0)


def mlp(x: Array, *, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> tuple[Array]:
    h = relu(x @ w1 + b1)
    h = relu(h @ w2 + b2)
    return (h @ w3 + b3,)


def mlp_training(
    x: Array, labels: Array, *, optimizer: str, rate: float, steps: int, **given: Array
) -> tuple[Array]:
    """The loss of each step, before its update.  Adam as in Kingma and Ba, 2015."""
    names = sorted(given)
    state = {name: value.copy() for name, value in given.items()}
    first = {name: np.zeros_like(value) for name, value in given.items()}
    second = {name: np.zeros_like(value) for name, value in given.items()}
    losses: list[float] = []
    for step in range(1, steps + 1):
        loss, gradients = _loss_and_gradients(x, labels, state)
        losses.append(loss)
        for name in names:
            gradient = gradients[name]
            if optimizer == "adam":
                first[name] = 0.9 * first[name] + 0.1 * gradient
                second[name] = 0.999 * second[name] + 0.001 * gradient**2
                mean, variance = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
                gradient = mean / (np.sqrt(variance) + 1e-8)
            state[name] = state[name] - rate * gradient
    return (np.array(losses),)


def _loss_and_gradients(x: Array, labels: Array, p: Parameters) -> tuple[float, dict[str, Array]]:
    """Softmax cross entropy of the MLP, averaged over the batch, and its derivatives."""
    h1 = relu(x @ p["w1"] + p["b1"])
    h2 = relu(h1 @ p["w2"] + p["b2"])
    chances = softmax_rows(h2 @ p["w3"] + p["b3"])
    rows = np.arange(len(x))
    loss = -np.log(chances[rows, labels]).mean()
    scores = chances.copy()
    scores[rows, labels] -= 1
    scores /= len(x)
    d2 = (scores @ p["w3"].T) * (h2 > 0)
    d1 = (d2 @ p["w2"].T) * (h1 > 0)
    gradients = {
        "w1": x.T @ d1, "b1": d1.sum(0),
        "w2": h1.T @ d2, "b2": d2.sum(0),
        "w3": h2.T @ scores, "b3": scores.sum(0),
    }  # fmt: skip
    return float(loss), gradients


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm(x: Array, *, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array) -> tuple[Array]:
    """All hidden states, (steps, batch, hidden); gates in the order input, forget, cell, output."""
    h = np.zeros((x.shape[1], w_hh.shape[1]), x.dtype)
    c, states = h, []
    for step in x:
        i, f, g, o = np.split(step @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return (np.stack(states),)


def gru(x: Array, *, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array) -> tuple[Array]:
    """All hidden states, (steps, batch, hidden); gates in the order reset, update, new."""
    h, states = np.zeros((x.shape[1], w_hh.shape[1]), x.dtype), []
    for step in x:
        given_r, given_z, given_n = np.split(step @ w_ih.T + b_ih, 3, axis=1)
        own_r, own_z, own_n = np.split(h @ w_hh.T + b_hh, 3, axis=1)
        r, z = sigmoid(given_r + own_r), sigmoid(given_z + own_z)
        n = np.tanh(given_n + r * own_n)
        h = (1 - z) * n + z * h
        states.append(h)
    return (np.stack(states),)


def encoder(x: Array, *, heads: int, **p: Array) -> tuple[Array]:
    """A block of a Transformer's encoder, with normalisation after each sum, without dropout."""
    batch, length, units = x.shape

    def split(name: str) -> Array:
        found = x @ p[f"{name}_weight"].T + p[f"{name}_bias"]
        return found.reshape(batch, length, heads, units // heads).transpose(0, 2, 1, 3)

    query, key, value = split("query"), split("key"), split("value")
    scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(units // heads)
    mixed = (softmax_rows(scores) @ value).transpose(0, 2, 1, 3).reshape(batch, length, units)
    mixed = mixed @ p["output_weight"].T + p["output_bias"]
    h = normalized(x + mixed) * p["norm1_scale"] + p["norm1_shift"]
    inner = relu(h @ p["hidden_weight"].T + p["hidden_bias"])
    inner = inner @ p["last_weight"].T + p["last_bias"]
    return (normalized(h + inner) * p["norm2_scale"] + p["norm2_shift"],)


def gradients(
    forward: Callable[..., tuple[Array]], reduction: str, x: Array, directions: Parameters, **p: Any
) -> tuple[Array, ...]:
    """The loss, and its derivative along one direction of each parameter.

    The loss is the sum or the mean of the squares of what `forward` returns.
    """

    def loss(parameters: Mapping[str, Any]) -> Any:
        (found,) = forward(x, **parameters)
        return getattr(found * found, reduction)()

    along = [
        (loss({**p, name: p[name] + 1j * STEP * direction}) / STEP).imag
        for name, direction in directions.items()
    ]
    return (np.array(loss(p)), *map(np.array, along))


# ---- programs on arrays ------------------------------------------------------------------------


def normal_cdf(x: Array) -> Array:
    """Abramowitz and Stegun 26.2.17: six digits of the normal distribution."""
    k = 1 / (1 + 0.2316419 * np.abs(x))
    series = 1.330274429
    for term in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        series = series * k + term
    tail = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * series * k
    return np.where(x < 0, tail, 1 - tail)


def black_scholes(spot: Array, strike: Array, years: Array) -> tuple[Array]:
    """The price of a call, with a rate of 2 % and a volatility of 30 %."""
    rate, volatility = 0.02, 0.3
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    d2 = d1 - deviation
    return (spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d2),)


def mandelbrot(real: Array, imaginary: Array, *, steps: int) -> tuple[Array]:
    """In how many of the steps each point was within two of the origin."""
    a, b, found = real, imaginary, np.zeros_like(real)
    with np.errstate(all="ignore"):  # the others leave for infinity
        for _ in range(steps):
            a2, b2 = a * a, b * b
            found = found + (a2 + b2 <= 4)
            a, b = a2 - b2 + real, 2 * a * b + imaginary
    return (found,)


def heat(u: Array) -> tuple[Array]:
    """One explicit step of the heat equation, without the border."""
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return (inner + 0.1 * (around - 4 * inner),)


def pairwise(x: Array, y: Array) -> tuple[Array]:
    """The distance of each point to each of the others."""
    return (np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)),)


def reduction(x: Array, *, method: str, axis: int) -> tuple[Array]:
    return (getattr(x, method)(axis=axis),)


# ---- loops over numbers ------------------------------------------------------------------------


def collatz(limit: int) -> tuple[Array]:
    """How many steps all numbers below `limit` together take to 1."""
    steps = [0, 0]  # of each number
    for start in range(2, limit):
        n, taken = start, 0
        while n >= start:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            taken += 1
        steps.append(taken + steps[n])
    return (np.array(sum(steps[:limit])),)


def newton(count: int) -> tuple[Array]:
    """The sum of the coordinates of the points whose distances to three others are given.

    By NumPy's solver of linear equations; the workload's programs write Cramer's rule out.
    """
    others = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [1.0, 5.0, 0.0]])
    total = 0.0
    for k in range(count):
        goal = 2.0 + 0.0001 * k
        squares = np.array(
            [9.0 + goal**2 + 1.0, 1.0 + goal**2 + 4.0, 4.0 + (goal - 5.0) ** 2 + 1.0]
        )
        point, change = np.array([2.0, 1.0, 3.0]), np.array([1.0])
        while change @ change > 1e-24:
            away = point - others
            change = np.linalg.solve(away, 0.5 * ((away * away).sum(axis=1) - squares))
            point = point - change
        total += point.sum()
    return (np.array(total),)


def levenshtein(a: Array, b: Array) -> tuple[Array]:
    """How many edits lead from one sequence to the other; Wagner and Fischer, 1974."""
    table = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    table[:, 0], table[0] = range(len(a) + 1), range(len(b) + 1)
    for i, left in enumerate(a, 1):
        for j, right in enumerate(b, 1):
            changed = table[i - 1, j - 1] + (left != right)
            table[i, j] = min(changed, table[i - 1, j] + 1, table[i, j - 1] + 1)
    return (table[-1, -1],)


def sieve(limit: int) -> tuple[Array]:
    """How many primes there are below `limit`; Eratosthenes."""
    prime = np.ones(limit, np.bool_)
    prime[:2] = False
    for i in range(2, math.isqrt(limit) + 1):
        prime[i * i :: i] = False
    return (prime.sum(),)
